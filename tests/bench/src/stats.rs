//! Middles and spreads.

use std::time::Duration;

use serde::Serialize;

/// What a value was over all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// A quarter of the rounds are below.
    pub(crate) low: f64,
    /// A quarter of the rounds are above.
    pub(crate) high: f64,
}

impl Spread {
    /// None of no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Self { median: at(&values, 0.5)?, low: at(&values, 0.25)?, high: at(&values, 0.75)? })
    }
}

/// The value below which that share of the sorted values is.
fn at<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

/// The median and the 99th percentile of times, in microseconds.
pub(crate) fn percentiles(times: &mut [Duration]) -> Option<(f64, f64)> {
    times.sort_unstable();
    let micros = |share| at(times, share).map(|time| time.as_secs_f64() * 1e6);
    Some((micros(0.5)?, micros(0.99)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_quarters_of_values_in_any_order() {
        let spread = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!(spread, Spread { median: 3.0, low: 2.0, high: 4.0 });
        assert_eq!(Spread::of([]), None);
        let mut times: Vec<_> = (1..=101).rev().map(Duration::from_micros).collect();
        assert_eq!(percentiles(&mut times), Some((51.0, 100.0)));
    }
}
