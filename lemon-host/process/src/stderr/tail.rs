//! The last of what a process wrote on stderr, in bounded memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The last lines of a process's stderr, already filtered. Clones are the same tail, so it can be
/// read while it is filled, and after the process is gone.
#[derive(Debug, Clone)]
pub struct StderrTail {
    capacity: usize,
    shared: Arc<Mutex<Ring>>,
}

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<String>,
    /// Bytes in `lines`, each counted with its line break.
    held: usize,
    total_bytes: u64,
}

impl StderrTail {
    /// Bytes that a tail holds unless told otherwise: 64 KiB.
    pub const DEFAULT_CAPACITY: usize = 64 * 1024;

    /// A tail of at most `capacity` bytes, line breaks included.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, shared: Arc::default() }
    }

    /// All that is held, the oldest line first; bytes that were not UTF-8 show as U+FFFD.
    pub fn text(&self) -> String {
        let ring = self.ring();
        let mut text = String::with_capacity(ring.held);
        for line in &ring.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The last `count` lines or fewer, the oldest first.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let ring = self.ring();
        let skipped = ring.lines.len().saturating_sub(count);
        ring.lines.iter().skip(skipped).cloned().collect()
    }

    /// Whether no line was written yet.
    pub fn is_empty(&self) -> bool {
        self.ring().lines.is_empty()
    }

    /// Bytes that the process has written so far, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.ring().total_bytes
    }

    pub(super) fn count(&self, bytes: usize) {
        self.ring().total_bytes += bytes as u64;
    }

    pub(super) fn push(&self, mut line: String) {
        line.truncate(line.floor_char_boundary(self.capacity.saturating_sub(1)));
        line.shrink_to_fit();
        let mut ring = self.ring();
        ring.held += line.len() + 1;
        ring.lines.push_back(line);
        while ring.held > self.capacity {
            let Some(oldest) = ring.lines.pop_front() else {
                break;
            };
            ring.held -= oldest.len() + 1;
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // A panic elsewhere can't leave the ring worse than a line short.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for StderrTail {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAPACITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_make_room() {
        let tail = StderrTail::new(10);
        for line in ["abc", "def", "ghi"] {
            tail.push(line.into());
        }
        assert_eq!(tail.text(), "def\nghi\n");
        assert_eq!(tail.last_lines(1), ["ghi"]);
        assert_eq!(tail.last_lines(9), ["def", "ghi"]);
    }

    #[test]
    fn a_line_larger_than_the_tail_is_cut_at_a_character() {
        let tail = StderrTail::new(6);
        tail.push("ééé".into());
        assert_eq!(tail.text(), "éé\n");
    }

    #[test]
    fn empty_lines_count_too() {
        let tail = StderrTail::new(4);
        (0..100).for_each(|_| tail.push(String::new()));
        assert_eq!(tail.text(), "\n\n\n\n");
    }
}
