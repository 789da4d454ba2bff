//! Bigger or more, as text.

use std::fmt::Write;

use capacity::cost::Limit;
use ratatui::symbols::Marker;
use ratatui::widgets::{Dataset, GraphType};

use super::table::Table;
use crate::cost::{Measured, Row, Sizing, row_name};
use crate::document::verdict::Verdict;
use crate::terminal::chart::{self, Span};
use crate::words;
use crate::words::number::{cores, percent, rate, time};

/// A percentile that the goal bounds.
struct Bound {
    name: &'static str,
    ms: f64,
    /// What was measured of it.
    of: fn(&Measured) -> Option<f64>,
}

/// Size of the chart in characters.
const SIZE: (u16, u16) = (78, 16);

/// Both tables and their lines, what they cannot show, and the answer as its last line.
pub fn text(sizing: &Sizing) -> String {
    let mut out = format!(
        "{}\n{}, {}; {} requests, {} at once; {:.0} s in all, with starts\nGoal: {}\nPrices: {}\n\n",
        words::shell::line(&sizing.command),
        cores(sizing.machine.cores),
        sizing.machine.kernel,
        sizing.requests,
        sizing.concurrency,
        sizing.duration_s,
        goal(sizing),
        sizing.prices.describe()
    );
    let _ = writeln!(out, "Bigger: one instance\n{}", table(&sizing.vertical, sizing).render());
    let _ = writeln!(
        out,
        "More: instances of the smallest size\n{}",
        table(&sizing.horizontal, sizing).render()
    );
    out.push_str(&lines(sizing));
    for line in remarks(sizing).into_iter().chain(doubt(sizing)) {
        let _ = writeln!(out, "{line}");
    }
    match &sizing.advice {
        Some(advice) => {
            let _ = writeln!(out, "\n{}", advice.reason);
        }
        None => {
            let _ = writeln!(out, "\n{NO_ANSWER}");
        }
    }
    out
}

/// What is said where nothing can be advised.
pub(super) const NO_ANSWER: &str =
    "There is no answer: it takes several sizes and several counts, each measured.";

/// Why the measurement is not to be trusted, if so.
pub(super) fn doubt(sizing: &Sizing) -> Option<String> {
    let word = match sizing.verdict {
        Verdict::Valid => return None,
        Verdict::Suspect => "suspect",
        Verdict::Invalid => "invalid",
    };
    Some(format!("The measurement is {word}: {}", sizing.verdict_reasons.join("; ")))
}

/// The goal that answers must hold to count.
pub(super) fn goal(sizing: &Sizing) -> String {
    let bounds = bounds(sizing);
    let within = bounds.iter().map(|b| format!("{} within {}", b.name, time(b.ms / 1e3)));
    let errors = format!("at most {} errors", percent(sizing.max_error_ratio));
    within.chain([errors]).collect::<Vec<_>>().join(", ")
}

/// Each percentile that the goal bounds.
fn bounds(sizing: &Sizing) -> Vec<Bound> {
    let p95 = sizing.p95_ms.map(|ms| Bound { name: "p95", ms, of: |m| m.p95_ms });
    let p99 = sizing.p99_ms.map(|ms| Bound { name: "p99", ms, of: |m| m.p99_ms });
    p95.into_iter().chain(p99).collect()
}

pub(super) fn table(rows: &[Row], sizing: &Sizing) -> Table {
    let month = format!("{}/month", sizing.prices.currency);
    let thousand = format!("{}/month for 1,000/s", sizing.prices.currency);
    let bounds = bounds(sizing);
    let mut head = vec![
        "instances",
        "cores each",
        "memory each",
        "measured",
        "time for all",
        "requests/s",
        "kB/s",
        "min",
    ];
    head.extend(bounds.iter().map(|b| b.name));
    head.extend(["max", "per request", "CPU used", "throttled", &month, &thousand]);
    let mut table = Table::new(&head);
    for row in rows {
        let percentiles = bounds.iter().map(|b| millis(row.measured.as_ref().and_then(b.of)));
        table.row(cells(row, percentiles));
    }
    table
}

fn millis(ms: Option<f64>) -> String {
    ms.map_or_else(dash, |ms| time(ms / 1e3))
}

fn dash() -> String {
    "-".to_owned()
}

