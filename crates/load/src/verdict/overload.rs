//! Whether more requests were offered than the target answered.
//!
//! Then the number of requests under way grows with the length of the load, and so do response times. That is a
//! fact about the target, not a fault of the measurement. Its throughput is right, but its percentiles depend on
//! when the run ended. The whole run is judged, whatever its figures leave out as a warm-up.

use std::time::Duration;

use serde::Serialize;

use crate::clock::time::{Nanos, SECOND, nanos};
use crate::metrics::tally::Tally;
use crate::metrics::window::WindowTally;

/// What an overloaded target was offered, and what became of it, until the arrivals were over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overload {
    /// Seconds in which requests arrived.
    pub seconds: f64,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that had a connection, or were allowed to open one.
    pub sent: u64,
    /// Complete answers, of any status.
    pub answered: u64,
    /// Requests that failed without an answer, most of them by a timeout.
    pub failed: u64,
    /// Requests that were under way, in the generator or in the target.
    pub unanswered: u64,
}

/// Who sends the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Users, who wait for their answers: they cannot offer more than is answered.
    Users,
    /// Arrivals, which wait for nobody, until this time.
    Arrivals(Nanos),
}

/// The requests under way must grow by this share of the arrivals.
const MIN_GROWTH: f64 = 0.05;
/// They must also grow by this many standard deviations of a Poisson count, the square root of the arrivals. A
/// stable queue varies, too.
const MIN_DEVIATIONS: f64 = 2.0;
/// If a load rises faster, the requests under way grow without any queue.
const MAX_RISE: f64 = 1.1;
/// A run must be this many times as long as the fastest answer. In a shorter one most requests are under way.
const MIN_ANSWERS: u64 = 8;
/// A backlog of this share of all arrivals, and of their square root, is more than a queue that comes and goes. In
/// simulated queues at 80 % load and less, it stays so long for one run in fifty at most.
const MIN_BACKLOG: f64 = 0.02;
/// In the second half, the arrivals and the answers must differ by this share. Else the backlog is what the target
/// holds by nature.
const MIN_DIFFERENCE: f64 = 0.04;
/// In the last quarter answers must take this many times as long as before: they have waited in a queue.
const MIN_SLOWDOWN: f64 = 1.5;
/// Timeouts are those of a queue if answers have come near to the timeout. Else single requests hang.
const NEAR_TIMEOUT: f64 = 0.5;

impl Overload {
    /// Judges all windows of a run; `None` if its target kept up. `timeout` is that of its requests.
    pub(crate) fn of(
        source: Source,
        windows: &[WindowTally],
        tally: &Tally,
        timeout: Nanos,
    ) -> Option<Overload> {
        let Source::Arrivals(until) = source else {
            return None;
        };
        // When the arrivals are over, the target clears its queue.
        let last = windows.iter().rposition(|window| window.due > 0 && window.start < until)?;
        let windows = &windows[..=last];
        let length = windows[last].end.saturating_sub(windows[0].start);
        let fastest = tally.response.min().map_or(Nanos::MAX, nanos);
        let run = Course(windows);
        let is_overloaded = length / MIN_ANSWERS >= fastest
            && (run.grows_steadily()
                || run.keeps_a_queue()
                || run.gives_up(tally.response.percentile(95.0), timeout));
        is_overloaded.then(|| Overload {
            seconds: length as f64 / SECOND as f64,
            offered: run.sum(|w| w.due),
            sent: run.sum(|w| w.sent),
            answered: run.sum(|w| w.answered + w.errors - w.lost),
            failed: run.sum(|w| w.lost),
            unanswered: run.sum(|w| w.due).saturating_sub(run.sum(|w| w.answered + w.errors)),
        })
    }

    /// The share of the offered requests that were answered.
    pub fn answered_share(&self) -> f64 {
        self.answered as f64 / self.offered.max(1) as f64
    }
}

/// Windows in a row.
#[derive(Clone, Copy)]
struct Course<'a>(&'a [WindowTally]);

impl<'a> Course<'a> {
    fn sum(self, count: impl Fn(&WindowTally) -> u64) -> u64 {
        self.0.iter().map(count).sum()
    }

    fn part(self, from: usize, to: usize) -> Course<'a> {
        Course(&self.0[from..to])
    }

    /// Arrivals beyond what ended.
    fn growth(self) -> f64 {
        self.sum(|w| w.due) as f64 - self.sum(|w| w.answered + w.errors) as f64
    }

    /// Arrivals that have not ended, or were given up.
    fn missing(self) -> f64 {
        self.growth() + self.sum(|w| w.abandoned) as f64
    }

    /// Nanoseconds; `None` without an answer.
    fn mean_response(self) -> Option<f64> {
        let answered = self.sum(|w| w.answered);
        (answered > 0).then(|| self.sum(|w| w.response) as f64 / answered as f64)
    }

    /// At a steady rate, the requests under way have grown in the third quarter and in the last.
    fn grows_steadily(self) -> bool {
        let n = self.0.len();
        let quarter = n / 4;
        if quarter == 0 {
            return false;
        }
        let [third, last] = [self.part(n - 2 * quarter, n - quarter), self.part(n - quarter, n)];
        let due = [third, last].map(|part| part.sum(|w| w.due) as f64);
        let growth = [third, last].map(Course::growth);
        let arrivals = due[0] + due[1];
        let least = (MIN_GROWTH * arrivals).max(MIN_DEVIATIONS * arrivals.sqrt());
        let is_steady = due[1] <= MAX_RISE * due[0];
        is_steady
            && growth.iter().all(|growth| *growth > 0.0)
            && growth.iter().sum::<f64>() >= least
    }

    /// At any rate, a backlog was there all through the last quarter, and made the answers slower. A stall leaves
    /// none between its stalls.
    fn keeps_a_queue(self) -> bool {
        let n = self.0.len();
        if n < 2 {
            return false;
        }
        let quarter = (n / 4).max(1);
        let late = self.part(n - quarter, n);
        let due = self.sum(|w| w.due) as f64;
        let before = self.part(0, n - quarter).missing();
        let ends = (0..=quarter).map(|windows| late.part(0, windows).missing());
        let backlog = before + ends.fold(f64::INFINITY, f64::min);
        // In the first quarter quick answers come before slow ones, so it says too little of their mean.
        let middle = (0..n - quarter).collect::<Vec<_>>();
        let middle = middle.rchunks(quarter).take(2);
        let earlier =
            middle.filter_map(|part| self.part(part[0], part[part.len() - 1] + 1).mean_response());
        let earlier = earlier.fold(f64::INFINITY, f64::min);
        let is_slower = late.mean_response().is_some_and(|mean| mean >= MIN_SLOWDOWN * earlier);
        let half = self.part(n / 2, n);
        let difference = half.missing().abs();
        backlog >= (MIN_BACKLOG * due).max(due.sqrt())
            && difference >= MIN_DIFFERENCE * half.sum(|w| w.due) as f64
            && is_slower
    }

    /// So many wait in the queue that they reach their timeout. `slow` is what slow answers took.
    fn gives_up(self, slow: Option<Duration>, timeout: Nanos) -> bool {
        let half = self.part(self.0.len() / 2, self.0.len());
        let abandoned = half.sum(|w| w.abandoned) as f64;
        abandoned >= MIN_DIFFERENCE * half.sum(|w| w.due) as f64
            && slow.is_some_and(|slow| nanos(slow) as f64 >= NEAR_TIMEOUT * timeout as f64)
    }
}

#[cfg(test)]
mod tests;
