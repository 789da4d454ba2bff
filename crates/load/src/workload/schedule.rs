//! When one thread's arrivals are due.
//!
//! Evenly spaced arrivals are due where N(t), the integral of the rate, is a whole number. Arrivals of a
//! Poisson process are due where N(t) is a sum of exponential gaps of mean 1. This is the time-change of a
//! unit Poisson process. Stratified arrivals are due where N(t) is one of as many independent uniform values in each
//! phase as N grows there. A Poisson process has just these times, given how many there are.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::phase::Spacing;
use super::rate_curve::RateCurve;
use super::spec::Workload;
use super::strata::{Strata, exponential};
use super::thread_share::ThreadShare;
use crate::clock::time::Nanos;

/// One thread's share of the arrivals, in the load's time.
#[derive(Debug)]
pub(crate) struct Schedule {
    curve: Arc<RateCurve>,
    /// The segment of the next arrival.
    cursor: usize,
    gaps: Gaps,
    /// N at this thread's next arrival.
    next: f64,
    due: Option<Nanos>,
}

/// Thread t of T takes arrivals t, t + T, t + 2T of one sequence. All threads know it, so that the number of
/// threads does not change it.
#[derive(Debug)]
enum Gaps {
    Even { stride: f64 },
    Poisson { random: Box<SmallRng>, stride: usize },
    Stratified { strata: Box<Strata>, stride: usize },
}

impl Schedule {
    pub(crate) fn new(
        curve: Arc<RateCurve>,
        spacing: Spacing,
        share: ThreadShare,
        seed: u64,
    ) -> Schedule {
        let (gaps, next) = match spacing {
            Spacing::Even => (Gaps::Even { stride: share.threads as f64 }, share.thread as f64),
            Spacing::Poisson => {
                let mut random = Box::new(SmallRng::seed_from_u64(seed));
                let next = sum_of_gaps(&mut random, share.thread + 1);
                (Gaps::Poisson { random, stride: share.threads }, next)
            }
            Spacing::Stratified => {
                let mut strata = Box::new(Strata::new(seed));
                let next = strata.next(&curve, share.thread + 1);
                (Gaps::Stratified { strata, stride: share.threads }, next)
            }
        };
        let mut schedule = Schedule { curve, cursor: 0, gaps, next, due: None };
        schedule.look();
        schedule
    }

    /// When the next arrival is due; `None` if there is none to come.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.due
    }

    /// The next arrival has happened.
    pub(crate) fn advance(&mut self) {
        self.next = match &mut self.gaps {
            Gaps::Even { stride } => self.next + *stride,
            Gaps::Poisson { random, stride } => self.next + sum_of_gaps(random, *stride),
            Gaps::Stratified { strata, stride } => strata.next(&self.curve, *stride),
        };
        self.look();
    }

    /// Follows another curve, which includes the arrivals so far.
    pub(crate) fn follow(&mut self, curve: Arc<RateCurve>) {
        if let Gaps::Stratified { strata, .. } = &mut self.gaps {
            strata.follow(&curve);
        }
        self.curve = curve;
        self.cursor = 0;
        self.look();
    }

    /// The limit of requests in the system, over all threads, when the next arrival is due.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.curve.limit_at(self.cursor)
    }

    /// When nothing more arrives.
    pub(crate) fn ends_at(&self) -> Option<Nanos> {
        self.curve.ends_at()
    }

    fn look(&mut self) {
        self.due = self.curve.time_of(self.next, &mut self.cursor);
    }
}

impl Workload {
    /// The intended times of an open workload's arrivals, since its beginning. They are the same in every run with
    /// this seed, with any number of threads. A closed workload has none.
    pub fn arrivals(&self, seed: u64) -> impl Iterator<Item = Duration> + use<> {
        const ALONE: ThreadShare = ThreadShare { thread: 0, threads: 1 };
        let mut schedule = match self {
            Workload::Open { phases, spacing } => {
                let curve = Arc::new(RateCurve::new(0, phases));
                Some(Schedule::new(curve, *spacing, ALONE, seed))
            }
            Workload::Closed { .. } => None,
        };
        std::iter::from_fn(move || {
            let schedule = schedule.as_mut()?;
            let due = schedule.next_due()?;
            schedule.advance();
            Some(Duration::from_nanos(due))
        })
    }
}

