//! What a plugin's file or folder holds, as hashes: what trust is bound to.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::report::PluginText;

/// The most files of one plugin that can be bound to its trust.
const MAX_FILES: usize = 10_000;
/// The most bytes in them.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// How deep its folders may nest.
const MAX_DEPTH: usize = 32;

/// Folders that are no part of what runs: the history of a repository, and what Python compiled. A plugin that runs
/// bound to its contents runs without them.
const LEFT_OUT: &[&str] = &[".git", "__pycache__"];

/// A SHA-256, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sha(String);

impl Sha {
    /// Of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    fn finish(hash: Sha256) -> Self {
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Enough of it for a person to compare.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One file of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileContents {
    /// The hash of its bytes.
    pub sha256: Sha,
    /// How many those are.
    pub bytes: u64,
    /// Whether its owner may run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// All files of a plugin, by their path within its folder; the single file of one that is a file, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Contents {
    /// By path, with `/` between its parts.
    pub files: BTreeMap<String, FileContents>,
}

/// Why a plugin can't be bound to its contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// Something can't be read.
    #[error("can't read {}", shown(path))]
    Unreadable {
        /// What.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is a symbolic link, which may lead to anywhere, and elsewhere tomorrow.
    #[error("{} is a symbolic link, which can be trusted with its folder as a path only", shown(.0))]
    Symlink(PathBuf),
    /// There is a device, a socket or a pipe.
    #[error("{} is neither a file nor a folder", shown(.0))]
    Special(PathBuf),
    /// A file's name is not UTF-8.
    #[error("the name of {} is not UTF-8", shown(.0))]
    NotUtf8(PathBuf),
    /// It holds more than can be looked at each time.
    #[error("{} holds too much: at most {MAX_FILES} files with {} MiB in {MAX_DEPTH} levels", shown(.0), MAX_BYTES >> 20)]
    TooMuch(PathBuf),
}

fn shown(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

impl Contents {
    /// Reads a plugin's folder, or its single file. Follows no symbolic link below `path`.
    ///
    /// # Errors
    /// [`ContentsError`] with the first thing that can't be bound.
    pub fn of(path: &Path) -> Result<Self, ContentsError> {
        let mut contents = Self::default();
        contents.walk(path, &mut |_, _, _| Ok(()))?;
        Ok(contents)
    }

    /// Reads it as [`Contents::of`] does, and gives each file's bytes, as they are hashed, to `each` with its path
    /// within the folder.
    pub(super) fn walk(&mut self, path: &Path, each: &mut Each<'_>) -> Result<(), ContentsError> {
        let unreadable = |source| ContentsError::Unreadable { path: path.to_owned(), source };
        let metadata = path.symlink_metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Walk { root: path, bytes: 0, contents: self, each }.folder(path, "", 0);
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| ContentsError::NotUtf8(path.to_owned()))?;
        Walk { root: path, bytes: 0, contents: self, each }.entry(path, name.to_owned(), 0)
    }

    /// One hash of all: paths, bytes, and who may run what.
    pub fn digest(&self) -> Sha {
        let mut hash = Sha256::new();
        for (path, file) in &self.files {
            // A length before each part, so that no two lists of files are one sequence of bytes.
            hash.update((path.len() as u64).to_be_bytes());
            hash.update(path);
            hash.update([u8::from(file.executable)]);
            hash.update(file.sha256.as_str());
        }
        Sha::finish(hash)
    }

    /// How many bytes all files hold.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }
}

type Each<'a> = dyn FnMut(&str, &[u8], bool) -> Result<(), ContentsError> + 'a;

struct Walk<'a, 'b> {
    root: &'a Path,
    bytes: u64,
    contents: &'a mut Contents,
    each: &'a mut Each<'b>,
}

impl Walk<'_, '_> {
    fn folder(&mut self, folder: &Path, within: &str, depth: usize) -> Result<(), ContentsError> {
        if depth > MAX_DEPTH {
            return Err(self.too_much());
        }
        let unreadable = |source| ContentsError::Unreadable { path: folder.to_owned(), source };
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().into_string().map_err(|_| ContentsError::NotUtf8(entry.path()))?;
            let path = if within.is_empty() { name } else { format!("{within}/{name}") };
            self.entry(&entry.path(), path, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, within: String, depth: usize) -> Result<(), ContentsError> {
        let unreadable = |source| ContentsError::Unreadable { path: path.to_owned(), source };
        let kind = path.symlink_metadata().map_err(unreadable)?.file_type();
        if kind.is_symlink() {
            return Err(ContentsError::Symlink(path.to_owned()));
        }
        if kind.is_dir() {
            let is_left_out = path.file_name().is_some_and(|name| LEFT_OUT.iter().any(|left_out| name == *left_out));
            return if is_left_out { Ok(()) } else { self.folder(path, &within, depth + 1) };
        }
        if !kind.is_file() {
            return Err(ContentsError::Special(path.to_owned()));
        }
        if self.contents.files.len() >= MAX_FILES {
            return Err(self.too_much());
        }
        let (bytes, executable) = self.read(path)?;
        (self.each)(&within, &bytes, executable)?;
        let file = FileContents { sha256: Sha::of(&bytes), bytes: bytes.len() as u64, executable };
        self.contents.files.insert(within, file);
        Ok(())
    }

    /// What was looked at may have become another thing since: the opened file decides.
    fn read(&mut self, path: &Path) -> Result<(Vec<u8>, bool), ContentsError> {
        let unreadable = |source| ContentsError::Unreadable { path: path.to_owned(), source };
        let file = open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(ContentsError::Special(path.to_owned()));
        }
        let left = MAX_BYTES.saturating_sub(self.bytes);
        let mut bytes = Vec::new();
        let read = file.take(left + 1).read_to_end(&mut bytes).map_err(unreadable)? as u64;
        if read > left {
            return Err(self.too_much());
        }
        self.bytes += read;
        Ok((bytes, metadata.mode() & 0o100 != 0))
    }

