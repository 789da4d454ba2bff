//! What a script's run adds to the report: requests by name, sessions, and its own metrics.

use std::fmt::Write;

use load::Metrics;

use crate::document::load::Document;
use crate::report::table::Table;
use crate::words::number::time;

/// The lines that a run without a script does not have; empty for such a run.
pub fn text(document: &Document) -> String {
    let Some(script) = &document.script else {
        return String::new();
    };
    let mut table = Table::new(&["", "requests", "errors", "p50", "p95", "p99"]);
    for named in &document.by_name {
        let cell = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| time(ms / 1e3));
        let times = named.response_ms;
        table.row(vec![
            format!("{} {}", named.method, named.name),
            named.requests.to_string(),
            named.errors.to_string(),
            cell(times.p50),
            cell(times.p95),
            cell(times.p99),
        ]);
    }
    let mut out = table.render();
    for line in metrics(&script.metrics) {
        let _ = write!(out, "\n  {line}");
    }
    for check in script.checks.iter().filter(|check| !check.strict && !check.passed) {
        let _ = write!(out, "\nNot met, but optional: {}: {}", check.expression, check.measured);
    }
    out
}

/// Counters, rates, summaries and the apdex score.
pub fn metrics(metrics: &Metrics) -> Vec<String> {
    let counters = metrics.counters.iter().map(|(name, count)| format!("{name}: {count}"));
    let rates = metrics.rates.iter().map(|(name, rate)| format!("{name}: {rate:.1}/s"));
    let summaries = metrics.summaries.iter().map(|(name, times)| {
        let of = |ms: f64| time(ms / 1e3);
        format!(
            "{name}: min {}, median {}, p95 {}, p99 {}, max {}",
            of(times.min),
            of(times.median),
            of(times.p95),
            of(times.p99),
            of(times.max)
        )
    });
    let apdex = metrics.apdex().map(|score| format!("apdex: {score:.2}"));
    counters.chain(rates).chain(summaries).chain(apdex).collect()
}
