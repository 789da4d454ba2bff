//! A rate over time, and its integral, the number of arrivals.
//!
//! The expected number of arrivals up to time t is N(t), the integral of the rate. Every value has a closed
//! form from the beginning of its segment. A segment begins at a whole nanosecond and, if possible, at a whole
//! number of arrivals. So errors never add up in a long run.

use std::time::Duration;

use crate::clock::time::{Nanos, SECOND, nanos};
use crate::workload::phase::{Flow, Phase};
use crate::workload::rate::Rate;

/// The rates of an open workload. Times are the load's own, which stand still during a pause.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RateCurve {
    /// In order, without gaps, at least one.
    segments: Vec<RateSegment>,
    names: Vec<Option<String>>,
}

/// A time in which the rate changes linearly or not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RateSegment {
    start: Nanos,
    /// [`Nanos::MAX`] if it has no end.
    end: Nanos,
    from: Rate,
    to: Rate,
    /// N at its start, and at its end.
    before: f64,
    after: f64,
    /// The limit of requests in the system, over all threads.
    pub(crate) limit: Option<usize>,
    phase: usize,
}

impl RateCurve {
    pub(crate) fn new(start: Nanos, phases: &[Phase]) -> RateCurve {
        let names = phases.iter().map(|phase| phase.name.clone()).collect();
        let mut curve = RateCurve { segments: Vec::new(), names };
        let mut at = start;
        for (index, phase) in phases.iter().enumerate() {
            let end = phase.length().map_or(Nanos::MAX, |length| at.saturating_add(nanos(length)));
            curve.add_phase(at, end, phase, index);
            at = end;
        }
        curve
    }

    /// The time at which N reaches `count`, or leaves it after a time without arrivals. `None` if it never does.
    /// `cursor` is the segment of the last call, because counts are asked for in rising order.
    pub(crate) fn time_of(&self, count: f64, cursor: &mut usize) -> Option<Nanos> {
        while self.segments.get(*cursor)?.after <= count {
            *cursor += 1;
        }
        self.segments[*cursor].time_of(count)
    }

    /// N at the first end of a phase that is above `count`; infinite in a phase without an end. `None` after all of
    /// them.
    pub(crate) fn phase_end_after(&self, count: f64) -> Option<f64> {
        let is_last = |pair: &[RateSegment]| pair[0].phase != pair[1].phase;
        let inner = self.segments.windows(2).filter(|pair| is_last(pair)).map(|pair| pair[0].after);
        let last = match self.ends_at() {
            Some(_) => self.segments.last().map(|segment| segment.after),
            None => Some(f64::INFINITY),
        };
        inner.chain(last).find(|end| *end > count)
    }

    /// The rate at a time.
    pub(crate) fn rate_at(&self, at: Nanos) -> Rate {
        match self.ends_at() {
            Some(end) if at >= end => 0.0,
            _ => self.at(at).rate_at(at),
        }
    }

    pub(crate) fn phase_at(&self, at: Nanos) -> Option<&str> {
        self.names.get(self.at(at).phase)?.as_deref()
    }

    pub(crate) fn limit_at(&self, cursor: usize) -> Option<usize> {
        self.segments.get(cursor)?.limit
    }

    /// When the arrivals end; `None` if they never do.
    pub(crate) fn ends_at(&self) -> Option<Nanos> {
        self.segments.last().map(|last| last.end).filter(|end| *end != Nanos::MAX)
    }

    /// The curve with another rate from `at` on, which is reached linearly. Its end stays.
    pub(crate) fn redirected(&self, at: Nanos, rate: Rate, over: Duration) -> RateCurve {
        let now = self.at(at);
        let end = self.ends_at().unwrap_or(Nanos::MAX);
        let at = at.max(self.segments[0].start).min(end);
        let arrived = at.saturating_add(nanos(over));
        let mut curve = RateCurve { segments: Vec::new(), names: self.names.clone() };
        let segment = RateSegment { limit: now.limit, phase: now.phase, ..RateSegment::EMPTY };
        let slope = (rate - self.rate_at(at)) / over.as_secs_f64();
        let before = now.count_at(at);
        if arrived > at && end > at {
            let from = self.rate_at(at);
            let until = arrived.min(end);
            let to = if until == arrived { rate } else { from + slope * seconds(until - at) };
            curve.push(RateSegment { start: at, end: until, from, to, before, ..segment });
        }
        let before = curve.segments.last().map_or(before, |last| last.after);
        if arrived < end || curve.segments.is_empty() {
            let (from, to) = (rate, rate);
            curve.push(RateSegment { start: arrived.min(end), end, from, to, before, ..segment });
        }
        curve
    }

