//! The value, and how it is made of what was measured.

use std::collections::BTreeMap;
use std::time::Duration;

use load::Report;
use serde::{Deserialize, Serialize};

use crate::plan::{Times, Verdict};
use crate::report::times::times;

/// The schema's name and version.
const SCHEMA: &str = "tenfold/load/1";

/// Times in milliseconds, rates in requests a second, CPU in cores; absent is null, never 0.
/// Fields that earlier documents lack have a default.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    pub schema: String,
    /// The URL, without credentials.
    pub target: String,
    #[serde(default)]
    pub method: String,
    pub workload: String,
    /// Threads of the generator.
    #[serde(default)]
    pub threads: Option<usize>,
    /// What carried the bytes: `uring` or `epoll`.
    #[serde(default)]
    pub engine: Option<String>,
    #[serde(default)]
    pub keep_alive: KeepAlive,
    pub started_at: String,
    pub duration_s: f64,
    pub requests: u64,
    pub errors: BTreeMap<String, u64>,
    pub status: BTreeMap<u16, u64>,
    pub bytes: u64,
    pub throughput: f64,
    pub offered: f64,
    pub achieved_ratio: f64,
    pub response_ms: Times,
    pub service_ms: Times,
    pub schedule_lag_ms: Lag,
    pub generator_cpu_cores: f64,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
    pub by_name: Vec<Named>,
    #[serde(default)]
    pub thresholds: Vec<Check>,
    #[serde(default)]
    pub windows: Vec<Window>,
}

/// What was asked for, as far as reports name it.
#[derive(Clone, Debug)]
pub struct Order {
    /// The URL, without credentials.
    pub target: String,
    pub method: String,
    pub workload: String,
    pub threads: usize,
    pub keep_alive: KeepAlive,
    /// How long it was to take, if that was said.
    pub length: Option<Duration>,
}

/// Whether connections served more than one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepAlive {
    #[default]
    On,
    Off,
}

/// How late the generator itself was.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lag {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

/// The figures of one kind of request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Named {
    pub name: String,
    pub requests: u64,
    pub errors: u64,
    pub response_ms: Times,
}

/// A threshold, and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub measured: String,
    pub met: bool,
}

/// A stretch of the run, mostly a second.
#[derive(Debug, Serialize, Deserialize)]
pub struct Window {
    /// From the beginning of the measuring.
    pub start_s: f64,
    pub seconds: f64,
    /// Requests that ended in it, and those of them that failed.
    pub requests: u64,
    pub errors: u64,
    pub throughput: f64,
    pub users: u64,
    pub in_flight: u64,
    pub waiting: u64,
    pub bytes: u64,
}

// === impl Document ===

impl Document {
    pub fn new(order: Order, report: &Report) -> Document {
        let response_ms = times(report.response.counts());
        let lag = times(report.schedule_lag.counts());
        Document {
            schema: SCHEMA.to_owned(),
            method: order.method,
            workload: order.workload,
            threads: Some(order.threads),
            engine: Some(report.engine.to_string()),
            keep_alive: order.keep_alive,
            started_at: jiff::Timestamp::try_from(report.started_at)
                .map_or_else(|_| String::new(), |t| t.to_string()),
            duration_s: report.duration.as_secs_f64(),
            requests: report.requests,
            errors: report.errors.iter().map(|(kind, n)| (kind.to_string(), *n)).collect(),
            status: report.status.clone(),
            bytes: report.bytes,
            throughput: report.throughput,
            offered: report.offered,
            achieved_ratio: report.achieved_ratio,
            response_ms,
            service_ms: times(report.service.counts()),
            schedule_lag_ms: Lag { p50: lag.p50, p99: lag.p99, max: lag.max },
            generator_cpu_cores: report.cpu_seconds / report.duration.as_secs_f64().max(1e-3),
            verdict: report.verdict.into(),
            verdict_reasons: report.reasons.iter().map(ToString::to_string).collect(),
            by_name: vec![Named {
                name: order.target.clone(),
                requests: report.requests,
                errors: report.error_count(),
                response_ms,
            }],
            target: order.target,
            thresholds: Vec::new(),
            windows: report.windows.iter().map(Window::from).collect(),
        }
    }

    /// Requests that failed.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

// === impl Window ===

impl From<&load::Window> for Window {
    fn from(window: &load::Window) -> Window {
        Window {
            start_s: window.start.as_secs_f64(),
            seconds: window.seconds,
            requests: window.answered + window.errors,
            errors: window.errors,
            throughput: window.throughput(),
            users: window.users,
            in_flight: window.in_flight,
            waiting: window.waiting,
            bytes: window.bytes,
        }
    }
}

// === impl KeepAlive ===

impl From<KeepAlive> for load::KeepAlive {
    fn from(keep_alive: KeepAlive) -> load::KeepAlive {
        match keep_alive {
            KeepAlive::On => load::KeepAlive::Reuse,
            KeepAlive::Off => load::KeepAlive::ClosePerRequest,
        }
    }
}
