//! What a process writes that is no message, or is none that the host waits for. It is dropped and counted, the first
//! of each kind is told, and only a flood of it is a failure.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::report::PluginText;

/// Counts by kind, with the first of each.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct NoiseReport {
    /// How many there were of each kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// The first of each kind: what was wrong, with an excerpt.
    pub first: BTreeMap<&'static str, PluginText>,
}

impl NoiseReport {
    /// How many there were in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

#[derive(Debug)]
pub(super) struct Noise {
    state: Mutex<State>,
    total: AtomicU64,
    flood: u64,
    window: Duration,
}

#[derive(Debug)]
struct State {
    report: NoiseReport,
    window_start: Instant,
    in_window: u64,
}

/// What to do about one more piece of noise.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It is the first of its kind.
    Tell,
    /// It is one more.
    Count,
    /// It is one too many.
    Flood,
}

impl Noise {
    pub(super) fn new(flood: u64, window: Duration) -> Self {
        let state = State { report: NoiseReport::default(), window_start: Instant::now(), in_window: 0 };
        Self { state: Mutex::new(state), total: AtomicU64::new(0), flood, window }
    }

    /// Counts something that does no harm in any number, such as a late answer.
    pub(super) fn note(&self, kind: &'static str, what: impl FnOnce() -> PluginText) -> Reaction {
        self.total.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.report.counts.entry(kind).or_default();
        *count += 1;
        if *count > 1 {
            return Reaction::Count;
        }
        state.report.first.insert(kind, what());
        Reaction::Tell
    }

    /// Counts a bad line.
    pub(super) fn bad_line(&self, kind: &'static str, what: impl FnOnce() -> PluginText) -> Reaction {
        let reaction = self.note(kind, what);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now - state.window_start > self.window {
            state.window_start = now;
            state.in_window = 0;
        }
        state.in_window += 1;
        if state.in_window == self.flood { Reaction::Flood } else { reaction }
    }

    /// How much noise there was in all.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(super) fn report(&self) -> NoiseReport {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).report.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_flood_within_the_window_is_a_failure() {
        let noise = Noise::new(3, Duration::from_secs(10));
        assert_eq!(noise.bad_line("blank", || "one".into()), Reaction::Tell);
        assert_eq!(noise.bad_line("blank", || "two".into()), Reaction::Count);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(noise.bad_line("not_json", || "three".into()), Reaction::Tell);
        assert_eq!(noise.bad_line("blank", || "four".into()), Reaction::Count);
        assert_eq!(noise.bad_line("blank", || "five".into()), Reaction::Flood);
        assert_eq!(noise.report().total(), 5);
        assert_eq!(noise.report().first["blank"].raw(), "one");
    }
}