fn sum_of_gaps(random: &mut SmallRng, count: usize) -> f64 {
    (0..count).map(|_| exponential(random)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::time::{MILLISECOND, SECOND};
    use crate::workload::phase::Phase;
    use crate::workload::rate::Rate;
    use crate::workload::spec::Workload;
    use std::time::Duration;

    const ALONE: ThreadShare = ThreadShare { thread: 0, threads: 1 };

    fn constant(start: Nanos, rate: Rate) -> Arc<RateCurve> {
        Arc::new(RateCurve::new(start, &[Phase::constant(rate, None)]))
    }

    fn take(schedule: &mut Schedule, count: usize) -> Vec<Nanos> {
        (0..count)
            .map(|_| {
                let due = schedule.next_due().unwrap();
                schedule.advance();
                due
            })
            .collect()
    }

    fn take_until(schedule: &mut Schedule, end: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| {
            let due = schedule.next_due().filter(|due| *due < end)?;
            schedule.advance();
            Some(due)
        })
        .collect()
    }

    /// What all threads send, in order.
    fn merged(curve: &Arc<RateCurve>, spacing: Spacing, threads: usize, end: Nanos) -> Vec<Nanos> {
        let mut all: Vec<Nanos> = (0..threads)
            .flat_map(|thread| {
                let share = ThreadShare { thread, threads };
                take_until(&mut Schedule::new(Arc::clone(curve), spacing, share, 7), end)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn even_arrivals_never_drift() {
        let mut schedule = Schedule::new(constant(SECOND, 3.0), Spacing::Even, ALONE, 1);
        let times = take(&mut schedule, 300_001);
        assert_eq!(times[0], SECOND);
        assert_eq!(times[1], SECOND + 333_333_333);
        assert_eq!(times[300_000], 100_001 * SECOND);
    }

    #[test]
    fn a_day_at_a_high_rate_is_exact_to_the_nanosecond() {
        let curve = constant(0, 70_000.0);
        let mut cursor = 0;
        let day = 86_400;
        assert_eq!(curve.time_of(70_000.0 * day as f64, &mut cursor), Some(day * SECOND));
        let next = curve.time_of(70_000.0 * day as f64 + 7.0, &mut cursor);
        assert_eq!(next, Some(day * SECOND + 100_000));
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let phases = [
            Phase::constant(100.0, Some(Duration::from_secs(3))),
            Phase::ramp(100.0, 20.0, Duration::from_secs(5)),
            Phase::constant(500.0, None),
        ];
        let curve = Arc::new(RateCurve::new(SECOND, &phases));
        for spacing in [Spacing::Even, Spacing::Poisson, Spacing::Stratified] {
            let alone = merged(&curve, spacing, 1, 12 * SECOND);
            for threads in [2, 3, 7] {
                assert_eq!(merged(&curve, spacing, threads, 12 * SECOND), alone, "{threads}");
            }
        }
        let parts: Vec<u64> =
            (0..3).map(|thread| ThreadShare { thread, threads: 3 }.of(10)).collect();
        assert_eq!(parts, [4, 3, 3]);
    }

    #[test]
    fn poisson_has_the_rate_and_the_spread_and_repeats_by_seed() {
        let poisson = |seed| {
            let curve = constant(0, 1000.0);
            take_until(&mut Schedule::new(curve, Spacing::Poisson, ALONE, seed), 50 * SECOND)
        };
        let times = poisson(7);
        // 50,000 expected; 5 standard deviations are 1,118.
        assert!((48_882..51_118).contains(&times.len()), "{}", times.len());
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let variation = variance.sqrt() / mean;
        assert!((0.95..1.05).contains(&variation), "{variation}");
        assert_eq!(times, poisson(7));
        assert_ne!(times, poisson(8));
    }

    #[test]
    fn arrivals_of_a_workload_are_those_that_its_threads_send() {
        let phases =
            [Phase::constant(100.0, Some(Duration::from_secs(3))), Phase::constant(500.0, None)];
        let told = Workload::phases(phases.clone(), Spacing::Poisson).arrivals(7);
        let told: Vec<Nanos> =
            told.map(|at| at.as_nanos() as Nanos).take_while(|at| *at < 5 * SECOND).collect();
        let curve = Arc::new(RateCurve::new(0, &phases));
        assert_eq!(told, merged(&curve, Spacing::Poisson, 3, 5 * SECOND));
        assert!(told.len() > 1000, "{}", told.len());
        assert_eq!(Workload::closed(5, Duration::ZERO).arrivals(7).count(), 0);
    }

    #[test]
    fn another_curve_keeps_the_part_of_the_gap_that_has_passed() {
        let curve = constant(SECOND, 10.0);
        let mut schedule = Schedule::new(Arc::clone(&curve), Spacing::Even, ALONE, 1);
        take(&mut schedule, 3);
        // 1.3 s is due next; at 1.25 s half of the gap has passed, the other half takes 5 ms.
        let at = SECOND + 250 * MILLISECOND;
        schedule.follow(Arc::new(curve.redirected(at, 100.0, Duration::ZERO)));
        let times = take(&mut schedule, 3);
        assert_eq!(times, [255, 265, 275].map(|ms| SECOND + ms * MILLISECOND));
        // And nothing at all at a rate of zero, until there is one again.
        let none = curve.redirected(at, 0.0, Duration::ZERO);
        let mut schedule = Schedule::new(Arc::clone(&curve), Spacing::Even, ALONE, 1);
        take(&mut schedule, 3);
        schedule.follow(Arc::new(none.clone()));
        assert_eq!(schedule.next_due(), None);
        schedule.follow(Arc::new(none.redirected(5 * SECOND, 10.0, Duration::ZERO)));
        assert_eq!(schedule.next_due(), Some(5 * SECOND + 50 * MILLISECOND));
    }
}
