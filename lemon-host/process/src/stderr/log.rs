//! The log file of one process: made when there is something to log, bounded, private.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file that is opened at the first byte, appended to, and moved to `<path>.1` when it gets
/// larger than its bound. Clones are the same log.
///
/// The file is readable by the user alone, and so are the folders made for it. Several hosts may
/// append to one file; whichever finds it too large moves it, and the others follow.
#[derive(Debug, Clone)]
pub struct LogFile {
    path: Arc<Path>,
    max_bytes: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
enum State {
    Unopened,
    Open(File),
    Failed(LogError),
}

/// Why a log is not written. The first failure is the last: nothing more is tried.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the log {} can't be written: {source}", path.display())]
pub struct LogError {
    /// The log.
    pub path: PathBuf,
    /// What the system said.
    pub source: Arc<io::Error>,
}

impl LogFile {
    /// The size at which a log is rotated unless told otherwise: 4 MiB.
    pub const DEFAULT_MAX_BYTES: u64 = 4 * 1024 * 1024;

    /// A log at `path`, rotated before it gets larger than `max_bytes`. Makes no file yet.
    pub fn new(path: impl Into<PathBuf>, max_bytes: u64) -> Self {
        Self { path: Arc::from(path.into()), max_bytes, state: Arc::new(Mutex::new(State::Unopened)) }
    }

    /// Where the log is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why nothing is logged any more, if that is so.
    pub fn failed(&self) -> Option<LogError> {
        match &*self.state() {
            State::Failed(error) => Some(error.clone()),
            State::Unopened | State::Open(_) => None,
        }
    }

    /// Appends whole lines. Blocks.
    pub(super) fn append(&self, lines: &[u8]) {
        let mut state = self.state();
        let file = match std::mem::replace(&mut *state, State::Unopened) {
            failed @ State::Failed(_) => {
                *state = failed;
                return;
            }
            State::Open(file) => Some(file),
            State::Unopened => None,
        };
        *state = match self.try_append(file, lines) {
            Ok(file) => State::Open(file),
            Err(source) => State::Failed(LogError { path: self.path.to_path_buf(), source: Arc::new(source) }),
        };
    }

    fn try_append(&self, file: Option<File>, lines: &[u8]) -> io::Result<File> {
        let mut file = match file {
            Some(file) if self.is_still_at_path(&file)? => file,
            _ => self.open()?,
        };
        let size = file.metadata()?.len();
        if size > 0 && size + lines.len() as u64 > self.max_bytes {
            std::fs::rename(&self.path, self.rotated())?;
            file = self.open()?;
        }
        // One write with O_APPEND, so that the lines of two hosts don't mix.
        file.write_all(lines)?;
        Ok(file)
    }

    /// Another host may have rotated the log, or the user removed it.
    fn is_still_at_path(&self, file: &File) -> io::Result<bool> {
        let ours = file.metadata()?;
        Ok(std::fs::metadata(&self.path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
    }

    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        options.open(&self.path)
    }

    fn rotated(&self) -> PathBuf {
        let mut path = self.path.as_os_str().to_owned();
        path.push(".1");
        path.into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nothing_is_made_before_the_first_byte_and_all_of_it_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::new(dir.path().join("a/b/hello.log"), 100);
        assert!(!dir.path().join("a").exists());

        log.append(b"one\n");
        log.append(b"two\n");
        assert_eq!(fs::read_to_string(log.path()).unwrap(), "one\ntwo\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(log.path()), 0o600);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        assert_eq!(mode(&dir.path().join("a/b")), 0o700);
    }

    #[test]
    fn a_full_log_is_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::new(dir.path().join("hello.log"), 10);
        for line in [b"line 1\n", b"line 2\n", b"line 3\n"] {
            log.append(line);
        }
        assert_eq!(fs::read_to_string(log.path()).unwrap(), "line 3\n");
        assert_eq!(fs::read_to_string(log.rotated()).unwrap(), "line 2\n");
        assert!(log.failed().is_none());
    }

    #[test]
    fn a_log_that_another_host_rotated_goes_on_in_the_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::new(dir.path().join("hello.log"), 100);
        log.append(b"one\n");
        fs::rename(log.path(), log.rotated()).unwrap();
        log.append(b"two\n");
        assert_eq!(fs::read_to_string(log.path()).unwrap(), "two\n");
    }

    #[test]
    fn a_failure_is_kept_and_harms_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let log = LogFile::new(dir.path().join("file/hello.log"), 100);
        assert!(log.failed().is_none());
        log.append(b"one\n");
        log.append(b"two\n");
        let shown = log.failed().unwrap().to_string();
        assert!(shown.contains("hello.log can't be written: "), "{shown}");
    }
}
