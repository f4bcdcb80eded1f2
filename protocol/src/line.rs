//! From bytes to lines: one message a line, ended by `\n` (LPP-FRAME-01 to -04, LPP-LIM-03).
//!
//! The splitter owns the bytes that have no line end yet, so nothing is lost when a read is abandoned half-way, and
//! it is bounded: of a line longer than the limit it keeps nothing but the message's id.

use memchr::memchr;

use crate::oversize::TopLevelId;

/// Splits a stream of bytes into lines. Feed it with [`extend`](Self::extend) and take pieces until there are none.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Start of the first line not yet handed out.
    start: usize,
    /// Up to here the buffer is known to hold no line end.
    scanned: usize,
    limit: usize,
    /// Set while the rest of an oversized line is being dropped.
    oversized: Option<Oversized>,
    /// What is known of the last one.
    dropped: TopLevelId,
}

#[derive(Debug, Default)]
struct Oversized {
    bytes: usize,
    /// The last byte so far is a carriage return, which belongs to the line end if that comes next.
    carriage_return: bool,
    id: TopLevelId,
}

/// What comes out of a [`LineSplitter`].
#[derive(Debug)]
pub enum Piece<'a> {
    /// A line without its end (`\n` or `\r\n`); it may be empty.
    Line(&'a [u8]),
    /// A line over the limit was dropped.
    Oversized {
        /// How long it was, without its end.
        bytes: usize,
        /// The `id` member of the message, if it could be read in passing: its call need not wait for its deadline.
        id: Option<i64>,
        /// Whether it was a request, so that the id is its sender's.
        is_request: bool,
    },
}

impl LineSplitter {
    /// A splitter for lines of up to `limit` bytes, the line end not counted.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, limit, oversized: None, dropped: TopLevelId::default() }
    }

    /// Adds bytes as they were read.
    pub fn extend(&mut self, bytes: &[u8]) {
        // For a caller that does not take all pieces between two reads; each byte is moved for one that has gone.
        if self.start > self.buffer.len() / 2 {
            self.reclaim();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, or none until more bytes have come.
    pub fn next_piece(&mut self) -> Option<Piece<'_>> {
        match memchr(b'\n', &self.buffer[self.scanned..]) {
            Some(offset) => {
                let (start, end) = (self.start, self.scanned + offset);
                self.start = end + 1;
                self.scanned = end + 1;
                let whole = &self.buffer[start..end];
                let line = whole.strip_suffix(b"\r").unwrap_or(whole);
                if self.oversized.is_none() && line.len() <= self.limit {
                    return Some(Piece::Line(line));
                }
                let mut over = self.oversized.take().unwrap_or_default();
                over.feed(whole);
                let piece = over.piece();
                self.dropped = over.id;
                Some(piece)
            }
            None => {
                // One byte of grace, as a carriage return at the end does not count.
                if self.oversized.is_some() || self.buffer.len() - self.start > self.limit.saturating_add(1) {
                    let over = self.oversized.get_or_insert_default();
                    over.feed(&self.buffer[self.start..]);
                    self.start = self.buffer.len();
                }
                self.scanned = self.buffer.len();
                self.reclaim();
                None
            }
        }
    }

    /// What is known of the message of the last [`Piece::Oversized`], of whose id the piece itself has only a number.
    pub fn dropped(&self) -> &TopLevelId {
        &self.dropped
    }

    /// How long an oversized line that has not ended yet is so far, and what is known of its message, for whoever
    /// waits for that.
    pub fn unfinished(&self) -> Option<(usize, &TopLevelId)> {
        self.oversized.as_ref().map(|over| (over.bytes, &over.id))
    }

    /// The bytes after the last line end, to be told when the stream ends within a line.
    pub fn remainder(&self) -> usize {
        self.buffer.len() - self.start + self.oversized.as_ref().map_or(0, |over| over.bytes)
    }

    /// Gives room back: what was handed out goes, and a buffer that one long line grew does not stay large, even when
    /// the other side says nothing more.
    fn reclaim(&mut self) {
        const KEEP: usize = 128 * 1024;
        if self.start == 0 {
            return;
        }
        let rest = self.buffer.len() - self.start;
        if self.buffer.capacity() > KEEP && rest <= KEEP / 2 {
            self.buffer = self.buffer[self.start..].to_vec();
        } else {
            self.buffer.copy_within(self.start.., 0);
            self.buffer.truncate(rest);
        }
        self.scanned -= self.start;
        self.start = 0;
    }
}

