//! The outcome of a run, merged from its threads.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::beginning::Beginning;
use crate::clock::{Nanos, SECOND};
use crate::clockwork::Clockwork;
use crate::driver::Engine;
use crate::error_kind::ErrorKind;
use crate::headcount::Headcount;
use crate::histogram::Histogram;
use crate::little::Little;
use crate::overload::is_overloaded;
use crate::reason::Reason;
use crate::recorder::{Published, ThreadState, Whole};
use crate::script::tally::ScriptTally;
use crate::script::{Script, ScriptReport};
use crate::steady::WarmUp;
use crate::tally::Tally;
use crate::unanswered::Unanswered;
use crate::usage::Usage;
use crate::verdict::{ERRORS_SUSPECT, Evidence, Verdict};
use crate::window::{Window, WindowTally};
use crate::windows::{Folding, Windows};

/// What was measured between the mark (or the start) and the end (or the last closed window). If
/// the run warmed up by itself ([`Report::warm_up`]), its figures are those after that.
///
/// All times in the histograms but `failed` are of successful requests: answers with a status
/// below 400, complete and well framed. A target that fails fast does not look fast.
#[derive(Debug, Clone)]
pub struct Report {
    /// What carried the bytes: never [`Engine::Auto`].
    pub engine: Engine,
    /// Generator threads: fewer than were asked for where there was not something to do for each.
    pub threads: usize,
    /// When the run began, or was marked; a warm-up begins here.
    pub started_at: SystemTime,
    /// What was cut from the beginning; `None` if nothing was.
    pub warm_up: Option<WarmUp>,
    /// How long the measuring lasted, without the warm-up.
    pub duration: Duration,
    /// How long of this nothing was sent because somebody paused it. Rates leave it out.
    pub paused: Duration,
    /// Requests that ended within it, answered or failed: a plain count.
    pub requests: u64,
    /// Those of them that failed, by kind; kinds that did not occur are absent.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// When each of these kinds was first and last met.
    pub errors_seen: BTreeMap<ErrorKind, Seen>,
    /// Complete answers by status, the failing ones included.
    pub status: BTreeMap<u16, u64>,
    /// Bytes received, heads included.
    pub bytes: u64,
    /// Those of them that are bodies of complete answers.
    pub body_bytes: u64,
    /// Successful requests per second. In a closed workload that was marked in its steady state, a
    /// request that was under way at the mark or at the end counts by the share of its service time
    /// inside, so that this is exact even where only a few slow requests were measured. Else, where a
    /// queue may build, a request counts when it ends.
    pub throughput: f64,
    /// Requests per second that were due.
    pub offered: f64,
    /// Requests that were due.
    pub due: u64,
    /// Those of them for which there was a connection, or leave to open one.
    pub sent: u64,
    /// Requests under way at the end of the run, in the generator or in the target.
    pub unanswered: u64,
    /// Arrivals came faster than the target answered: the percentiles are lower bounds.
    pub is_overloaded: bool,
    /// Arrivals that found as many in the system as their phase allows; they are not due.
    pub dropped: u64,
    /// Requests of paced users that began late because the answer before took so long. Their
    /// response time counts from when they should have begun.
    pub late: u64,
    /// Requests in the system on average, or users of a closed workload.
    pub in_system: f64,
    /// Of new connections, from the beginning until a request could go out; TLS included.
    pub connect: Histogram,
    /// From the intended send to the last byte: what a user of the target sees. Waiting for a
    /// connection, opening it, and lateness of the generator are part of it.
    pub response: Histogram,
    /// From the actual send to the last byte.
    pub service: Histogram,
    /// From the actual send to the first byte of the answer.
    pub first_byte: Histogram,
    /// Of failed requests, from the intended send to the failure.
    pub failed: Histogram,
    /// How late the generator acted on requests that were due.
    pub schedule_lag: Histogram,
    /// CPU seconds of the generator's threads.
    pub cpu_seconds: f64,
    /// CPU seconds a second of the busiest generator thread.
    pub busiest_thread: f64,
    /// Seconds that the generator's threads were runnable without a CPU; `None` where the kernel
    /// does not tell.
    pub run_wait_seconds: Option<f64>,
    /// Connections established, in the warm-up too.
    pub connections_opened: u64,
    /// Kept connections that the server had closed and that were opened again, without an error;
    /// in the warm-up too.
    pub reconnects: u64,
    /// What the numbers are worth.
    pub verdict: Verdict,
    /// Why, worst or not; empty when valid.
    pub reasons: Vec<Reason>,
    /// The windows, in order.
    pub windows: Vec<Window>,
    /// The requests of a script by their names; empty where there is only one request.
    pub by_name: Vec<Named>,
    /// A script's own metrics.
    pub script: Option<ScriptReport>,
}

