//! When to start a plugin again that failed, and when to stop trying.
//!
//! The delay doubles from 1 s to 60 s, jittered so that plugins that failed together do not come back together. Five
//! failures within 60 s, or ten in a row, open the circuit. 120 s of uptime with a good reply clear the history.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_secs(60);
const IN_WINDOW: usize = 5;
const IN_A_ROW: u32 = 10;
/// The uptime that makes up for earlier failures.
const HEALTHY: Duration = Duration::from_secs(120);

#[derive(Debug, Default, Clone)]
pub(super) struct Breaker {
    recent: VecDeque<Instant>,
    in_a_row: u32,
}

impl Breaker {
    /// Counts a failure. The delay before the next try, or none when the circuit is open.
    ///
    /// `jitter` lies in 0..1 and takes away up to half of the delay.
    pub(super) fn failed(&mut self, now: Instant, jitter: f64) -> Option<Duration> {
        self.recent.retain(|at| now.duration_since(*at) < WINDOW);
        self.recent.push_back(now);
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.recent.len() >= IN_WINDOW || self.in_a_row >= IN_A_ROW {
            return None;
        }
        let delay = FIRST.saturating_mul(1 << (self.in_a_row - 1).min(16)).min(LAST);
        Some(delay.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0))
    }

    /// Takes a process into account that was up for a while before it failed.
    pub(super) fn was_up(&mut self, uptime: Duration, replied: bool) {
        if uptime >= HEALTHY && replied {
            self.clear();
        }
    }

    /// Forgets all failures: the user asked for a start, or something changed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.in_a_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_minute_open_the_circuit() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        let mut delays = Vec::new();
        while let Some(delay) = breaker.failed(now, 0.0) {
            delays.push(delay.as_secs());
            now += delay;
        }
        assert_eq!(delays, [1, 2, 4, 8]);
    }

    #[test]
    fn slow_failures_back_off_to_a_minute_until_ten_in_a_row() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        let mut delays = Vec::new();
        while let Some(delay) = breaker.failed(now, 0.0) {
            delays.push(delay.as_secs());
            now += Duration::from_secs(61);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn only_uptime_with_a_reply_makes_up_for_failures() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.failed(now, 0.0);
        breaker.was_up(Duration::from_secs(500), false);
        breaker.was_up(Duration::from_secs(119), true);
        assert_eq!(breaker.failures(), 1);
        breaker.was_up(Duration::from_secs(120), true);
        assert_eq!(breaker.failures(), 0);
    }

    #[test]
    fn jitter_takes_away_half_at_the_most() {
        assert_eq!(Breaker::default().failed(Instant::now(), 1.0), Some(Duration::from_millis(500)));
    }
}
