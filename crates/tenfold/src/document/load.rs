//! The value, and how it is made of what was measured.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use load::{Failed, Report, ScriptReport, Seen};
use serde::{Deserialize, Serialize};

use super::histogram::EncodedHistogram;
use super::timeline::Timeline;
use crate::document::resources::Machine;
use crate::document::times::Times;
use crate::document::times::times;
use crate::document::verdict::Verdict;
use crate::words;

pub mod stalls;
#[cfg(test)]
pub mod testing;

use stalls::Stalls;

/// The schema's name and version.
const SCHEMA: &str = "tenfold/load/1";

/// Times in milliseconds, rates in requests a second, CPU in cores; absent is null, never 0.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Load"))]
pub struct Document {
    pub schema: String,
    /// The URL, without credentials.
    pub target: String,
    pub method: String,
    pub workload: String,
    /// Users who were asked for. If they come one after the other, it is the most that were there at the
    /// end of a window. If users arrive at a rate, it is the average number under way.
    pub concurrency: u64,
    /// Threads of the generator.
    pub threads: Option<usize>,
    /// I/O engine: `uring` or `epoll`.
    pub engine: Option<String>,
    pub keep_alive: KeepAlive,
    pub started_at: String,
    /// The command that measures it again, without secrets. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub invocation: Option<Vec<String>>,
    /// The generator's. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub machine: Option<Machine>,
    /// Cut from the beginning; the figures leave it out.
    pub warm_up: Option<WarmUp>,
    /// Without the warm-up.
    pub duration_s: f64,
    /// Time in which the run was paused by hand; rates leave it out.
    pub paused_s: f64,
    pub requests: u64,
    pub errors: BTreeMap<String, u64>,
    pub status: BTreeMap<u16, u64>,
    pub bytes: u64,
    /// Bytes in bodies of complete answers.
    pub body_bytes: u64,
    pub throughput: f64,
    pub offered: f64,
    /// Share of the offered rate: answered by an overloaded target, else sent.
    pub achieved_ratio: f64,
    /// Requests that were due.
    pub requests_offered: Option<u64>,
    /// Requests that were sent.
    pub requests_sent: Option<u64>,
    /// Requests under way when the run ended, which are in no percentile.
    pub requests_unanswered: Option<u64>,
    /// How often requests went out again, because the target had closed a kept connection before they came. Earlier
    /// documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub requests_repeated: Option<u64>,
    /// Arrivals came faster than the target answered: the percentiles are lower bounds.
    pub overloaded: bool,
    /// What the overloaded target was offered in the whole run, until the arrivals were over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub overload: Option<Overload>,
    /// Stalls that the percentiles of users who wait do not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub stalls: Option<Stalls>,
    /// Arrivals turned away because too many were in the system.
    pub dropped: u64,
    /// Requests of paced users that began late.
    pub late: u64,
    /// Requests in the system on average, or users.
    pub in_system: Option<f64>,
    pub response_ms: Times,
    pub service_ms: Times,
    pub first_byte_ms: Times,
    pub connect_ms: Times,
    pub schedule_lag_ms: Lag,
    pub connections: Connections,
    pub generator_cpu_cores: f64,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
    pub by_name: Vec<Named>,
    pub failures: Vec<Failure>,
    pub thresholds: Vec<Check>,
    pub histograms: Histograms,
    pub windows: Vec<Window>,
    /// How many windows there were before a report put neighbours together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub windows_measured: Option<usize>,
    /// How the run went over time, where a report put windows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub timeline: Option<Timeline>,
    /// The goal for the p95 of `response_ms`, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub goal_p95_ms: Option<f64>,
    /// The metrics of a script, under the names that its users know.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub script: Option<ScriptReport>,
}

/// What was asked for, as far as reports name it.
#[derive(Clone, Debug)]
pub struct Order {
    /// The URL, without credentials.
    pub target: String,
    pub method: String,
    pub workload: String,
    pub keep_alive: KeepAlive,
    /// Users at the start, if there are any.
    pub users: Option<usize>,
    /// How long it was to take, if that was said.
    pub length: Option<Duration>,
}

/// Whether connections served more than one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum KeepAlive {
    #[default]
    On,
    Off,
}

/// The beginning of a run, until it was steady.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WarmUp {
    pub length_s: f64,
    /// What took longest to become steady: users, throughput or response_time.
    pub by: String,
}

