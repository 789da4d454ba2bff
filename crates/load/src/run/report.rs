//! The outcome of a run, merged from its threads.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::clock::pausable_clock::PausableClock;
use crate::clock::time::{Nanos, SECOND};
use crate::config::io_engine::Engine;
use crate::error::kind::{ErrorKind, Failed};
use crate::metrics::histogram::Histogram;
use crate::metrics::met::Met;
use crate::metrics::published::ThreadState;
use crate::metrics::session_tally::{Lazy, NameTally, SessionTally};
use crate::metrics::snapshot::{Snapshot, merge_windows, sum};
use crate::metrics::tally::Tally;
use crate::metrics::time_series::TimeSeries;
use crate::metrics::usage::Usage;
use crate::metrics::window::{Window, WindowTally};
use crate::session::player::{RequestName, Scenarios};
use crate::session::script_report::ScriptReport;
use crate::verdict::judgement::{ERRORS_SUSPECT, RunFigures, Verdict};
use crate::verdict::judging::Judging;
use crate::verdict::littles_law::LittlesLaw;
use crate::verdict::overload::{Overload, Source};
use crate::verdict::reason::Reason;
use crate::verdict::stalls::{Stalls, UserFigures};
use crate::verdict::unanswered::Unanswered;
use crate::verdict::warm_up::{WarmUp, WarmUpCut};
use crate::workload::user_count::UserCount;

/// What was measured between the mark (or the start) and the end (or the last closed window). The figures leave
/// out a warm-up that the run found by itself ([`Report::warm_up`]).
///
/// All histograms but `failed` are of successful requests: complete answers with a status below 400. So a
/// target that fails fast does not look fast.
#[derive(Debug, Clone)]
pub struct Report {
    /// The I/O engine that ran: never [`Engine::Auto`].
    pub engine: Engine,
    /// Generator threads. There are fewer than asked for if some would have nothing to do.
    pub threads: usize,
    /// When the run began, or was marked. A warm-up begins here.
    pub started_at: SystemTime,
    /// What was cut from the beginning; `None` if nothing was.
    pub warm_up: Option<WarmUp>,
    /// How long the measuring lasted, without the warm-up.
    pub duration: Duration,
    /// The part of this time in which the load was paused. Rates leave it out.
    pub paused: Duration,
    /// The number of requests that ended in this time, answered or failed.
    pub requests: u64,
    /// Requests that failed, by kind. Kinds that did not occur are absent.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// How often requests failed in each way, and when.
    pub failures: BTreeMap<Failed, (u64, Seen)>,
    /// Complete answers by status, including failures.
    pub status: BTreeMap<u16, u64>,
    /// Bytes received, heads included.
    pub bytes: u64,
    /// Bytes of the bodies of complete answers.
    pub body_bytes: u64,
    /// Successful requests per second. In a closed workload that was marked in its steady state, a request
    /// under way at an edge counts by the share inside. That is the share of its service time, at the mark
    /// or at the end. So this is exact even if only a few slow requests were measured. Otherwise a queue
    /// may build, and a request counts when it ends.
    pub throughput: f64,
    /// Requests per second that were due.
    pub offered: f64,
    /// Requests that were due.
    pub due: u64,
    /// Requests that had a connection, or were allowed to open one.
    pub sent: u64,
    /// Requests under way at the end of the run, in the generator or in the target.
    pub unanswered: u64,
    /// What the target was offered if it did not keep up. Then the percentiles are lower bounds.
    pub overload: Option<Overload>,
    /// Stalls of the target that the percentiles of users who wait do not show.
    pub stalls: Option<Stalls>,
    /// Arrivals that the limit of their phase dropped. They are not due.
    pub dropped: u64,
    /// Requests of paced users that began late because of a slow answer before. Their response time counts from
    /// when they should have begun.
    pub late: u64,
    /// Requests in the system on average, or users of a closed workload.
    pub in_system: f64,
    /// From the beginning of a new connection until a request could go out, including TLS.
    pub connect: Histogram,
    /// From the intended send to the last byte, as a user of the target sees it. It includes waiting for a
    /// connection, opening it, and lateness of the generator.
    pub response: Histogram,
    /// From the actual send to the last byte.
    pub service: Histogram,
    /// From the actual send to the first byte of the answer.
    pub first_byte: Histogram,
    /// From the intended send to the failure, of failed requests.
    pub failed: Histogram,
    /// How late the generator acted on requests that were due.
    pub schedule_lag: Histogram,
    /// CPU seconds of the generator's threads.
    pub cpu_seconds: f64,
    /// CPU seconds a second of the busiest generator thread.
    pub busiest_thread: f64,
    /// Seconds that the generator's threads were runnable without a CPU; `None` if the kernel does not say.
    pub run_wait_seconds: Option<f64>,
    /// Connections that were established, including those of the warm-up.
    pub connections_opened: u64,
    /// Idle connections that the server had closed and that were opened again without an error, including those of
    /// the warm-up.
    pub reconnects: u64,
    /// How often requests went out again, because the server had closed a kept connection before they came.
    pub repeated: u64,
    /// Whether the numbers can be trusted.
    pub verdict: Verdict,
    /// All reasons for the verdict; empty if it is valid.
    pub reasons: Vec<Reason>,
    /// The windows, in order.
    pub windows: Vec<Window>,
    /// The requests of a script by name; empty without a script.
    pub by_name: Vec<Named>,
    /// A script's own metrics.
    pub script: Option<ScriptReport>,
}

