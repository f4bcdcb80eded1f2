//! The log file of one process: made when there is something to log, bounded, private.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::files::{OpenError, append_regular};

/// A file that is opened at the first byte, appended to, and moved to `<path>.1` before it gets
/// larger than its bound, unless one line alone is larger. Clones are the same log.
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
            Ok(Some(file)) => State::Open(file),
            Ok(None) => State::Unopened,
            Err(source) => State::Failed(LogError { path: self.path.to_path_buf(), source: Arc::new(source) }),
        };
    }

    fn try_append(&self, mut file: Option<File>, mut lines: &[u8]) -> io::Result<Option<File>> {
        while !lines.is_empty() {
            let (part, rest) = lines.split_at(self.part(lines));
            file = Some(self.append_part(file, part)?);
            lines = rest;
        }
        Ok(file)
    }

    /// How many bytes of the lines go into one file at the most: whole lines within the bound, and at least one.
    fn part(&self, lines: &[u8]) -> usize {
        let most = usize::try_from(self.max_bytes).unwrap_or(usize::MAX).min(lines.len());
        let end = |part: &[u8]| memchr::memrchr(b'\n', part).map(|at| at + 1);
        let first = || memchr::memchr(b'\n', lines).map(|at| at + 1);
        end(&lines[..most]).or_else(first).unwrap_or(lines.len())
    }

    fn append_part(&self, file: Option<File>, lines: &[u8]) -> io::Result<File> {
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
        append_regular(&self.path).map_err(|error| match error {
            OpenError::Io(error) => error,
            other => io::Error::other(other),
        })
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
    fn what_comes_in_one_piece_is_rotated_line_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::new(dir.path().join("hello.log"), 10);
        log.append(b"line 1\nl2\nline 3\na line of its own\nl5\nno end");
        assert_eq!(fs::read_to_string(log.path()).unwrap(), "l5\nno end");
        assert_eq!(fs::read_to_string(log.rotated()).unwrap(), "a line of its own\n");
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

    #[test]
    fn a_pipe_in_place_of_a_log_keeps_no_thread_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::new(dir.path().join("hello.log"), 100);
        nix::unistd::mkfifo(log.path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        log.append(b"one\n");
        let shown = log.failed().unwrap().to_string();
        assert!(shown.ends_with("it is a pipe, a socket or a device"), "{shown}");
    }
}
