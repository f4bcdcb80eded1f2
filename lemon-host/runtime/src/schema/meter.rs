//! What a validation may still do: steps of work, and memory for what it finds wrong. Where nobody waits for it any more,
//! it may do nothing.
//!
//! Whoever looks at a value pays before: one step for a look, one for each byte of digits, a fraction of one for each byte
//! of text that is only read, and what its automaton takes for each byte that meets a pattern. Without steps, values look
//! empty, so that a validation ends soon and what it says means nothing.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two looks at whether anybody still waits.
const SLICE: u64 = 1 << 16;
/// Bytes of text that are read, or compared, in one step.
const READ_IN_A_STEP: u64 = 16;
/// What a member's name takes in an error that lists names, beside its bytes.
const NAME_BYTES: u64 = 48;

/// How much may be done for one question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort<'a> {
    pub(super) steps: u64,
    pub(super) stopped: Option<&'a Arc<AtomicBool>>,
}

impl<'a> Effort<'a> {
    /// A millisecond or so: what may be done where it is asked for.
    pub(crate) const AT_ONCE: Self = Self { steps: 1 << 21, stopped: None };

    /// Half a second or so, as long as the caller waits.
    pub(crate) fn until(stopped: &'a Arc<AtomicBool>) -> Self {
        Self { steps: 1 << 28, stopped: Some(stopped) }
    }
}

/// What a validation costs for each thing that it looks at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rates {
    /// Steps for each byte of text that meets a pattern.
    pub(super) per_byte: u64,
    /// How many patterns a name may meet at once.
    pub(super) per_name: u64,
    /// The memory of one error, in bytes; 0 where none are kept.
    pub(super) error_bytes: u64,
}

/// What is left.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Steps until the next look at `stopped`.
    near: Cell<u64>,
    far: Cell<u64>,
    /// Memory for errors, in bytes.
    room: Cell<u64>,
    rates: Rates,
    stopped: Option<Arc<AtomicBool>>,
    state: Cell<State>,
}

/// How far a validation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Running,
    /// It may take no more steps.
    OutOfSteps,
    /// It may take no more memory.
    OutOfRoom,
}

impl Meter {
    pub(super) fn new(effort: Effort<'_>, rates: Rates, room: u64) -> Self {
        Self {
            near: Cell::new(0),
            far: Cell::new(effort.steps),
            room: Cell::new(room),
            rates,
            stopped: effort.stopped.cloned(),
            state: Cell::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state.get()
    }

    /// Whether it ran out, so that what was found out means nothing.
    pub(super) fn is_over(&self) -> bool {
        self.state.get() != State::Running
    }

    pub(super) fn spend(&self, steps: u64) -> bool {
        match self.near.get().checked_sub(steps) {
            Some(left) => {
                self.near.set(left);
                true
            }
            None => self.refill(steps),
        }
    }

    #[cold]
    fn refill(&self, steps: u64) -> bool {
        if self.is_over() {
            return false;
        }
        let stopped = self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed));
        match (self.near.get() + self.far.get()).checked_sub(steps) {
            Some(left) if !stopped => {
                let slice = SLICE.min(left);
                self.near.set(slice);
                self.far.set(left - slice);
                true
            }
            _ => self.end(State::OutOfSteps),
        }
    }

    fn end(&self, state: State) -> bool {
        self.near.set(0);
        self.state.set(state);
        false
    }

    /// A text that may meet one pattern.
    pub(super) fn spend_text(&self, text: &str) -> bool {
        self.spend(1 + self.rates.per_byte.saturating_mul(text.len() as u64))
    }

    /// A text that is read or compared.
    pub(super) fn spend_reading(&self, text: &str) -> bool {
        self.spend(1 + text.len() as u64 / READ_IN_A_STEP)
    }

    /// A name that may meet all patterns of a schema, and stand in an error.
    pub(super) fn spend_name(&self, name: &str) -> bool {
        let Rates { per_byte, per_name, error_bytes } = self.rates;
        if error_bytes > 0 && !self.take(NAME_BYTES + name.len() as u64) {
            return false;
        }
        self.spend(1 + (per_byte * per_name).saturating_mul(name.len() as u64))
    }

    /// An error that is kept.
    pub(super) fn take_error(&self) {
        #[cfg(test)]
        ERRORS.set(ERRORS.get() + 1);
        self.take(self.rates.error_bytes);
    }

    fn take(&self, bytes: u64) -> bool {
        match self.room.get().checked_sub(bytes) {
            Some(left) => {
                self.room.set(left);
                true
            }
            None if self.is_over() => false,
            None => self.end(State::OutOfRoom),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How many errors were made on this thread.
    pub(crate) static ERRORS: Cell<usize> = const { Cell::new(0) };
}
