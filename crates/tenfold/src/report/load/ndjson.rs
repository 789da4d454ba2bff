//! A line of JSON a window, mostly a second.

use serde::Serialize;

use crate::document::load::Document;
use crate::document::load::{Stage, Window};
use crate::document::times::Times;

/// Times in milliseconds, rates in requests a second.
#[derive(Serialize)]
struct Line<'a> {
    /// Start of the window, in seconds since 1970.
    time: f64,
    start_s: f64,
    stage: Stage,
    seconds: f64,
    requests: u64,
    errors: u64,
    throughput: f64,
    users: u64,
    in_flight: u64,
    waiting: u64,
    bytes: u64,
    response_ms: &'a Times,
}

/// The windows, in order.
pub fn ndjson(document: &Document) -> anyhow::Result<String> {
    let mut out = String::new();
    let beginning = document.started_at_s();
    for window in &document.windows {
        out.push_str(&serde_json::to_string(&Line::of(window, beginning))?);
        out.push('\n');
    }
    Ok(out)
}

impl Line<'_> {
    fn of(window: &Window, beginning: f64) -> Line<'_> {
        Line {
            time: beginning + window.start_s,
            start_s: window.start_s,
            stage: window.stage,
            seconds: window.seconds,
            requests: window.requests,
            errors: window.errors,
            throughput: window.throughput,
            users: window.users,
            in_flight: window.in_flight,
            waiting: window.waiting,
            bytes: window.bytes,
            response_ms: &window.response_ms,
        }
    }
}
