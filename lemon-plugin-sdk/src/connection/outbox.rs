//! What waits to be written: whole lines, bounded in bytes, all of it handed to the writer at once.
//!
//! Messages are serialised straight into the waiting bytes. Answers wait for room, control messages do not, and what
//! may be lost (progress, logs) is dropped when there is none. A peer that reads nothing at all ends the connection.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio_util::sync::CancellationToken;

/// Above this, answers wait and what may be lost is dropped.
const SOFT: usize = 8 << 20;
/// Above this, the peer counts as not reading. While so much of answers waits for room no call is begun, and above twice
/// as much what ran already is refused.
const HARD: usize = 64 << 20;
/// A buffer larger than this is given back once it is written.
const KEEP: usize = 1 << 20;

pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    soft: usize,
    hard: usize,
    /// Something waits to be written, or the outbox is closed.
    filled: Notify,
    /// There is room again.
    drained: Notify,
    /// Bytes of answers that wait for room.
    held: AtomicUsize,
    /// The peer has left far too much unread.
    overflown: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Bytes that the writer has taken and not yet written.
    taken: usize,
    closed: bool,
}

/// Why a message did not go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// It is longer than the peer takes.
    TooLarge { bytes: usize },
    /// Nothing is written any more.
    Closed,
    /// There is no room, and the message may be lost.
    Full,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::bounded(SOFT, HARD)
    }
}

impl Outbox {
    /// One that takes everything, for a client that lives in a test.
    pub(crate) fn unbounded() -> Self {
        Self::bounded(usize::MAX, usize::MAX)
    }

    fn bounded(soft: usize, hard: usize) -> Self {
        let (filled, drained) = (Notify::new(), Notify::new());
        let (held, overflown) = (AtomicUsize::new(0), CancellationToken::new());
        Self { waiting: Mutex::default(), soft, hard, filled, drained, held, overflown }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What ends when there is room again. Enable it before a try, so that room that is made meanwhile is noticed.
    pub(crate) fn drained(&self) -> Notified<'_> {
        self.drained.notified()
    }

    /// Counts an answer that waits for room as long as it does. None if it would make too much of it: calls that run
    /// side by side each have a result in the end, and nobody reads them.
    pub(crate) fn hold(&self, message: &impl Serialize) -> Option<Held<'_>> {
        let mut counter = Counter(0);
        // What can't be written is not held either.
        let _ = serde_json::to_writer(&mut counter, message);
        let before = self.held.fetch_add(counter.0, Ordering::Relaxed);
        let held = Held { outbox: self, bytes: counter.0 };
        (before + counter.0 <= self.hard.saturating_mul(2)).then_some(held)
    }

    /// Whether so many bytes of answers wait for room that nothing should be begun that adds to them.
    pub(crate) fn is_crowded(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.hard
    }

    /// Adds a message if there is room, and says how long it is.
    pub(crate) fn try_push(&self, message: &impl Serialize, limit: usize) -> Result<usize, Unsent> {
        self.add(message, limit, self.soft)
    }

    /// Adds a message that can't wait. When the peer has left far too much unread, the outbox is closed, and whoever
    /// waits for [`overflown`](Self::overflown) ends the connection: the writer is stuck, and can't.
    pub(crate) fn push_now(&self, message: &impl Serialize, limit: usize) -> Result<(), Unsent> {
        let outcome = self.add(message, limit, self.hard).map(drop);
        if outcome == Err(Unsent::Full) {
            self.close();
            self.overflown.cancel();
        }
        outcome
    }

    /// Waits until the peer has left far too much unread. What waits to be written has no reader then.
    pub(crate) async fn overflown(&self) {
        self.overflown.cancelled().await;
    }

    fn add(&self, message: &impl Serialize, limit: usize, room: usize) -> Result<usize, Unsent> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Unsent::Closed);
        }
        if waiting.lines.len() + waiting.taken > room {
            return Err(Unsent::Full);
        }
        let start = waiting.lines.len();
        let written = serde_json::to_writer(&mut waiting.lines, message);
        let bytes = waiting.lines.len() - start;
        if written.is_err() || bytes > limit {
            waiting.lines.truncate(start);
            return Err(Unsent::TooLarge { bytes });
        }
        waiting.lines.push(b'\n');
        drop(waiting);
        self.filled.notify_one();
        Ok(bytes)
    }

    /// Takes nothing more; what waits is still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    /// Writes until the outbox is closed and empty.
    ///
    /// # Errors
    /// The peer's end is closed, or the system refuses to write.
    pub(crate) async fn write_to(&self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut spare = Vec::new();
        loop {
            let lines = loop {
                {
                    let mut waiting = self.lock();
                    waiting.taken = 0;
                    if !waiting.lines.is_empty() {
                        waiting.taken = waiting.lines.len();
                        break std::mem::replace(&mut waiting.lines, std::mem::take(&mut spare));
                    }
                    if waiting.closed {
                        return Ok(());
                    }
                }
                self.drained.notify_waiters();
                self.filled.notified().await;
            };
            output.write_all(&lines).await?;
            output.flush().await?;
            spare = lines;
            spare.clear();
            spare.shrink_to(KEEP);
            self.lock().taken = 0;
            self.drained.notify_waiters();
        }
    }
}

