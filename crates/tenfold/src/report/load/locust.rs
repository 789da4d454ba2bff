//! Locust's four CSV files, with its headers.
//!
//! Times are whole milliseconds as Locust writes them, of successful requests. Percentiles are
//! those of the sample; `N/A` where there is none.

use std::borrow::Cow;

use anyhow::anyhow;
use hdrhistogram::Histogram;
use http::Uri;

use crate::document::load::Document;
use crate::document::load::{Named, Stage, Window};
use crate::words;

const PERCENTS: [(&str, f64); 11] = [
    ("50%", 50.0),
    ("66%", 66.0),
    ("75%", 75.0),
    ("80%", 80.0),
    ("90%", 90.0),
    ("95%", 95.0),
    ("98%", 98.0),
    ("99%", 99.0),
    ("99.9%", 99.9),
    ("99.99%", 99.99),
    ("100%", 100.0),
];

/// Whose rows the history has besides the sum's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    Sum,
    /// Also those of every kind of request.
    Full,
}

/// The ends of the files' names, after the prefix.
pub const NAMES: [&str; 4] =
    ["_stats.csv", "_stats_history.csv", "_failures.csv", "_exceptions.csv"];

/// The files' texts, in the order of [`NAMES`].
pub fn locust(document: &Document, history: History) -> anyhow::Result<[String; 4]> {
    Ok([
        stats(document)?,
        stats_history(document, history)?,
        failures(document)?,
        // Exceptions of the test's own code, of which there is none.
        table(&["Count", "Message", "Traceback", "Nodes"], [])?,
    ])
}

fn stats(document: &Document) -> anyhow::Result<String> {
    let mut head = vec![
        "Type",
        "Name",
        "Request Count",
        "Failure Count",
        "Median Response Time",
        "Average Response Time",
        "Min Response Time",
        "Max Response Time",
        "Average Content Size",
        "Requests/s",
        "Failures/s",
    ];
    head.extend(PERCENTS.map(|(label, _)| label));
    let sum = Named {
        name: "Aggregated".to_owned(),
        method: String::new(),
        requests: document.requests,
        errors: document.error_count(),
        body_bytes: document.body_bytes,
        response_ms: document.response_ms,
        histogram: document.histograms.response.clone(),
    };
    let rows = document.by_name.iter().chain([&sum]).map(|named| {
        let micros = named.histogram.histogram();
        let rate = |count: u64| count as f64 / document.duration_s.max(1e-3);
        let mut row = vec![
            named.method.clone(),
            short(&named.name, &document.target),
            named.requests.to_string(),
            named.errors.to_string(),
        ];
        row.extend(middle(&micros));
        row.push(mean(named.body_bytes, named.requests));
        row.extend([rate(named.requests).to_string(), rate(named.errors).to_string()]);
        row.extend(percentiles(&micros));
        row
    });
    table(&head, rows)
}

fn stats_history(document: &Document, history: History) -> anyhow::Result<String> {
    let mut head = vec!["Timestamp", "User Count", "Type", "Name", "Requests/s", "Failures/s"];
    head.extend(PERCENTS.map(|(label, _)| label));
    head.extend([
        "Total Request Count",
        "Total Failure Count",
        "Total Median Response Time",
        "Total Average Response Time",
        "Total Min Response Time",
        "Total Max Response Time",
        "Total Average Content Size",
    ]);
    let mut so_far = SoFar::new(document);
    let mut rows = Vec::new();
    let mut stage = Stage::WarmUp;
    for window in &document.windows {
        // The other files leave the warm-up out. As with Locust's --reset-stats, totals begin anew.
        if std::mem::replace(&mut stage, window.stage) != window.stage {
            so_far = SoFar::new(document);
        }
        let figures = so_far.after(window);
        let row = |method: &str, name: &str| {
            let [time, users] = [figures[0].clone(), figures[1].clone()];
            let mut row = vec![time, users, method.to_owned(), name.to_owned()];
            row.extend_from_slice(&figures[2..]);
            row
        };
        if let (History::Full, [only]) = (history, document.by_name.as_slice()) {
            rows.push(row(&only.method, &short(&only.name, &document.target)));
        }
        rows.push(row("", "Aggregated"));
    }
    table(&head, rows)
}

