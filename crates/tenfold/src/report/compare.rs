//! A comparison as people read it.

use std::fmt::Write;

use super::table::Table;
use crate::document::comparison::{Comparison, Method, Outcome, Row, Side};
use crate::words::number::{percent, rate, time};

/// A line a metric; then what is broken and what to bear in mind.
pub fn text(comparison: &Comparison) -> String {
    let mut out = format!("{}{}", side("A", &comparison.a), side("B", &comparison.b));
    let _ = writeln!(
        out,
        "Intervals from {}; with {:.0} % confidence all of them hold the true change.\n",
        match comparison.method {
            Method::Repetitions => "repeated runs",
            Method::Windows => "the windows of the runs",
        },
        comparison.confidence * 100.0
    );
    let mut table = Table::new(&["", "A", "B", "change", "from", "to", ""]);
    for row in &comparison.metrics {
        table.row(vec![
            row.metric.to_owned(),
            figure(row, row.a),
            figure(row, row.b),
            change(row, row.change),
            change(row, row.low),
            change(row, row.high),
            outcome(row.outcome).to_owned(),
        ]);
    }
    out.push_str(&table.render());
    for row in comparison.metrics.iter().filter(|row| row.broken) {
        let _ = write!(
            out,
            "\nFAIL {}: {} worse (allowed: {})",
            row.metric,
            amount(row, row.change),
            amount(row, row.allowed)
        );
    }
    for row in comparison.metrics.iter().filter(|row| row.is_open()) {
        let _ = write!(
            out,
            "\nUNCLEAR {}: it may be more than {} worse; measure longer, or repeat the runs",
            row.metric,
            amount(row, row.allowed)
        );
    }
    for note in &comparison.notes {
        let _ = write!(out, "\nNote: {note}.");
    }
    out.push('\n');
    out
}

fn side(name: &str, side: &Side) -> String {
    let runs = if side.runs.len() == 1 { "run" } else { "runs" };
    format!("{name}: {runs} {}, {}, {}\n", side.runs.join(", "), side.workload, side.target)
}

fn figure(row: &Row, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match row.metric {
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
