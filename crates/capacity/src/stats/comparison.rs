//! Whether two sides of an experiment differ: throughput, response times, errors.
//!
//! Repeated runs are compared by their figures, with Welch's interval, which includes what differs from run
//! to run. A single run has only its windows, drawn again in blocks ([`crate::stats::bootstrap`]). Their
//! interval does not include what differs from run to run. Throughput and times are compared by their
//! ratio, on a logarithmic scale, so that twice and half are equally far. Shares of errors are compared by
//! their difference.
//!
//! Times come from the buckets of histograms, and errors are few. At a given rate, one request more or less
//! may be under way at the end. Figures that coincide by chance seem not to vary. So the standard error of
//! a difference is at least a bucket, or a request.
//!
//! The intervals hold together. Each is wider, so that the chance that any of them misses its truth is 5 %
//! (Bonferroni's inequality). Without that, six figures of the same system would differ once in four
//! comparisons.

use crate::stats::bootstrap;
use crate::stats::difference::{Difference, Estimate};

/// Probability that no interval misses its truth.
pub const CONFIDENCE: f64 = 0.95;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Successful requests per second.
    Throughput,
    /// Mean response time.
    Mean,
    /// Median response time.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Failed over ended requests.
    Errors,
}

/// One side, from its repetitions or from the windows of its runs.
#[derive(Clone, Debug)]
pub enum Side {
    /// The figures of each run, in the order of [`Metric::ALL`].
    Runs(Vec<Figures>),
    /// In order.
    Windows(Vec<Window>),
}

/// One figure a metric, in its own unit (1/s, any unit of time, share); `None` where the sample is
/// too small to carry it.
pub type Figures = [Option<f64>; Metric::ALL.len()];

/// A stretch of a run, all of the same length.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Successful requests per second.
    pub throughput: f64,
    /// Requests that ended.
    pub requests: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// Response times with how often each occurred, in any order.
    pub times: Vec<(f64, u64)>,
}

/// How fine figures are.
#[derive(Clone, Copy, Debug)]
pub struct Resolution {
    /// Step of times, in their unit.
    pub step: f64,
    /// Step as a share of a time, where that is more.
    pub share: f64,
    /// Step of throughputs and of shares of errors: one request's share of a run.
    pub request: f64,
}

/// What is known of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// Which.
    pub metric: Metric,
    /// Figure of the first side.
    pub a: Option<f64>,
    /// Figure of the second side.
    pub b: Option<f64>,
    /// Relative to the first side (0.1 is ten percent more), or of shares for errors; `None` where
    /// it cannot be told.
    pub change: Option<Difference>,
}

/// Which way it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More throughput, less of anything else.
    Better,
    /// The reverse.
    Worse,
    /// No significant difference.
    Same,
}

/// At most this many windows: shorter ones are put together. Longer windows depend less on each other, and
/// an hour costs no more than two minutes.
const MOST_WINDOWS: usize = 120;

/// Findings in the order of [`Metric::ALL`]. Both sides by repetitions, or both by windows.
pub fn compare(a: &Side, b: &Side, resolution: Resolution, seed: u64) -> Vec<Finding> {
    let [whole_a, whole_b] = [a, b].map(Side::figures);
    let comparable = whole_a.iter().zip(&whole_b).filter(|(a, b)| a.is_some() && b.is_some());
    let confidence = 1.0 - (1.0 - CONFIDENCE) / comparable.count().max(1) as f64;
    let [estimates_a, estimates_b] = match (a, b) {
        (Side::Windows(a), Side::Windows(b)) => [(a, seed), (b, seed.wrapping_add(1))]
            .map(|(windows, seed)| Series::new(windows).estimates(seed)),
        _ => [a.runs(), b.runs()].map(|runs| Metric::ALL.map(|metric| metric.of_runs(&runs))),
    };
    let metrics = Metric::ALL.into_iter().enumerate();
    metrics
        .map(|(i, metric)| {
            let rounded = |estimate: Estimate| metric.rounded(estimate, resolution);
            let sides = estimates_a[i].map(rounded).zip(estimates_b[i].map(rounded));
            let change = sides.map(|(a, b)| Difference::between(a, b, confidence));
            Finding {
                metric,
                a: whole_a[i],
                b: whole_b[i],
                change: change.map(|d| metric.unscaled(d)),
            }
        })
        .collect()
}

impl Finding {
    /// What the interval leaves no doubt about.
    pub fn direction(&self) -> Option<Direction> {
        let change = self.change?;
        Some(match (change.is_significant(), change.estimate > 0.0) {
            (false, _) => Direction::Same,
            (true, more) if more == (self.metric == Metric::Throughput) => Direction::Better,
            (true, _) => Direction::Worse,
        })
    }
}

