//! The metrics of a script's run, under the names that its users know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::histogram::Histogram;

/// The metrics of a script's run, and what the script demands of them. As JSON, it has the shape of the aggregate
/// in Artillery's reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptReport {
    /// Counters, rates and summaries.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// The conditions of the script, in its order.
    pub checks: Vec<Check>,
    /// Why the script's `after` failed.
    pub after_failed: Option<String>,
}

/// Values by name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Metrics {
    /// How often something happened, as `vusers.created` or `http.codes.200`.
    pub counters: BTreeMap<String, u64>,
    /// Per second.
    pub rates: BTreeMap<String, f64>,
    /// Times in milliseconds, as `http.response_time`: to the first byte.
    pub summaries: BTreeMap<String, Summary>,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub p50: f64,
    /// The median once more, under the name that scripts use.
    pub median: f64,
    /// Three quarters are at most this.
    pub p75: f64,
    /// 90 %.
    pub p90: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
}

/// A condition of the script, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The condition as written.
    pub expression: String,
    /// Whether the run fails if it does not hold.
    pub strict: bool,
    /// Whether it holds.
    pub passed: bool,
    /// The metrics that it names, with their values.
    pub measured: String,
}

impl ScriptReport {
    /// Whether all strict conditions hold.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed || !check.strict)
    }
}

impl Metrics {
    /// The Apdex score, from 0 to 1, if it was counted.
    pub fn apdex(&self) -> Option<f64> {
        let count = |name: &str| Some(*self.counters.get(name)? as f64);
        let satisfied = count("apdex.satisfied")?;
        let tolerated = count("apdex.tolerated")?;
        let all = satisfied + tolerated + count("apdex.frustrated")?;
        (all > 0.0).then(|| (satisfied + tolerated / 2.0) / all)
    }

    /// The value of a metric by its name: a counter, a rate, or a part of a summary, as
    /// `http.response_time.p95`.
    pub fn value(&self, name: &str) -> Option<f64> {
        if let Some(count) = self.counters.get(name) {
            return Some(*count as f64);
        }
        if let Some(rate) = self.rates.get(name) {
            return Some(*rate);
        }
        let (summary, part) = name.rsplit_once('.')?;
        self.summaries.get(summary)?.part(part)
    }
}

impl Summary {
    /// The summary of a histogram.
    pub fn of(histogram: &Histogram) -> Summary {
        let counts = histogram.counts();
        let at = |percent: f64| counts.value_at_percentile(percent) as f64 / 1e3;
        Summary {
            min: counts.min() as f64 / 1e3,
            max: counts.max() as f64 / 1e3,
            count: counts.len(),
            mean: counts.mean() / 1e3,
            p50: at(50.0),
            median: at(50.0),
            p75: at(75.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
        }
    }

    fn part(&self, name: &str) -> Option<f64> {
        Some(match name {
            "min" => self.min,
            "max" => self.max,
            "count" => self.count as f64,
            "mean" => self.mean,
            "p50" => self.p50,
            "median" => self.median,
            "p75" => self.p75,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p999" => self.p999,
            _ => return None,
        })
    }
}
