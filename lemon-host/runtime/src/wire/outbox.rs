//! What waits to be written to a process, in two lanes.
//!
//! Only the writer task touches the pipe, so a caller that goes away can't leave half a message behind. Everything
//! that waits goes out in one write; control messages (cancellations, pings, the end) go first, at message
//! boundaries. The outbox is bounded in bytes: above the soft bound callers wait, at the hard bound the process has
//! failed, as it does not read.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::input::Input;

/// The most that one write takes along; control messages wait for no more than that.
const BATCH: usize = 256 * 1024;

/// Pieces up to this size are joined, so that one write carries many messages; a larger one is written as it is.
const JOIN: usize = 64 * 1024;

/// One message, with its line end.
#[derive(Debug)]
pub(crate) struct Item {
    bytes: Vec<u8>,
    /// The request that this is, so that it can be taken back while it waits.
    request: Option<i64>,
}

impl Item {
    pub(crate) fn new(message: impl Into<Vec<u8>>) -> Self {
        Self { bytes: message.into(), request: None }
    }

    /// A request, whose params are written into it.
    pub(crate) fn request(id: i64, method: &str, params: impl FnOnce(&mut Vec<u8>)) -> Self {
        /// Most requests need no more.
        const SMALL: usize = 512;
        let mut bytes = Vec::with_capacity(SMALL);
        bytes.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        // Writing to a vector does not fail.
        let _ = serde_json::to_writer(&mut bytes, &id);
        bytes.extend_from_slice(br#","method":""#);
        bytes.extend_from_slice(method.as_bytes());
        bytes.extend_from_slice(br#"","params":"#);
        params(&mut bytes);
        bytes.extend_from_slice(b"}\n");
        Self { bytes, request: Some(id) }
    }

    /// The whole message, for a trace.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Wakes the writer.
    filled: Notify,
    /// Wakes callers that wait for room.
    room: Notify,
    soft: usize,
    hard: usize,
}

#[derive(Debug, Default)]
struct State {
    control: VecDeque<Item>,
    data: VecDeque<Item>,
    bytes: usize,
    end: End,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// What waits is still written, nothing more is taken.
    Finishing,
    /// Nothing is written any more.
    Closed,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The outbox is at its end.
    Closed,
    /// The hard bound is reached: the process does not read.
    Full,
}

impl Outbox {
    pub(crate) fn new(soft: usize, hard: usize) -> Self {
        Self { state: Mutex::default(), filled: Notify::new(), room: Notify::new(), soft, hard }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message before all that is not control.
    pub(crate) fn push_control(&self, item: Item) -> Result<(), Refused> {
        self.push(item, |state| &mut state.control)
    }

    /// Puts a message behind the others, without waiting for room.
    pub(crate) fn push_data(&self, item: Item) -> Result<(), Refused> {
        self.push(item, |state| &mut state.data)
    }

    fn push(&self, item: Item, lane: impl FnOnce(&mut State) -> &mut VecDeque<Item>) -> Result<(), Refused> {
        let mut state = self.state();
        if state.end != End::Open {
            return Err(Refused::Closed);
        }
        if state.bytes + item.len() > self.hard {
            return Err(Refused::Full);
        }
        state.bytes += item.len();
        lane(&mut state).push_back(item);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Whether the outbox is under its soft bound, or at its end.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.state();
        state.bytes < self.soft || state.end != End::Open
    }

    /// Waits until there [is room](Self::has_room).
    pub(crate) async fn room(&self) {
        if self.has_room() {
            return;
        }
        loop {
            let notified = self.room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                if self.has_room() {
                    return;
                }
            }
            notified.await;
        }
    }

    /// Takes a request back that is not being written yet. The process never hears of it.
    pub(crate) fn revoke(&self, request: i64) -> bool {
        let mut state = self.state();
        let Some(index) = state.data.iter().position(|item| item.request == Some(request)) else {
            return false;
        };
        if let Some(item) = state.data.remove(index) {
            state.bytes -= item.len();
        }
        drop(state);
        self.room.notify_waiters();
        true
    }

    /// Writes what waits, then lets the writer end, which closes the pipe.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        if state.end == End::Open {
            state.end = End::Finishing;
        }
        drop(state);
        self.wake_all();
    }

