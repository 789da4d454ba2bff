//! The minimum rate of a client. Bytes earn it time, and waiting for it spends that time.
//!
//! A limit on the silence between two bytes alone would let a client hold a slot for hours, one byte at
//! a time.

use std::time::{Duration, Instant};

/// The time that a client has left.
#[derive(Debug)]
pub(crate) struct MinRate {
    /// Bytes that earn a second. 0 means no limit.
    rate: u64,
    /// The most time that it can save up, so that a fast start does not pay for a slow rest.
    most: Duration,
    left: Duration,
    /// Since when it is waited for.
    since: Option<Instant>,
    moved: u64,
}

impl MinRate {
    pub(crate) fn new(grace: Duration, most: Duration, rate: u64) -> Self {
        MinRate { rate, most: most.max(grace), left: grace, since: None, moved: 0 }
    }

    /// Call it at every step, with whether the client is waited for from now on and how many bytes it
    /// has moved in all. While it is waited for, returns when it will have been too slow.
    pub(crate) fn deadline(&mut self, waited_for: bool, moved: u64) -> Option<Instant> {
        if self.rate == 0 || !waited_for && self.since.is_none() {
            return None;
        }
        let now = Instant::now();
        self.settle(moved, now);
        self.since = waited_for.then_some(now);
        waited_for.then(|| now + self.left)
    }

    fn settle(&mut self, moved: u64, now: Instant) {
        let bytes = moved - std::mem::replace(&mut self.moved, moved);
        let earned = Duration::from_micros(bytes.saturating_mul(1_000_000) / self.rate);
        let spent = self.since.map_or(Duration::ZERO, |since| now - since);
        self.left = self.left.saturating_add(earned).saturating_sub(spent).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The time left after waits of a second each, with so many bytes in each.
    fn left(bytes: &[u64]) -> Duration {
        let mut min_rate = MinRate::new(10 * SECOND, 60 * SECOND, 1024);
        let (mut now, mut moved) = (Instant::now(), 0);
        for bytes in bytes {
            min_rate.since = Some(now);
            now += SECOND;
            moved += bytes;
            min_rate.settle(moved, now);
        }
        min_rate.left
    }

    #[test]
    fn bytes_earn_time_up_to_a_limit() {
        assert_eq!(left(&[0; 4]), 6 * SECOND);
        assert_eq!(left(&[1024; 100]), 10 * SECOND);
        assert_eq!(left(&[512; 20]), Duration::ZERO);
        assert_eq!(left(&[1 << 30]), 60 * SECOND);
        assert_eq!(left(&[1 << 30, 0, 0]), 58 * SECOND);
    }

    #[test]
    fn nothing_is_spent_while_somebody_else_is_slow() {
        let mut min_rate = MinRate::new(SECOND, SECOND, 1);
        assert_eq!(min_rate.deadline(false, 0), None);
        let first = min_rate.deadline(true, 0).unwrap();
        assert!(min_rate.deadline(true, 0).unwrap() <= first + Duration::from_millis(1));
        assert_eq!(min_rate.deadline(false, 0), None);
        assert_eq!(min_rate.since, None);
        assert_eq!(MinRate::new(SECOND, SECOND, 0).deadline(true, 0), None);
    }
}
