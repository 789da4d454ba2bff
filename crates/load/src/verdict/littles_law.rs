//! Little's law, as a check of the generator's own counts.
//!
//! The mean number in a system is the arrival rate times the mean stay (J. D. C. Little, "A proof for the
//! queuing formula L = lambda W", Operations Research 9(3), 1961). One side is integrated over time as
//! requests and users come and go. The other follows from the throughput and the histograms. If they
//! disagree, something was lost or counted twice.

use crate::clock::time::{Nanos, SECOND};
use crate::metrics::histogram::Histogram;
use crate::metrics::tally::Tally;
use crate::metrics::window::WindowTally;
use crate::verdict::judging::Judging;

/// Both sides of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LittlesLaw {
    /// Requests in the system, or users, on average.
    pub(crate) counted: f64,
    /// Their number by Little's law, from throughput, response times and pauses.
    pub(crate) derived: f64,
    /// How far both may differ because of requests under way at the beginning and the end.
    pub(crate) ends: f64,
}

/// Requests under way at the beginning or the end are in one side only, for about one stay. So a run must be
/// this many stays long.
const MIN_STAYS: f64 = 20.0;
/// A run must have this many requests and last for a second. In a shorter one, a generator that sleeps a little
/// too long weighs as much as a mistake.
const MIN_REQUESTS: u64 = 100;

impl LittlesLaw {
    /// `unanswered` are the ages of requests that were in the system at the end. `None` if too little was measured,
    /// or if paced users were late: their response times overlap.
    pub(crate) fn of<'a>(
        judging: Judging,
        tally: &Tally,
        windows: impl Iterator<Item = &'a WindowTally>,
        length: Nanos,
        unanswered: &[Nanos],
    ) -> Option<LittlesLaw> {
        let few = tally.requests < MIN_REQUESTS || length < SECOND;
        if judging == Judging::Nothing || few || tally.late > 0 {
            return None;
        }
        let (mut occupancy, mut pauses) = (0, 0);
        for window in windows {
            occupancy += window.occupancy;
            pauses += window.pauses;
        }
        let seconds = length as f64 / SECOND as f64;
        let stayed = total(&tally.response) + total(&tally.failed);
        let under_way: Nanos = unanswered.iter().map(|age| age.min(&length)).sum();
        let total = stayed + (pauses + under_way) as f64 / SECOND as f64;
        // A request that is under way at an instant stays longer than the average: E[R^2] / E[R] (the
        // inspection paradox of renewal theory; Feller, vol. 2, I.4).
        let met = (squares(&tally.response) + squares(&tally.failed)) / stayed;
        let stay = (total / tally.requests as f64).max(met);
        (seconds >= MIN_STAYS * stay).then_some(LittlesLaw {
            counted: occupancy as f64 / length as f64,
            derived: total / seconds,
            // By chance, one of the slowest requests may be under way at either end.
            ends: (total / seconds * stay + 2.0 * slowest(tally)) / seconds,
        })
    }

    /// How far the sides are apart beyond `ends`, as a share of what was counted.
    pub(crate) fn gap(self) -> f64 {
        let apart = (self.derived - self.counted).abs() - self.ends;
        apart.max(0.0) / self.counted.max(f64::MIN_POSITIVE)
    }
}

/// Seconds.
fn total(times: &Histogram) -> f64 {
    times.mean().map_or(0.0, |mean| mean.as_secs_f64() * times.count() as f64)
}

/// Seconds.
fn slowest(tally: &Tally) -> f64 {
    let of = |times: &Histogram| times.max().map_or(0.0, |max| max.as_secs_f64());
    of(&tally.response).max(of(&tally.failed))
}

/// Seconds squared.
fn squares(times: &Histogram) -> f64 {
    let (Some(mean), Some(deviation)) = (times.mean(), times.deviation()) else { return 0.0 };
    (mean.as_secs_f64().powi(2) + deviation.as_secs_f64().powi(2)) * times.count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where 5 were counted in the system.
    fn gap(times: &[(Nanos, u64)]) -> f64 {
        let mut tally: Tally = Tally::default();
        for (micros, count) in times {
            tally.response.record_micros(*micros, *count);
            tally.requests += count;
        }
        let window = WindowTally { occupancy: 5 * 3 * SECOND, ..WindowTally::default() };
        LittlesLaw::of(Judging::Law, &tally, [window].iter(), 3 * SECOND, &[]).unwrap().gap()
    }

    #[test]
    fn one_that_is_stuck_may_lie_across_an_end_but_not_all() {
        let times = [(5000, 3000), (1_000_000, 1)];
        assert_eq!(gap(&times), 0.0);
        assert!(gap(&[(5330, 3001)]) > 0.05, "as long in all");
    }
}