/// The requests of one name.
#[derive(Debug, Clone)]
pub struct Named {
    /// The name in the script.
    pub name: String,
    /// Their method.
    pub method: String,
    /// Requests that ended, answered or failed.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// How often they failed in each way, and when.
    pub failures: BTreeMap<Failed, (u64, Seen)>,
    /// Bytes of the bodies of their answers.
    pub body_bytes: u64,
    /// From the intended send to the last byte, of successful requests.
    pub response: Histogram,
    /// From the actual send to the last byte.
    pub service: Histogram,
}

/// The first and the last time that something was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The first time.
    pub first: SystemTime,
    /// The last time; the same if it was met once.
    pub last: SystemTime,
}

/// What a report needs to know besides the threads' records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunContext {
    pub(crate) started_at: SystemTime,
    /// When the measuring began.
    pub(crate) since: Nanos,
    pub(crate) engine: Engine,
    pub(crate) threads: usize,
    pub(crate) connection_limit: usize,
    pub(crate) counting: Counting,
    pub(crate) judging: Judging,
    pub(crate) source: Source,
    /// The longest that one request may take.
    pub(crate) timeout: Nanos,
    /// Its pauses.
    pub(crate) load_clock: PausableClock,
    /// The planned users of a closed workload that was not marked or steered.
    pub(crate) users: Option<UserCount>,
    /// Share of requests that may fail.
    pub(crate) max_errors: f64,
}

impl Named {
    fn of(name: &RequestName, counted: NameTally<Lazy<Histogram>>, context: &RunContext) -> Named {
        let failures = counted.failures.iter();
        let seen = |met: &Met| (met.count, context.seen((met.first, met.last)));
        Named {
            name: name.name.clone(),
            method: name.method.clone(),
            requests: counted.requests,
            errors: counted.errors(),
            failures: failures.map(|(failed, met)| (*failed, seen(met))).collect(),
            body_bytes: counted.body_bytes,
            response: counted.response.into_histogram(),
            service: counted.service.into_histogram(),
        }
    }
}

impl RunContext {
    fn seen(&self, (first, last): (Nanos, Nanos)) -> Seen {
        let time =
            |at: Nanos| self.started_at + Duration::from_nanos(at.saturating_sub(self.since));
        Seen { first: time(first), last: time(last) }
    }
}

/// How requests that straddle the edges of the measuring count into the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the share of their service time inside. This is right if as many are under way at the end as at the
    /// beginning, as in a closed workload.
    Shares,
    /// By their end. An open workload that overloads its target, and the first round of a closed one, leave a
    /// growing backlog, whose shares would look like throughput.
    Ends,
}

