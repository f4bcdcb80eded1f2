//! What waits to be written to a process, in two lanes.
//!
//! Only the writer task touches the pipe, so a caller that goes away can't leave half a message behind. Everything
//! that waits goes out in one write; control messages (cancellations, pings, the end) go first, at message
//! boundaries. The outbox is bounded in bytes: above the soft bound callers wait, at the hard bound the process has
//! failed, as it does not read.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::input::Input;

/// The most that one write takes along; control messages wait for no more than that.
const BATCH: usize = 256 * 1024;

/// Messages up to this size are joined, so that one write carries many; a larger one is written as it is.
const JOIN: usize = 64 * 1024;

/// Messages, with their line ends, that go out in one write.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    messages: VecDeque<Span>,
}

/// One message of a chunk.
#[derive(Debug)]
struct Span {
    length: usize,
    /// The request that it is, so that it can be taken back while it waits.
    request: Option<i64>,
}

impl Chunk {
    fn takes(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= JOIN
    }

    /// Puts a message at the end. A large one, which has a chunk of its own, is not copied.
    fn add(&mut self, message: &mut Vec<u8>, request: Option<i64>) {
        self.messages.push_back(Span { length: message.len(), request });
        if message.len() < JOIN {
            self.bytes.extend_from_slice(message);
        } else {
            self.bytes = std::mem::take(message);
        }
    }

    /// Takes a request out, and tells how long it was.
    fn remove(&mut self, request: i64) -> Option<usize> {
        let index = self.messages.iter().position(|span| span.request == Some(request))?;
        let start: usize = self.messages.iter().take(index).map(|span| span.length).sum();
        let length = self.messages.remove(index)?.length;
        self.bytes.drain(start..start + length);
        Some(length)
    }

    /// The same without messages, with as much room as most moments need.
    fn cleared(mut self) -> Self {
        /// What one busy moment needs is not kept for ever.
        const KEEP: usize = 32 * 1024;
        self.bytes.clear();
        self.bytes.shrink_to(KEEP);
        self.messages.clear();
        self.messages.shrink_to(KEEP / size_of::<Span>());
        self
    }
}

/// Lends out a buffer to write a message into, which costs no allocation.
pub(crate) fn with_buffer<T>(write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    /// What one large message needs is not kept for ever.
    const KEEP: usize = 8 * 1024;
    thread_local!(static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });
    // A message that is written while another one is finds an empty one.
    let mut buffer = BUFFER.take();
    let written = write(&mut buffer);
    buffer.clear();
    buffer.shrink_to(KEEP);
    BUFFER.set(buffer);
    written
}

