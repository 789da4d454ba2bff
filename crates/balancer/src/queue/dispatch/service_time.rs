//! The service time of a backend for `least_time`: a decaying mean that forgets without new reports. The
//! rule is nginx's in outline: time multiplied by requests in flight, halved without traffic.

use std::time::{Duration, Instant};

/// A mean of service times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTime {
    micros: u64,
    /// When it last changed.
    at: Option<Instant>,
}

/// Microseconds. Shorter times are equal, because their differences are noise.
const MIN_TIME_MICROS: u64 = 1000;

/// One answer has this part of the weight of the mean.
const ANSWERS_IN_MEAN: u64 = 8;

/// A failure counts as an answer after at least this many microseconds.
const MIN_FAILURE_MICROS: u32 = 1_000_000;

/// After this time without an answer, half of the mean is forgotten.
const HALF_LIFE: Duration = Duration::from_secs(1);

impl ServiceTime {
    pub(super) fn answered(&mut self, micros: u32, now: Instant) {
        let micros = u64::from(micros);
        self.micros = match self.micros {
            0 => micros,
            known => (known * (ANSWERS_IN_MEAN - 1) + micros) / ANSWERS_IN_MEAN,
        };
        self.at = Some(now);
    }

    pub(super) fn is_below(self, micros: u32) -> bool {
        self.micros < u64::from(micros)
    }

    pub(super) fn failed(&mut self, micros: u32, now: Instant) {
        self.answered(micros.max(MIN_FAILURE_MICROS), now);
    }

    /// Halves the mean if it is out of date. Returns whether it was.
    pub(super) fn age(&mut self, now: Instant) -> bool {
        let old = self.at.is_none_or(|at| now.saturating_duration_since(at) >= HALF_LIFE);
        if old {
            (self.micros, self.at) = (self.micros / 2, Some(now));
        }
        old
    }

    /// Microseconds to compare by, in steps of about a fifth, so that nearly equal backends share the
    /// work.
    pub(super) fn cost(self) -> u64 {
        let micros = self.micros.max(MIN_TIME_MICROS);
        let shift = 61 - micros.leading_zeros();
        micros >> shift << shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_follows_answers_penalises_failures_and_decays() {
        let (start, mut service) = (Instant::now(), ServiceTime::default());
        assert_eq!(service.cost(), service.cost().max(768), "unknown is fast");
        service.answered(100_000, start);
        let steady = service.cost();
        assert!((80_000..=100_000).contains(&steady), "{steady}");
        service.answered(102_000, start);
        assert_eq!(service.cost(), steady, "about equal is equal");
        service.failed(50, start);
        assert!(service.cost() > steady, "a quick failure is slow");
        assert!(!service.age(start + HALF_LIFE / 2));
        for second in 1..20 {
            assert!(service.age(start + HALF_LIFE * second));
        }
        assert_eq!(service.cost(), ServiceTime::default().cost());
    }
}