    fn add_phase(&mut self, start: Nanos, end: Nanos, phase: &Phase, index: usize) {
        let blank =
            RateSegment { start, end, limit: phase.limit, phase: index, ..RateSegment::EMPTY };
        match &phase.flow {
            Flow::Constant(rate) => self.append(RateSegment { from: *rate, to: *rate, ..blank }),
            Flow::Ramp { from, to } => self.append(RateSegment { from: *from, to: *to, ..blank }),
            Flow::Count(count) => {
                let rate = *count as f64 / seconds(end - start);
                self.append(RateSegment { from: rate, to: rate, ..blank });
            }
            Flow::Stairs { from, to } => {
                let steps = (end - start).div_ceil(SECOND);
                for step in 0..steps {
                    let share = step as f64 / steps.saturating_sub(1).max(1) as f64;
                    let rate = from + (to - from) * share;
                    let first = start + step * SECOND;
                    let last = (first + SECOND).min(end);
                    self.append(RateSegment {
                        start: first,
                        end: last,
                        from: rate,
                        to: rate,
                        ..blank
                    });
                }
            }
            Flow::Trace(trace) => {
                for step in trace.steps() {
                    let first = start.saturating_add(nanos(step.at));
                    let last = start.saturating_add(nanos(step.at + step.length)).min(end);
                    if first < last {
                        let (from, to) = (step.rate, step.rate);
                        self.append(RateSegment { start: first, end: last, from, to, ..blank });
                    }
                }
            }
        }
    }

    fn append(&mut self, segment: RateSegment) {
        let before = self.segments.last().map_or(0.0, |last| last.after);
        self.push(RateSegment { before, ..segment });
    }

    fn push(&mut self, segment: RateSegment) {
        let after = match (segment.end, segment.from) {
            (Nanos::MAX, 0.0) => segment.before,
            (Nanos::MAX, _) => f64::INFINITY,
            (end, _) => whole(segment.count_at(end)),
        };
        self.segments.push(RateSegment { after, ..segment });
    }

    fn at(&self, at: Nanos) -> &RateSegment {
        let index = self.segments.partition_point(|segment| segment.end <= at);
        &self.segments[index.min(self.segments.len() - 1)]
    }
}

impl RateSegment {
    const EMPTY: RateSegment = RateSegment {
        start: 0,
        end: 0,
        from: 0.0,
        to: 0.0,
        before: 0.0,
        after: 0.0,
        limit: None,
        phase: 0,
    };

    fn count_at(&self, at: Nanos) -> f64 {
        let t = seconds(at.clamp(self.start, self.end) - self.start);
        self.before + self.from * t + self.slope() * t * t / 2.0
    }

    fn rate_at(&self, at: Nanos) -> Rate {
        self.from + self.slope() * seconds(at.clamp(self.start, self.end) - self.start)
    }

    fn time_of(&self, count: f64) -> Option<Nanos> {
        let count = (count - self.before).max(0.0);
        if count == 0.0 {
            return Some(self.start);
        }
        // The root of from*t + slope*t^2/2 = count, in the form that does not cancel.
        let root = (self.from * self.from + 2.0 * self.slope() * count).max(0.0);
        let nanos = 2.0 * count / (self.from + root.sqrt()) * SECOND as f64;
        // Half of the clock's range: a time beyond it is never reached.
        (nanos < (Nanos::MAX / 2) as f64).then(|| self.start + nanos.round() as Nanos)
    }