impl Report {
    /// A percentile of the response time (95.0 is p95); `None` if there are too few samples for it.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        self.response.percentile(percent)
    }

    /// An upper bound of the percentile: the longest time, if there are too few samples for it.
    pub fn at_most(&self, percent: f64) -> Option<Duration> {
        self.percentile(percent).or(self.response.max())
    }

    /// Requests that failed.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Failed over ended requests; 0 when none ended.
    pub fn error_ratio(&self) -> f64 {
        self.error_count() as f64 / self.requests.max(1) as f64
    }

    /// Requests sent over requests due; 1 if none was due. For an overloaded target, requests answered over
    /// requests due.
    pub fn achieved_ratio(&self) -> f64 {
        match (self.overload, self.due) {
            (Some(overload), _) => overload.answered_share(),
            (None, 0) => 1.0,
            (None, due) => (self.sent as f64 / due as f64).min(1.0),
        }
    }

    /// Whether more was offered than the target answered.
    pub fn is_overloaded(&self) -> bool {
        self.overload.is_some()
    }

    /// Requests that succeeded.
    pub fn succeeded(&self) -> u64 {
        self.requests - self.error_count()
    }

    /// Adds all counts of a script, including those of the warm-up.
    pub(crate) fn with_script(
        mut self,
        context: RunContext,
        script: &dyn Scenarios,
        threads: &[Snapshot],
    ) -> Report {
        let mut tally = SessionTally::default();
        for thread in threads {
            tally.merge(&thread.sessions);
        }
        self.judge_sessions(&tally);
        let seconds = self.duration.as_secs_f64();
        self.script = Some(script.report(&tally, seconds));
        let named = script.request_names().iter().zip(tally.by_name);
        let named = named.filter(|(_, counted)| counted.requests > 0);
        self.by_name = named.map(|(name, counted)| Named::of(name, counted, &context)).collect();
        self
    }

    /// Adds a reason for failed sessions, unless failed requests are a reason already.
    fn judge_sessions(&mut self, tally: &SessionTally) {
        let told = |reason: &Reason| match reason {
            Reason::NoSuccess { requests, .. } => *requests > 0,
            Reason::ManyErrors { .. } => true,
            _ => false,
        };
        if !self.reasons.iter().any(told) {
            self.reasons.extend(sessions_failed(tally));
            self.verdict = Verdict::of(&self.reasons);
        }
    }

    pub(crate) fn merge(context: RunContext, threads: &[Snapshot]) -> Report {
        let whole = sum(threads, context.since);
        let overload =
            Overload::of(context.source, &merge_windows(threads), &whole, context.timeout);
        let warm_up = WarmUpCut::of(context.judging, overload.as_ref(), context.since, threads);
        let tally =
            if warm_up.at > context.since { sum(threads, warm_up.at) } else { whole.clone() };
        let mut windows = merge_windows(threads);
        let is_over = threads.iter().all(|thread| thread.final_record.is_some());
        if is_over {
            absorb_moment(&mut windows, warm_up.at);
        }
        let measured = windows.iter().filter(|window| window.start >= warm_up.at);
        let until = windows.last().map_or(context.since, |last| last.end);
        let length = until.saturating_sub(warm_up.at);
        let seconds = length as f64 / SECOND as f64;
        let paused = context.load_clock.stood(until).min(length);
        let active = length - paused;
        let per_second =
            |count: f64| if active > 0 { count * SECOND as f64 / active as f64 } else { 0.0 };
        let errors: BTreeMap<ErrorKind, u64> =
            ErrorKind::ALL.into_iter().zip(tally.errors).filter(|(_, count)| *count > 0).collect();
        let usage: Vec<Usage> = threads.iter().map(|t| t.usage_from(warm_up.at)).collect();
        let unanswered: Vec<Nanos> = threads
            .iter()
            .filter_map(|thread| thread.final_record.as_ref())
            .flat_map(|whole| whole.unanswered.iter().copied())
            .collect();
        let users = windows.last().map_or(0, |last| last.gauges.users);
        let occupancy: u64 = measured.clone().map(|w| w.occupancy).sum();
        let figures = RunFigures {
            steadiness: warm_up.steadiness,
            littles_law: LittlesLaw::of(
                context.judging,
                &tally,
                measured.clone(),
                length,
                &unanswered,
            ),
            unanswered: Unanswered::of(&unanswered, &tally, users),
            ramp: context.users.filter(|_| is_over).map(|users| users.until(until)),
            ..figures(&context, threads, &usage, &tally, &errors, seconds)
        };
        let reasons = figures.reasons();
        let waits: Option<Vec<Nanos>> = usage.iter().map(|usage| usage.run_wait).collect();
        Report {
            engine: context.engine,
            threads: context.threads,
            started_at: context.started_at,
            warm_up: warm_up.public(context.since),
            duration: Duration::from_nanos(length),
            paused: Duration::from_nanos(paused),
            requests: tally.requests,
            failures: tally
                .failures()
                .map(|(failed, met)| (failed, (met.count, context.seen((met.first, met.last)))))
                .collect(),
            status: tally.statuses().collect(),
            bytes: tally.bytes,
            body_bytes: tally.body_bytes,
            throughput: per_second(match context.counting {
                Counting::Shares => measured.map(|w| w.completed).sum(),
                Counting::Ends => (tally.requests - errors.values().sum::<u64>()) as f64,
            }),
            offered: per_second(tally.due as f64),
            due: tally.due,
            sent: tally.taken_up,
            unanswered: unanswered.len() as u64,
            overload,
            stalls: stalls(&context, threads, &tally, warm_up.at, occupancy, length),
            dropped: tally.dropped,
            late: tally.late,
            in_system: occupancy as f64 / length.max(1) as f64,
            cpu_seconds: usage.iter().map(|usage| usage.cpu).sum::<Nanos>() as f64 / SECOND as f64,
            busiest_thread: figures.busiest,
            run_wait_seconds: waits.map(|w| w.iter().sum::<Nanos>() as f64 / SECOND as f64),
            connections_opened: whole.connections_opened,
            reconnects: whole.reconnects,
            repeated: tally.repeated,
            verdict: Verdict::of(&reasons),
            reasons,
            windows: windows.iter().map(|w| w.publish(context.since, warm_up.at)).collect(),
            errors,
            connect: tally.connect,
            response: tally.response,
            service: tally.service,
            first_byte: tally.first_byte,
            failed: tally.failed,
            schedule_lag: tally.lag,
            script: None,
            by_name: Vec::new(),
        }
    }
}

