//! Estimates how long a request would wait, from how fast the requests before it got their slots.

use std::time::{Duration, Instant};

/// The time between two grants while somebody waits all the time. There is one estimate for each queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrainRate {
    last: Option<Instant>,
    /// Intervals seen, up to [`MAX_INTERVALS`].
    count: u32,
    /// Seconds.
    mean: f64,
    /// Seconds squared.
    variance: f64,
}

/// Fewer intervals say nothing.
const MIN_INTERVALS: u32 = 8;

/// Older intervals are forgotten.
const MAX_INTERVALS: u32 = 64;

impl DrainRate {
    /// Records a grant to a waiter.
    pub(super) fn handed(&mut self, now: Instant) {
        if let Some(last) = self.last {
            let seconds = now.saturating_duration_since(last).as_secs_f64();
            self.count = (self.count + 1).min(MAX_INTERVALS);
            let (share, deviation) = (1.0 / f64::from(self.count), seconds - self.mean);
            self.mean += share * deviation;
            self.variance += share * (deviation * (seconds - self.mean) - self.variance);
        }
        self.last = Some(now);
    }

    /// Forgets everything, because nobody waits or other backends serve.
    pub(super) fn reset(&mut self) {
        *self = DrainRate::default();
    }

    /// The least time that the last of this many waiters is likely to wait: two standard errors below
    /// the mean. The error matters while little has been seen. None if too little has.
    pub(super) fn wait(&self, waiters: usize) -> Option<Duration> {
        if self.count < MIN_INTERVALS {
            return None;
        }
        let error = (self.variance / f64::from(self.count)).sqrt();
        let seconds = (self.mean - 2.0 * error).max(0.0) * waiters as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(intervals: impl IntoIterator<Item = u64>) -> DrainRate {
        let (mut rate, mut now) = (DrainRate::default(), Instant::now());
        rate.handed(now);
        for millis in intervals {
            now += Duration::from_millis(millis);
            rate.handed(now);
        }
        rate
    }

    #[test]
    fn a_steady_rate_is_known_soon_and_an_unsteady_one_late() {
        assert_eq!(after([100; 7]).wait(10), None);
        let steady = after([100; 8]).wait(10).unwrap();
        assert!((995..=1005).contains(&steady.as_millis()), "{steady:?}");
        let mixed = |count| after((0..count).map(|n| if n % 4 == 0 { 400 } else { 0 }));
        let (few, many) = (mixed(8).wait(10).unwrap(), mixed(640).wait(10).unwrap());
        assert!(few < many && many < Duration::from_secs(1), "{few:?}, {many:?}");
    }

    #[test]
    fn the_drain_rate_follows_a_change() {
        let slower = after([10; 500].into_iter().chain([1000; 200])).wait(1).unwrap();
        assert!(slower > Duration::from_millis(800), "{slower:?}");
    }
}