impl Metric {
    /// Every metric, in the order of [`Figures`].
    pub const ALL: [Metric; 6] =
        [Metric::Throughput, Metric::Mean, Metric::P50, Metric::P95, Metric::P99, Metric::Errors];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::Mean => "mean",
            Metric::P50 => "p50",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::Errors => "errors",
        }
    }

    /// The scale on which differences are taken. Zero has no logarithm.
    fn scaled(self, figure: f64) -> Option<f64> {
        match self {
            Metric::Errors => Some(figure),
            _ => (figure > 0.0).then(|| figure.ln()),
        }
    }

    fn unscaled(self, d: Difference) -> Difference {
        let back = |x: f64| if self == Metric::Errors { x } else { x.exp_m1() };
        Difference { estimate: back(d.estimate), low: back(d.low), high: back(d.high) }
    }

    fn of_runs(self, runs: &[Figures]) -> Option<Estimate> {
        let each = runs.iter().map(|run| run[self as usize].and_then(|x| self.scaled(x)));
        Estimate::of_mean(&each.collect::<Option<Vec<f64>>>()?)
    }

    /// An estimate on the scale of differences, no surer than the data it comes from.
    fn rounded(self, estimate: Estimate, resolution: Resolution) -> Estimate {
        match self {
            // On a logarithmic scale, one request is its share of all.
            Metric::Throughput | Metric::Errors => estimate.rounded_to(resolution.request),
            Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 => {
                // On a logarithmic scale, a step is its share of the time.
                let share = resolution.step / estimate.value.exp();
                estimate.rounded_to(share.max(resolution.share))
            }
        }
    }
}

impl Side {
    /// Figures of the whole side: means over its runs.
    fn figures(&self) -> Figures {
        match self {
            Side::Runs(runs) => std::array::from_fn(|i| {
                let values: Option<Vec<f64>> = runs.iter().map(|run| run[i]).collect();
                let values = values.filter(|values| !values.is_empty())?;
                Some(values.iter().sum::<f64>() / values.len() as f64)
            }),
            Side::Windows(windows) => {
                let series = Series::new(windows);
                let all: Vec<usize> = (0..series.windows.len()).collect();
                series.figures(&all)
            }
        }
    }

    fn runs(&self) -> Vec<Figures> {
        match self {
            Side::Runs(runs) => runs.clone(),
            Side::Windows(_) => vec![self.figures()],
        }
    }
}

/// Windows, ready to be drawn from.
struct Series {
    windows: Vec<Drawable>,
    /// Every response time that occurs, ascending.
    values: Vec<f64>,
}

struct Drawable {
    throughput: f64,
    requests: u64,
    errors: u64,
    /// Places in `values`, with counts.
    times: Vec<(usize, u64)>,
}

impl Series {
    fn new(windows: &[Window]) -> Series {
        let mut values: Vec<f64> =
            windows.iter().flat_map(|w| w.times.iter().map(|(time, _)| *time)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let place = |time: &f64| values.partition_point(|value| value < time);
        let together = windows.len().div_ceil(MOST_WINDOWS).max(1);
        // The rest at the end would be a shorter window than the others.
        let windows = windows.chunks_exact(together).map(|group| Drawable {
            throughput: group.iter().map(|w| w.throughput).sum::<f64>() / together as f64,
            requests: group.iter().map(|w| w.requests).sum(),
            errors: group.iter().map(|w| w.errors).sum(),
            times: group.iter().flat_map(|w| &w.times).map(|(time, n)| (place(time), *n)).collect(),
        });
        Series { windows: windows.collect(), values }
    }

    fn estimates(&self, seed: u64) -> [Option<Estimate>; Metric::ALL.len()] {
        bootstrap::estimates(self.windows.len(), seed, |drawn| {
            let figures = self.figures(drawn);
            std::array::from_fn(|i| figures[i].and_then(|figure| Metric::ALL[i].scaled(figure)))
        })
    }

    fn figures(&self, drawn: &[usize]) -> Figures {
        let mut counts = vec![0; self.values.len()];
        let (mut throughput, mut requests, mut errors) = (0.0, 0, 0);
        for window in drawn.iter().map(|index| &self.windows[*index]) {
            throughput += window.throughput;
            requests += window.requests;
            errors += window.errors;
            for (place, count) in &window.times {
                counts[*place] += count;
            }
        }
        let total: u64 = counts.iter().sum();
        let sum: f64 = self.values.iter().zip(&counts).map(|(v, n)| v * *n as f64).sum();
        let at = |share: f64| (total >= samples_for(share)).then(|| self.at(&counts, total, share));
        [
            (!drawn.is_empty()).then(|| throughput / drawn.len() as f64),
            (total > 0).then(|| sum / total as f64),
            at(0.5),
            at(0.95),
            at(0.99),
            (requests > 0).then(|| errors as f64 / requests as f64),
        ]
    }

    /// The least time that at least this share of all does not exceed.
    fn at(&self, counts: &[u64], total: u64, share: f64) -> f64 {
        let rank = (share * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        place.and_then(|place| self.values.get(place)).copied().unwrap_or(0.0)
    }
}

/// Samples from which a percentile can be told: the largest of n lies above it with 95 %.
fn samples_for(share: f64) -> u64 {
    (0.05_f64.ln() / share.ln()).ceil() as u64
}

#[cfg(test)]
mod tests;
