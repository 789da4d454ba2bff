//! A line of text, where there is no terminal.

use std::fmt::Write;

use super::{Capacity, View};
use crate::words::number::{rate, time};

/// What was asked in the last second, what came of it, and what went wrong so far.
pub fn line(view: &View) -> String {
    let mut out = format!("{:>4} s  {}", view.elapsed.as_secs(), view.demand);
    if let Some(word) = view.motion.word() {
        let _ = write!(out, ", {word}");
    }
    let _ = write!(out, "  {} requests/s", rate(view.second.throughput));
    let times = view.second.response_ms;
    for (name, ms) in [("p50", times.p50), ("p95", times.p95), ("p99", times.p99)] {
        if let Some(ms) = ms {
            let _ = write!(out, "  {name} {}", time(ms / 1e3));
        }
    }
    if view.capacity == Capacity::Overloaded {
        out.push_str("  overloaded");
    }
    for (kind, count) in &view.errors {
        let _ = write!(out, "  {kind} {count}");
    }
    out
}
