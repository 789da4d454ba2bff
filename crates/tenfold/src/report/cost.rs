//! Bigger or more, as text.

use std::fmt::Write;

use capacity::cost::Limit;
use capacity::words::{cores, rate, time};

use super::table::Table;
use crate::cost::{Row, Sizing};
use crate::plan::Verdict;

/// Both tables, what they cannot show, and the answer as its last line.
pub fn text(sizing: &Sizing) -> String {
    let mut out = format!(
        "{}\n{} cores, {}; {} requests, {} at once; {:.0} s in all\nPrices: {}\n\n",
        sizing.command.join(" "),
        sizing.machine.cores,
        sizing.machine.kernel,
        sizing.requests,
        sizing.concurrency,
        sizing.duration_s,
        sizing.prices.describe()
    );
    let _ = writeln!(out, "Bigger: one instance\n{}", table(&sizing.vertical, sizing));
    let _ = writeln!(
        out,
        "More: instances of the smallest size\n{}",
        table(&sizing.horizontal, sizing)
    );
    out.push_str(&remarks(sizing));
    if sizing.vertical.iter().chain(&sizing.horizontal).any(|row| row.on_frontier) {
        out.push_str("* Worth its price: no other costs as little and does more.\n");
    }
    for warning in &sizing.prices.warnings {
        let _ = writeln!(out, "Warning: {warning}.");
    }
    for note in &sizing.notes {
        let _ = writeln!(out, "Note: {note}");
    }
    if sizing.verdict != Verdict::Valid {
        let word = if sizing.verdict == Verdict::Suspect { "suspect" } else { "invalid" };
        let _ = writeln!(out, "The measurement is {word}: {}", sizing.verdict_reasons.join("; "));
    }
    match &sizing.advice {
        Some(advice) => {
            let _ = writeln!(out, "\n{}", advice.reason);
        }
        None => out.push_str("\nThere is no answer: give several sizes and several counts.\n"),
    }
    out
}

fn table(rows: &[Row], sizing: &Sizing) -> String {
    let month = format!("{}/month", sizing.prices.currency);
    let thousand = format!("{}/month for 1,000/s", sizing.prices.currency);
    let mut table = Table::new(&[
        "instances",
        "cores each",
        "memory each",
        "time",
        "requests/s",
        "kB/s",
        "min",
        "max",
        "per request",
        "CPU used",
        "throttled",
        &month,
        &thousand,
    ]);
    for row in rows {
        table.row(cells(row));
    }
    table.render()
}

fn cells(row: &Row) -> Vec<String> {
    let m = row.measured.as_ref();
    let dash = || "-".to_owned();
    let millis = |ms: Option<f64>| ms.map_or_else(dash, |ms| time(ms / 1e3));
    let throttled = m.and_then(|m| m.limited).and_then(|l| l.throttled_ratio);
    let mark = if row.on_frontier { " *" } else { "" };
    vec![
        format!("{}{mark}", row.instances),
        row.cpus.to_string(),
        format!("{} MB", (row.memory_bytes as f64 / 1e4).round() / 1e2),
        m.and_then(|m| m.time_s).map_or_else(dash, |s| format!("{s:.1} s")),
        m.map_or_else(dash, |m| rate(m.throughput)),
        m.map_or_else(dash, |m| format!("{:.0}", m.transfer / 1e3)),
        millis(m.and_then(|m| m.min_ms)),
        millis(m.and_then(|m| m.max_ms)),
        millis(m.and_then(|m| m.per_request_ms)),
        m.and_then(|m| m.cpu_cores.app).map_or_else(dash, |cores| format!("{cores:.2}")),
        throttled.map_or_else(dash, |ratio| format!("{:.0} %", ratio * 100.0)),
        format!("{:.2}", row.month),
        row.month_per_thousand.map_or_else(dash, |price| format!("{price:.2}")),
    ]
}

/// What a number cannot say: what failed, missed the goal or was killed.
fn remarks(sizing: &Sizing) -> String {
    let mut out = String::new();
    let rows = sizing.vertical.iter().chain(sizing.horizontal.iter().skip(1));
    for row in rows {
        let name = format!("{} of {}", row.instances, cores(row.cpus));
        if let Some(failure) = &row.failure {
            let _ = writeln!(out, "{name}: {failure}");
        }
        let Some(m) = &row.measured else { continue };
        if m.memory_kills > 0 {
            let _ = writeln!(
                out,
                "{name}: killed for memory {} times; raise its --memory",
                m.memory_kills
            );
        }
        if m.limited_by != Limit::Instances {
            let _ = writeln!(out, "{name}: {}, so they may do more", m.limited_by.explanation());
        }
        if !m.goal_met {
            let _ =
                writeln!(out, "{name}: misses the goal ({} of {} failed)", m.errors, m.requests);
        }
    }
    out
}
