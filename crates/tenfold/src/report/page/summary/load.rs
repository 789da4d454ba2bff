//! A load in words.

use super::{Fact, Kind, Part, PartName, Statistics, Status, Summary};
use crate::document::load::{Document, Named};
use crate::document::times::to_ms;
use crate::document::verdict::Verdict;
use crate::report::load::{self as text, outcomes, overload, response_times, workload};
use crate::report::table::Table;
use crate::words;
use crate::words::number::grouped;

pub fn of(document: &Document) -> Summary {
    let (status, word) = status(document);
    let headline = overload(document).unwrap_or_else(|| format!("{}.", text::summary(document)));
    let mut complaints = text::complaints(document);
    // What the measurement is worth stands last among them.
    let doubt = if document.verdict == Verdict::Valid { None } else { complaints.pop() };
    let response = document.histograms.response.histogram();
    Summary {
        kind: Kind::Load,
        subject: document.target.clone(),
        status,
        status_word: word.to_owned(),
        answer: std::iter::once(headline).chain(complaints).collect(),
        doubt,
        goal: goal(document),
        parts: parts(document),
        facts: facts(document),
        repeat: document.invocation.as_deref().map(words::shell::line),
        latency: super::latency("response time", &response).into_iter().collect(),
        statistics: statistics(document),
    }
}

fn status(document: &Document) -> (Status, &'static str) {
    let missed = document.thresholds.iter().any(|check| !check.met);
    match document.verdict {
        Verdict::Invalid => (Status::Unclear, "invalid"),
        _ if missed => (Status::NotMet, "goal not met"),
        _ if document.overloaded => (Status::NotMet, "overloaded"),
        _ if document.thresholds.is_empty() => (Status::Measured, "measured"),
        _ => (Status::Met, "goal met"),
    }
}

/// Nothing without thresholds.
fn goal(document: &Document) -> Option<String> {
    let names: Vec<&str> = document.thresholds.iter().map(|check| check.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn parts(document: &Document) -> Vec<Part> {
    let times = Part::table(
        PartName::ResponseTimes,
        "Response times of requests that succeeded",
        response_times(document),
    );
    let metrics = document.script.as_ref();
    let metrics = metrics.map_or_else(Vec::new, |script| text::metrics(&script.metrics));
    [
        Some(Part { lines: outcomes(document), ..times }),
        thresholds(document).map(|table| Part::table(PartName::Thresholds, "Goal", table)),
        Some(Part::table(PartName::Requests, "Requests", requests(document))),
        failures(document).map(|table| Part::table(PartName::Failures, "Failures", table)),
        Part::lines(PartName::Metrics, "The script's own metrics", metrics),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn thresholds(document: &Document) -> Option<Table> {
    let mut table = Table::new(&["threshold", "measured", "met"]);
    for check in &document.thresholds {
        let met = if check.met { "yes" } else { "no" };
        table.row(vec![check.name.clone(), check.measured.clone(), met.to_owned()]);
    }
    (!document.thresholds.is_empty()).then_some(table)
}

/// As Locust lists them: each kind of request, then all of them.
pub fn statistics(document: &Document) -> Vec<Statistics> {
    let row = |named: &Named| {
        let (times, micros) = (&named.response_ms, named.histogram.histogram());
        let rate = |count: u64| count as f64 / document.duration_s.max(1e-3);
        Statistics {
            method: named.method.clone(),
            name: named.name.clone(),
            requests: named.requests,
            failures: named.errors,
            median: times.p50,
            p95: times.p95,
            p99: times.p99,
            average: times.mean,
            min: (!micros.is_empty()).then(|| to_ms(micros.min() as f64 / 1e6)),
            max: times.max,
            average_size: (named.requests > 0)
                .then(|| (named.body_bytes as f64 / named.requests as f64).round()),
            rate: rate(named.requests),
            failure_rate: rate(named.errors),
        }
    };
    let all = Named {
        method: String::new(),
        name: "Aggregated".to_owned(),
        requests: document.requests,
        errors: document.error_count(),
        body_bytes: document.body_bytes,
        response_ms: document.response_ms,
        histogram: document.histograms.response.clone(),
    };
    document.by_name.iter().chain([&all]).map(row).collect()
}

/// As many as one reads without a page; the page has all of them.
fn requests(document: &Document) -> Table {
    const MOST: usize = 50;
    let mut table = Table::new(&["", "requests", "errors", "p50", "p95", "p99"]);
    for named in document.by_name.iter().take(MOST) {
        let t = &named.response_ms;
        table.row(vec![
            format!("{} {}", named.method, named.name),
            grouped(named.requests),
            grouped(named.errors),
            text::cell(t.p50),
            text::cell(t.p95),
            text::cell(t.p99),
        ]);
    }
    table
}

fn failures(document: &Document) -> Option<Table> {
    let mut table = Table::new(&["request", "error", "times"]);
    for failure in &document.failures {
        let request = format!("{} {}", failure.method, failure.name);
        table.row(vec![request, failure.words(), grouped(failure.occurrences)]);
    }
    (!document.failures.is_empty()).then_some(table)
}

fn facts(document: &Document) -> Vec<Fact> {
    let generator = [
        document.threads.map(|threads| text::counted(threads as u64, "thread")),
        document.engine.clone(),
        Some(format!("{:.2} cores used", document.generator_cpu_cores)),
    ];
    let generator: Vec<String> = generator.into_iter().flatten().collect();
    [
        Some(Fact::new("Target", format!("{} {}", document.method, document.target))),
        Some(Fact::new("Workload", workload(document))),
        document.machine.as_ref().map(super::machine),
        Some(Fact::new("Generator", generator.join(", "))),
        super::started(&document.started_at),
        Some(super::version()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
