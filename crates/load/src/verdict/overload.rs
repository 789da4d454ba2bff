//! Whether arrivals come faster than the target answers them.
//!
//! Then the number of requests under way grows with the length of the load, and so do response times. That is a
//! fact about the target, not a fault of the measurement. Its throughput is right, but its percentiles depend on
//! when the run ended.

use crate::clock::time::Nanos;
use crate::metrics::tally::Tally;
use crate::metrics::window::WindowTally;

/// The requests under way must grow by this share of the arrivals.
const MIN_GROWTH: f64 = 0.05;
/// They must also grow by this many standard deviations of a Poisson count, the square root of the arrivals. A
/// stable queue varies, too.
const MIN_DEVIATIONS: f64 = 2.0;
/// If a load rises faster, the requests under way grow without any queue.
const MAX_RISE: f64 = 1.1;
/// A run must be this many times as long as the fastest answer. In a shorter one most requests are under way.
const MIN_ANSWERS: u64 = 8;

/// Judges the measured windows of an open workload. The requests under way must have grown in the third quarter
/// and in the last.
pub(crate) fn is_overloaded(windows: &[&WindowTally], tally: &Tally, length: Nanos) -> bool {
    let quarter = windows.len() / 4;
    let fastest = tally.response.min().map_or(Nanos::MAX, |min| min.as_nanos() as Nanos);
    let by_users = windows.last().is_none_or(|last| last.gauges.users > 0);
    if by_users || quarter == 0 || length / MIN_ANSWERS < fastest {
        return false;
    }
    let (rest, last) = windows.split_at(windows.len() - quarter);
    let third = &rest[rest.len() - quarter..];
    let due = |part: &[&WindowTally]| part.iter().map(|w| w.due).sum::<u64>() as f64;
    let ended =
        |part: &[&WindowTally]| part.iter().map(|w| w.answered + w.errors).sum::<u64>() as f64;
    let growth = [third, last].map(|part| due(part) - ended(part));
    let arrivals = due(third) + due(last);
    let least = (MIN_GROWTH * arrivals).max(MIN_DEVIATIONS * arrivals.sqrt());
    let is_steady = due(last) <= MAX_RISE * due(third);
    is_steady && growth.iter().all(|growth| *growth > 0.0) && growth.iter().sum::<f64>() >= least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::time::{MILLISECOND, SECOND};
    use crate::metrics::window::Gauges;

    /// Windows of a second, in each of which so many came and so many were answered, by a target whose
    /// fastest answer takes so long.
    fn of(windows: &[(u64, u64)], fastest: Nanos, users: u64) -> bool {
        let mut tally: Tally = Tally::default();
        tally.response.record_nanos(fastest);
        let windows: Vec<WindowTally> = windows
            .iter()
            .map(|&(due, answered)| WindowTally {
                due,
                answered,
                gauges: Gauges { users, ..Gauges::default() },
                ..WindowTally::default()
            })
            .collect();
        let windows: Vec<&WindowTally> = windows.iter().collect();
        is_overloaded(&windows, &tally, windows.len() as u64 * SECOND)
    }

    #[test]
    fn more_arrivals_than_answers_are_overload() {
        let fast = 100 * MILLISECOND;
        assert!(of(&[(13, 8); 12], fast, 0), "13 a second where 8 are answered");
        assert!(of(&[(60, 49); 10], fast, 0));
        assert!(of(&[(1000, 900); 4], fast, 0));
        assert!(!of(&[(60, 49); 10], fast, 5), "users wait for their answers");
        assert!(!of(&[(60, 49); 3], fast, 0), "too short to tell");
    }

    #[test]
    fn a_constant_number_under_way_is_no_overload() {
        let fast = 100 * MILLISECOND;
        assert!(!of(&[(100, 100); 8], fast, 0));
        let slow = [(100, 0), (100, 0), (100, 100), (100, 100)];
        assert!(!of(&slow, 2 * SECOND, 0), "each takes 2 s");
        assert!(
            !of(&[[(50, 0); 8], [(50, 50); 8]].concat()[..10], 8 * SECOND, 0),
            "each takes 8 s"
        );
        assert!(!of(&[(50, 48), (50, 49), (50, 51), (50, 47), (50, 52), (50, 49)], fast, 0));
        assert!(!of(&[(100, 90), (200, 190), (300, 290), (400, 390)], fast, 0), "the rate rises");
    }
}