    /// Drops what waits and lets the writer end.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = State { end: End::Closed, ..State::default() };
        drop(state);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    /// Bytes that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.state().bytes
    }

    /// The writer: runs until the end or until the pipe breaks, and drops the pipe.
    pub(crate) async fn write_to(&self, mut pipe: impl Input) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut buffer = Vec::new();
        loop {
            let notified = self.filled.notified();
            match self.take(&mut batch) {
                Some(0) => tokio::select! {
                    () = notified => {}
                    () = pipe.broken() => {
                        self.close();
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                },
                None => return pipe.shutdown().await,
                Some(bytes) => {
                    let written = write_batch(&mut pipe, &mut batch, &mut buffer).await;
                    let was_full = {
                        let mut state = self.state();
                        let was_full = state.bytes >= self.soft;
                        // The outbox may have been closed, and its count set back, in the meantime.
                        state.bytes = state.bytes.saturating_sub(bytes);
                        was_full
                    };
                    // Nobody waits for room when there is some.
                    if was_full {
                        self.room.notify_waiters();
                    }
                    if let Err(error) = written {
                        self.close();
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Moves the next messages into `batch`; none at the end.
    fn take(&self, batch: &mut Vec<Item>) -> Option<usize> {
        let mut state = self.state();
        let mut bytes = 0;
        while bytes < BATCH {
            let Some(item) = state.control.pop_front().or_else(|| state.data.pop_front()) else {
                break;
            };
            bytes += item.len();
            batch.push(item);
        }
        (bytes > 0 || state.end == End::Open).then_some(bytes)
    }
}

async fn write_batch(
    pipe: &mut (impl AsyncWrite + Unpin),
    batch: &mut Vec<Item>,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    /// What one busy moment needs is not kept for ever.
    const KEEP: usize = 32 * 1024;
    // Plain writes: a vectored one of a single piece costs the kernel and us more.
    for item in batch.drain(..) {
        let large = item.len() >= JOIN;
        if !large {
            buffer.extend_from_slice(&item.bytes);
            if buffer.len() < JOIN {
                continue;
            }
        }
        pipe.write_all(buffer).await?;
        buffer.clear();
        if large {
            pipe.write_all(&item.bytes).await?;
        }
    }
    pipe.write_all(buffer).await?;
    buffer.clear();
    buffer.shrink_to(KEEP);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn item(text: &str) -> Item {
        Item::new(text.to_owned())
    }

    /// All that is written until the end.
    async fn written(outbox: &Outbox) -> Vec<u8> {
        let (pipe, mut reader) = tokio::io::duplex(64);
        let mut written = Vec::new();
        let (writing, reading) = tokio::join!(outbox.write_to(pipe), reader.read_to_end(&mut written));
        writing.unwrap();
        reading.unwrap();
        written
    }

    #[tokio::test]
    async fn control_overtakes_data_and_all_goes_out_before_the_end() {
        let outbox = Outbox::new(100, 200);
        outbox.push_data(item("one\n")).unwrap();
        outbox.push_data(item("two\n")).unwrap();
        outbox.push_control(item("first\n")).unwrap();
        outbox.finish();
        assert_eq!(outbox.push_data(item("late\n")), Err(Refused::Closed));
        assert_eq!(written(&outbox).await, b"first\none\ntwo\n");
        assert_eq!(outbox.waiting(), 0);
    }

    #[tokio::test]
    async fn a_request_can_be_taken_back_while_it_waits() {
        let outbox = Outbox::new(100, 200);
        outbox.push_data(Item::request(7, "seven", |params| params.extend_from_slice(b"{}"))).unwrap();
        outbox.push_data(item("eight\n")).unwrap();
        assert!(outbox.revoke(7));
        assert!(!outbox.revoke(7));
        outbox.finish();
        assert_eq!(written(&outbox).await, b"eight\n");
    }

    #[tokio::test]
    async fn the_hard_bound_refuses_and_the_soft_bound_makes_callers_wait() {
        let outbox = Arc::new(Outbox::new(10, 20));
        outbox.push_data(item("0123456789ab\n")).unwrap();
        assert_eq!(outbox.push_control(item("0123456789\n")), Err(Refused::Full));
        let waiting = outbox.clone();
        let mut caller = tokio::spawn(async move { waiting.room().await });
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut caller).await.is_err());
        let (writer, mut reader) = tokio::io::duplex(64);
        let writing = outbox.clone();
        let task = tokio::spawn(async move { writing.write_to(writer).await });
        caller.await.unwrap();
        outbox.finish();
        let mut read = String::new();
        reader.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "0123456789ab\n");
        task.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_large_message_arrives_whole_beside_small_ones() {
        let outbox = Arc::new(Outbox::new(1 << 30, 1 << 30));
        let big = vec![b'x'; 200_000];
        let mut expected = Vec::new();
        for n in 0..20 {
            let small = format!("small {n}\n");
            expected.extend_from_slice(small.as_bytes());
            outbox.push_data(item(&small)).unwrap();
            expected.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"m","params":"#).as_bytes());
            expected.extend_from_slice(&big);
            expected.extend_from_slice(b"}\n");
            outbox.push_data(Item::request(n, "m", |params| params.extend_from_slice(&big))).unwrap();
        }
        outbox.finish();
        assert!(written(&outbox).await == expected);
    }
}
