//! Whether a run reached its steady state, and when.
//!
//! The rule is MSER-5. Of all possible cuts, it takes the one after which the mean of the rest has the smallest
//! standard error, on means of five observations. K. P. White, "An effective truncation heuristic for bias
//! reduction in simulation output", Simulation 69(6), 1997. With batches: White, Cobb and Spratt, "A comparison
//! of five steady-state truncation heuristics for simulation", Winter Simulation Conference 2000. A cut in the
//! second half leaves too little to judge: K. Hoad, S. Robinson and R. Davies, "Automating warm-up length
//! estimation", Journal of the Operational Research Society 61(9), 2010.
//!
//! MSER alone would also cut a beginning because of one stall in it, and so hide the stall. So a cut counts as a
//! warm-up only if most of what it removes differs from the rest.

use serde::Serialize;

use crate::clock::time::{Nanos, SECOND};
use crate::metrics::time_series::{Tick, TimeSeries};

/// What showed that a run had not been steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Series {
    /// Users were still to come.
    Users,
    /// Successful requests per second.
    Throughput,
    /// The typical response time, in seconds.
    ResponseTime,
}

/// What the time series of a run shows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Steadiness {
    /// It was too short to show anything.
    #[default]
    Unknown,
    /// It was steady after this time. That is the beginning if it was always steady.
    After(Nanos, Series),
    /// It was still changing in its second half. These are the medians before and after.
    Never { series: Series, early: f64, late: f64 },
}

/// The fewest ticks in a batch.
const MIN_BATCH_TICKS: usize = 5;
/// The fewest requests in a batch. Fewer vary by chance as much as warm-ups do.
const MIN_BATCH_REQUESTS: u64 = 10;
/// The fewest batches that can be judged.
const MIN_BATCHES: usize = 10;
/// Batches that are never cut. A few that happen to be alike must not look steady.
const MIN_BATCHES_KEPT: usize = 5;
/// A cut must change the median by this share. Below it, nobody would read the figures differently, and
/// machines vary by as much.
const MIN_MEDIAN_CHANGE: f64 = 0.05;
/// A cut must also change the median by this share of the share that it removes. A cut of a quarter of the
/// run must change the median by 10 %, one of a half by 20 %.
const MEDIAN_CHANGE_PER_CUT: f64 = 0.4;
/// Standard deviations that chance does not cause, in the batches of the rest and in a sum of ranks. Chance
/// exceeds them once in a thousand runs, although every cut is tried.
const MIN_DEVIATIONS: f64 = 3.0;
const FAR_BY_RANKS: f64 = 3.3;

impl Steadiness {
    /// Judges a time series from `from` on.
    pub(crate) fn of(time_series: &TimeSeries, since: Nanos, from: Nanos) -> Steadiness {
        let both = [Series::Throughput, Series::ResponseTime];
        Steadiness::by(&both, time_series, since, from)
    }

    /// Judges these series alone.
    pub(crate) fn by(
        judged: &[Series],
        time_series: &TimeSeries,
        since: Nanos,
        from: Nanos,
    ) -> Steadiness {
        let ticks = time_series.ticks_from(from);
        let all: u64 = ticks.iter().map(|tick| tick.answered).sum();
        let size = (MIN_BATCH_REQUESTS * ticks.len() as u64)
            .div_ceil(all.max(1))
            .max(MIN_BATCH_TICKS as u64) as usize;
        let batches: Vec<Tick> = ticks.chunks_exact(size).map(sum).collect();
        if batches.len() < MIN_BATCHES || all == 0 {
            return Steadiness::Unknown;
        }
        let seconds = (size as u64 * time_series.width()) as f64 / SECOND as f64;
        let rates: Vec<f64> = batches.iter().map(|b| b.answered as f64 / seconds).collect();
        let mut cut = (0, if from > since { Series::Users } else { Series::Throughput });
        let all = [(Series::Throughput, rates), (Series::ResponseTime, times(&batches))];
        for (series, values) in all.into_iter().filter(|(series, _)| judged.contains(series)) {
            let end = truncation(&values);
            let (early, late) = (median(&values[..end]), median(&values[end..]));
            // A target that no longer answers is in no steady state.
            if end > values.len() / 2 || end > 0 && late == 0.0 {
                return Steadiness::Never { series, early, late };
            } else if end > cut.0 {
                cut = (end, series);
            }
        }
        let length = (cut.0 * size) as u64 * time_series.width();
        Steadiness::After(from + length, cut.1)
    }
}