/// The requests of one name.
#[derive(Debug, Clone)]
pub struct Named {
    /// As the script calls them.
    pub name: String,
    /// Their method.
    pub method: String,
    /// Those that ended, answered or failed.
    pub requests: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// How often they failed, and when, by kind; kinds that did not occur are absent.
    pub failures: BTreeMap<ErrorKind, (u64, Seen)>,
    /// Bytes of the bodies of their answers.
    pub body_bytes: u64,
    /// Of successful ones, from the intended send to the last byte.
    pub response: Histogram,
    /// From the actual send to the last byte.
    pub service: Histogram,
}

/// The first and the last time that something was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// At first.
    pub first: SystemTime,
    /// And last; the same if it was met once.
    pub last: SystemTime,
}

/// What a report needs to know besides the threads' records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) started_at: SystemTime,
    /// When the measuring began.
    pub(crate) since: Nanos,
    pub(crate) engine: Engine,
    pub(crate) threads: usize,
    pub(crate) connection_limit: usize,
    pub(crate) counting: Counting,
    pub(crate) judging: Judging,
    /// When it was paused.
    pub(crate) clockwork: Clockwork,
    /// Who was to come, to a closed workload that nobody marked or steered.
    pub(crate) users: Option<Headcount>,
    /// Share of requests that may fail.
    pub(crate) max_errors: f64,
}

/// What is asked of a run's figures at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judging {
    /// Nothing: somebody steered it.
    Nothing,
    /// Whether they agree with each other: it was not meant to be steady, or somebody else has
    /// chosen where to begin.
    Law,
    /// And whether it was steady from this time on.
    Steadiness(Nanos),
    /// And what came before is cut.
    WarmUp(Nanos),
}

impl Frame {
    fn seen(&self, (first, last): (Nanos, Nanos)) -> Seen {
        let time =
            |at: Nanos| self.started_at + Duration::from_nanos(at.saturating_sub(self.since));
        Seen { first: time(first), last: time(last) }
    }
}

/// How requests that straddle the edges of the measuring count into the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the share of their service time inside. Right where as many are under way at the end as
    /// at the beginning, as in a closed workload.
    Shares,
    /// By their end. An open workload that overloads its target, and the first round of a closed one,
    /// leave a growing backlog, whose shares would pass for throughput.
    Ends,
}

