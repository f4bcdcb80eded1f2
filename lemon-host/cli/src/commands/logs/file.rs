//! Reads a log that is written to and rotated meanwhile: `NAME.log`, and `NAME.log.1` with what is older.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A log, and how far it was read.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// The newest file, as long as it was the newest.
    file: Option<File>,
    read: u64,
    /// The beginning of a line that is being written.
    begun: Vec<u8>,
}

/// What was written since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) lines: Vec<String>,
    /// The log was rotated so often that some of it may be gone.
    pub(super) is_gap: bool,
}

/// Whether there is anything of the log.
pub(super) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok() || older(path).symlink_metadata().is_ok()
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, read: 0, begun: Vec::new() }
    }

    /// The last lines of both files, and how many come before these.
    pub(super) fn last(&mut self, most: usize) -> io::Result<(Vec<String>, usize)> {
        // In this order, so that a rotation in between shows lines twice rather than never.
        let newest = self.news()?.lines;
        let before = match self.file.as_ref().map(identity).transpose()? {
            // It was moved meanwhile.
            newest if newest.is_some() && newest == identity_at(&older(&self.path))? => None,
            _ => open(&older(&self.path))?,
        };
        let mut lines = match before {
            Some(mut file) => lines(&mut read_from(&mut file, 0)?, true),
            None => Vec::new(),
        };
        lines.extend(newest);
        let left_out = lines.len().saturating_sub(most);
        Ok((lines.split_off(left_out), left_out))
    }

    /// What was written since the last look.
    pub(super) fn news(&mut self) -> io::Result<News> {
        let mut news = News::default();
        self.read_on(&mut news)?;
        let there = identity_at(&self.path)?;
        let ours = self.file.as_ref().map(identity).transpose()?;
        if there.is_none() || there == ours {
            return Ok(news);
        }
        if ours.is_some() {
            // What was written between the look and the rotation.
            self.read_on(&mut news)?;
            news.lines.extend(lines(&mut self.begun, true));
            let before = open(&older(&self.path))?;
            if let Some(mut before) = before
                && Some(identity(&before)?) != ours
            {
                news.is_gap = true;
                news.lines.extend(lines(&mut read_from(&mut before, 0)?, true));
            }
        }
        (self.file, self.read) = (open(&self.path)?, 0);
        self.read_on(&mut news)?;
        Ok(news)
    }

    fn read_on(&mut self, news: &mut News) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if file.metadata()?.len() < self.read {
            // Somebody emptied it.
            self.read = 0;
            self.begun.clear();
        }
        let bytes = read_from(file, self.read)?;
        self.read += bytes.len() as u64;
        self.begun.extend(bytes);
        news.lines.extend(lines(&mut self.begun, false));
        Ok(())
    }
}

fn older(path: &Path) -> PathBuf {
    let mut older = path.as_os_str().to_owned();
    older.push(".1");
    older.into()
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_from(file: &mut File, start: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn identity_at(path: &Path) -> io::Result<Option<(u64, u64)>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes the whole lines out, and what is after the last one if nothing more will come.
fn lines(bytes: &mut Vec<u8>, is_end: bool) -> Vec<String> {
    let end = if is_end { bytes.len() } else { bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1) };
    let whole: Vec<u8> = bytes.drain(..end).collect();
    let text = String::from_utf8_lossy(&whole);
    text.split_terminator('\n').map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn rotate(path: &Path) {
        fs::rename(path, older(path)).unwrap();
    }

    fn news(log: &mut Log) -> Vec<String> {
        let news = log.news().unwrap();
        assert!(!news.is_gap);
        news.lines
    }

    #[test]
    fn the_last_lines_come_from_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        append(&path, "1\n2\n3\n");
        rotate(&path);
        append(&path, "4\n5");
        let last = |most| Log::new(path.clone()).last(most).unwrap();
        assert_eq!(last(usize::MAX), (vec!["1".into(), "2".into(), "3".into(), "4".into()], 0));
        assert_eq!(last(2), (vec!["3".into(), "4".into()], 2));
        assert_eq!(last(0), (vec![], 4));
        fs::remove_file(&path).unwrap();
        assert_eq!(last(1), (vec!["3".into()], 2));
    }

    #[test]
    fn it_goes_on_over_a_rotation_and_no_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let mut log = Log::new(path.clone());
        assert_eq!(log.last(5).unwrap(), (vec![], 0));
        append(&path, "1\n2");
        assert_eq!(news(&mut log), ["1"]);
        append(&path, "2\n3\n");
        assert_eq!(news(&mut log), ["22", "3"]);
        append(&path, "4\n");
        rotate(&path);
        append(&path, "5\n");
        assert_eq!(news(&mut log), ["4", "5"]);
        rotate(&path);
        assert_eq!(news(&mut log), [""; 0]);
        append(&older(&path), "6\n");
        append(&path, "7\n");
        assert_eq!(news(&mut log), ["6", "7"]);
        fs::write(&path, "8\n").unwrap();
        append(&path, "9\n");
        assert_eq!(news(&mut log).last().unwrap(), "9");
    }

    #[test]
    fn what_was_rotated_away_unseen_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        append(&path, "1\n");
        let mut log = Log::new(path.clone());
        log.last(5).unwrap();
        for text in ["2\n", "3\n"] {
            rotate(&path);
            append(&path, text);
        }
        let news = log.news().unwrap();
        assert_eq!((news.lines, news.is_gap), (vec!["2".to_owned(), "3".to_owned()], true));
    }

    #[test]
    fn a_log_that_was_emptied_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        append(&path, "1\n2\n3\n");
        let mut log = Log::new(path.clone());
        log.last(5).unwrap();
        fs::write(&path, "").unwrap();
        append(&path, "4\n");
        assert_eq!(news(&mut log), ["4"]);
    }
}
