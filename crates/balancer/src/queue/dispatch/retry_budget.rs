//! The retry budget: a share of the recent requests, and a few more. Without it, a failing fleet would
//! get its load several times over.

use crate::config::limits::RetryLimits;
use crate::queue::TICK;

/// Counts of requests and retries that decay over ten seconds.
#[derive(Debug)]
pub(super) struct Budget {
    limits: RetryLimits,
    requests: f64,
    retries: f64,
    pub(super) counts: RetryCounts,
}

/// Requests that were to be retried on another backend. The counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RetryCounts {
    /// Requests that were retried.
    pub sent: u64,
    /// Requests that were not retried because the budget was spent.
    pub refused: u64,
}

/// How long a count lasts, in ticks.
const SPAN_TICKS: f64 = 10.0 / (TICK.as_millis() as f64 / 1000.0);

impl Budget {
    pub(super) fn new(limits: RetryLimits) -> Self {
        Budget { limits, requests: 0.0, retries: 0.0, counts: RetryCounts::default() }
    }

    pub(super) fn request(&mut self) {
        self.requests += 1.0;
    }

    /// Takes one retry if the budget allows it.
    pub(super) fn retry(&mut self) -> bool {
        let share = self.requests * f64::from(self.limits.percent) / 100.0;
        let few = f64::from(self.limits.per_second) * 10.0;
        let granted = self.retries + 1.0 <= share + few;
        if granted {
            self.retries += 1.0;
            self.counts.sent += 1;
        } else {
            self.counts.refused += 1;
        }
        granted
    }

    pub(super) fn tick(&mut self) {
        self.requests *= 1.0 - 1.0 / SPAN_TICKS;
        self.retries *= 1.0 - 1.0 / SPAN_TICKS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_and_a_few_a_second() {
        let mut budget = Budget::new(RetryLimits { percent: 20, per_second: 1 });
        assert_eq!((0..50).filter(|_| budget.retry()).count(), 10, "the few of ten seconds");
        (0..100).for_each(|_| budget.request());
        assert_eq!((0..50).filter(|_| budget.retry()).count(), 20, "the share");
        (0..40).for_each(|_| budget.tick());
        let again = (0..50).filter(|_| budget.retry()).count();
        assert!((1..=4).contains(&again), "after four seconds: {again}");
        assert_eq!(
            budget.counts,
            RetryCounts { sent: 30 + again as u64, refused: 120 - again as u64 }
        );
    }
}
