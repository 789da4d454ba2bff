//! Reports of runs whose beginning is cut.

use std::sync::Mutex;

use super::*;
use crate::clock::time::MILLISECOND;
use crate::metrics::published::Published;
use crate::metrics::window::Gauges;
use crate::metrics::window::Stage;
use crate::verdict::steady_state::Series;

const SECONDS: u64 = 30;

/// A thread whose requests take 40 ms each in nearly all of the first 5 s, then 10 ms. Half of its CPU time
/// goes into the first 5 s.
fn thread() -> Snapshot {
    let mut recorder = Recorder::new(SECOND, SECOND);
    let mut now = SECOND;
    while now < (1 + SECONDS) * SECOND {
        if recorder.boundary().is_some_and(|boundary| boundary <= now) {
            let at = recorder.boundary().unwrap();
            let cpu = (at - SECOND).min(5 * SECOND) / 10;
            let usage = Usage { cpu: cpu + (at - SECOND) / 50, run_wait: Some(0) };
            recorder.next_window(at, Gauges { usage, ..Gauges::default() });
        }
        let time = if now < 5960 * MILLISECOND { 40 } else { 10 } * MILLISECOND;
        let sent = recorder.sent(now);
        recorder.due(1);
        recorder.taken_up();
        recorder.answered(now, sent, now + time, now + time, 200);
        now += time;
    }
    recorder.end(now, Gauges::default());
    let place = Mutex::new(Published::new(SECOND));
    let usage = Usage { cpu: SECOND * 11 / 10, run_wait: Some(0) };
    recorder.publish_last(&place, usage);
    Snapshot::of(&place.lock().unwrap(), SECOND).unwrap()
}

fn report(judging: Judging) -> Report {
    let context = RunContext {
        load_clock: Default::default(),
        engine: Engine::Epoll,
        threads: 2,
        started_at: SystemTime::UNIX_EPOCH,
        since: SECOND,
        connection_limit: 2,
        counting: Counting::Ends,
        judging,
        users: None,
        source: Source::Users,
        timeout: 10 * SECOND,
        max_errors: 0.0,
    };
    Report::merge(context, &[thread(), thread()])
}

#[test]
fn figures_begin_after_the_warm_up() {
    let report = report(Judging::WarmUp(SECOND));
    let warm_up = report.warm_up.unwrap();
    assert_eq!(warm_up.length, Duration::from_secs(5));
    assert_eq!(report.duration, Duration::from_secs(25));
    assert_eq!((report.requests, report.response.count()), (5000, 5000));
    assert_eq!(report.throughput, 200.0);
    assert_eq!(report.offered, 200.0);
    assert_eq!(report.response.max().unwrap().as_millis(), 10);
    assert!((report.cpu_seconds - 1.0).abs() < 1e-9, "{}", report.cpu_seconds);
    let stages: Vec<bool> = report.windows.iter().map(|w| w.stage == Stage::WarmUp).collect();
    assert_eq!(stages, (0..30).map(|second| second < 5).collect::<Vec<_>>());
}

#[test]
fn figures_begin_with_the_run_without_a_warm_up() {
    for judging in [Judging::Law, Judging::Steadiness(SECOND)] {
        let report = report(judging);
        assert_eq!(report.warm_up, None);
        assert_eq!((report.requests, report.duration.as_secs()), (5256, 30));
    }
    // A ramp of users is warm-up in any case, and a long one leaves nothing to judge.
    let ramped = report(Judging::WarmUp(9 * SECOND)).warm_up.unwrap();
    assert_eq!((ramped.length, ramped.by), (Duration::from_secs(8), Series::Users));
    assert_eq!(report(Judging::WarmUp(20 * SECOND)).warm_up, None);
}
