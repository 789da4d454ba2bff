//! Stalls of the target that the percentiles of a closed workload hide.
//!
//! Users wait for their answers. While a target stalls, they send nothing, so that a long stall leaves one slow request
//! for each of them among thousands of quick ones. Requests that come at a rate, whether or not others are answered,
//! would meet the stall in proportion to its length. This is the coordinated omission that Gil Tene has described
//! ("How NOT to measure latency", 2013). The correction is his, as in `recordValueWithExpectedInterval` of HdrHistogram:
//! a request that took `v` where a user sends one every `interval` stands for those that would have come meanwhile. They
//! would have waited for `v - interval`, `v - 2 interval`, and so on.

use std::time::Duration;

use serde::Serialize;

use crate::clock::time::{Nanos, SECOND, nanos};
use crate::metrics::tally::Tally;
use crate::metrics::time_series::TimeSeries;

/// Times in which nothing was answered although users waited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// Seconds of all of them.
    pub seconds: f64,
    /// Seconds of the longest request.
    pub longest: f64,
    /// Percentiles of the response time that users measured.
    pub measured: Percentiles,
    /// Those of requests that come at the same mean rate without waiting for each other.
    pub corrected: Percentiles,
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// 95 % are at most as long.
    pub p95: f64,
    /// 99 % are at most as long.
    pub p99: f64,
}

/// What is measured of a closed workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserFigures<'a> {
    /// Answers over time, and where the measuring begins in it.
    pub(crate) time_series: &'a TimeSeries,
    pub(crate) since: Nanos,
    pub(crate) tally: &'a Tally,
    /// Users on average.
    pub(crate) users: f64,
    pub(crate) length: Nanos,
}

/// A tick without an answer may be chance. In two of them a target that is quick has answered nothing.
const MIN_TICKS: usize = 2;
/// A stall is so many times as long as the median. Users who began together get their answers together, too.
const MIN_MEDIANS: u64 = 10;
/// A single stall takes this share of the time, several of them the other. Less is one slow answer.
const MIN_SHARE_OF_ONE: f64 = 0.10;
const MIN_SHARE: f64 = 0.02;
/// The time that users spent in long requests lies in stalls by this share. Else long requests are not those of stalls:
/// some pages take long.
const MIN_EXPLAINED: f64 = 0.6;
/// How much longer the corrected p99 must be than the measured one.
const MIN_HIDDEN: f64 = 2.0;

impl Stalls {
    /// `None` if there were none, or if the measured percentiles show them.
    pub(crate) fn of(figures: UserFigures<'_>) -> Option<Stalls> {
        let UserFigures { time_series, since, tally, users, length } = figures;
        let median = nanos(tally.response.percentile(50.0)?);
        let least = (MIN_TICKS as Nanos * time_series.width()).max(MIN_MEDIANS * median);
        let gaps: Vec<Nanos> = gaps(time_series, since).filter(|gap| *gap >= least).collect();
        let shortest = *gaps.iter().min()?;
        let all: Nanos = gaps.iter().sum();
        // A gap begins and ends somewhere in the ticks beside it.
        let seconds = (all + gaps.len() as Nanos * time_series.width()) as f64 / SECOND as f64;
        let share = all as f64 / length.max(1) as f64;
        let least_share = if gaps.len() == 1 { MIN_SHARE_OF_ONE } else { MIN_SHARE };
        // A user has one long request for each stall.
        let requests = Requests::of(tally, shortest, users * length as f64);
        let explained = users * all as f64 >= MIN_EXPLAINED * requests.time_of_long();
        let waited = requests.long.iter().map(|(_, count)| count).sum::<f64>() >= gaps.len() as f64;
        let percentiles = |of: &dyn Fn(f64) -> Option<f64>| {
            Some(Percentiles { p50: of(50.0)?, p95: of(95.0)?, p99: of(99.0)? })
        };
        let measured =
            percentiles(&|percent| Some(tally.response.percentile(percent)?.as_secs_f64()))?;
        let corrected = percentiles(&|percent| Some(requests.percentile(percent)))?;
        let is_hidden = corrected.p99 >= MIN_HIDDEN * measured.p99;
        (share >= least_share && explained && waited && is_hidden).then(|| Stalls {
            count: gaps.len() as u64,
            seconds,
            longest: tally.response.max().map_or(0.0, |max| max.as_secs_f64()),
            measured,
            corrected,
        })
    }
}

/// The times without an answer between answers.
fn gaps(time_series: &TimeSeries, since: Nanos) -> impl Iterator<Item = Nanos> {
    let ticks = time_series.ticks_from(since);
    let answered = ticks.iter().enumerate().filter(|(_, tick)| tick.answered > 0);
    let answered: Vec<usize> = answered.map(|(index, _)| index).collect();
    let empty = |pair: &[usize]| (pair[1] - pair[0] - 1) as Nanos;
    let width = time_series.width();
    answered.windows(2).map(|pair| empty(pair) * width).collect::<Vec<_>>().into_iter()
}

/// Response times in seconds with their counts.
struct Requests {
    all: Vec<(f64, f64)>,
    long: Vec<(f64, f64)>,
    /// Seconds from one request of a user to the next, on average.
    interval: f64,
}

impl Requests {
    /// `user_time` is the time of all users together, in nanoseconds.
    fn of(tally: &Tally, long: Nanos, user_time: f64) -> Requests {
        let counts = tally.response.counts().iter_recorded();
        let all: Vec<(f64, f64)> = counts
            .map(|value| {
                let time = Duration::from_micros(value.value_iterated_to());
                (time.as_secs_f64(), value.count_at_value() as f64)
            })
            .collect();
        let bound = long as f64 / SECOND as f64;
        let long = all.iter().copied().filter(|(time, _)| *time >= bound).collect();
        let interval = user_time / SECOND as f64 / tally.response.count().max(1) as f64;
        Requests { all, long, interval }
    }

    fn time_of_long(&self) -> f64 {
        self.long.iter().map(|(time, count)| time * count).sum::<f64>() * SECOND as f64
    }

    /// Requests that take longer than this: those that were sent, and those that would have come.
    fn longer_than(&self, bound: f64) -> f64 {
        let sent = self.all.iter().filter(|(time, _)| *time > bound).map(|(_, count)| count);
        let missing = self.long.iter().map(|(time, count)| count * (time - bound).max(0.0));
        sent.sum::<f64>() + missing.sum::<f64>() / self.interval
    }

    /// Seconds.
    fn percentile(&self, percent: f64) -> f64 {
        let wanted = (1.0 - percent / 100.0) * self.longer_than(0.0);
        let (mut low, mut high) = (0.0, self.all.last().map_or(0.0, |(time, _)| *time));
        // Until it is exact to the microseconds that are measured.
        while high - low > 1e-6 {
            let middle = (low + high) / 2.0;
            if self.longer_than(middle) > wanted { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests;