/// Writes a request with its line end.
pub(crate) fn write_request(bytes: &mut Vec<u8>, id: i64, method: &str, params: impl FnOnce(&mut Vec<u8>)) {
    bytes.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    // Writing to a vector does not fail.
    let _ = serde_json::to_writer(&mut *bytes, &id);
    bytes.extend_from_slice(br#","method":""#);
    bytes.extend_from_slice(method.as_bytes());
    bytes.extend_from_slice(br#"","params":"#);
    params(bytes);
    bytes.extend_from_slice(b"}\n");
}

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Whether callers have to wait: the soft bound is reached, and the end is not. Set with the state, and read without
    /// its lock, as every call asks.
    full: AtomicBool,
    /// Wakes the writer.
    filled: Notify,
    /// Wakes callers that wait for room.
    room: Notify,
    soft: usize,
    hard: usize,
}

#[derive(Debug, Default)]
struct State {
    control: VecDeque<Chunk>,
    data: VecDeque<Chunk>,
    bytes: usize,
    end: End,
    /// One that was written, to be filled anew.
    spare: Chunk,
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
        Self {
            state: Mutex::default(),
            full: AtomicBool::new(false),
            filled: Notify::new(),
            room: Notify::new(),
            soft,
            hard,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message with its line end before all that is not control.
    pub(crate) fn push_control(&self, message: &mut Vec<u8>) -> Result<(), Refused> {
        self.push(message, None, |state| &mut state.control)
    }

    /// Puts a message behind the others, without waiting for room.
    pub(crate) fn push_data(&self, message: &mut Vec<u8>, request: Option<i64>) -> Result<(), Refused> {
        self.push(message, request, |state| &mut state.data)
    }

    fn push(
        &self,
        message: &mut Vec<u8>,
        request: Option<i64>,
        lane: impl FnOnce(&mut State) -> &mut VecDeque<Chunk>,
    ) -> Result<(), Refused> {
        let mut state = self.state();
        if state.end != End::Open {
            return Err(Refused::Closed);
        }
        if state.bytes + message.len() > self.hard {
            return Err(Refused::Full);
        }
        state.bytes += message.len();
        // The writer takes all that waits: it knows of what is there already.
        let is_first = state.control.is_empty() && state.data.is_empty();
        let spare = std::mem::take(&mut state.spare);
        let lane = lane(&mut state);
        match lane.back_mut().filter(|last| last.takes(message.len())) {
            Some(last) => {
                last.add(message, request);
                state.spare = spare;
            }
            None => {
                let mut chunk = spare;
                chunk.add(message, request);
                lane.push_back(chunk);
            }
        }
        self.note_room(&state);
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Whether the outbox is under its soft bound, or at its end.
    pub(crate) fn has_room(&self) -> bool {
        !self.full.load(Ordering::Acquire)
    }

    fn note_room(&self, state: &State) {
        self.full.store(state.bytes >= self.soft && state.end == End::Open, Ordering::Release);
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
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }

    /// Takes a request back that is not being written yet. The process never hears of it.
    pub(crate) fn revoke(&self, request: i64) -> bool {
        let mut state = self.state();
        let found = state.data.iter_mut().enumerate().find_map(|(index, chunk)| Some((index, chunk.remove(request)?)));
        let Some((index, length)) = found else { return false };
        if state.data[index].messages.is_empty() {
            state.data.remove(index);
        }
        state.bytes -= length;
        self.note_room(&state);
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
        self.note_room(&state);
        drop(state);
        self.wake_all();
    }

    /// Drops what waits and lets the writer end.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = State { end: End::Closed, ..State::default() };
        self.note_room(&state);
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
                    let written = write_batch(&mut pipe, &batch).await;
                    let spare = batch.drain(..).next_back().unwrap_or_default().cleared();
                    let was_full = {
                        let mut state = self.state();
                        let was_full = state.bytes >= self.soft;
                        // The outbox may have been closed, and its count set back, in the meantime.
                        state.bytes = state.bytes.saturating_sub(bytes);
                        state.spare = spare;
                        self.note_room(&state);
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
    fn take(&self, batch: &mut Vec<Chunk>) -> Option<usize> {
        let mut state = self.state();
        let mut bytes = 0;
        while bytes < BATCH {
            let Some(chunk) = state.control.pop_front().or_else(|| state.data.pop_front()) else {
                break;
            };
            bytes += chunk.bytes.len();
            batch.push(chunk);
        }
        (bytes > 0 || state.end == End::Open).then_some(bytes)
    }
}

/// Plain writes: a vectored one of a single piece costs the kernel and us more.
async fn write_batch(pipe: &mut (impl AsyncWrite + Unpin), batch: &[Chunk]) -> io::Result<()> {
    for chunk in batch {
        pipe.write_all(&chunk.bytes).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn push(outbox: &Outbox, text: &str) -> Result<(), Refused> {
        outbox.push_data(&mut text.as_bytes().to_vec(), None)
    }

    fn push_request(outbox: &Outbox, id: i64, params: &[u8]) {
        let mut message = Vec::new();
        write_request(&mut message, id, "m", |bytes| bytes.extend_from_slice(params));
        outbox.push_data(&mut message, Some(id)).unwrap();
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
        push(&outbox, "one\n").unwrap();
        push(&outbox, "two\n").unwrap();
        outbox.push_control(&mut "first\n".into()).unwrap();
        outbox.finish();
        assert_eq!(push(&outbox, "late\n"), Err(Refused::Closed));
        assert_eq!(written(&outbox).await, b"first\none\ntwo\n");
        assert_eq!(outbox.waiting(), 0);
    }

    #[tokio::test]
    async fn a_request_can_be_taken_back_while_it_waits() {
        let outbox = Outbox::new(100, 200);
        push_request(&outbox, 7, b"{}");
        push(&outbox, "eight\n").unwrap();
        assert!(outbox.revoke(7));
        assert!(!outbox.revoke(7));
        outbox.finish();
        assert_eq!(written(&outbox).await, b"eight\n");
    }

    #[tokio::test]
    async fn what_is_taken_back_leaves_those_around_it_whole() {
        let outbox = Outbox::new(1 << 20, 1 << 20);
        let large = vec![b'x'; JOIN];
        for (id, params) in [(1, &b"1"[..]), (2, b"22"), (3, b"333"), (4, &large), (5, b"5")] {
            push_request(&outbox, id, params);
        }
        let waiting = outbox.waiting();
        assert!(outbox.revoke(2) && outbox.revoke(4) && !outbox.revoke(4) && !outbox.revoke(9));
        assert!(outbox.waiting() < waiting - large.len());
        outbox.finish();
        let request =
            |id, params| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\",\"params\":{params}}}\n");
        let expected = [request(1, "1"), request(3, "333"), request(5, "5")].concat();
        assert_eq!(String::from_utf8(written(&outbox).await).unwrap(), expected);
        assert_eq!(outbox.waiting(), 0);
    }

    #[tokio::test]
    async fn the_hard_bound_refuses_and_the_soft_bound_makes_callers_wait() {
        let outbox = Arc::new(Outbox::new(10, 20));
        push(&outbox, "0123456789ab\n").unwrap();
        assert_eq!(outbox.push_control(&mut "0123456789\n".into()), Err(Refused::Full));
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
            push(&outbox, &small).unwrap();
            expected.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"m","params":"#).as_bytes());
            expected.extend_from_slice(&big);
            expected.extend_from_slice(b"}\n");
            push_request(&outbox, n, &big);
        }
        outbox.finish();
        assert!(written(&outbox).await == expected);
    }
}