fn cells(row: &Row, percentiles: impl Iterator<Item = String>) -> Vec<String> {
    let m = row.measured.as_ref();
    let throttled = m.and_then(|m| m.limited).and_then(|l| l.throttled_ratio);
    let mark = if row.on_frontier { " *" } else { "" };
    let before = [
        format!("{}{mark}", row.instances),
        row.cpus.to_string(),
        format!("{} MB", (row.memory_bytes as f64 / 1e4).round() / 1e2),
        m.map_or_else(dash, |m| format!("{:.1} s", m.duration_s)),
        m.and_then(|m| m.time_s).map_or_else(dash, |s| format!("{s:.1} s")),
        m.map_or_else(dash, |m| rate(m.throughput)),
        m.map_or_else(dash, |m| format!("{:.0}", m.transfer / 1e3)),
        millis(m.and_then(|m| m.min_ms)),
    ];
    let after = [
        millis(m.and_then(|m| m.max_ms)),
        millis(m.and_then(|m| m.per_request_ms)),
        m.and_then(|m| m.cpu_cores.app).map_or_else(dash, |cores| format!("{cores:.2}")),
        throttled.map_or_else(dash, |ratio| format!("{:.0} %", ratio * 100.0)),
        format!("{:.2}", row.month),
        row.month_per_thousand.map_or_else(dash, |price| format!("{price:.2}")),
    ];
    before.into_iter().chain(percentiles).chain(after).collect()
}

/// What both ways to grow do for their price, as far as they hold the goal; nothing with fewer than two
/// points of each.
fn lines(sizing: &Sizing) -> String {
    let points = |rows: &[Row]| -> Vec<(f64, f64)> {
        let holds = rows.iter().filter(|row| row.month_per_thousand.is_some());
        holds.filter_map(|row| Some((row.month, row.measured.as_ref()?.throughput))).collect()
    };
    let (bigger, more) = (points(&sizing.vertical), points(&sizing.horizontal));
    if bigger.len().min(more.len()) < 2 {
        return String::new();
    }
    let all = || bigger.iter().chain(&more);
    let price = all().map(|(price, _)| *price).fold(0.0, f64::max);
    let most = all().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let line =
        |points, marker, kind| Dataset::default().marker(marker).graph_type(kind).data(points);
    let datasets = vec![
        line(&more, Marker::Braille, GraphType::Line),
        line(&bigger, Marker::Braille, GraphType::Line),
        line(&more, Marker::Custom('+'), GraphType::Scatter),
        line(&bigger, Marker::Custom('o'), GraphType::Scatter),
    ];
    let month = format!("{price:.2} {}/month", sizing.prices.currency);
    let x = Span { from: 0.0, to: price, words: ["0".to_owned(), month] };
    let y = Span { from: 0.0, to: most, words: ["0".to_owned(), rate(most)] };
    let chart = chart::chart("requests/s".to_owned(), datasets, x, y);
    format!(
        "What they do for their price: o bigger, + more (an o may hide a +)\n{}\n",
        chart::text(&chart, SIZE.0, SIZE.1)
    )
}

