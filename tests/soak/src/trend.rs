//! The host's memory over a run, and whether it grows.

use std::time::Duration;

use serde::Serialize;

/// One kind of memory, read again and again: seconds and KiB.
#[derive(Debug, Default)]
pub(crate) struct Trend(Vec<(f64, f64)>);

/// What became of it.
#[derive(Debug, Serialize)]
pub(crate) struct Course {
    /// The median of the second tenth of the run, when everything has been needed once.
    pub(crate) early_kib: f64,
    /// The median of the last tenth.
    pub(crate) late_kib: f64,
    pub(crate) peak_kib: f64,
    /// What the second half of the run gained, fitted by least squares.
    pub(crate) gained_kib: f64,
}

impl Trend {
    pub(crate) fn add(&mut self, at: Duration, kib: u64) {
        self.0.push((at.as_secs_f64(), kib as f64));
    }

    pub(crate) fn course(&self) -> Course {
        Course {
            early_kib: self.median(1, 2),
            late_kib: self.median(9, 10),
            peak_kib: self.0.iter().map(|point| point.1).fold(0.0, f64::max),
            gained_kib: self.gained(),
        }
    }

    /// Whether the second half gained more than what comes and goes. A short run can't tell.
    pub(crate) fn grows(&self, comes_and_goes_kib: f64) -> bool {
        const SHORT: f64 = 60.0;
        self.seconds() > SHORT && self.gained() > comes_and_goes_kib
    }

    fn median(&self, from: usize, to: usize) -> f64 {
        let tenth = |number: usize| self.0.len() * number / 10;
        let mut part: Vec<_> = self.0[tenth(from)..tenth(to)].iter().map(|point| point.1).collect();
        part.sort_by(f64::total_cmp);
        part.get(part.len() / 2).copied().unwrap_or_default()
    }

    fn second_half(&self) -> &[(f64, f64)] {
        &self.0[self.0.len() / 2..]
    }

    /// How long the second half took.
    fn seconds(&self) -> f64 {
        let points = self.second_half();
        points.first().zip(points.last()).map_or(0.0, |(first, last)| last.0 - first.0)
    }

    fn gained(&self) -> f64 {
        let points = self.second_half();
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (at, kib) = (mean(|point| point.0), mean(|point| point.1));
        let together: f64 = points.iter().map(|point| (point.0 - at) * (point.1 - kib)).sum();
        let alone: f64 = points.iter().map(|point| (point.0 - at).powi(2)).sum();
        if alone == 0.0 { 0.0 } else { together / alone * self.seconds() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(kib: impl Fn(u64) -> u64) -> Trend {
        let mut trend = Trend::default();
        (0..300).for_each(|second| trend.add(Duration::from_secs(second), kib(second)));
        trend
    }

    #[test]
    fn memory_that_grows_to_the_end_is_told_from_memory_that_comes_and_goes() {
        assert!(trend(|second| 10_000 + second * 100).grows(4096.0));
        assert!(!trend(|second| 10_000 + second % 7 * 2000).grows(4096.0));
        assert!(!trend(|second| 10_000 + second.min(100) * 1000).grows(4096.0));
    }

    #[test]
    fn a_course_says_what_was_gained_and_between_what() {
        let course = trend(|second| second * 10).course();
        let figures = [course.early_kib, course.late_kib, course.peak_kib, course.gained_kib.round()];
        assert_eq!(figures, [450.0, 2850.0, 2990.0, 1490.0]);
    }
}
