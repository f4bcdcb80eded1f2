//! Progress and partial results of one call (LPP-PROG): growing numbers, no more than a person can follow, the newest
//! never lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lemon_protocol::{RequestId, method};
use tokio::time::Instant;

use crate::connection::message::{self, Partial, PartialMeta};
use crate::connection::outbox::Unsent;
use crate::context::Call;
use crate::output::ToolOutput;

mod sealed {
    pub trait Sealed {}
}

/// A number that progress may be told in: any of Rust's usual ones.
///
/// The trait is sealed: more types may get it, but only here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number in which progress can be told",
    note = "it is told in any of Rust's integers of up to 64 bits, in f32 or in f64"
)]
pub trait Amount: sealed::Sealed {
    /// The number as JSON has it.
    fn amount(self) -> f64;
}

/// How far a call will go: a number, an `Option` of one, or `()` where it is not known.
///
/// The trait is sealed: more types may get it, but only here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how far a call will go",
    note = "that is said by a number, an `Option` of a number, or `()` where it is not known"
)]
pub trait Total: sealed::Sealed {
    /// The number as JSON has it.
    fn total(self) -> Option<f64>;
}

macro_rules! amounts {
    ($($number:ty)*) => { $(
        impl sealed::Sealed for $number {}
        impl Amount for $number {
            fn amount(self) -> f64 {
                self as f64
            }
        }
        impl Total for $number {
            fn total(self) -> Option<f64> {
                Some(self.amount())
            }
        }
    )* };
}
amounts! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 }

impl<T: Amount> sealed::Sealed for Option<T> {}
impl<T: Amount> Total for Option<T> {
    fn total(self) -> Option<f64> {
        self.map(Amount::amount)
    }
}

impl sealed::Sealed for () {}
impl Total for () {
    fn total(self) -> Option<f64> {
        None
    }
}

/// So many may follow each other at once; then one comes each [`INTERVAL`].
const BURST: f64 = 16.0;
/// Twenty a second.
const INTERVAL: Duration = Duration::from_millis(50);
/// So many bytes of a partial result count like one more message, as each repeats all of the result so far.
const SHARE: f64 = 65_536.0;
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
    pace: Pace,
    /// A task will send what waits.
    timed: bool,
}

/// How many may go out now, and when that was counted. It can fall below zero.
struct Pace {
    allowance: f64,
    counted: Instant,
}

struct Note {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
    partial: Option<ToolOutput>,
}

impl Pace {
    /// Takes one of those that may go out now; else says how long to wait for the next.
    fn take(&mut self) -> Result<(), Duration> {
        let now = Instant::now();
        let earned = now.duration_since(self.counted).as_secs_f64() / INTERVAL.as_secs_f64();
        (self.allowance, self.counted) = ((self.allowance + earned).min(BURST), now);
        if self.allowance < 1.0 {
            // A timer that fires too early by a rounding must not fire at once again.
            return Err(INTERVAL.mul_f64(1.0 - self.allowance).max(Duration::from_millis(1)));
        }
        self.allowance -= 1.0;
        Ok(())
    }

    fn charge(&mut self, bytes: usize) {
        self.allowance -= bytes as f64 / SHARE;
    }
}

impl Progress {
    pub(crate) fn new(token: RequestId<'static>) -> Self {
        let pace = Pace { allowance: BURST, counted: Instant::now() };
        let (last, total, message, waiting) = (None, None, None, None);
        Self { token, state: Mutex::new(State { last, total, message, waiting, pace, timed: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self, call: &Arc<Call>, done: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.lock();
        if !done.is_finite() || state.last.is_some_and(|last| done <= last) {
            return;
        }
        state.total = total.filter(|total| total.is_finite());
        state.message.clone_from(&message);
        let note = Note { progress: done, total: state.total, message, partial: None };
        self.note(call, &mut state, note);
    }

    pub(crate) fn partial(&self, call: &Arc<Call>, output: ToolOutput) {
        let mut state = self.lock();
        let progress = state.last.map_or(0.0, |last| last.next_up().max(last + STEP));
        let note = Note { progress, total: state.total, message: state.message.clone(), partial: Some(output) };
        self.note(call, &mut state, note);
    }

    /// Whether a partial result waits for its turn.
    pub(crate) fn has_partial(&self) -> bool {
        self.lock().waiting.as_ref().is_some_and(|note| note.partial.is_some())
    }

    /// Sends what waits, as the last that can be sent.
    pub(crate) fn flush(&self, call: &Call) {
        let mut state = self.lock();
        if let Some(note) = state.waiting.take() {
            self.send(call, &note);
        }
    }

    fn note(&self, call: &Arc<Call>, state: &mut State, mut note: Note) {
        state.last = Some(note.progress);
        if let Some(waiting) = state.waiting.take() {
            note.partial = note.partial.or(waiting.partial);
        }
        let wait = if state.timed { None } else { state.pace.take().err() };
        if !state.timed && wait.is_none() {
            state.pace.charge(self.send(call, &note));
            return;
        }
        state.waiting = Some(note);
        if let Some(mut wait) = wait {
            state.timed = true;
            let timed = call.clone();
            call.connection.runtime.spawn(async move {
                while let Some(progress) = &timed.progress {
                    tokio::time::sleep(wait).await;
                    match progress.due(&timed) {
                        Some(longer) => wait = longer,
                        None => return,
                    }
                }
            });
        }
    }

    /// Sends what waits, in its turn; else says how long that still is.
    fn due(&self, call: &Call) -> Option<Duration> {
        let mut state = self.lock();
        if state.waiting.is_some() {
            if let Err(wait) = state.pace.take() {
                return Some(wait);
            }
            if let Some(note) = state.waiting.take() {
                state.pace.charge(self.send(call, &note));
            }
        }
        state.timed = false;
        None
    }

    /// Sends a note and says how many bytes a partial result took. Progress may be lost where there is no room, and a
    /// partial result that is too large is not shown. None of a cancelled call is of use.
    fn send(&self, call: &Call, note: &Note) -> usize {
        if call.is_cancelled() {
            return 0;
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
        match send(note.partial.as_ref()) {
            Some(Ok(bytes)) if note.partial.is_some() => bytes,
            // What it costs to find that out counts too.
            Some(Err(Unsent::TooLarge { bytes })) => {
                send(None);
                bytes
            }
            _ => 0,
        }
    }
}