/// `occupancy` is the time of all users together.
fn stalls(
    context: &RunContext,
    threads: &[Snapshot],
    tally: &Tally,
    since: Nanos,
    occupancy: u64,
    length: Nanos,
) -> Option<Stalls> {
    let records: Option<Vec<_>> = threads.iter().map(|t| t.final_record.as_ref()).collect();
    let time_series = TimeSeries::sum(records?.iter().map(|record| &record.time_series))?;
    let users = occupancy as f64 / length.max(1) as f64;
    let figures = UserFigures { time_series: &time_series, since, tally, users, length };
    (context.source == Source::Users).then(|| Stalls::of(figures)).flatten()
}

/// The reason for sessions that failed by captures, matches and the like.
fn sessions_failed(tally: &SessionTally) -> Option<Reason> {
    let ratio = tally.failed as f64 / (tally.completed + tally.failed).max(1) as f64;
    let (most, _) = tally.errors.iter().max_by_key(|(_, count)| **count)?;
    (ratio > ERRORS_SUSPECT).then(|| Reason::SessionsFailed { ratio, most: most.clone() })
}

/// Merges a very short last window into the one before, because its rate would be chance.
fn absorb_moment(windows: &mut Vec<WindowTally>, cut: Nanos) {
    const MOMENT: f64 = 0.1;
    if let [.., before, last] = windows.as_slice()
        && before.start >= cut
        && last.seconds() < MOMENT * before.seconds()
        && let Some(last) = windows.pop()
        && let Some(before) = windows.last_mut()
    {
        before.append(&last);
    }
}

fn figures(
    context: &RunContext,
    threads: &[Snapshot],
    usage: &[Usage],
    tally: &Tally,
    errors: &BTreeMap<ErrorKind, u64>,
    seconds: f64,
) -> RunFigures {
    let share = |nanos: Nanos| match seconds > 0.0 {
        true => nanos as f64 / SECOND as f64 / seconds,
        false => 0.0,
    };
    let longest_wait = usage.iter().filter_map(|usage| usage.run_wait).max();
    RunFigures {
        busiest: share(usage.iter().map(|usage| usage.cpu).max().unwrap_or(0)),
        longest_wait: longest_wait.map(share),
        seconds,
        lag_p99: tally.lag.percentile(99.0),
        median: tally.response.percentile(50.0),
        due: tally.due,
        taken_up: tally.taken_up,
        waited: tally.waited,
        dropped: tally.dropped,
        late: tally.late,
        repeated: tally.repeated,
        connection_limit: context.connection_limit,
        requests: tally.requests,
        failed: errors.values().sum(),
        max_errors: context.max_errors,
        resources: errors.get(&ErrorKind::Resources).copied().unwrap_or(0),
        ports: errors.get(&ErrorKind::Ports).copied().unwrap_or(0),
        handshake_failure: threads.iter().find_map(|thread| thread.handshake_failure.clone()),
        most_errors: tally.failures().max_by_key(|(_, met)| met.count).map(|(failed, _)| failed),
        engine_failures: threads
            .iter()
            .filter_map(|thread| match &thread.state {
                ThreadState::Failed(message) => Some(message.clone()),
                ThreadState::Running | ThreadState::Done => None,
            })
            .collect(),
        ..RunFigures::default()
    }
}

#[cfg(test)]
mod tests;
