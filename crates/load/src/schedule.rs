//! When the requests of an open workload are due: closed-form, so that errors never add up.
//!
//! The expected number of arrivals up to time t is N(t), the integral of the rate. Evenly spaced
//! arrivals are due where N(t) is a whole number. A Poisson process of that rate has its arrivals
//! where N(t) is a sum of exponential gaps of mean 1 (time-change of a unit Poisson process).

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::clock::{Nanos, SECOND};
use crate::workload::{Rate, Spacing};

/// One thread's share of the arrivals.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// When the curve begins.
    origin: Nanos,
    curve: RateCurve,
    gaps: Gaps,
    /// N at this thread's next arrival.
    next: f64,
    paused_at: Option<Nanos>,
}

/// A rate that changes linearly for a while, then stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RateCurve {
    from: Rate,
    to: Rate,
    /// Seconds from one to the other.
    over: f64,
}

/// Which of a run's threads this is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) thread: usize,
    pub(crate) threads: usize,
}

#[derive(Debug)]
enum Gaps {
    /// Thread t of T takes arrivals t, t + T, t + 2T. The first one is kept apart from the count
    /// so that no rounding error adds up.
    Even { first: f64, taken: u64, stride: f64 },
    /// Every T-th part of a Poisson process is one itself.
    Poisson { random: Box<SmallRng>, mean: f64 },
}

impl Share {
    /// How many of `total` things, dealt out in turn, are this thread's.
    pub(crate) fn of(&self, total: u64) -> u64 {
        let (thread, threads) = (self.thread as u64, self.threads as u64);
        total / threads + u64::from(thread < total % threads)
    }
}

impl RateCurve {
    pub(crate) fn new(rate: Rate, ramp_to: Option<(Rate, Duration)>) -> RateCurve {
        let (to, over) = ramp_to.unwrap_or((rate, Duration::ZERO));
        RateCurve { from: rate, to, over: over.as_secs_f64() }
    }

    fn constant(rate: Rate) -> RateCurve {
        RateCurve::new(rate, None)
    }

    /// N(t): arrivals in the first `t` seconds.
    fn count_at(&self, t: f64) -> f64 {
        let ramp = t.clamp(0.0, self.over);
        let slope = self.slope();
        self.from * ramp + slope * ramp * ramp / 2.0 + self.to * (t - self.over).max(0.0)
    }

    /// The inverse of N: the second at which `count` is reached; infinite if it never is.
    fn time_of(&self, count: f64) -> f64 {
        let in_ramp = self.count_at(self.over);
        if count >= in_ramp {
            let beyond = count - in_ramp;
            return match beyond > 0.0 {
                true => self.over + beyond / self.to,
                false => self.over,
            };
        }
        // The root of from*t + slope*t^2/2 = count, in the form that does not cancel.
        let root = (self.from * self.from + 2.0 * self.slope() * count).max(0.0);
        2.0 * count / (self.from + root.sqrt())
    }

    fn slope(&self) -> f64 {
        match self.over > 0.0 {
            true => (self.to - self.from) / self.over,
            false => 0.0,
        }
    }
}

impl Schedule {
    pub(crate) fn new(
        origin: Nanos,
        curve: RateCurve,
        spacing: Spacing,
        share: Share,
        seed: u64,
    ) -> Schedule {
        let gaps = match spacing {
            Spacing::Even => {
                Gaps::Even { first: share.thread as f64, taken: 0, stride: share.threads as f64 }
            }
            Spacing::Poisson => Gaps::Poisson {
                random: Box::new(SmallRng::seed_from_u64(seed.wrapping_add(share.thread as u64))),
                mean: share.threads as f64,
            },
        };
        let mut schedule = Schedule { origin, curve, gaps, next: 0.0, paused_at: None };
        schedule.next = schedule.gaps.first();
        schedule
    }

    /// When the next arrival is due; never, while paused or at a rate of zero.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        if self.paused_at.is_some() {
            return None;
        }
        let seconds = self.curve.time_of(self.next);
        // Half of the clock's range: a time beyond it is never reached.
        let nanos = seconds * SECOND as f64;
        (nanos < (Nanos::MAX / 2) as f64).then(|| self.origin + nanos.round() as Nanos)
    }

    /// The next arrival has happened.
    pub(crate) fn advance(&mut self) {
        self.next = self.gaps.after(self.next);
    }

    /// Goes on at another rate. The part of the current gap that has passed stays passed, so
    /// there is neither a burst nor a hole.
    pub(crate) fn set_rate(&mut self, rate: Rate, now: Nanos) {
        let at = self.paused_at.unwrap_or(now);
        let passed = self.curve.count_at(self.seconds(at));
        self.origin = at.max(self.origin);
        self.curve = RateCurve::constant(rate);
        self.next = (self.next - passed).max(0.0);
        self.gaps.restart(self.next);
    }

    /// Stops the schedule's time.
    pub(crate) fn pause(&mut self, now: Nanos) {
        self.paused_at.get_or_insert(now);
    }

    /// Lets it go on where it stopped.
    pub(crate) fn resume(&mut self, now: Nanos) {
        if let Some(at) = self.paused_at.take() {
            self.origin += now.saturating_sub(at.max(self.origin.min(now)));
        }
    }

    fn seconds(&self, at: Nanos) -> f64 {
        at.saturating_sub(self.origin) as f64 / SECOND as f64
    }
}

