//! The view of a load run while it lasts: on a terminal a screen with keys, elsewhere a line a
//! second. It looks at what the generator hands over once a window, so it costs the run nothing.
//!
//! - [`View`]: what is shown, as a value.
//! - [`draw`]: the value on a screen; a pure function.
//! - [`keys`]: what the keys mean.
//! - [`screen`]: the terminal, restored whatever happens.
//! - [`lines`]: the value as a line of text.

pub mod draw;
pub mod keys;
pub mod lines;
pub mod screen;
#[cfg(test)]
mod tests;

use std::time::Duration;

use load::{Demand, Histogram, Present, Report, Window};

use crate::document::load::Order;
use crate::document::times::Times;
use crate::document::times::times;
use crate::document::verdict::Verdict;

/// A run at a moment.
#[derive(Clone, Debug)]
pub struct View {
    pub target: String,
    pub elapsed: Duration,
    pub length: Option<Duration>,
    /// The users or the rate at this moment.
    pub demand: String,
    pub motion: Motion,
    pub phase: Option<String>,
    /// The last window, the last few, and all of them.
    pub second: Figures,
    pub now: Figures,
    pub total: Figures,
    pub requests: u64,
    /// Kinds and counts, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// Throughput and p95 (ms) of each window that the chart has room for, by its start (s).
    pub throughput: Vec<(f64, f64)>,
    pub p95_ms: Vec<(f64, f64)>,
    pub generator_cores: f64,
    /// Share of a core that the busiest generator thread takes.
    pub busiest_thread: f64,
    pub verdict: Verdict,
    pub capacity: Capacity,
    pub reasons: Vec<String>,
    /// A number that is being typed, to become the load.
    pub typed: String,
}

/// Whether the target keeps up with what is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    KeepsUp,
    Overloaded,
}

/// Whether requests go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    Running,
    Paused,
    /// Its time is over: what is in flight is waited for, and a script's sessions end.
    Ending,
}

impl Motion {
    fn of(present: &Present, length: Option<Duration>) -> Motion {
        match length {
            Some(length) if present.elapsed > length => Motion::Ending,
            _ if present.paused => Motion::Paused,
            _ => Motion::Running,
        }
    }

    /// The word that stands beside the demand.
    fn word(self) -> Option<&'static str> {
        match self {
            Motion::Running => None,
            Motion::Paused => Some("paused"),
            Motion::Ending => Some("ending"),
        }
    }
}

/// The figures of some windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub throughput: f64,
    /// Errors a second.
    pub errors: f64,
    pub response_ms: Times,
}

/// Windows that count as now.
const NOW: usize = 5;
/// Windows in the chart.
const CHART: usize = 120;

impl View {
    pub fn of(order: &Order, report: &Report, present: &Present) -> View {
        let motion = Motion::of(present, order.length);
        let recent = last(&report.windows, CHART);
        let mut errors: Vec<(String, u64)> =
            report.failures.iter().map(|(failed, (n, _))| (failed.to_string(), *n)).collect();
        errors.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        View {
            target: order.target.clone(),
            elapsed: present.elapsed,
            length: order.length,
            demand: match order.method.as_str() {
                "SCRIPT" => demand(present.demand, motion).replace("requests/s", "sessions/s"),
                _ => demand(present.demand, motion),
            },
            motion,
            phase: present.phase.clone(),
            second: Figures::of(last(&report.windows, 1)),
            now: Figures::of(last(&report.windows, NOW)),
            total: Figures {
                // Shares of requests that are under way are known only when they end.
                throughput: report.succeeded() as f64
                    / report.duration.saturating_sub(report.paused).as_secs_f64().max(1e-3),
                errors: report.error_count() as f64 / report.duration.as_secs_f64().max(1e-3),
                response_ms: times(report.response.counts()),
            },
            requests: report.requests,
            errors,
            throughput: recent.iter().map(|w| (w.start.as_secs_f64(), answered(&[w]))).collect(),
            p95_ms: recent
                .iter()
                .filter_map(|w| {
                    let p95 = w.response.percentile(95.0)?;
                    Some((w.start.as_secs_f64(), p95.as_secs_f64() * 1e3))
                })
                .collect(),
            generator_cores: report.cpu_seconds / report.duration.as_secs_f64().max(1e-3),
            busiest_thread: report.busiest_thread,
            verdict: report.verdict.into(),
            capacity: if report.is_overloaded() { Capacity::Overloaded } else { Capacity::KeepsUp },
            reasons: report.reasons.iter().map(ToString::to_string).collect(),
            typed: String::new(),
        }
    }
}

impl Figures {
    fn of(windows: &[Window]) -> Figures {
        let mut response = Histogram::new();
        windows.iter().for_each(|window| window.response.add_to(&mut response));
        let seconds: f64 = windows.iter().map(|w| w.seconds).sum::<f64>().max(1e-3);
        Figures {
            throughput: answered(&windows.iter().collect::<Vec<_>>()),
            errors: windows.iter().map(|w| w.errors).sum::<u64>() as f64 / seconds,
            response_ms: times(response.counts()),
        }
    }
}

/// Successful requests a second, each counted when it is answered. A request under way would add nothing
/// yet to the newest windows, and the curve would seem to end in nothing.
fn answered(windows: &[&Window]) -> f64 {
    let seconds: f64 = windows.iter().map(|w| w.seconds).sum::<f64>().max(1e-3);
    windows.iter().map(|w| w.answered).sum::<u64>() as f64 / seconds
}

fn last<T>(all: &[T], most: usize) -> &[T] {
    &all[all.len().saturating_sub(most)..]
}

fn demand(demand: Demand, motion: Motion) -> String {
    match demand {
        Demand::Users { now, goal, .. } if now != goal => format!("{now} of {goal} users"),
        Demand::Users { now: 1, .. } => "1 user".to_owned(),
        Demand::Users { now, .. } => format!("{now} users"),
        Demand::Rate(_) if motion == Motion::Ending => "arrivals over".to_owned(),
        Demand::Rate(rate) => format!("{} requests/s offered", crate::words::number::rate(rate)),
    }
}