/// More was offered than the target answered. The whole run counts, also a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Overload {
    /// Until the arrivals were over.
    pub duration_s: f64,
    pub offered: u64,
    pub sent: u64,
    /// Complete answers, of any status.
    pub answered: u64,
    /// Without an answer, most of them by a timeout.
    pub failed: u64,
    /// Under way, in the generator or in the target.
    pub unanswered: u64,
}

/// The part of a run that a window belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    WarmUp,
    #[default]
    Measured,
}

/// How late the generator itself was.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Lag {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

/// How often a connection was opened.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Connections {
    pub opened: u64,
    /// Kept ones that the server had closed and that were opened again, without an error.
    pub reopened: u64,
}

/// The figures of one kind of request.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Requests"))]
pub struct Named {
    pub name: String,
    pub method: String,
    pub requests: u64,
    pub errors: u64,
    pub body_bytes: u64,
    pub response_ms: Times,
    #[cfg_attr(test, ts(type = "string | null"))]
    pub histogram: EncodedHistogram,
}

/// A kind of failure of one kind of request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Failure {
    pub method: String,
    pub name: String,
    /// Its kind, by a name that stays.
    pub error: String,
    /// The answer's status, if there was a whole one. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub status: Option<u16>,
    pub occurrences: u64,
    /// RFC 3339.
    pub first_seen: Option<String>,
    pub last_seen: Option<String>,
}

/// A threshold, and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Check {
    pub name: String,
    pub measured: String,
    pub met: bool,
}

/// Histograms of successful requests, and of new connections.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Histograms {
    #[cfg_attr(test, ts(type = "string | null"))]
    pub response: EncodedHistogram,
    #[cfg_attr(test, ts(type = "string | null"))]
    pub service: EncodedHistogram,
    #[cfg_attr(test, ts(type = "string | null"))]
    pub first_byte: EncodedHistogram,
    #[cfg_attr(test, ts(type = "string | null"))]
    pub connect: EncodedHistogram,
}

/// A stretch of the run, mostly a second.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Window {
    /// From the beginning of the run.
    pub start_s: f64,
    pub stage: Stage,
    pub seconds: f64,
    /// Requests that ended in it, and those of them that failed.
    pub requests: u64,
    pub errors: u64,
    pub throughput: f64,
    pub users: u64,
    pub in_flight: u64,
    /// Inside the generator, for a connection.
    pub waiting: u64,
    pub bytes: u64,
    pub response_ms: Times,
    #[cfg_attr(test, ts(type = "string | null"))]
    pub histogram: EncodedHistogram,
}

// === impl Document ===

impl Document {
    pub fn new(order: Order, report: &Report) -> Document {
        let lag = times(report.schedule_lag.counts());
        let windows: Vec<Window> = report.windows.iter().map(Window::from).collect();
        let verdict = Verdict::from(report.verdict);
        let reasons = report.reasons.iter().map(ToString::to_string);
        let stalls = report.stalls.map(Stalls::from);
        let doubts = || {
            redirects_only(&report.status)
                .into_iter()
                .chain(stalls.as_ref().map(words::stalls::describe))
        };
        Document {
            schema: SCHEMA.to_owned(),
            concurrency: concurrency(order.users, &windows, report.in_system),
            by_name: match report.by_name.is_empty() {
                true => vec![Named::only(&order, report)],
                false => report.by_name.iter().map(Named::from).collect(),
            },
            failures: failures(&order, report),
            target: order.target,
            method: order.method,
            workload: order.workload,
            threads: Some(report.threads),
            engine: Some(report.engine.to_string()),
            keep_alive: order.keep_alive,
            started_at: timestamp(report.started_at).unwrap_or_default(),
            invocation: None,
            machine: None,
            warm_up: report.warm_up.map(WarmUp::from),
            duration_s: report.duration.as_secs_f64(),
            paused_s: report.paused.as_secs_f64(),
            requests: report.requests,
            errors: report.errors.iter().map(|(kind, n)| (kind.to_string(), *n)).collect(),
            status: report.status.clone(),
            bytes: report.bytes,
            body_bytes: report.body_bytes,
            throughput: report.throughput,
            offered: report.offered,
            achieved_ratio: report.achieved_ratio(),
            requests_offered: Some(report.due),
            requests_sent: Some(report.sent),
            requests_unanswered: Some(report.unanswered),
            requests_repeated: Some(report.repeated),
            overloaded: report.is_overloaded(),
            overload: report.overload.map(Overload::from),
            stalls,
            dropped: report.dropped,
            late: report.late,
            in_system: Some(report.in_system),
            response_ms: times(report.response.counts()),
            service_ms: times(report.service.counts()),
            first_byte_ms: times(report.first_byte.counts()),
            connect_ms: times(report.connect.counts()),
            schedule_lag_ms: Lag { p50: lag.p50, p99: lag.p99, max: lag.max },
            connections: Connections {
                opened: report.connections_opened,
                reopened: report.reconnects,
            },
            generator_cpu_cores: report.cpu_seconds / report.duration.as_secs_f64().max(1e-3),
            verdict: doubts().map(|_| Verdict::Suspect).fold(verdict, Verdict::max),
            verdict_reasons: reasons.chain(doubts()).collect(),
            thresholds: report.script.as_ref().map_or_else(Vec::new, script_checks),
            histograms: Histograms {
                response: EncodedHistogram::of(report.response.counts()),
                service: EncodedHistogram::of(report.service.counts()),
                first_byte: EncodedHistogram::of(report.first_byte.counts()),
                connect: EncodedHistogram::of(report.connect.counts()),
            },
            windows,
            windows_measured: None,
            timeline: None,
            goal_p95_ms: None,
            script: report.script.clone(),
        }
    }