/// Seconds. A batch without an answer has the time of the one before, or of the first that has one.
fn times(batches: &[Tick]) -> Vec<f64> {
    let mut last = batches.iter().find_map(Tick::typical).unwrap_or_default();
    let times = batches.iter().map(|batch| {
        last = batch.typical().unwrap_or(last);
        last
    });
    times.collect()
}

/// How many values to cut, for the smallest marginal standard error of the rest.
fn truncation(values: &[f64]) -> usize {
    let n = values.len();
    let (mut sum, mut squares) = (0.0, 0.0);
    // Values around the mean, so that squares do not cancel.
    let center = values.iter().sum::<f64>() / n as f64;
    let mut best = (f64::INFINITY, 0);
    for cut in (0..n).rev() {
        let value = values[cut] - center;
        sum += value;
        squares += value * value;
        let left = (n - cut) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        if n - cut >= MIN_BATCHES_KEPT.max(n / 10)
            && error <= best.0
            && (cut == 0 || is_transient(values, cut))
        {
            best = (error, cut);
        }
    }
    best.1
}

/// Whether the beginning differs from the rest. Most of it, also at its end, lies on one side of nearly all
/// of the rest. Chance must not explain that: it is short, or far off, or a rank-sum test says so.
fn is_transient(values: &[f64], cut: usize) -> bool {
    let (beginning, rest) = (sorted(&values[..cut]), sorted(&values[cut..]));
    let margin = rest.len() / 20;
    let (low, high) = (rest[margin], rest[rest.len() - 1 - margin]);
    let (early, late) = (beginning[cut / 2], rest[rest.len() / 2]);
    let is_off = |value: &&f64| if early < late { **value < low } else { **value > high };
    let is_mostly_off = |part: &[f64]| 2 * part.iter().filter(is_off).count() > part.len();
    let end = &values[cut - cut.div_ceil(4)..cut];
    let worth = MEDIAN_CHANGE_PER_CUT * cut as f64 / values.len() as f64;
    let matters = differ(early, late) > worth.max(MIN_MEDIAN_CHANGE);
    if !matters || !is_mostly_off(&beginning) || !is_mostly_off(end) {
        return false;
    }
    let is_short = 10 * cut <= values.len();
    let is_far =
        2 * cut <= values.len() && (early - late).abs() > MIN_DEVIATIONS * deviation(&rest);
    is_short || is_far || rank_score(&beginning, &rest) > FAR_BY_RANKS
}

/// The score of the rank-sum test, in standard deviations (H. B. Mann and D. R. Whitney, Annals of Mathematical
/// Statistics 18(1), 1947). Both lists are sorted.
fn rank_score(some: &[f64], others: &[f64]) -> f64 {
    let wins = |value: &f64| {
        let less = others.partition_point(|other| other < value);
        let less_or_equal = others.partition_point(|other| other <= value);
        (less + less_or_equal) as f64 / 2.0
    };
    let (m, n) = (some.len() as f64, others.len() as f64);
    let won: f64 = some.iter().map(wins).sum();
    (won - m * n / 2.0).abs() / (m * n * (m + n + 1.0) / 12.0).sqrt()
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

fn differ(early: f64, late: f64) -> f64 {
    (early - late).abs() / late.abs().max(f64::MIN_POSITIVE)
}

fn sum(ticks: &[Tick]) -> Tick {
    ticks.iter().fold(Tick::default(), |mut sum, tick| {
        sum.add(*tick);
        sum
    })
}

fn median(values: &[f64]) -> f64 {
    sorted(values).get(values.len() / 2).copied().unwrap_or(0.0)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests;
