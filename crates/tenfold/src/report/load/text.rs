//! The report as people read it.

use std::fmt::Write;

use crate::document::load::{Document, Overload, WarmUp};
use crate::document::verdict::Verdict;
use crate::report::table::Table;
use crate::words;
use crate::words::number::{duration, grouped, rate, time};

/// The run in a sentence.
pub fn summary(document: &Document) -> String {
    let p95 =
        document.response_ms.p95.map_or_else(String::new, |ms| format!(", p95 {}", time(ms / 1e3)));
    format!(
        "{} requests/s with {}{p95}, {}{}",
        rate(document.throughput),
        document.workload,
        counted(document.error_count(), "error"),
        if document.overloaded { ", overloaded" } else { "" }
    )
}

/// The whole report.
pub fn text(document: &Document) -> String {
    let mut out = overload(document).map_or_else(String::new, |said| format!("{said}\n"));
    let _ = write!(
        out,
        "{}, {}\n{}{} requests/s, {:.2} cores used by the generator\n\n",
        document.target,
        workload(document),
        requests(document),
        rate(document.throughput),
        document.generator_cpu_cores
    );
    out.push_str(&response_times(document).render());
    for line in outcomes(document) {
        let _ = write!(out, "\n  {line}");
    }
    let script = super::script::text(document);
    if !script.is_empty() {
        let _ = write!(out, "\n\n{script}");
    }
    out.push('\n');
    for complaint in complaints(document) {
        let _ = write!(out, "\n{complaint}");
    }
    if let Some(said) = validity(document) {
        let _ = write!(out, "\n{said}");
    }
    out.push('\n');
    out
}

/// The workload, and how long it was measured.
pub fn workload(document: &Document) -> String {
    format!(
        "{} for {}{}{}",
        document.workload,
        duration(document.duration_s),
        paused(document.paused_s),
        document.warm_up.as_ref().map_or_else(String::new, after_warm_up)
    )
}

/// What a measurement is worth that nothing speaks against.
fn validity(document: &Document) -> Option<&'static str> {
    match (document.verdict, document.overloaded) {
        (Verdict::Valid, false) => Some("The measurement is valid."),
        (Verdict::Valid, true) => Some(
            "The throughput is valid; the percentiles are lower bounds, which grow with the length of the run.",
        ),
        _ => None,
    }
}

/// Response and service times.
pub fn response_times(document: &Document) -> Table {
    let mut table = Table::new(&["", "mean", "p50", "p90", "p95", "p99", "max"]);
    for (name, t) in
        [("response time", &document.response_ms), ("service time", &document.service_ms)]
    {
        let cells = [t.mean, t.p50, t.p90, t.p95, t.p99, t.max];
        table.row(std::iter::once(name.to_owned()).chain(cells.map(cell)).collect());
    }
    table
}

/// A time in a table.
pub fn cell(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| time(ms / 1e3))
}

/// Statuses, failures, and requests that were not sent in time.
pub fn outcomes(document: &Document) -> Vec<String> {
    let each = |(kind, n): (&String, &u64)| words::failure::of_kind(kind, *n, &document.status);
    let failures: Vec<(String, u64)> = document.errors.iter().flat_map(each).collect();
    let statuses = document.status.iter().map(|(status, n)| (format!("status {status}"), n));
    let statuses = statuses.filter(|(name, _)| failures.iter().all(|(failed, _)| failed != name));
    let statuses: Vec<String> = statuses.map(|(name, n)| format!("{name}: {n}")).collect();
    let failures = failures.into_iter().map(|(name, n)| format!("{name}: {n} failed"));
    let repeated = document.requests_repeated.filter(|count| *count > 0).map(|count| {
        format!(
            "{} went out again, as the target had closed a kept connection",
            counted(count, "request")
        )
    });
    let dropped = (document.dropped > 0)
        .then(|| format!("{} arrivals dropped: too many were under way", document.dropped));
    let late = (document.late > 0)
        .then(|| format!("{} requests began after their users' pace", document.late));
    statuses
        .into_iter()
        .chain(failures)
        .chain(asked_again(document))
        .chain(repeated)
        .chain(dropped)
        .chain(late)
        .collect()
}

