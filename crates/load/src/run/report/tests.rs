//! Reports, merged from the threads' records.

use super::*;
use crate::metrics::recorder::Recorder;
use crate::metrics::window_list::WindowList;

mod warm_up;

fn thread(windows: usize, state: ThreadState) -> Snapshot {
    let mut tally = Tally::default();
    tally.requests = 10;
    tally.errors[ErrorKind::Reset as usize] = 1;
    let list: Vec<WindowTally> = (0..windows as u64)
        .map(|index| WindowTally {
            start: (index + 5) * SECOND,
            end: (index + 6) * SECOND,
            completed: 9.5,
            ..WindowTally::default()
        })
        .collect();
    let mut windows = WindowList::default();
    windows.update(0, list.iter());
    let usage = Usage { cpu: SECOND / 10, run_wait: None };
    Snapshot {
        since: 5 * SECOND,
        tally,
        windows,
        usage,
        state,
        final_record: None,
        handshake_failure: None,
        sessions: SessionTally::default(),
    }
}

#[test]
fn the_longest_time_bounds_a_percentile_of_too_few_samples() {
    let mut report = Report::merge(context(), &[thread(1, ThreadState::Running)]);
    assert_eq!(report.at_most(99.0), None, "nothing was answered");
    (1..=299).for_each(|ms| {
        report.response.record(Duration::from_millis(ms));
        let longest = report.response.max();
        assert_eq!(report.at_most(99.0) == longest, ms < 299, "{ms}");
    });
}

fn context() -> RunContext {
    RunContext {
        engine: Engine::Epoll,
        threads: 1,
        started_at: SystemTime::UNIX_EPOCH,
        since: 5 * SECOND,
        connection_limit: 1,
        counting: Counting::Shares,
        judging: Judging::Law,
        load_clock: PausableClock::default(),
        users: None,
        source: Source::Users,
        timeout: 10 * SECOND,
        max_errors: 0.0,
    }
}

#[test]
fn threads_add_up() {
    let threads = [thread(2, ThreadState::Done), thread(1, ThreadState::Done)];
    let report = Report::merge(context(), &threads);
    assert_eq!(report.duration, Duration::from_secs(2));
    assert_eq!(report.requests, 20);
    assert_eq!(report.succeeded(), 18);
    assert_eq!(report.errors, BTreeMap::from([(ErrorKind::Reset, 2)]));
    assert_eq!(report.throughput, 9.5 * 3.0 / 2.0);
    assert_eq!(report.windows.len(), 2);
    assert_eq!(report.windows[0].completed, 19.0);
    assert_eq!(report.windows[1].start, Duration::from_secs(1));
    assert!((report.cpu_seconds - 0.2).abs() < 1e-9);
    assert!((report.busiest_thread - 0.05).abs() < 1e-9);
    assert_eq!(report.run_wait_seconds, None);
}

#[test]
fn a_backlog_is_no_throughput() {
    let ends = RunContext { counting: Counting::Ends, ..context() };
    let report = Report::merge(ends, &[thread(2, ThreadState::Done)]);
    assert_eq!(report.throughput, 9.0 / 2.0, "10 ended, 1 of them failed");
}

#[test]
fn a_pause_by_hand_does_not_count_as_time_of_the_load() {
    let mut load_clock = PausableClock::default();
    load_clock.pause(6 * SECOND);
    let context = RunContext { counting: Counting::Ends, load_clock, ..context() };
    let report = Report::merge(context, &[thread(2, ThreadState::Done)]);
    assert_eq!((report.duration, report.paused), (Duration::from_secs(2), Duration::from_secs(1)));
    assert_eq!(report.throughput, 9.0, "in the second before");
}

#[test]
fn windows_are_those_that_every_running_thread_has_closed() {
    let threads = [
        thread(3, ThreadState::Running),
        thread(2, ThreadState::Running),
        thread(1, ThreadState::Done),
    ];
    assert_eq!(merge_windows(&threads).len(), 2);
}

#[test]
fn a_moment_at_the_end_is_no_window() {
    let seconds = |last: Nanos, cut: Nanos| {
        let window = |start: Nanos, end: Nanos| WindowTally {
            start,
            end,
            answered: 1,
            ..WindowTally::default()
        };
        let mut windows = vec![window(0, SECOND), window(SECOND, SECOND + last)];
        absorb_moment(&mut windows, cut);
        assert_eq!(windows.iter().map(|w| w.answered).sum::<u64>(), 2, "nothing is lost");
        windows.iter().map(WindowTally::seconds).collect::<Vec<_>>()
    };
    assert_eq!(seconds(SECOND / 20, 0), [1.05]);
    assert_eq!(seconds(SECOND / 5, 0), [1.0, 0.2]);
    assert_eq!(seconds(SECOND / 20, SECOND), [1.0, 0.05], "the warm-up stays apart");
}

#[test]
fn a_failed_thread_makes_the_run_invalid() {
    let threads = [thread(1, ThreadState::Failed("no memory".into()))];
    let report = Report::merge(context(), &threads);
    assert_eq!(report.verdict, Verdict::Invalid);
    assert!(report.reasons[0].to_string().contains("no memory"));
}

#[test]
fn a_script_whose_sessions_fail_is_suspect() {
    let mut tally = SessionTally { completed: 99, ..SessionTally::default() };
    assert_eq!(sessions_failed(&tally), None);
    tally.failed = 1;
    tally.error("Failed capture or match");
    assert_eq!(sessions_failed(&tally), None, "1 % may fail");
    tally.failed = 101;
    let reason = sessions_failed(&tally).unwrap();
    assert_eq!(Verdict::of(std::slice::from_ref(&reason)), Verdict::Suspect);
    let text = reason.to_string();
    assert!(text.starts_with("50.5 % of the sessions failed, most with 'Failed capture"), "{text}");
    let mut without_requests = Report::merge(context(), &[]);
    without_requests.judge_sessions(&tally);
    assert_eq!(without_requests.verdict, Verdict::Invalid);
    assert!(without_requests.reasons.contains(&reason), "{:?}", without_requests.reasons);
}

#[test]
fn a_ramp_that_takes_most_of_the_load_is_told() {
    // From 5 s on, two users a second; 7 s is the end.
    let of = |users: u64, ramp: Option<f64>, over: bool| {
        let users = Some(UserCount::new(users, ramp, 5 * SECOND));
        let mut thread = thread(2, ThreadState::Done);
        thread.final_record = over.then(|| Recorder::new(5 * SECOND, SECOND).final_record());
        let report = Report::merge(RunContext { users, ..context() }, &[thread]);
        let is_it = |reason: &Reason| matches!(reason, Reason::UsersComing { .. });
        report.reasons.into_iter().find(is_it).map(|reason| {
            assert_eq!(reason.verdict(), Verdict::Suspect);
            reason.to_string().split(',').next().unwrap_or_default().to_owned()
        })
    };
    let told = [5, 4, 3].map(|users| of(users, Some(2.0), true));
    let missing = "only 4 of 5 users had come when the load ended".to_owned();
    assert_eq!(told, [Some(missing), Some("users came for 75 % of the time".to_owned()), None]);
    assert_eq!(of(5, Some(2.0), false), None, "it goes on");
    assert_eq!(of(5, None, true), None, "all at once");
}

#[test]
fn an_empty_report_divides_by_nothing() {
    let report = Report::merge(context(), &[]);
    assert_eq!(report.throughput, 0.0);
    assert_eq!(report.error_ratio(), 0.0);
    assert_eq!(report.percentile(50.0), None);
}