impl Oversized {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.carriage_return = bytes.last().map_or(self.carriage_return, |last| *last == b'\r');
        self.id.feed(bytes);
    }

    fn piece(&self) -> Piece<'static> {
        let bytes = self.bytes - usize::from(self.carriage_return);
        Piece::Oversized { bytes, id: self.id.get(), is_request: self.id.is_request() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line, or an oversized line's length and id.
    type Split = Result<Vec<u8>, (usize, Option<i64>)>;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<Split> {
        let mut splitter = LineSplitter::new(limit);
        let mut pieces = Vec::new();
        for chunk in chunks {
            splitter.extend(chunk);
            while let Some(piece) = splitter.next_piece() {
                pieces.push(match piece {
                    Piece::Line(line) => Ok(line.to_vec()),
                    Piece::Oversized { bytes, id, .. } => Err((bytes, id)),
                });
            }
        }
        pieces
    }

    #[test]
    fn a_carriage_return_belongs_to_the_line_end() {
        assert_eq!(split(&[b"a\r", b"\n\r\nb\rc\n"], 9), [Ok(b"a".to_vec()), Ok(vec![]), Ok(b"b\rc".to_vec())]);
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_byte_more_does_not() {
        assert_eq!(
            split(&[b"12345\n123456\n12345\r\n"], 5),
            [Ok(b"12345".to_vec()), Err((6, None)), Ok(b"12345".to_vec())]
        );
    }

    #[test]
    fn the_id_of_an_oversized_line_is_found_behind_its_result() {
        let line = format!("{{\"result\":{{\"id\":9,\"t\":\"{}\"}},\"id\":12}}\nnext\n", "x\\\"".repeat(100));
        let chunks: Vec<&[u8]> = line.as_bytes().chunks(7).collect();
        let length = line.find('\n').unwrap();
        assert_eq!(split(&chunks, 50), [Err((length, Some(12))), Ok(b"next".to_vec())]);
    }

    #[test]
    fn of_the_id_of_an_oversized_line_a_string_is_known_too() {
        let mut splitter = LineSplitter::new(20);
        splitter.extend(b"{\"method\":\"m\",\"id\":\"seven\"}\n");
        assert!(matches!(splitter.next_piece(), Some(Piece::Oversized { id: None, is_request: true, .. })));
        assert_eq!(splitter.dropped().id(), Some(&crate::RequestId::Text("seven".into())));
    }

    #[test]
    fn an_oversized_line_does_not_keep_its_bytes() {
        let mut splitter = LineSplitter::new(1000);
        for _ in 0..1000 {
            splitter.extend(&[b'x'; 1000]);
            assert!(splitter.next_piece().is_none());
        }
        assert!(splitter.buffer.capacity() < 10_000);
        assert_eq!(splitter.remainder(), 1_000_000);
    }

    #[test]
    fn the_length_of_an_oversized_line_does_not_depend_on_the_reads() {
        for size in 1..=9 {
            let chunks: Vec<&[u8]> = b"1234567\r\n".chunks(size).collect();
            assert_eq!(split(&chunks, 5), [Err((7, None))], "{size}");
        }
        assert_eq!(split(&[b"1234567\r", b"8\n"], 5), [Err((9, None))], "a carriage return inside counts");
    }

    #[test]
    fn a_long_line_leaves_no_large_buffer_behind_when_nothing_follows() {
        let mut splitter = LineSplitter::new(1 << 20);
        splitter.extend(&[b'x'; 1 << 20]);
        splitter.extend(b"\nrest");
        assert!(matches!(splitter.next_piece(), Some(Piece::Line(line)) if line.len() == 1 << 20));
        assert!(splitter.next_piece().is_none());
        assert!(splitter.buffer.capacity() <= 128 * 1024);
        assert_eq!(splitter.remainder(), 4);
        splitter.extend(&[b'x'; (1 << 20) + 2]);
        assert!(splitter.next_piece().is_none());
        assert!(splitter.buffer.capacity() <= 128 * 1024, "nor while an oversized line goes on");
    }

    #[test]
    fn there_may_be_no_limit() {
        let mut splitter = LineSplitter::new(usize::MAX);
        splitter.extend(b"a");
        assert!(splitter.next_piece().is_none());
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        let byte = any::<u8>().prop_filter("no line end", |byte| *byte != b'\n');
        prop::collection::vec(prop_oneof![Just(b'\r'), byte], 0..40)
    }

    proptest! {
        #[test]
        fn where_the_reads_end_does_not_matter(
            lines in prop::collection::vec(line(), 0..12),
            cuts in prop::collection::vec(1usize..17, 1..40),
            limit in 1usize..30,
        ) {
            let mut bytes = lines.join(&b'\n');
            bytes.push(b'\n');
            let mut chunks = Vec::new();
            let mut rest = bytes.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            let expected: Vec<_> = bytes[..bytes.len() - 1]
                .split(|b| *b == b'\n')
                .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
                .map(|line| if line.len() <= limit { Ok(line.to_vec()) } else { Err(line.len()) })
                .collect();
            let got: Vec<_> =
                split(&chunks, limit).into_iter().map(|piece| piece.map_err(|(bytes, _)| bytes)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