    fn slope(&self) -> f64 {
        match self.from == self.to {
            true => 0.0,
            false => (self.to - self.from) / seconds(self.end - self.start),
        }
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// Removes rounding errors from what should be a whole number, so that a phase of 30 arrivals has 30.
fn whole(count: f64) -> f64 {
    let nearest = count.round();
    if (count - nearest).abs() < 1e-6 { nearest } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(curve: &RateCurve) -> Vec<Nanos> {
        let mut cursor = 0;
        (0..100_000).map_while(|count| curve.time_of(f64::from(count), &mut cursor)).collect()
    }

    fn phase(flow: Flow, length: u64) -> Phase {
        let length = Some(Duration::from_secs(length));
        Phase { name: None, flow, length, limit: None }
    }

    #[test]
    fn phases_bring_what_they_say_and_nothing_else() {
        let phases = [
            phase(Flow::Constant(0.1), 30),
            phase(Flow::Constant(0.0), 7),
            phase(Flow::Count(30), 7),
            phase(Flow::Ramp { from: 0.0, to: 10.0 }, 10),
            phase(Flow::Stairs { from: 1.0, to: 5.0 }, 5),
        ];
        let curve = RateCurve::new(SECOND, &phases);
        let times = all(&curve);
        let bounds = [1, 31, 38, 45, 55, 60].map(|s| s * SECOND);
        let inside =
            |pair: &[Nanos]| times.iter().filter(|t| (pair[0]..pair[1]).contains(t)).count();
        let counts: Vec<usize> = bounds.windows(2).map(inside).collect();
        assert_eq!(counts, [3, 0, 30, 50, 15]);
        assert_eq!(times.len(), 98);
        assert_eq!(curve.ends_at(), Some(60 * SECOND));
        let steps: Vec<f64> = (55..61).map(|s| curve.rate_at(s * SECOND)).collect();
        assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0, 0.0]);
    }

    #[test]
    fn counts_at_a_seam_belong_to_the_later_segment() {
        let curve = RateCurve::new(
            0,
            &[
                phase(Flow::Constant(10.0), 1),
                phase(Flow::Constant(0.0), 5),
                phase(Flow::Constant(1.0), 2),
            ],
        );
        assert_eq!(all(&curve)[9..], [900_000_000, 6 * SECOND, 7 * SECOND]);
    }

    #[test]
    fn another_rate_keeps_what_has_come_and_the_end() {
        let curve = RateCurve::new(0, &[phase(Flow::Constant(10.0), 10)]);
        let slower = curve.redirected(2 * SECOND + SECOND / 20, 1.0, Duration::ZERO);
        assert_eq!(slower.ends_at(), Some(10 * SECOND));
        // Half of the gap before arrival 21 has passed; the rest takes ten times as long.
        let mut cursor = 0;
        assert_eq!(slower.time_of(21.0, &mut cursor), Some(2_550_000_000));
        assert_eq!(all(&slower).len(), 20 + 8 + 1);
        let gently = curve.redirected(2 * SECOND, 20.0, Duration::from_secs(4));
        assert_eq!(gently.rate_at(4 * SECOND), 15.0);
        assert_eq!(all(&gently).len(), 20 + 60 + 80);
        let cut_short = curve.redirected(8 * SECOND, 20.0, Duration::from_secs(4));
        assert_eq!(cut_short.rate_at(10 * SECOND - 1).round(), 15.0);
        assert_eq!(cut_short.ends_at(), Some(10 * SECOND));
    }

    #[test]
    fn counts_and_times_are_inverse() {
        let phases =
            [phase(Flow::Ramp { from: 10.0, to: 30.0 }, 10), phase(Flow::Constant(3.0), 9)];
        let curve = RateCurve::new(0, &phases);
        for at in [10, 33_000_000, 3_300_000_000, 10 * SECOND, 12 * SECOND + 7] {
            let mut cursor = 0;
            let back = curve.time_of(curve.at(at).count_at(at), &mut cursor).unwrap();
            assert!(back.abs_diff(at) <= 1, "{at} {back}");
        }
    }
}