    fn too_much(&self) -> ContentsError {
        ContentsError::TooMuch(self.root.to_owned())
    }
}

/// Opens a file that no link stands for, and does not wait for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib/__pycache__")).unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        for (name, text) in [("a.py", "1"), ("lib/b.py", "2"), ("lib/__pycache__/b.pyc", "x"), (".git/HEAD", "x")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_is_all_its_files_but_for_what_does_not_run() {
        let folder = folder();
        let contents = Contents::of(folder.path()).unwrap();
        assert_eq!(contents.files.keys().collect::<Vec<_>>(), ["a.py", "lib/b.py"]);
        assert_eq!(contents.bytes(), 2);
        let of_1 = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
        assert_eq!(contents.files["a.py"].sha256.as_str(), of_1);
    }

    #[test]
    fn the_digest_sees_bytes_names_and_modes() {
        let folder = folder();
        let digest = || Contents::of(folder.path()).unwrap().digest();
        let before = digest();
        assert_eq!(digest(), before);
        fs::set_permissions(folder.path().join("a.py"), fs::Permissions::from_mode(0o755)).unwrap();
        let executable = digest();
        fs::rename(folder.path().join("a.py"), folder.path().join("c.py")).unwrap();
        let renamed = digest();
        fs::write(folder.path().join("c.py"), "3").unwrap();
        let all = [before, executable, renamed, digest()];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
    }

    #[test]
    fn a_single_file_is_bound_by_its_name() {
        let folder = folder();
        let contents = Contents::of(&folder.path().join("a.py")).unwrap();
        assert_eq!(contents.files.keys().collect::<Vec<_>>(), ["a.py"]);
    }

    #[test]
    fn links_pipes_and_odd_names_are_refused() {
        let error = |make: &dyn Fn(&Path)| {
            let folder = folder();
            make(&folder.path().join("lib/x"));
            Contents::of(folder.path()).unwrap_err()
        };
        assert!(matches!(error(&|path| symlink("/etc/passwd", path).unwrap()), ContentsError::Symlink(_)));
        assert!(matches!(error(&|path| symlink("..", path).unwrap()), ContentsError::Symlink(_)));
        let pipe = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(error(&pipe), ContentsError::Special(_)));
        use std::os::unix::ffi::OsStrExt as _;
        let odd = |path: &Path| {
            let name = std::ffi::OsStr::from_bytes(b"\xff");
            fs::write(path.with_file_name(name), "").unwrap();
        };
        assert!(matches!(error(&odd), ContentsError::NotUtf8(_)));
        assert!(matches!(Contents::of(Path::new("/nowhere/x")), Err(ContentsError::Unreadable { .. })));
    }

    #[test]
    fn what_is_too_deep_or_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/".repeat(MAX_DEPTH + 2))).unwrap();
        assert!(matches!(Contents::of(folder.path()), Err(ContentsError::TooMuch(_))));
        let folder = tempfile::tempdir().unwrap();
        File::create(folder.path().join("big")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(matches!(Contents::of(folder.path()), Err(ContentsError::TooMuch(_))));
    }
}