impl Gaps {
    fn first(&mut self) -> f64 {
        match self {
            Gaps::Even { first, .. } => *first,
            Gaps::Poisson { .. } => self.after(0.0),
        }
    }

    fn after(&mut self, last: f64) -> f64 {
        match self {
            Gaps::Even { first, taken, stride } => {
                *taken += 1;
                *first + *taken as f64 * *stride
            }
            // 1 - u is never zero, so the logarithm is finite.
            Gaps::Poisson { random, mean } => last - (1.0 - random.random::<f64>()).ln() * *mean,
        }
    }

    fn restart(&mut self, next: f64) {
        if let Gaps::Even { first, taken, .. } = self {
            *first = next;
            *taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MILLISECOND;

    const ALONE: Share = Share { thread: 0, threads: 1 };

    fn even(rate: Rate, ramp_to: Option<(Rate, Duration)>) -> Schedule {
        Schedule::new(SECOND, RateCurve::new(rate, ramp_to), Spacing::Even, ALONE, 1)
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

    #[test]
    fn even_arrivals_never_drift() {
        let mut schedule = even(3.0, None);
        let times = take(&mut schedule, 300_001);
        assert_eq!(times[0], SECOND);
        assert_eq!(times[1], SECOND + 333_333_333);
        assert_eq!(times[300_000], 100_001 * SECOND);
    }

    #[test]
    fn threads_share_the_arrivals_in_turn() {
        let mut merged: Vec<Nanos> = (0..3)
            .flat_map(|thread| {
                let share = Share { thread, threads: 3 };
                let curve = RateCurve::new(100.0, None);
                take(&mut Schedule::new(0, curve, Spacing::Even, share, 1), 4)
            })
            .collect();
        merged.sort_unstable();
        let wanted: Vec<Nanos> = (0..12).map(|i| i * 10 * MILLISECOND).collect();
        assert_eq!(merged, wanted);
        let parts: Vec<u64> = (0..3).map(|thread| Share { thread, threads: 3 }.of(10)).collect();
        assert_eq!(parts, [4, 3, 3]);
    }

    #[test]
    fn ramp_follows_the_integral_of_the_rate() {
        for (from, to) in [(10.0, 30.0), (30.0, 10.0)] {
            let mut schedule = even(from, Some((to, Duration::from_secs(10))));
            // A mean of 20/s over 10 s, then `to` per second.
            assert_eq!(take_until(&mut schedule, 11 * SECOND).len(), 200);
            let after = take_until(&mut schedule, 13 * SECOND).len();
            assert_eq!(after, 2 * to as usize);
        }
        let curve = RateCurve::new(10.0, Some((30.0, Duration::from_secs(10))));
        for t in [0.0, 0.01, 3.3, 10.0, 12.5] {
            assert!((curve.time_of(curve.count_at(t)) - t).abs() < 1e-9, "{t}");
        }
    }

    #[test]
    fn poisson_has_the_rate_and_the_spread_and_repeats_by_seed() {
        let poisson = |seed| {
            let curve = RateCurve::new(1000.0, None);
            let mut schedule = Schedule::new(0, curve, Spacing::Poisson, ALONE, seed);
            take_until(&mut schedule, 50 * SECOND)
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
    fn a_new_rate_keeps_the_part_of_the_gap_that_has_passed() {
        let mut schedule = even(10.0, None);
        take(&mut schedule, 3);
        // 1.3 s is due next; at 1.25 s half of the gap has passed, the other half takes 5 ms.
        schedule.set_rate(100.0, SECOND + 250 * MILLISECOND);
        let times = take(&mut schedule, 3);
        let wanted = [255, 265, 275].map(|ms| SECOND + ms * MILLISECOND);
        assert_eq!(times, wanted);
    }

    #[test]
    fn rate_zero_and_pause_stop_the_arrivals() {
        let mut schedule = even(10.0, None);
        take(&mut schedule, 1);
        schedule.set_rate(0.0, SECOND + 50 * MILLISECOND);
        assert_eq!(schedule.next_due(), None);
        schedule.set_rate(10.0, 5 * SECOND);
        assert_eq!(schedule.next_due(), Some(5 * SECOND + 50 * MILLISECOND));
        schedule.pause(5 * SECOND);
        assert_eq!(schedule.next_due(), None);
        schedule.pause(6 * SECOND);
        schedule.resume(9 * SECOND);
        assert_eq!(schedule.next_due(), Some(9 * SECOND + 50 * MILLISECOND));
    }

    #[test]
    fn a_pause_before_the_start_only_moves_the_start() {
        let mut schedule = even(10.0, None);
        schedule.pause(0);
        schedule.resume(3 * SECOND);
        assert_eq!(schedule.next_due(), Some(3 * SECOND));
    }
}
