//! A histogram of times with three significant digits. It gives no percentile for which it has too few samples.

use std::fmt;
use std::time::Duration;

use crate::clock::time::{Nanos, nanos};

/// The longest time, one hour in microseconds. Longer times are recorded as this one.
pub(crate) const LONGEST_US: u64 = 3_600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A distribution of times in whole microseconds, up to one hour, each within 0.1 %.
#[derive(Clone)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram {
            counts: hdrhistogram::Histogram::new_with_max(LONGEST_US, SIGNIFICANT_DIGITS)
                .expect("the bounds are constants that the library accepts"),
        }
    }

    /// Adds a time.
    pub fn record(&mut self, time: Duration) {
        self.record_nanos(nanos(time));
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The shortest; `None` when empty.
    pub fn min(&self) -> Option<Duration> {
        self.if_any(self.counts.min())
    }

    /// The longest; `None` when empty.
    pub fn max(&self) -> Option<Duration> {
        self.if_any(self.counts.max())
    }

    /// The mean; `None` when empty.
    pub fn mean(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_secs_f64(self.counts.mean() / 1e6))
    }

    /// The standard deviation; `None` when empty.
    pub fn deviation(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_secs_f64(self.counts.stdev() / 1e6))
    }

    /// A percentile (50.0 is the median), or `None` if there are fewer samples than [`Histogram::samples_for`] it.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        if self.count() < Histogram::samples_for(percent) {
            return None;
        }
        self.if_any(self.counts.value_at_percentile(percent))
    }

    /// The number of independent samples that a percentile needs for 95 % confidence. The largest of n samples lies
    /// above the p-quantile with probability 1 - p^n. So n must be at least ln 0.05 / ln p: 5 for the median, 59 for
    /// p95, 299 for p99. Below the median the same holds for the smallest sample.
    pub fn samples_for(percent: f64) -> u64 {
        let fraction = (percent / 100.0).clamp(0.0, 1.0);
        let tail = fraction.max(1.0 - fraction);
        if tail >= 1.0 {
            return 1;
        }
        (0.05_f64.ln() / tail.ln()).ceil() as u64
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count() > 0 {
            self.counts.add(&other.counts).expect("all histograms have the same bounds");
        }
    }

    /// The counts themselves, in microseconds, for export.
    pub fn counts(&self) -> &hdrhistogram::Histogram<u64> {
        &self.counts
    }

    pub(crate) fn record_nanos(&mut self, time: Nanos) {
        self.counts.saturating_record((time + 500) / 1000);
    }

    pub(crate) fn record_micros(&mut self, micros: u64, count: u64) {
        self.counts.saturating_record_n(micros, count);
    }

    pub(crate) fn clear(&mut self) {
        // Clearing an empty histogram of 190 KB would be most of the work at the end of a window.
        if !self.counts.is_empty() {
            self.counts.reset();
        }
    }

    fn if_any(&self, micros: u64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_micros(micros))
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("mean", &self.mean())
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u64) -> Histogram {
        let mut histogram = Histogram::new();
        for ms in 1..=count {
            histogram.record(Duration::from_millis(ms));
        }
        histogram
    }

    #[test]
    fn percentiles_need_their_samples() {
        for (percent, samples) in [(50.0, 5), (95.0, 59), (99.0, 299), (99.9, 2995), (5.0, 59)] {
            assert_eq!(Histogram::samples_for(percent), samples);
            assert_eq!(filled(samples - 1).percentile(percent), None);
            assert!(filled(samples).percentile(percent).is_some());
        }
        assert_eq!(Histogram::samples_for(100.0), 1);
        assert_eq!(filled(0).percentile(100.0), None);
    }

    #[test]
    fn values_are_within_a_thousandth() {
        let histogram = filled(1000);
        let median = histogram.percentile(50.0).unwrap().as_secs_f64();
        assert!((median / 0.5 - 1.0).abs() < 0.002, "{median}");
        let mean = histogram.mean().unwrap().as_secs_f64();
        assert!((mean / 0.5005 - 1.0).abs() < 0.002, "{mean}");
    }

    #[test]
    fn too_long_times_are_recorded_as_the_longest() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_secs(100_000));
        histogram.record(Duration::MAX);
        assert_eq!(histogram.count(), 2);
        assert!(histogram.max().unwrap() >= Duration::from_secs(3599));
    }

    #[test]
    fn merging_adds() {
        let mut both = filled(10);
        both.merge(&filled(20));
        assert_eq!(both.count(), 30);
        assert_eq!(both.max(), filled(20).max());
        both.clear();
        assert_eq!((both.count(), both.max()), (0, None));
    }
}
