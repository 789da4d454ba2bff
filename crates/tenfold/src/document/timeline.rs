//! How a long run went over time, in steps that charts can draw.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::histogram::EncodedHistogram;
use super::load::Window;
use super::times::{Times, times};

/// Steps of some windows each, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Timeline {
    /// From the beginning of the run to that of each step.
    pub start_s: Vec<f64>,
    /// The length of each.
    pub seconds: Vec<f64>,
    /// Successful ones a second.
    pub requests: Spread,
    /// A second.
    pub failures: Spread,
    /// Milliseconds, as all percentiles here: in the middle of all requests of the step, at the ends of its windows.
    pub p50: Spread,
    pub p95: Spread,
    pub p99: Spread,
    pub users: Spread,
    pub in_flight: Spread,
}

/// The values of the windows in each step. Absent is null, and never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Spread {
    pub least: Vec<Option<f64>>,
    pub mean: Vec<Option<f64>>,
    pub most: Vec<Option<f64>>,
}

impl Timeline {
    /// Groups of neighbours, each within one stage.
    pub fn of(windows: &[Window], group: usize) -> Timeline {
        let mut timeline = Timeline::default();
        for stage in windows.chunk_by(|a, b| a.stage == b.stage) {
            stage.chunks(group).for_each(|step| timeline.push(step));
        }
        timeline
    }

    fn push(&mut self, step: &[Window]) {
        let seconds: f64 = step.iter().map(|window| window.seconds).sum();
        self.start_s.push(rounded(step[0].start_s));
        self.seconds.push(rounded(seconds));
        let weighted = |value: fn(&Window) -> f64| {
            let sum: f64 = step.iter().map(|window| value(window) * window.seconds).sum();
            (seconds > 0.0).then(|| sum / seconds)
        };
        let measure = |spread: &mut Spread, value: fn(&Window) -> f64| {
            spread.push(step.iter().map(value), weighted(value));
        };
        measure(&mut self.requests, |window| window.throughput);
        measure(&mut self.failures, |window| window.errors as f64 / window.seconds.max(1e-3));
        measure(&mut self.users, |window| window.users as f64);
        measure(&mut self.in_flight, |window| window.in_flight as f64);
        let all = times(&together(step));
        let percentile = |spread: &mut Spread, value: fn(&Times) -> Option<f64>| {
            let known = step.iter().filter_map(|window| value(&window.response_ms));
            spread.push(known, value(&all));
        };
        percentile(&mut self.p50, |times| times.p50);
        percentile(&mut self.p95, |times| times.p95);
        percentile(&mut self.p99, |times| times.p99);
    }
}

impl Spread {
    fn push(&mut self, values: impl Iterator<Item = f64> + Clone, mean: Option<f64>) {
        self.least.push(values.clone().reduce(f64::min).map(rounded));
        self.mean.push(mean.map(rounded));
        self.most.push(values.reduce(f64::max).map(rounded));
    }
}

/// The response times of all of them.
pub fn together(windows: &[Window]) -> Histogram<u64> {
    let micros = windows.iter().map(|window| window.histogram.histogram());
    let all = micros.reduce(|mut all, one| {
        all += one;
        all
    });
    all.unwrap_or_else(|| EncodedHistogram::default().histogram())
}

/// Four digits: a chart shows no more.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10_f64.powi(value.abs().log10().floor() as i32 - 3);
    let whole = (value / unit).round();
    // Dividing by a power of ten gives the nearest number, and so the shortest text.
    if unit < 1.0 { whole / (1.0 / unit).round() } else { whole * unit }
}
