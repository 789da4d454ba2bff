//! Bigger or more, as one value, `tenfold/cost/1`: sizes of one instance and counts of the smallest,
//! each measured under the same load and priced. Text, JSON and history are renderings of it.
//!
//! Times in milliseconds, rates in requests a second, CPU in cores; absent is null, never 0.

mod measure;

use capacity::cost::{self, Answers, Growth};
use fleet::{Cpus, Limits};
use serde::{Deserialize, Serialize};

pub use measure::{LEAST, Measurement, summary};

use crate::document::cost::Origin;
use crate::document::resources::{CpuCores, Limited, Machine};
use crate::document::verdict::{Verdict, distinct};
use crate::experiment::of_redirects;
use crate::words;
use crate::words::number::cores;

/// The schema's name and version.
pub const SCHEMA: &str = "tenfold/cost/1";

/// What was measured, whole or as far as it got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Sizing {
    pub schema: String,
    /// RFC 3339.
    pub started_at: String,
    pub duration_s: f64,
    pub command: Vec<String>,
    /// The command that measures it again, without secrets. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub invocation: Option<Vec<String>>,
    pub machine: Machine,
    /// Requests of each measurement, and how many at once.
    pub requests: u64,
    pub concurrency: usize,
    /// The goal that answers must hold to count.
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_error_ratio: f64,
    pub prices: Origin,
    /// Price of the balancer a month, for several instances.
    pub balancer_month: f64,
    /// One instance of growing size.
    pub vertical: Vec<Row>,
    /// More and more instances of the smallest size; the first is the vertical line's first.
    pub horizontal: Vec<Row>,
    pub advice: Option<Advice>,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
    pub notes: Vec<String>,
}

/// Which way to grow, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Advice {
    pub growth: Growth,
    /// One sentence.
    pub reason: String,
}

/// One number of instances of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Setting"))]
pub struct Row {
    pub instances: usize,
    /// Cores of each instance.
    pub cpus: f64,
    pub memory_bytes: u64,
    pub month: f64,
    /// Price of a month for a thousand requests a second; nothing when the goal is missed.
    pub month_per_thousand: Option<f64>,
    /// Whether no other costs as little and does more.
    pub on_frontier: bool,
    /// Nothing where it could not be measured.
    pub measured: Option<Measured>,
    /// Why not.
    pub failure: Option<String>,
}

/// What the load saw, from the first request on, as ab does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SettingMeasured"))]
pub struct Measured {
    /// Whether the errors and percentiles are what was wanted.
    pub goal_met: bool,
    /// How long it was measured.
    pub duration_s: f64,
    /// What the wanted number of requests takes at the measured rate.
    pub time_s: Option<f64>,
    pub requests: u64,
    pub errors: u64,
    pub throughput: f64,
    /// Bytes received a second.
    pub transfer: f64,
    pub min_ms: Option<f64>,
    pub mean_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// Time of the whole over its requests: what ab calls the time per request across all concurrent ones.
    pub per_request_ms: Option<f64>,
    pub cpu_cores: CpuCores,
    /// What kept it from doing more.
    pub limited_by: cost::Limit,
    /// The instance that its limits held most.
    pub limited: Option<Limited>,
    /// A status of the answers, where all of them sent the client elsewhere.
    pub redirect: Option<u16>,
    /// Processes that the kernel killed at their memory limit.
    pub memory_kills: u64,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
}

/// What one instance may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub cpus: Cpus,
    /// Bytes.
    pub memory: u64,
}

impl Size {
    pub fn limits(self) -> Limits {
        Limits { cpus: Some(self.cpus), memory: Some(self.memory) }
    }
}

/// What a row is called in sentences.
pub fn row_name(instances: usize, cpus: f64) -> String {
    format!("{instances} of {}", cores(cpus))
}

impl Row {
    /// The row as input for `capacity`.
    fn setting(&self) -> cost::Setting {
        let met =
            self.measured.as_ref().is_some_and(|m| m.goal_met && m.verdict != Verdict::Invalid);
        cost::Setting {
            instances: self.instances,
            cores: self.cpus,
            rate: self.measured.as_ref().map_or(0.0, |m| m.throughput),
            month: self.month,
            used: self.measured.as_ref().and_then(|m| m.cpu_cores.app),
            answers: if met { Answers::Hold } else { Answers::Miss },
            limit: self.measured.as_ref().map_or(cost::Limit::Instances, |m| m.limited_by),
        }
    }
}

impl Sizing {
    /// Why the app runs in none of the sizes, which is no question of size any more.
    pub fn runs_nowhere(&self) -> Option<String> {
        let mut rows = self.vertical.iter().chain(&self.horizontal);
        let largest = self.vertical.last().filter(|_| rows.all(|row| row.measured.is_none()))?;
        let name = row_name(largest.instances, largest.cpus);
        Some(format!("no size can be measured, not even {name}: {}", largest.failure.as_deref()?))
    }

    /// Says what follows from the rows.
    pub fn conclude(&mut self) {
        let settings = |rows: &[Row]| rows.iter().map(Row::setting).collect::<Vec<_>>();
        let (vertical, horizontal) = (settings(&self.vertical), settings(&self.horizontal));
        let all: Vec<cost::Setting> = vertical.iter().chain(&horizontal).copied().collect();
        let frontier = cost::frontier(&all);
        let rows = self.vertical.iter_mut().chain(&mut self.horizontal);
        for ((row, setting), on_frontier) in rows.zip(&all).zip(frontier) {
            row.month_per_thousand = setting.per_thousand();
            row.on_frontier = on_frontier;
        }
        if vertical.len() > 1 && horizontal.len() > 1 {
            let advice = cost::advise(&vertical, &horizontal);
            let reason = words::cost::advice(&advice, &self.prices.currency);
            self.advice = Some(Advice { growth: advice.growth, reason });
        }
        // The horizontal line begins with the vertical one's first.
        let rows = self.vertical.iter().chain(self.horizontal.iter().skip(1));
        let measured: Vec<&Measured> = rows.filter_map(|row| row.measured.as_ref()).collect();
        if let Some(status) = measured.iter().find_map(|m| m.redirect) {
            self.notes.push(of_redirects(status, "these are costs"));
        }
        let verdict = measured.iter().map(|m| m.verdict).max();
        self.verdict = verdict.unwrap_or(Verdict::Valid);
        self.verdict_reasons = distinct(measured.iter().flat_map(|m| &m.verdict_reasons));
    }
}
