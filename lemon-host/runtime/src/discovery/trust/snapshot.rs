//! What was trusted, as a copy that nothing changes: a plugin is run from it, so that what runs is what was looked at,
//! whatever happens to its folder in the meantime.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::contents::{Contents, ContentsError};

/// Its folder in Lemon's home.
const FOLDER: &str = "store";

/// Why there is no such copy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// What is to be copied can't be read.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// It is not any more what it was when it was looked at.
    #[error("{} changed while it was being copied", .0.display())]
    Changed(PathBuf),
    /// The copy can't be written.
    #[error("can't write to {}", path.display())]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A folder in the store; none if that is no name of one.
pub(super) fn in_store(home: &Path, name: &str) -> Option<PathBuf> {
    let is_name = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
    is_name.then(|| home.join(FOLDER).join(name))
}

/// Sees to it that there is a copy of `plugin`, whose files were found to be `contents`, and says where.
///
/// The copy is of the bytes that are hashed on the way, never of others. One that was made earlier is looked at again.
pub(super) fn of(home: &Path, plugin: &Path, contents: &Contents) -> Result<PathBuf, SnapshotError> {
    let place = home.join(FOLDER).join(contents.digest().as_str());
    if Contents::of(&place).is_ok_and(|copied| copied == *contents) {
        return Ok(place);
    }
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| SnapshotError::Unwritable { path, source }
    };
    let store = home.join(FOLDER);
    folder(&store).map_err(unwritable(&store))?;
    let new = tempfile::TempDir::new_in(&store).map_err(unwritable(&store))?;
    fill(new.path(), plugin, contents, Mode::ReadOnly)?;
    if place.exists() {
        // Somebody has been at it.
        remove(&place);
    }
    let new = new.keep();
    if let Err(source) = fs::rename(&new, &place) {
        remove(&new);
        // Another Lemon may have made the same one in the meantime.
        if !Contents::of(&place).is_ok_and(|made| made == *contents) {
            return Err(SnapshotError::Unwritable { path: place, source });
        }
    }
    // Not before it has its name: a folder that can't be written can't be moved.
    let _ = lock(&place);
    Ok(place)
}

/// A copy of a plugin's files that can be changed, to build it in. It is the caller's to [seal](lock) or to remove.
pub(super) fn to_build(home: &Path, plugin: &Path, contents: &Contents) -> Result<PathBuf, SnapshotError> {
    let store = home.join(FOLDER);
    let unwritable = |source| SnapshotError::Unwritable { path: store.clone(), source };
    folder(&store).map_err(unwritable)?;
    let prefix = format!("{}-", contents.digest().short());
    let new = tempfile::Builder::new().prefix(&prefix).tempdir_in(&store).map_err(unwritable)?;
    fill(new.path(), plugin, contents, Mode::Writable)?;
    Ok(new.keep())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadOnly,
    Writable,
}

/// Copies the files of a plugin, which must be those that were looked at.
fn fill(copy: &Path, plugin: &Path, contents: &Contents, mode: Mode) -> Result<(), SnapshotError> {
    let mut copied = Contents::default();
    copied.walk(plugin, &mut |within, bytes, executable| {
        let path = copy.join(within);
        let bits = match (mode, executable) {
            (Mode::ReadOnly, true) => 0o500,
            (Mode::ReadOnly, false) => 0o400,
            (Mode::Writable, true) => 0o700,
            (Mode::Writable, false) => 0o600,
        };
        write(&path, bytes, bits).map_err(|source| ContentsError::Unreadable { path, source })
    })?;
    if copied == *contents { Ok(()) } else { Err(SnapshotError::Changed(plugin.to_owned())) }
}

fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    path.parent().map_or(Ok(()), folder)?;
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}

/// Takes the right to write from all folders of a copy, so that nothing is put into them or taken out.
pub(super) fn lock(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            lock(&entry.path())?;
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o500))
}

/// Removes everything from the store that is not `used`. What is young may be a copy that somebody else is making.
pub(super) fn sweep(home: &Path, used: &BTreeSet<String>) {
    const YOUNG: Duration = Duration::from_secs(15 * 60);
    for entry in fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten() {
        let is_used = entry.file_name().to_str().is_some_and(|name| used.contains(name));
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|made| made.elapsed().ok());
        if !is_used && age.is_none_or(|age| age > YOUNG) {
            remove(&entry.path());
        }
    }
}

/// Removes a copy, as well as it goes.
pub(super) fn remove(path: &Path) {
    fn unlock(path: &Path) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                unlock(&entry.path())?;
            }
        }
        Ok(())
    }
    let _ = unlock(path);
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib/__pycache__")).unwrap();
        for (name, text) in [("a.py", "1"), ("lib/b.py", "2"), ("lib/__pycache__/b.pyc", "x")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::set_permissions(folder.path().join("a.py"), fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn a_copy_is_what_was_looked_at_and_is_made_once() {
        let (home, plugin) = (tempfile::tempdir().unwrap(), plugin());
        let contents = Contents::of(plugin.path()).unwrap();
        let copy = of(home.path(), plugin.path(), &contents).unwrap();
        assert_eq!(Contents::of(&copy).unwrap(), contents);
        assert!(!copy.join("lib/__pycache__").exists());
        assert_eq!(fs::metadata(copy.join("lib")).unwrap().permissions().mode() & 0o777, 0o500);
        assert_eq!(fs::metadata(copy.join("a.py")).unwrap().permissions().mode() & 0o777, 0o500);
        assert_eq!(of(home.path(), plugin.path(), &contents).unwrap(), copy);
        assert_eq!(fs::read_dir(home.path().join(FOLDER)).unwrap().count(), 1);
        remove(&copy);
        assert!(!copy.exists());
    }

    #[test]
    fn a_plugin_that_changed_after_it_was_looked_at_is_not_copied() {
        let (home, plugin) = (tempfile::tempdir().unwrap(), plugin());
        let contents = Contents::of(plugin.path()).unwrap();
        fs::write(plugin.path().join("a.py"), "evil").unwrap();
        assert!(matches!(of(home.path(), plugin.path(), &contents), Err(SnapshotError::Changed(_))));
        assert_eq!(fs::read_dir(home.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn a_copy_that_somebody_changed_is_made_anew() {
        let (home, plugin) = (tempfile::tempdir().unwrap(), plugin());
        let contents = Contents::of(plugin.path()).unwrap();
        let copy = of(home.path(), plugin.path(), &contents).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(copy.join("a.py")).unwrap();
        fs::write(copy.join("a.py"), "evil").unwrap();
        let again = of(home.path(), plugin.path(), &contents).unwrap();
        assert_eq!(fs::read_to_string(again.join("a.py")).unwrap(), "1");
    }

    #[test]
    fn a_home_that_can_not_be_written_is_told() {
        let plugin = plugin();
        let contents = Contents::of(plugin.path()).unwrap();
        let error = of(Path::new("/proc/nowhere"), plugin.path(), &contents).unwrap_err();
        assert!(matches!(error, SnapshotError::Unwritable { .. }), "{error}");
    }
}
