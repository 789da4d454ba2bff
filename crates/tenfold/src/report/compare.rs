//! A comparison as people read it.

use std::fmt::Write;

use super::table::Table;
use crate::document::comparison::{Comparison, Method, Outcome, Row, Side};
use crate::words::number::{percent, rate, time};

/// A line a metric; then what is broken and what to bear in mind.
pub fn text(comparison: &Comparison) -> String {
    let mut out = format!(
        "{}\n{}\n{}\n\n",
        side("A", &comparison.a),
        side("B", &comparison.b),
        method(comparison)
    );
    out.push_str(&table(comparison).render());
    for line in complaints(comparison) {
        let _ = write!(out, "\n{line}");
    }
    for note in &comparison.notes {
        let _ = write!(out, "\nNote: {note}.");
    }
    out.push('\n');
    out
}

/// Where the intervals come from.
pub(super) fn method(comparison: &Comparison) -> String {
    format!(
        "Intervals from {}; with {:.0} % confidence all of them hold the true change.",
        match comparison.method {
            Method::Repetitions => "repeated runs",
            Method::Windows => "the windows of the runs",
        },
        comparison.confidence * 100.0
    )
}

/// Each metric of both sides, and its change.
pub(super) fn table(comparison: &Comparison) -> Table {
    let mut table = Table::new(&["", "A", "B", "change", "from", "to", ""]);
    for row in &comparison.metrics {
        table.row(vec![
            row.metric.clone(),
            figure(row, row.a),
            figure(row, row.b),
            change(row, row.change),
            change(row, row.low),
            change(row, row.high),
            outcome(row.outcome).to_owned(),
        ]);
    }
    table
}

/// What is worse than allowed, and what cannot be told.
pub(super) fn complaints(comparison: &Comparison) -> Vec<String> {
    let broken = comparison.metrics.iter().filter(|row| row.broken).map(|row| {
        format!(
            "FAIL {}: {} worse (allowed: {})",
            row.metric,
            amount(row, row.change),
            amount(row, row.allowed)
        )
    });
    let open = comparison.metrics.iter().filter(|row| row.is_open()).map(|row| {
        format!(
            "UNCLEAR {}: it may be more than {} worse; measure longer, or repeat the runs",
            row.metric,
            amount(row, row.allowed)
        )
    });
    broken.chain(open).collect()
}

pub(super) fn side(name: &str, side: &Side) -> String {
    let runs = if side.runs.len() == 1 { "run" } else { "runs" };
    format!("{name}: {runs} {}, {}, {}", side.runs.join(", "), side.workload, side.target)
}

fn figure(row: &Row, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match row.metric.as_str() {
        "throughput" => format!("{}/s", rate(value)),
        "errors" => percent(value),
        _ => time(value / 1e3),
    }
}

fn change(row: &Row, value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        return "-".to_owned();
    };
    let unit = if row.metric == "errors" { "points" } else { "%" };
    format!("{:+.1} {unit}", value * 100.0)
}

/// A change without its direction.
fn amount(row: &Row, value: Option<f64>) -> String {
    change(row, value.map(f64::abs)).trim_start_matches('+').to_owned()
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::NoSignificantDifference => "no significant difference",
        Outcome::Unknown => "cannot be told",
    }
}