/// Totals since the start, or since the end of the warm-up.
struct SoFar {
    beginning: f64,
    content: String,
    requests: u64,
    errors: u64,
    micros: Histogram<u64>,
}

impl SoFar {
    fn new(document: &Document) -> SoFar {
        SoFar {
            beginning: document.started_at_s(),
            content: mean(document.body_bytes, document.requests),
            requests: 0,
            errors: 0,
            micros: load::Histogram::new().counts().clone(),
        }
    }

    /// The figures of a row, without type and name.
    fn after(&mut self, window: &Window) -> Vec<String> {
        let micros = window.histogram.histogram();
        self.requests += window.requests;
        self.errors += window.errors;
        // Both have the same bounds.
        let _ = self.micros.add(&micros);
        let rate = |count: u64| (count as f64 / window.seconds.max(1e-3)).to_string();
        let time = (self.beginning + window.start_s + window.seconds) as u64;
        let mut figures = vec![time.to_string(), window.users.to_string()];
        figures.extend([rate(window.requests), rate(window.errors)]);
        figures.extend(percentiles(&micros));
        figures.extend([self.requests.to_string(), self.errors.to_string()]);
        figures.extend(middle(&self.micros));
        figures.push(self.content.clone());
        figures
    }
}

fn failures(document: &Document) -> anyhow::Result<String> {
    let rows = document.failures.iter().map(|failure| {
        vec![
            failure.method.clone(),
            short(&failure.name, &document.target),
            words::failure::name(failure),
            failure.occurrences.to_string(),
            whole_seconds(failure.first_seen.as_deref()),
            whole_seconds(failure.last_seen.as_deref()),
        ]
    });
    let head = ["Method", "Name", "Error", "Occurrences", "First Seen", "Last Seen"];
    table(&head, rows)
}

/// Median, mean, least and most.
fn middle(micros: &Histogram<u64>) -> [String; 4] {
    let median = whole_ms(micros.value_at_quantile(0.5));
    let mean = micros.mean() / 1000.0;
    [median, mean.to_string(), whole_ms(micros.min()), whole_ms(micros.max())]
}

fn percentiles(micros: &Histogram<u64>) -> impl Iterator<Item = String> {
    PERCENTS
        .map(|(_, percent)| match micros.is_empty() {
            true => "N/A".to_owned(),
            false => whole_ms(micros.value_at_percentile(percent)),
        })
        .into_iter()
}

/// A time of RFC 3339 without the parts of a second.
fn whole_seconds(time: Option<&str>) -> String {
    let time = time.and_then(|time| time.parse::<jiff::Timestamp>().ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn whole_ms(micros: u64) -> String {
    ((micros as f64 / 1000.0).round() as u64).to_string()
}

fn mean(sum: u64, count: u64) -> String {
    (sum as f64 / count.max(1) as f64).to_string()
}

/// A URL on the target's host by its path, as Locust names requests.
pub fn short(name: &str, target: &str) -> String {
    let (Ok(uri), Ok(target)) = (name.parse::<Uri>(), target.parse::<Uri>()) else {
        return name.to_owned();
    };
    // The name of a script, as shop.yml, looks like a host alone.
    match uri.scheme().is_some() && uri.authority() == target.authority() {
        true => uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        false => name.to_owned(),
    }
}

/// A program for tables would compute what begins like a formula, and names are others'.
fn inert(cell: &str) -> Cow<'_, str> {
    match cell.starts_with(['=', '+', '@', '\t', '\r']) {
        true => Cow::Owned(format!("'{cell}")),
        false => Cow::Borrowed(cell),
    }
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> anyhow::Result<String> {
    // Python's csv ends lines as RFC 4180 has it.
    let mut csv =
        csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    csv.write_record(head)?;
    for row in rows {
        csv.write_record(row.iter().map(|cell| inert(cell).into_owned()))?;
    }
    let bytes = csv.into_inner().map_err(|error| anyhow!("cannot write CSV: {error}"))?;
    Ok(String::from_utf8(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_formulas() {
        let cells = ["=1+1", "+1", "@sum", "\t=1", "-1", "GET"];
        assert_eq!(cells.map(inert), ["'=1+1", "'+1", "'@sum", "'\t=1", "-1", "GET"]);
    }
}