    /// Requests that failed.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Requests that ended, and those of them that failed, also in a warm-up.
    pub fn ended_and_failed(&self) -> (u64, u64) {
        let counts = self.windows.iter().map(|window| (window.requests, window.errors));
        counts.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1))
    }

    /// When the measuring began, in seconds since 1970; 0 if that is not known.
    pub fn started_at_s(&self) -> f64 {
        let begun = self.started_at.parse::<jiff::Timestamp>();
        begun.map_or(0.0, |begun| begun.as_microsecond() as f64 / 1e6)
    }

    /// Failures with one of these names.
    pub fn errors_of(&self, kinds: &[&str]) -> u64 {
        kinds.iter().filter_map(|kind| self.errors.get(*kind)).sum()
    }

    /// Complete answers, whatever their status.
    pub fn answers(&self) -> u64 {
        self.status.values().sum()
    }
}

// === impl Named ===

impl Named {
    /// The one kind of request of a run without a script.
    fn only(order: &Order, report: &Report) -> Named {
        Named {
            name: order.target.clone(),
            method: order.method.clone(),
            requests: report.requests,
            errors: report.error_count(),
            body_bytes: report.body_bytes,
            response_ms: times(report.response.counts()),
            histogram: EncodedHistogram::of(report.response.counts()),
        }
    }
}

impl From<&load::Named> for Named {
    fn from(named: &load::Named) -> Named {
        Named {
            name: named.name.clone(),
            method: named.method.clone(),
            requests: named.requests,
            errors: named.errors,
            body_bytes: named.body_bytes,
            response_ms: times(named.response.counts()),
            histogram: EncodedHistogram::of(named.response.counts()),
        }
    }
}

/// Conditions that the script sets itself, and whether they held.
fn script_checks(report: &ScriptReport) -> Vec<Check> {
    let count = |name| report.metrics.counters.get(name).copied().unwrap_or(0);
    let mut checks: Vec<Check> = report
        .checks
        .iter()
        .filter(|check| check.strict)
        .map(|check| Check {
            name: check.expression.clone(),
            measured: check.measured.clone(),
            met: check.passed,
        })
        .collect();
    let (ok, failed) = (count("plugins.expect.ok"), count("plugins.expect.failed"));
    if ok + failed > 0 {
        checks.push(Check {
            name: "all expectations hold".to_owned(),
            measured: format!("{failed} of {} failed", ok + failed),
            met: failed == 0,
        });
    }
    if let Some(error) = &report.after_failed {
        checks.push(Check {
            name: "what the script does after the load succeeds".to_owned(),
            measured: error.clone(),
            met: false,
        });
    }
    checks
}

fn concurrency(users: Option<usize>, windows: &[Window], in_system: f64) -> u64 {
    // Keys may have added some; a short run has no window in which all were there.
    let came = windows.iter().map(|window| window.users).max().unwrap_or(0);
    match users.map_or(came, |users| came.max(users as u64)) {
        // By Little's law, ab's time per request is then the mean response time.
        0 => in_system.round().max(1.0) as u64,
        users => users,
    }
}

