//! A load run as one value, `tenfold/load/1`, and as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use capacity::words::{rate, time};
use load::Report;
use serde::{Deserialize, Serialize};

use super::table::Table;
use super::times::times;
use crate::plan::{Times, Verdict};

/// Times in milliseconds, rates in requests a second, CPU in cores; absent is null, never 0.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    pub schema: String,
    pub target: String,
    pub workload: String,
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

impl Document {
    pub fn new(url: &str, workload: String, report: &Report) -> Document {
        let response_ms = times(report.response.counts());
        let lag = times(report.schedule_lag.counts());
        Document {
            schema: "tenfold/load/1".to_owned(),
            target: url.to_owned(),
            workload,
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
                name: url.to_owned(),
                requests: report.requests,
                errors: report.error_count(),
                response_ms,
            }],
        }
    }
}

/// The run in a sentence.
pub fn summary(document: &Document) -> String {
    let p95 =
        document.response_ms.p95.map_or_else(String::new, |ms| format!(", p95 {}", time(ms / 1e3)));
    let errors: u64 = document.errors.values().sum();
    format!(
        "{} requests/s with {}{p95}, {errors} errors",
        rate(document.throughput),
        document.workload
    )
}

/// The whole report.
pub fn text(document: &Document) -> String {
    let mut out = format!(
        "{}, {} for {:.1} s\n{} requests, {} requests/s, {:.2} cores used by the generator\n\n",
        document.target,
        document.workload,
        document.duration_s,
        document.requests,
        rate(document.throughput),
        document.generator_cpu_cores
    );
    let mut table = Table::new(&["", "mean", "p50", "p90", "p95", "p99", "max"]);
    for (name, t) in
        [("response time", &document.response_ms), ("service time", &document.service_ms)]
    {
        let cells = [t.mean, t.p50, t.p90, t.p95, t.p99, t.max];
        let cell = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| time(ms / 1e3));
        table.row(std::iter::once(name.to_owned()).chain(cells.map(cell)).collect());
    }
    out.push_str(&table.render());
    for (status, n) in &document.status {
        let _ = write!(out, "\n  status {status}: {n}");
    }
    for (kind, n) in &document.errors {
        let _ = write!(out, "\n  {kind}: {n} failed");
    }
    let _ = match document.verdict {
        Verdict::Valid => writeln!(out, "\n\nThe measurement is valid."),
        Verdict::Suspect => {
            writeln!(out, "\n\nThe measurement is suspect: {}", document.verdict_reasons.join("; "))
        }
        Verdict::Invalid => {
            writeln!(out, "\n\nThe measurement is invalid: {}", document.verdict_reasons.join("; "))
        }
    };
    out
}