impl Report {
    /// The `percent`th percentile of the response time (95.0 is p95); `None` where there are too
    /// few samples to carry it.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        self.response.percentile(percent)
    }

    /// What the percentile is at most: the longest time, where there are too few samples to carry it.
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

    /// Requests sent over requests due, and of an overloaded target requests that ended over requests
    /// due; 1 when none was due.
    pub fn achieved_ratio(&self) -> f64 {
        let achieved = if self.is_overloaded { self.requests } else { self.sent };
        match self.due {
            0 => 1.0,
            due => (achieved as f64 / due as f64).min(1.0),
        }
    }

    /// Requests that succeeded.
    pub fn succeeded(&self) -> u64 {
        self.requests - self.error_count()
    }

    /// Adds what was counted of a script: all of it, whatever was cut from the rest.
    pub(crate) fn with_script(
        mut self,
        frame: Frame,
        script: &Script,
        threads: &[Snapshot],
    ) -> Report {
        let mut tally = ScriptTally::default();
        for thread in threads {
            tally.merge(&thread.script);
        }
        self.judge_sessions(&tally);
        let seconds = self.duration.as_secs_f64();
        let (report, by_name) = script.outcome(tally, seconds, |times| frame.seen(times));
        (self.script, self.by_name) = (Some(report), by_name);
        self
    }

    /// Where requests failed, that is told of them. Where none was made, sessions alone say why.
    fn judge_sessions(&mut self, tally: &ScriptTally) {
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

    pub(crate) fn merge(frame: Frame, threads: &[Snapshot]) -> Report {
        let beginning = Beginning::of(frame, threads);
        let whole = sum(threads, frame.since);
        let tally =
            if beginning.cut > frame.since { sum(threads, beginning.cut) } else { whole.clone() };
        let mut windows = merge_windows(threads);
        let is_over = threads.iter().all(|thread| thread.whole.is_some());
        if is_over {
            absorb_moment(&mut windows, beginning.cut);
        }
        let measured = windows.iter().filter(|window| window.start >= beginning.cut);
        let until = windows.last().map_or(frame.since, |last| last.end);
        let length = until.saturating_sub(beginning.cut);
        let seconds = length as f64 / SECOND as f64;
        let paused = frame.clockwork.stood(until).min(length);
        let active = length - paused;
        let per_second =
            |count: f64| if active > 0 { count * SECOND as f64 / active as f64 } else { 0.0 };
        let errors: BTreeMap<ErrorKind, u64> =
            ErrorKind::ALL.into_iter().zip(tally.errors).filter(|(_, count)| *count > 0).collect();
        let usage: Vec<Usage> = threads.iter().map(|t| t.usage_from(beginning.cut)).collect();
        let unanswered: Vec<Nanos> = threads
            .iter()
            .filter_map(|thread| thread.whole.as_ref())
            .flat_map(|whole| whole.unanswered.iter().copied())
            .collect();
        let users = windows.last().map_or(0, |last| last.gauges.users);
        let occupancy: u64 = measured.clone().map(|w| w.occupancy).sum();
        let evidence = Evidence {
            steadiness: beginning.steadiness,
            little: Little::of(frame.judging, &tally, measured.clone(), length, &unanswered),
            unanswered: Unanswered::of(&unanswered, &tally, users),
            ramp: frame.users.filter(|_| is_over).map(|users| users.until(until)),
            ..evidence(&frame, threads, &usage, &tally, &errors, seconds)
        };
        let reasons = evidence.reasons();
        let is_overloaded = is_overloaded(&measured.clone().collect::<Vec<_>>(), &tally, length);
        let waits: Option<Vec<Nanos>> = usage.iter().map(|usage| usage.run_wait).collect();
        Report {
            engine: frame.engine,
            threads: frame.threads,
            started_at: frame.started_at,
            warm_up: beginning.warm_up(frame.since),
            duration: Duration::from_nanos(length),
            paused: Duration::from_nanos(paused),
            requests: tally.requests,
            errors_seen: tally.seen().map(|(kind, seen)| (kind, frame.seen(seen))).collect(),
            status: tally.statuses().collect(),
            bytes: tally.bytes,
            body_bytes: tally.body_bytes,
            throughput: per_second(match frame.counting {
                Counting::Shares => measured.map(|w| w.completed).sum(),
                Counting::Ends => (tally.requests - errors.values().sum::<u64>()) as f64,
            }),
            offered: per_second(tally.due as f64),
            due: tally.due,
            sent: tally.taken_up,
            unanswered: unanswered.len() as u64,
            is_overloaded,
            dropped: tally.dropped,
            late: tally.late,
            in_system: occupancy as f64 / length.max(1) as f64,
            cpu_seconds: usage.iter().map(|usage| usage.cpu).sum::<Nanos>() as f64 / SECOND as f64,
            busiest_thread: evidence.busiest,
            run_wait_seconds: waits.map(|w| w.iter().sum::<Nanos>() as f64 / SECOND as f64),
            connections_opened: whole.connections_opened,
            reconnects: whole.reconnects,
            verdict: Verdict::of(&reasons),
            reasons,
            windows: windows.iter().map(|w| w.publish(frame.since, beginning.cut)).collect(),
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

/// Captures, matches and the like; what failed requests do to sessions is told of the requests.
fn sessions_failed(tally: &ScriptTally) -> Option<Reason> {
    let ratio = tally.failed as f64 / (tally.completed + tally.failed).max(1) as f64;
    let (most, _) = tally.errors.iter().max_by_key(|(_, count)| **count)?;
    (ratio > ERRORS_SUSPECT).then(|| Reason::SessionsFailed { ratio, most: most.clone() })
}

/// What was counted from a seam of all threads on, or in all.
fn sum(threads: &[Snapshot], from: Nanos) -> Tally {
    let mut sum = Tally::default();
    for thread in threads {
        match &thread.whole {
            Some(whole) if from > thread.since => sum.merge(&whole.stretches.from(from)),
            _ => sum.merge(&thread.tally),
        }
    }
    sum
}

/// A copy of what one thread has handed over.
#[derive(Debug)]
pub(crate) struct Snapshot {
    since: Nanos,
    tally: Tally,
    windows: Windows,
    usage: Usage,
    state: ThreadState,
    pub(crate) whole: Option<Whole>,
    handshake_failure: Option<String>,
    script: ScriptTally,
}

impl Snapshot {
    /// `None` while the thread has nothing from after the mark; that it failed always counts.
    pub(crate) fn of(published: &Published, since: Nanos) -> Option<Snapshot> {
        let copy = |known: &Published| Snapshot {
            since: known.since,
            tally: known.tally.clone(),
            windows: known.windows.clone(),
            usage: known.usage,
            state: published.state.clone(),
            whole: known.whole.clone(),
            handshake_failure: known.handshake_failure.clone(),
            script: known.script.clone(),
        };
        match (published.since == since, &published.state) {
            (true, _) => Some(copy(published)),
            (false, ThreadState::Failed(_)) => Some(copy(&Published::new(since))),
            (false, ThreadState::Running | ThreadState::Done) => None,
        }
    }
}

impl Snapshot {
    pub(crate) fn starts_window_at(&self, at: Nanos) -> bool {
        self.windows.list().binary_search_by_key(&at, |window| window.start).is_ok()
    }

    /// What the thread used after a seam.
    fn usage_from(&self, seam: Nanos) -> Usage {
        let before = self.windows.list().iter().take_while(|window| window.end <= seam).last();
        before.map_or(self.usage, |window| self.usage.since(window.gauges.usage))
    }
}

/// Windows that every thread which still runs has closed, added up over the threads.
pub(crate) fn merge_windows(threads: &[Snapshot]) -> Vec<WindowTally> {
    let folding = threads.iter().map(|t| t.windows.folding()).reduce(Folding::coarser);
    let folded: Vec<(Windows, &ThreadState)> = threads
        .iter()
        .map(|thread| {
            let mut windows = thread.windows.clone();
            windows.fold(folding.unwrap_or_default());
            (windows, &thread.state)
        })
        .collect();
    let length = |(windows, _): &(Windows, _)| windows.list().len();
    let running = folded.iter().filter(|(_, state)| **state == ThreadState::Running);
    let closed_by_all = running.map(length).min();
    let count = closed_by_all.or(folded.iter().map(length).max()).unwrap_or(0);
    let mut merged: Vec<WindowTally> = Vec::with_capacity(count);
    for (windows, _) in &folded {
        for (index, window) in windows.list().iter().take(count).enumerate() {
            match merged.get_mut(index) {
                Some(sum) => sum.merge(window),
                None => merged.push(window.clone()),
            }
        }
    }
    merged
}

/// The end may leave a moment of the last window, whose rate is chance: the one before takes it in.
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

fn evidence(
    frame: &Frame,
    threads: &[Snapshot],
    usage: &[Usage],
    tally: &Tally,
    errors: &BTreeMap<ErrorKind, u64>,
    seconds: f64,
) -> Evidence {
    let share = |nanos: Nanos| match seconds > 0.0 {
        true => nanos as f64 / SECOND as f64 / seconds,
        false => 0.0,
    };
    let longest_wait = usage.iter().filter_map(|usage| usage.run_wait).max();
    Evidence {
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
        connection_limit: frame.connection_limit,
        requests: tally.requests,
        failed: errors.values().sum(),
        max_errors: frame.max_errors,
        resources: errors.get(&ErrorKind::Resources).copied().unwrap_or(0),
        ports: errors.get(&ErrorKind::Ports).copied().unwrap_or(0),
        handshake_failure: threads.iter().find_map(|thread| thread.handshake_failure.clone()),
        most_errors: errors.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| *kind),
        engine_failures: threads
            .iter()
            .filter_map(|thread| match &thread.state {
                ThreadState::Failed(message) => Some(message.clone()),
                ThreadState::Running | ThreadState::Done => None,
            })
            .collect(),
        ..Evidence::default()
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