/// Time in which the run was paused; rates leave it out.
fn paused(seconds: f64) -> String {
    if seconds > 0.0 { format!(" (paused for {} of it)", duration(seconds)) } else { String::new() }
}

/// Says first that the target is overloaded: what it was offered in the whole run, and what became of it.
pub fn overload(document: &Document) -> Option<String> {
    let said = |answered, offered, rest: &str| {
        format!(
            "The target is overloaded: it answers {} of the {} requests/s that come{rest}.",
            rate(answered),
            rate(offered)
        )
    };
    match &document.overload {
        Some(overload) => {
            let per_second = |count: u64| count as f64 / overload.duration_s.max(1e-3);
            let Overload { offered, sent, answered, failed, unanswered, .. } = *overload;
            let failed = match failed {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            };
            let counts = format!(
                " ({offered} offered, {sent} sent, {answered} answered{failed}, {unanswered} unanswered), so \
                 the percentiles are lower bounds"
            );
            Some(said(per_second(answered), per_second(offered), &counts))
        }
        // Earlier documents know no more.
        None => document.overloaded.then(|| said(document.throughput, document.offered, "")),
    }
}

/// Counts of requests offered, sent and answered, where these differ.
fn requests(document: &Document) -> String {
    const NOTABLE: f64 = 0.01;
    let all = (document.requests_offered, document.requests_sent, document.requests_unanswered);
    if let (Some(offered), Some(sent), Some(unanswered)) = all
        && offered > 0
        && document.overload.is_none()
        && (document.overloaded || (offered - sent.min(offered)) as f64 > NOTABLE * offered as f64)
    {
        return format!(
            "{} offered, {sent} sent, {} answered, {unanswered} unanswered at the end\n",
            counted(offered, "request"),
            document.requests
        );
    }
    format!("{}, ", counted(document.requests, "request"))
}

/// Connections that took a whole number of seconds to open. So long Linux waits before it sends
/// another SYN (1 s, RFC 6298; `net.ipv4.tcp_syn_linear_timeouts`), which it must where a listener's
/// queue overflows.
fn asked_again(document: &Document) -> Option<String> {
    const SECOND: u64 = 1_000_000;
    const JOURNEY: u64 = SECOND / 10;
    let micros = document.histograms.connect.histogram();
    let after = |s: u64| micros.count_between(s * SECOND, s * SECOND + JOURNEY);
    let count: u64 = (1..=7).map(after).sum();
    if count == 0 || micros.value_at_quantile(0.5) > SECOND / 2 {
        return None;
    }
    Some(format!(
        "{count} of {} connections opened only when they were asked for again, after a second or more: the \
         target's queue of new ones was full; raise its listen backlog and net.core.somaxconn, or begin \
         slowly (--ramp)",
        micros.len()
    ))
}

/// Broken thresholds and an untrustworthy measurement, a line each.
pub fn complaints(document: &Document) -> Vec<String> {
    let broken = document.thresholds.iter().filter(|check| !check.met);
    let broken = broken.map(|check| format!("Not met: {}: {}", check.name, check.measured));
    let worth = match document.verdict {
        Verdict::Valid => None,
        Verdict::Suspect => Some("suspect"),
        Verdict::Invalid => Some("invalid"),
    };
    let reasons = document.verdict_reasons.join("; ");
    broken.chain(worth.map(|worth| format!("The measurement is {worth}: {reasons}"))).collect()
}

/// With the word for one or several.
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn after_warm_up(warm_up: &WarmUp) -> String {
    let until = match warm_up.by.as_str() {
        "users" => "all users had come",
        "response_time" => "the response time was steady",
        _ => "the throughput was steady",
    };
    format!(", after a warm-up of {} (until {until})", duration(warm_up.length_s))
}