/// An answer that waits for room.
pub(crate) struct Held<'a> {
    outbox: &'a Outbox,
    bytes: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.outbox.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: usize = usize::MAX;

    #[tokio::test]
    async fn what_is_too_long_leaves_no_bytes_behind() {
        let outbox = Outbox::default();
        assert_eq!(outbox.try_push(&"12345", 6), Err(Unsent::TooLarge { bytes: 7 }));
        outbox.try_push(&"1234", 6).unwrap();
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written).await.unwrap();
        assert_eq!(written, b"\"1234\"\n");
    }

    #[tokio::test]
    async fn room_is_told_of_and_what_may_be_lost_is_dropped() {
        let outbox = std::sync::Arc::new(Outbox::bounded(1_000, 10_000));
        let large = "x".repeat(1_000);
        outbox.try_push(&large, NO_LIMIT).unwrap();
        assert_eq!(outbox.try_push(&"progress", NO_LIMIT), Err(Unsent::Full));
        outbox.push_now(&"pong", NO_LIMIT).unwrap();
        let mut drained = Box::pin(outbox.drained());
        drained.as_mut().enable();
        let (reads, writes) = tokio::io::duplex(64);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(writes).await }
        });
        let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(reads));
        assert_eq!(lines.next_line().await.unwrap().unwrap().len(), 1_002);
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "\"pong\"");
        drained.await;
        outbox.try_push(&"answer", NO_LIMIT).unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "\"answer\"");
        outbox.close();
        writer.await.unwrap().unwrap();
    }

    #[test]
    fn answers_that_wait_count_until_they_do_not() {
        let outbox = Outbox::bounded(1_000, 10_000);
        let held = outbox.hold(&"x".repeat(10_000)).unwrap();
        assert!(outbox.is_crowded());
        assert!(outbox.hold(&"x".repeat(9_999)).is_none(), "of those that ran already, no more than twice as many");
        assert!(outbox.hold(&"x".repeat(9_990)).is_some(), "what was not taken does not count");
        drop(held);
        assert!(!outbox.is_crowded());
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_ends_the_connection() {
        let outbox = Outbox::bounded(1_000, 10_000);
        let large = "x".repeat(10_000);
        outbox.try_push(&large, NO_LIMIT).unwrap();
        assert_eq!(outbox.push_now(&"pong", NO_LIMIT), Err(Unsent::Full));
        assert_eq!(outbox.push_now(&"pong", NO_LIMIT), Err(Unsent::Closed));
        outbox.overflown().await;
    }
}