/// Explains failures, missed goals and kills, which numbers do not show, and where the prices come from.
pub(super) fn remarks(sizing: &Sizing) -> Vec<String> {
    let mut out = Vec::new();
    let rows = sizing.vertical.iter().chain(sizing.horizontal.iter().skip(1));
    for row in rows {
        let name = row_name(row.instances, row.cpus);
        if let Some(failure) = &row.failure {
            out.push(format!("{name}: {failure}"));
        }
        let Some(m) = &row.measured else { continue };
        if m.memory_kills > 0 {
            out.push(format!(
                "{name}: killed for memory {}; raise its --memory",
                match m.memory_kills {
                    1 => "once".to_owned(),
                    times => format!("{times} times"),
                }
            ));
        }
        if m.limited_by != Limit::Instances {
            out.push(format!("{name}: {}, so they may do more", words::cost::limit(m.limited_by)));
        }
        if m.requests == 0 {
            out.push(format!(
                "{name}: answered nothing in {}; raise --longest, or give a --path that answers sooner",
                time(m.duration_s)
            ));
        } else if !m.goal_met {
            let bounds = bounds(sizing);
            // A percentile that so few answers do not tell missed by the slowest of them.
            let seen = bounds.iter().map(|b| match (b.of)(m) {
                Some(ms) => format!("{} {}, ", b.name, millis(Some(ms))),
                None => format!("slowest answer {}, ", millis(m.max_ms)),
            });
            let seen: String = seen.collect();
            out.push(format!(
                "{name}: misses the goal ({seen}{} of {} failed)",
                m.errors, m.requests
            ));
        }
    }
    let all = || sizing.vertical.iter().chain(&sizing.horizontal);
    if all().any(|row| row.on_frontier) {
        out.push("* Worth its price: no other costs as little and does more.".to_owned());
    }
    out.extend(sizing.prices.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    out.extend(sizing.notes.iter().map(|note| format!("Note: {note}")));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::SCHEMA;
    use crate::document::cost::Origin;
    use crate::document::resources::{CpuCores, Machine};

    fn row(instances: usize, cpus: f64, throughput: f64) -> Row {
        let ms = Some(1e3 / throughput);
        Row {
            instances,
            cpus,
            memory_bytes: 20_000_000,
            month: instances as f64 * cpus * 20.0,
            month_per_thousand: None,
            on_frontier: false,
            measured: Some(Measured {
                goal_met: true,
                duration_s: 2.0,
                time_s: Some(1e4 / throughput),
                requests: 10_000,
                errors: 0,
                throughput,
                transfer: 1500.0 * throughput,
                min_ms: Some(1.5),
                mean_ms: ms,
                p95_ms: ms,
                p99_ms: ms,
                max_ms: Some(750.0),
                per_request_ms: ms,
                cpu_cores: CpuCores { app: Some(cpus), ..CpuCores::default() },
                limited_by: Limit::Instances,
                limited: None,
                redirect: None,
                memory_kills: 0,
                verdict: Verdict::Valid,
                verdict_reasons: Vec::new(),
            }),
            failure: None,
        }
    }

    fn sizing(vertical: Vec<Row>, horizontal: Vec<Row>) -> Sizing {
        let mut sizing = Sizing {
            schema: SCHEMA.to_owned(),
            started_at: "2026-11-21T12:00:00Z".to_owned(),
            duration_s: 20.0,
            command: vec!["./app".to_owned()],
            invocation: None,
            machine: Machine { cores: 2.0, memory_bytes: None, kernel: "Linux".to_owned() },
            requests: 10_000,
            concurrency: 1000,
            p95_ms: None,
            p99_ms: None,
            max_error_ratio: 0.001,
            prices: Origin {
                prices: "ours".to_owned(),
                currency: "EUR".to_owned(),
                as_of: Some("2026-01-01".to_owned()),
                sources: Vec::new(),
                warnings: vec!["prices of 2026-01-01 are 324 days old".to_owned()],
            },
            balancer_month: 0.0,
            vertical,
            horizontal,
            advice: None,
            verdict: Verdict::Valid,
            verdict_reasons: Vec::new(),
            notes: Vec::new(),
        };
        sizing.conclude();
        sizing
    }

    #[test]
    fn a_cost_report_shows_every_deciding_figure() {
        let (small, large) = (row(1, 0.1, 100.0), row(1, 0.2, 150.0));
        let said = text(&sizing(vec![small.clone(), large], vec![small, row(2, 0.1, 200.0)]));
        for part in [
            "Goal: at most 0.1 % errors\nPrices: ours as of 2026-01-01, in EUR, list prices before tax",
            "Warning: prices of 2026-01-01 are 324 days old.",
            "measured  time for all  requests/s  kB/s      min     max  per request  CPU used",
            "2.0 s       100.0 s         100   150  1.50 ms  750 ms        10 ms      0.10",
            "2.00                  20.00",
            "What they do for their price: o bigger, + more",
            "* Worth its price",
            "\nMore: 2 of 0.1 cores carry 200 requests/s for 4.00 EUR a month, 1 of 0.2 cores 150 for 4.00",
        ] {
            assert!(said.contains(part), "no `{part}` in\n{said}");
        }
        // Both at the right end, as they cost the same, and more above.
        let ends = |mark: char| {
            said.lines().position(|line| line.contains('\u{2502}') && line.ends_with(mark))
        };
        assert!(ends('+').unwrap() < ends('o').unwrap(), "{said}");
    }

    #[test]
    fn sizes_that_miss_the_goal_are_not_plotted() {
        let (small, mut large) = (row(1, 0.1, 100.0), row(1, 0.2, 150.0));
        large.measured.as_mut().unwrap().goal_met = false;
        let mut sizing = sizing(vec![small.clone(), large], vec![small, row(2, 0.1, 200.0)]);
        sizing.p95_ms = Some(5.0);
        let said = text(&sizing);
        assert!(said.contains("Goal: p95 within 5.00 ms, at most 0.1 % errors"), "{said}");
        assert!(said.contains("min      p95     max"), "{said}");
        let missed = "1 of 0.2 cores: misses the goal (p95 6.67 ms, 0 of 10000 failed)";
        assert!(said.contains(missed), "{said}");
        sizing.vertical[1].measured.as_mut().unwrap().p95_ms = None;
        let few = text(&sizing);
        assert!(few.contains("misses the goal (slowest answer 750 ms, 0 of 10000"), "{few}");
        sizing.vertical[1].measured.as_mut().unwrap().requests = 0;
        let silent = text(&sizing);
        assert!(silent.contains("1 of 0.2 cores: answered nothing in 2.00 s; raise"), "{silent}");
        assert!(!silent.contains("misses the goal"), "{silent}");
        assert!(!said.contains("What they do for their price"), "{said}");
    }
}