/// Why a run that got only redirects is suspect: a redirect costs the target little.
fn redirects_only(statuses: &BTreeMap<u16, u64>) -> Option<String> {
    let (status, _) = statuses.first_key_value()?;
    let is_redirect = |status: &u16| (300..400).contains(status) && *status != 304;
    statuses.keys().all(is_redirect).then(|| {
        format!(
            "every answer was a redirect ({status}), which is not followed; give the URL that it leads to"
        )
    })
}

/// By kind; those of a script by the requests that failed, too.
fn failures(order: &Order, report: &Report) -> Vec<Failure> {
    type Met<'a> = (&'a Failed, &'a (u64, Seen));
    let failure = |method: &str, name: &str, (failed, (occurrences, seen)): Met<'_>| Failure {
        method: method.to_owned(),
        name: name.to_owned(),
        error: failed.kind.to_string(),
        status: failed.status,
        occurrences: *occurrences,
        first_seen: timestamp(seen.first),
        last_seen: timestamp(seen.last),
    };
    let of_names = report.by_name.iter().flat_map(|named| {
        named.failures.iter().map(|met| failure(&named.method, &named.name, met))
    });
    let only = report.failures.iter().filter(|_| report.by_name.is_empty());
    let only = only.map(|met| failure(&order.method, &order.target, met));
    of_names.chain(only).collect()
}

fn timestamp(time: SystemTime) -> Option<String> {
    jiff::Timestamp::try_from(time).ok().map(|time| time.to_string())
}

// === impl Failure ===

impl Failure {
    /// The status of the answer, or the kind where there was none.
    pub fn words(&self) -> String {
        self.status.map_or_else(|| self.error.clone(), |status| status.to_string())
    }
}

// === impl Window ===

impl From<&load::Window> for Window {
    fn from(window: &load::Window) -> Window {
        let histogram = window.response.histogram();
        Window {
            start_s: window.start.as_secs_f64(),
            stage: match window.stage {
                load::Stage::WarmUp => Stage::WarmUp,
                load::Stage::Measured => Stage::Measured,
            },
            seconds: window.seconds,
            requests: window.answered + window.errors,
            errors: window.errors,
            throughput: window.throughput(),
            users: window.users,
            in_flight: window.in_flight,
            waiting: window.waiting,
            bytes: window.bytes,
            response_ms: times(histogram.counts()),
            histogram: EncodedHistogram::of(histogram.counts()),
        }
    }
}

// === impl Overload ===

impl From<load::Overload> for Overload {
    fn from(overload: load::Overload) -> Overload {
        Overload {
            duration_s: overload.seconds,
            offered: overload.offered,
            sent: overload.sent,
            answered: overload.answered,
            failed: overload.failed,
            unanswered: overload.unanswered,
        }
    }
}

// === impl WarmUp ===

impl From<load::WarmUp> for WarmUp {
    fn from(warm_up: load::WarmUp) -> WarmUp {
        let by = match warm_up.by {
            load::Series::Users => "users",
            load::Series::ResponseTime => "response_time",
            _ => "throughput",
        };
        WarmUp { length_s: warm_up.length.as_secs_f64(), by: by.to_owned() }
    }
}

// === impl KeepAlive ===

impl From<KeepAlive> for load::KeepAlive {
    fn from(keep_alive: KeepAlive) -> load::KeepAlive {
        match keep_alive {
            KeepAlive::On => load::KeepAlive::Reuse,
            KeepAlive::Off => load::KeepAlive::ClosePerRequest,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{concurrency, redirects_only};
    use crate::document::load::testing::document;

    #[test]
    fn a_load_of_only_redirects_is_suspect() {
        let told = |statuses: &[u16]| {
            redirects_only(&statuses.iter().map(|status| (*status, 9)).collect::<BTreeMap<_, _>>())
        };
        assert!(told(&[301, 302]).unwrap().contains("(301), which is not followed; give the URL"));
        assert_eq!((told(&[200, 301]), told(&[304]), told(&[])), (None, None, None));
    }

    #[test]
    fn concurrency_is_users_or_requests_in_flight() {
        let mut windows = document().windows;
        let of = |users, windows: &_| concurrency(users, windows, 6.6);
        assert_eq!((of(Some(5), &windows), of(Some(1), &windows), of(None, &windows)), (5, 2, 2));
        windows.iter_mut().for_each(|window| window.users = 0);
        assert_eq!((of(Some(5), &windows), of(None, &windows)), (5, 7));
        assert_eq!(concurrency(None, &windows, 0.1), 1);
    }
}
