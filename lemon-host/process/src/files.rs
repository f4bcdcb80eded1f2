//! Opening a file that a stranger may have put there.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::os;

/// Why a path gives no regular file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The path is that of a symbolic link.
    #[error("it is a symbolic link")]
    Symlink,
    /// The path is that of a folder.
    #[error("it is a folder")]
    Folder,
    /// The path is that of a pipe, a socket or a device.
    #[error("it is a pipe, a socket or a device")]
    Special,
    /// There is no such file, or it can't be opened.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a regular file for reading. A symbolic link at the end of the path is not followed, and nothing that is opened
/// can make the caller wait, as a pipe without a writer would.
///
/// # Errors
/// [`OpenError`] tells what there is instead.
pub fn open_regular(path: &Path) -> Result<File, OpenError> {
    regular(&fs::symlink_metadata(path)?)?;
    let file = os::open_nofollow(path)?;
    // It may have become something else in between.
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file for adding to its end, or makes one that only the user may read. Nothing that may be there instead
/// can make the caller wait, neither now nor when it writes.
pub(crate) fn append_regular(path: &Path) -> Result<File, OpenError> {
    if let Ok(there) = fs::metadata(path) {
        regular(&there)?;
    }
    let file = os::open_append(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(metadata: &fs::Metadata) -> Result<(), OpenError> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => Ok(()),
        () if kind.is_symlink() => Err(OpenError::Symlink),
        () if kind.is_dir() => Err(OpenError::Folder),
        () => Err(OpenError::Special),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(open_regular(&at("file")).is_ok());
        for name in ["link", "loop"] {
            assert!(matches!(open_regular(&at(name)), Err(OpenError::Symlink)), "{name}");
        }
        for path in [at("pipe"), at("socket"), "/dev/zero".into()] {
            assert!(matches!(open_regular(&path), Err(OpenError::Special)), "{}", path.display());
        }
        assert!(matches!(open_regular(folder.path()), Err(OpenError::Folder)));
        assert!(matches!(open_regular(&at("none")), Err(OpenError::Io(_))));
        assert!(matches!(open_regular(Path::new("a\0b")), Err(OpenError::Io(_))));
    }
}
