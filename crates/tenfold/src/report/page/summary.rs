//! What a report says in words: the page and its reader without JavaScript see the same, and the text report
//! says it, too.

pub mod compare;
pub mod cost;
pub mod load;
pub mod plan;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::document::resources::Machine;
use crate::report::section::Section;
use crate::report::table::Table;

/// What a report says.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Summary {
    pub kind: Kind,
    /// What was measured: a command or a target.
    pub subject: String,
    pub status: Status,
    /// The status in a word or two.
    pub status_word: String,
    /// The answer first, then what to know beside it.
    pub answer: Vec<String>,
    /// Why the measurement is not to be trusted.
    pub doubt: Option<String>,
    pub goal: Option<String>,
    /// Which stand after what the page draws.
    pub parts: Vec<Part>,
    pub facts: Vec<Fact>,
    /// The command that measures it again.
    pub repeat: Option<String>,
    /// How response times are distributed, of each side.
    pub latency: Vec<LatencyCurve>,
    /// The figures of each kind of request, and of all together as the last.
    pub statistics: Vec<Statistics>,
}

/// Locust's columns. Times in milliseconds, rates in requests a second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Statistics {
    pub method: String,
    pub name: String,
    pub requests: u64,
    pub failures: u64,
    pub median: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub average: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Bytes of a body.
    pub average_size: Option<f64>,
    pub rate: f64,
    pub failure_rate: f64,
}

/// Of what it is the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ReportKind"))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Plan,
    Load,
    Cost,
    Compare,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Met,
    NotMet,
    /// The measurement cannot be relied on.
    Unclear,
    /// There was no goal.
    Measured,
}

/// A heading with a table, sentences, or both.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Part {
    pub name: PartName,
    pub heading: String,
    /// The head, then the rows; without a table empty.
    pub table: Vec<Vec<String>>,
    pub lines: Vec<String>,
}

/// By which the page finds a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum PartName {
    Curve,
    Findings,
    Cost,
    Bigger,
    More,
    OneInstance,
    Tried,
    ResponseTimes,
    Requests,
    Failures,
    Thresholds,
    Metrics,
    Sides,
    Notes,
}

/// Where and how it was measured.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Fact {
    pub name: String,
    pub value: String,
}

/// Response times up to their percentiles.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LatencyCurve {
    pub name: String,
    /// Percentile and milliseconds, rising.
    pub points: Vec<(f64, f64)>,
}

impl Part {
    fn of(name: PartName, section: &Section) -> Part {
        Part {
            name,
            heading: section.heading.clone(),
            table: section.table.as_ref().map_or_else(Vec::new, |table| table.rows().to_vec()),
            lines: section.lines.iter().map(|line| line.trim().to_owned()).collect(),
        }
    }

    fn table(name: PartName, heading: &str, table: Table) -> Part {
        Part::of(
            name,
            &Section { heading: heading.to_owned(), table: Some(table), lines: Vec::new() },
        )
    }

    /// Nothing without lines.
    fn lines(name: PartName, heading: &str, lines: Vec<String>) -> Option<Part> {
        (!lines.is_empty())
            .then(|| Part::of(name, &Section { heading: heading.to_owned(), table: None, lines }))
    }
}

impl Fact {
    fn new(name: &str, value: impl Into<String>) -> Fact {
        Fact { name: name.to_owned(), value: value.into() }
    }
}

/// What every report ends with.
fn version() -> Fact {
    Fact::new("Tenfold", env!("CARGO_PKG_VERSION"))
}

/// To the second.
fn started(at: &str) -> Option<Fact> {
    let time: jiff::Timestamp = at.parse().ok()?;
    Some(Fact::new("Started", time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()))
}

fn machine(machine: &Machine) -> Fact {
    Fact::new("Machine", crate::report::plan::machine(machine))
}

/// The percentiles at which the curve bends, as many as the sample carries; nothing of an empty one.
fn latency(name: &str, micros: &Histogram<u64>) -> Option<LatencyCurve> {
    const PERCENTILES: [f64; 22] = [
        0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 96.5,
        98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.99,
    ];
    let carried = |p: &&f64| **p == 0.0 || micros.len() >= load_samples(**p);
    let at = |p: &f64| (*p, micros.value_at_percentile(*p) as f64 / 1e3);
    (!micros.is_empty()).then(|| LatencyCurve {
        name: name.to_owned(),
        points: PERCENTILES.iter().filter(carried).map(at).collect(),
    })
}

fn load_samples(percentile: f64) -> u64 {
    ::load::Histogram::samples_for(percentile)
}
