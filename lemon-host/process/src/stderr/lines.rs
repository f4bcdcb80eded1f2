//! Bytes to filtered lines of bounded length. Pure.

use std::borrow::Cow;

/// The longest line that is kept; of a longer one, its beginning is.
const LINE: usize = 8 * 1024;

/// How much more of a line the filter sees than is kept. A secret that a cut would split reaches the
/// filter whole if it is not longer than this; the part of it behind the cut is dropped either way.
const OVERLAP: usize = 4 * 1024;

/// Collects bytes until a line is complete, and no more of it than may be of use.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    /// Bytes of the current line that were let go.
    dropped: usize,
}

impl Lines {
    /// Takes the next bytes and passes on each line that they complete.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        filter: &dyn Fn(&str) -> Cow<'_, str>,
        mut each: impl FnMut(String),
    ) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.collect(&bytes[..end]);
            each(self.take(filter));
            bytes = &bytes[end + 1..];
        }
        self.collect(bytes);
    }

    /// The last line, if it had no line break.
    pub(super) fn finish(&mut self, filter: &dyn Fn(&str) -> Cow<'_, str>) -> Option<String> {
        (!self.line.is_empty()).then(|| self.take(filter))
    }

    fn collect(&mut self, bytes: &[u8]) {
        let room = (LINE + OVERLAP).saturating_sub(self.line.len());
        let taken = bytes.len().min(room);
        self.line.extend_from_slice(&bytes[..taken]);
        self.dropped += bytes.len() - taken;
    }

    fn take(&mut self, filter: &dyn Fn(&str) -> Cow<'_, str>) -> String {
        let raw = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let shown = shorten(filter(&String::from_utf8_lossy(raw)), self.dropped);
        self.line.clear();
        self.line.shrink_to(1024);
        self.dropped = 0;
        shown
    }
}

/// Bounds a filtered line, of which `dropped` bytes never reached the filter.
fn shorten(shown: Cow<'_, str>, dropped: usize) -> String {
    let limit = match dropped {
        0 => LINE,
        // The end of what the filter saw may be the beginning of a secret.
        _ => shown.len().saturating_sub(OVERLAP).min(LINE),
    };
    if shown.len() <= limit {
        return shown.into_owned();
    }
    let kept = &shown[..shown.floor_char_boundary(limit)];
    let cut = dropped + shown.len() - kept.len();
    format!("{kept}… ({cut} more bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Cow<'_, str> {
        Cow::Borrowed(text)
    }

    fn redact(secret: &str) -> impl Fn(&str) -> Cow<'_, str> {
        move |text| Cow::Owned(text.replace(secret, "***"))
    }

    fn split(chunks: &[&[u8]], filter: &dyn Fn(&str) -> Cow<'_, str>) -> Vec<String> {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk, filter, |line| all.push(line));
        }
        all.extend(lines.finish(filter));
        all
    }

    #[test]
    fn lines_come_whole_however_they_were_written() {
        let chunks: [&[u8]; 4] = [b"one\r\nt", b"", b"wo\n\n\xc3", b"\xa9\xff"];
        assert_eq!(split(&chunks, &plain), ["one", "two", "", "é\u{fffd}"]);
    }

    #[test]
    fn a_long_line_keeps_its_beginning_and_tells_what_is_missing() {
        let line = "x".repeat(1_000_000);
        let all = split(&[line.as_bytes(), b"\nnext\n"], &plain);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], format!("{}… (991808 more bytes)", "x".repeat(8192)));
        assert_eq!(all[1], "next");
    }

    #[test]
    fn a_secret_is_never_cut_in_two() {
        let secret = "s3cr3t".repeat(100);
        let filter = redact(&secret);
        for before in (7_000..13_000).step_by(97) {
            let line = format!("{}{secret}{}", "x".repeat(before), "y".repeat(20_000));
            for line in split(&[line.as_bytes()], &filter) {
                assert!(!line.contains("s3"), "{before}");
            }
        }
    }

    #[test]
    fn secrets_that_shrink_do_not_pull_a_cut_one_into_view() {
        let secret = "s3cr3t".repeat(500);
        let filter = redact(&secret);
        let line = secret.repeat(10);
        for line in split(&[line.as_bytes()], &filter) {
            assert!(!line.contains("s3"), "{line}");
        }
    }
}
