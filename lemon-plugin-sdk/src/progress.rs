//! Progress and partial results of one call (LPP-PROG): growing numbers, no more than a person can follow, the newest
//! never lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lemon_protocol::{RequestId, method};
use tokio::time::Instant;

use crate::connection::message::{self, Partial, PartialMeta};
use crate::connection::outbox::Unsent;
use crate::context::Call;
use crate::output::ToolOutput;

/// A number that progress may be told in: any of Rust's usual ones.
pub trait Amount {
    /// The number as JSON has it.
    fn amount(self) -> f64;
}

/// How far a call will go: a number, or `None` where it is not known.
pub trait Total {
    /// The number as JSON has it.
    fn total(self) -> Option<f64>;
}

macro_rules! amounts {
    ($($number:ty)*) => { $(
        impl Amount for $number {
            fn amount(self) -> f64 {
                self as f64
            }
        }
    )* };
}
amounts! { i32 i64 isize u8 u16 u32 u64 usize f32 f64 }

impl<T: Amount> Total for T {
    fn total(self) -> Option<f64> {
        Some(self.amount())
    }
}

impl Total for Option<f64> {
    fn total(self) -> Option<f64> {
        self
    }
}

/// So many may follow each other at once; then one comes each [`INTERVAL`].
const BURST: f64 = 16.0;
/// How long the newest waits while others were sent just now.
const INTERVAL: Duration = Duration::from_millis(50);
/// What a partial result adds to the progress before it: MCP has progress grow with each notification.
const STEP: f64 = 1e-9;

pub(crate) struct Progress {
    token: RequestId<'static>,
    state: Mutex<State>,
}

struct State {
    /// What was said last, sent or not.
    last: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
    /// What waits for its turn.
    waiting: Option<Note>,
    /// How many may go out now, and when that was counted.
    allowance: f64,
    counted: Instant,
    /// A task will send what waits.
    timed: bool,
}

struct Note {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
    partial: Option<ToolOutput>,
}

impl Progress {
    pub(crate) fn new(token: RequestId<'static>) -> Self {
        let counted = Instant::now();
        let (last, total, message, waiting) = (None, None, None, None);
        Self {
            token,
            state: Mutex::new(State { last, total, message, waiting, allowance: BURST, counted, timed: false }),
        }
    }

    pub(crate) fn report(&self, call: &Arc<Call>, done: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !done.is_finite() || state.last.is_some_and(|last| done <= last) {
            return;
        }
        state.total = total.filter(|total| total.is_finite());
        state.message.clone_from(&message);
        let note = Note { progress: done, total: state.total, message, partial: None };
        self.note(call, &mut state, note);
    }

    pub(crate) fn partial(&self, call: &Arc<Call>, output: ToolOutput) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = state.last.map_or(0.0, |last| last.next_up().max(last + STEP));
        let note = Note { progress, total: state.total, message: state.message.clone(), partial: Some(output) };
        self.note(call, &mut state, note);
    }

    /// Sends what waits, if it may go now or is the last that can.
    pub(crate) fn flush(&self, call: &Call) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.timed = false;
        if let Some(note) = state.waiting.take() {
            self.send(call, &note);
        }
    }

    fn note(&self, call: &Arc<Call>, state: &mut State, mut note: Note) {
        state.last = Some(note.progress);
        let now = Instant::now();
        let earned = now.duration_since(state.counted).as_secs_f64() / INTERVAL.as_secs_f64();
        (state.allowance, state.counted) = ((state.allowance + earned).min(BURST), now);
        if let Some(waiting) = state.waiting.take() {
            note.partial = note.partial.or(waiting.partial);
        }
        if state.allowance >= 1.0 && !state.timed {
            state.allowance -= 1.0;
            self.send(call, &note);
            return;
        }
        state.waiting = Some(note);
        if !std::mem::replace(&mut state.timed, true) {
            let call = call.clone();
            tokio::spawn(async move {
                tokio::time::sleep(INTERVAL).await;
                if let Some(progress) = &call.progress {
                    progress.flush(&call);
                }
            });
        }
    }

    /// Progress may be lost where there is no room, and a partial result that is too large is not shown. None of a
    /// cancelled call is of use.
    fn send(&self, call: &Call, note: &Note) {
        if call.is_cancelled() {
            return;
        }
        let send = |partial: Option<&ToolOutput>| {
            let params = message::Progress {
                progress_token: &self.token,
                progress: note.progress,
                total: note.total,
                message: note.message.as_deref(),
                meta: partial.map(|output| PartialMeta { partial: Partial::of(output) }),
            };
            call.while_live(|| call.connection.notify(method::PROGRESS, &params))
        };
        if let Some(Err(Unsent::TooLarge { .. })) = send(note.partial.as_ref()) {
            send(None);
        }
    }
}
