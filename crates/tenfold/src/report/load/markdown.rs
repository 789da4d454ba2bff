//! Markdown, for a pull request or a wiki.

use std::fmt::Write;

use super::text::{counted, overload};
use crate::document::load::Document;
use crate::document::times::Times;
use crate::document::verdict::Verdict;
use crate::words::number::{duration, rate, time};

/// Headed by the target; tables for times, names, failures and thresholds.
pub fn markdown(document: &Document) -> String {
    let mut out = format!(
        "## {}\n\n{} for {}: **{} requests/s**, {}, {}. Measurement: **{}**.\n",
        escaped(&document.target),
        escaped(&document.workload),
        duration(document.duration_s),
        rate(document.throughput),
        counted(document.requests, "request"),
        counted(document.error_count(), "error"),
        match document.verdict {
            Verdict::Valid => "valid",
            Verdict::Suspect => "suspect",
            Verdict::Invalid => "invalid",
        }
    );
    if let Some(overload) = overload(document) {
        let _ = write!(out, "\n**{}**\n", escaped(&overload));
    }
    for reason in &document.verdict_reasons {
        let _ = write!(out, "\n- {}", escaped(reason));
    }
    if !document.verdict_reasons.is_empty() {
        // A table right after a list would belong to its last item.
        out.push('\n');
    }
    let times = [("response time", &document.response_ms), ("service time", &document.service_ms)];
    rows(
        &mut out,
        &["", "mean", "p50", "p90", "p95", "p99", "max"],
        times.map(|(name, times)| row(name, times)),
    );
    if document.by_name.len() > 1 {
        let names = document.by_name.iter().map(|named| {
            let t = &named.response_ms;
            vec![
                format!("{} {}", named.method, named.name),
                named.requests.to_string(),
                named.errors.to_string(),
                cell(t.p50),
                cell(t.p95),
                cell(t.p99),
            ]
        });
        rows(&mut out, &["request", "requests", "errors", "p50", "p95", "p99"], names);
    }
    let failures = document.failures.iter().map(|failure| {
        vec![
            format!("{} {}", failure.method, failure.name),
            failure.words(),
            failure.occurrences.to_string(),
        ]
    });
    rows(&mut out, &["request", "error", "times"], failures);
    let checks = document.thresholds.iter().map(|check| {
        let met = if check.met { "yes" } else { "**no**" };
        vec![check.name.clone(), check.measured.clone(), met.to_owned()]
    });
    rows(&mut out, &["threshold", "measured", "met"], checks);
    out
}

fn row(name: &str, t: &Times) -> Vec<String> {
    let cells = [t.mean, t.p50, t.p90, t.p95, t.p99, t.max].map(cell);
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn cell(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| time(ms / 1e3))
}

/// A table, if it has rows.
fn rows(out: &mut String, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = write!(out, "\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// Characters that would end a cell or begin a tag.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
    text.replace(char::is_control, " ")
}
