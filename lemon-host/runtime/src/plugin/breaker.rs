//! When to start a plugin again that failed, and when to stop trying.
//!
//! The delay doubles from `restart_ms` to `restart_max_ms`, jittered so that plugins that failed together do not come back
//! together. `failures_in_window` failures within `failure_window_ms`, or `failures_in_a_row`, open the circuit. An uptime
//! of `healthy_ms` with a good reply clears the history.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{Limits, Timeouts};

/// The bounds that decide on restarts.
#[derive(Debug, Clone)]
pub(super) struct RestartPolicy {
    first: Duration,
    last: Duration,
    window: Duration,
    in_window: usize,
    in_a_row: u32,
    healthy: Duration,
    /// A failed plugin is tried again for a call at the most once in this time.
    pub(super) half_open: Duration,
}

impl RestartPolicy {
    pub(super) fn new(limits: &Limits, timeouts: &Timeouts) -> Self {
        Self {
            first: timeouts.restart_ms.get(),
            last: timeouts.restart_max_ms.get(),
            window: timeouts.failure_window_ms.get(),
            in_window: limits.failures_in_window,
            in_a_row: limits.failures_in_a_row,
            healthy: timeouts.healthy_ms.get(),
            half_open: timeouts.retry_failed_ms.get(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Breaker {
    pub(super) policy: RestartPolicy,
    recent: VecDeque<Instant>,
    in_a_row: u32,
}

impl Breaker {
    pub(super) fn new(policy: RestartPolicy) -> Self {
        Self { policy, recent: VecDeque::new(), in_a_row: 0 }
    }

    /// Counts a failure. The delay before the next try, or none when the circuit is open.
    ///
    /// `jitter` lies in 0..1 and takes away up to half of the delay.
    pub(super) fn failed(&mut self, now: Instant, jitter: f64) -> Option<Duration> {
        let RestartPolicy { first, last, window, in_window, in_a_row, .. } = self.policy;
        self.in_a_row = self.in_a_row.saturating_add(1);
        if in_window > 0 {
            self.recent.retain(|at| now.duration_since(*at) < window);
            self.recent.push_back(now);
        }
        if (in_window > 0 && self.recent.len() >= in_window) || (in_a_row > 0 && self.in_a_row >= in_a_row) {
            return None;
        }
        let delay = first.saturating_mul(1 << (self.in_a_row - 1).min(16)).min(last);
        Some(delay.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0))
    }

    /// Takes a process into account that was up for a while before it failed.
    pub(super) fn was_up(&mut self, uptime: Duration, replied: bool) {
        if uptime >= self.policy.healthy && replied {
            self.clear();
        }
    }

    /// Forgets all failures: the user asked for a start, or something changed.
    pub(super) fn clear(&mut self) {
        self.recent.clear();
        self.in_a_row = 0;
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.in_a_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(limits: &Limits, timeouts: &Timeouts) -> Breaker {
        Breaker::new(RestartPolicy::new(limits, timeouts))
    }

    fn usual() -> Breaker {
        breaker(&Limits::default(), &Timeouts::default())
    }

    #[test]
    fn five_failures_in_a_minute_open_the_circuit() {
        let (mut breaker, mut now) = (usual(), Instant::now());
        let mut delays = Vec::new();
        while let Some(delay) = breaker.failed(now, 0.0) {
            delays.push(delay.as_secs());
            now += delay;
        }
        assert_eq!(delays, [1, 2, 4, 8]);
    }

    #[test]
    fn slow_failures_back_off_to_a_minute_until_ten_in_a_row() {
        let (mut breaker, mut now) = (usual(), Instant::now());
        let mut delays = Vec::new();
        while let Some(delay) = breaker.failed(now, 0.0) {
            delays.push(delay.as_secs());
            now += Duration::from_secs(61);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn the_configuration_sets_delays_and_bounds_and_zero_means_no_bound() {
        let timeouts: Timeouts = toml::from_str("restart_ms = 10\nrestart_max_ms = 15\nfailure_window_ms = 5").unwrap();
        let limits: Limits = toml::from_str("failures_in_window = 2\nfailures_in_a_row = 3").unwrap();
        let (mut twice, now) = (breaker(&limits, &timeouts), Instant::now());
        assert_eq!(twice.failed(now, 0.0), Some(Duration::from_millis(10)));
        assert_eq!(twice.clone().failed(now, 0.0), None, "two within the window");
        assert_eq!(twice.failed(now + Duration::from_millis(5), 0.0), Some(Duration::from_millis(15)));
        assert_eq!(twice.failed(now + Duration::from_secs(9), 0.0), None, "three in a row");
        let limits: Limits = toml::from_str("failures_in_window = 0\nfailures_in_a_row = 0").unwrap();
        let mut never = breaker(&limits, &timeouts);
        assert!((0..1000).all(|_| never.failed(now, 0.0).is_some()));
    }

    #[test]
    fn only_uptime_with_a_reply_makes_up_for_failures() {
        let (mut breaker, now) = (usual(), Instant::now());
        breaker.failed(now, 0.0);
        breaker.was_up(Duration::from_secs(500), false);
        breaker.was_up(Duration::from_secs(119), true);
        assert_eq!(breaker.failures(), 1);
        breaker.was_up(Duration::from_secs(120), true);
        assert_eq!(breaker.failures(), 0);
    }

    #[test]
    fn jitter_takes_away_half_at_the_most() {
        assert_eq!(usual().failed(Instant::now(), 1.0), Some(Duration::from_millis(500)));
    }
}
