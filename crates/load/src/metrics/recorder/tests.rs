//! What one thread notes down, a request at a time.

use std::time::{Duration, Instant};

use super::*;
use crate::clock::time::SECOND;

const NONE: Gauges = Gauges { users: 0, waiting: 0, usage: Usage { cpu: 0, run_wait: None } };

fn published(recorder: &mut Recorder) -> Published {
    let place = Mutex::new(Published::new(recorder.since()));
    recorder.publish(&place, Usage::default());
    place.into_inner().unwrap()
}

#[test]
fn a_request_counts_by_its_share_in_each_window() {
    let mut recorder = Recorder::new(0, 100);
    let sent = recorder.sent(50);
    recorder.next_window(100, NONE);
    recorder.next_window(200, NONE);
    recorder.answered(50, sent, 250, 250, 200);
    recorder.next_window(300, NONE);
    let published = published(&mut recorder);
    let shares: Vec<f64> = published.windows.list().iter().map(|w| w.completed).collect();
    assert_eq!(shares, [0.25, 0.5, 0.25]);
    let answered: Vec<u64> = published.windows.list().iter().map(|w| w.answered).collect();
    assert_eq!(answered, [0, 0, 1]);
}

#[test]
fn the_mark_and_the_end_cut_requests() {
    let mut recorder = Recorder::new(0, 1000);
    let early = recorder.sent(0);
    recorder.mark(75);
    recorder.answered(0, early, 100, 100, 200);
    let late = recorder.sent(100);
    recorder.end(175, NONE);
    recorder.answered(100, late, 200, 200, 200);
    assert_eq!(recorder.in_flight(), 0);
    let published = published(&mut recorder);
    assert_eq!(published.windows.list().len(), 1);
    assert_eq!(published.windows.list()[0].completed, 1.0);
    assert_eq!((published.since, published.windows.list()[0].end), (75, 175));
    // Only the first one ended within.
    assert_eq!(published.tally.requests, 1);
    assert_eq!(published.tally.service.count(), 1);
}

#[test]
fn windows_settle_when_nothing_of_them_is_in_flight() {
    let mut recorder = Recorder::new(0, 100);
    let place = Mutex::new(Published::new(0));
    let slow = recorder.sent(10);
    let broken = recorder.sent(20);
    let unsettled = |recorder: &mut Recorder, at| {
        recorder.next_window(at, NONE);
        recorder.publish(&place, Usage::default());
        let published = place.lock().unwrap();
        published.windows.list().iter().map(|w| w.unsettled).collect::<Vec<_>>()
    };
    assert_eq!(unsettled(&mut recorder, 100), [2]);
    recorder.failed(20, Some(broken), 150, ErrorKind::Timeout, None);
    assert_eq!(unsettled(&mut recorder, 200), [1, 1]);
    recorder.answered(10, slow, 250, 250, 200);
    assert_eq!(unsettled(&mut recorder, 300), [0, 0, 0]);
    assert_eq!(unsettled(&mut recorder, 400), [0, 0, 0, 0]);
    assert_eq!(recorder.windows.len(), 1, "settled windows are let go");
    let published = place.lock().unwrap();
    let sum: f64 = published.windows.list().iter().map(|w| w.completed).sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    assert_eq!(published.tally.requests, 2);
}

#[test]
fn no_record_is_lost_while_the_place_is_locked() {
    let mut recorder = Recorder::new(0, 100);
    let place = Mutex::new(Published::new(0));
    let reader = place.lock().unwrap();
    let sent = recorder.sent(1);
    recorder.answered(1, sent, 2, 2, 204);
    recorder.next_window(100, NONE);
    recorder.publish(&place, Usage::default());
    assert_eq!(reader.windows.list().len(), 0);
    drop(reader);
    recorder.next_window(200, NONE);
    recorder.publish_last(&place, Usage::default());
    let published = place.lock().unwrap();
    assert_eq!(published.windows.list().len(), 2);
    let statuses: Vec<_> = published.tally.statuses().collect();
    assert_eq!(statuses, [(204, 1)]);
    assert_eq!(published.state, ThreadState::Done);
}

#[test]
fn a_window_has_the_times_of_its_answers() {
    let mut recorder = Recorder::new(0, 100_000);
    let place = Mutex::new(Published::new(0));
    for window in 1..=3 {
        let sent = recorder.sent(window * 100_000 - 50_000);
        let intended = window * 100_000 - 50_000 - window * 1000;
        recorder.answered(intended, sent, 0, window * 100_000 - 50_000, 200);
        recorder.next_window(window * 100_000, NONE);
        recorder.publish(&place, Usage::default());
    }
    recorder.publish_last(&place, Usage::default());
    let published = place.lock().unwrap();
    let times: Vec<_> = published.windows.list().iter().map(|w| w.times.histogram()).collect();
    let micros: Vec<_> = times.iter().map(|t| (t.count(), t.counts().max())).collect();
    assert_eq!(micros, [(1, 1), (1, 2), (1, 3)]);
}

#[test]
fn failures_are_told_by_their_status_with_their_first_and_last_times() {
    let mut recorder = Recorder::new(0, 100);
    for at in [10, 20, 30] {
        recorder.failed(5, None, at, ErrorKind::Connect, None);
    }
    for (at, status) in [(12, 503), (14, 500), (16, 503)] {
        recorder.failed(5, None, at, ErrorKind::ServerError, Some(status));
    }
    recorder.next_window(100, NONE);
    let published = published(&mut recorder);
    let failures = published.tally.failures();
    let seen: Vec<_> =
        failures.map(|(f, met)| (f.kind, f.status, met.count, met.first, met.last)).collect();
    let expected = [
        (ErrorKind::Connect, None, 3, 10, 30),
        (ErrorKind::ServerError, Some(500), 1, 14, 14),
        (ErrorKind::ServerError, Some(503), 2, 12, 16),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_mark_discards_what_was_published() {
    let mut recorder = Recorder::new(0, 100);
    let place = Mutex::new(Published::new(0));
    let sent = recorder.sent(1);
    recorder.answered(1, sent, 2, 2, 200);
    recorder.next_window(100, NONE);
    recorder.publish(&place, Usage::default());
    recorder.mark(150);
    recorder.next_window(250, NONE);
    recorder.publish(&place, Usage::default());
    let published = place.lock().unwrap();
    assert_eq!(published.windows.list().len(), 1);
    assert_eq!((published.since, published.windows.list()[0].end), (150, 250));
    assert_eq!(published.tally.requests, 0);
}

/// What a request costs, and what a thread pauses for at the end of a window. Run it by hand:
/// `cargo test --release -p load --lib -- --ignored --nocapture handing_over_costs`.
#[test]
#[ignore = "prints costs, and judges nothing"]
fn handing_over_costs() {
    const WINDOWS: u64 = 2000;
    const REQUESTS: u64 = 20_000;
    let mut recorder = Recorder::new(0, SECOND);
    let place = Mutex::new(Published::new(0));
    let (mut recording, mut pauses) = (Duration::ZERO, Vec::new());
    for window in 0..WINDOWS {
        let begun = Instant::now();
        for request in 0..REQUESTS {
            let at = window * SECOND + request * SECOND / REQUESTS;
            let sent = recorder.sent(at);
            // From 60 us to some milliseconds, as those of a quick server.
            let noise = request.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let time = 60_000 + noise / 200 + if request % 50 == 0 { noise } else { 0 };
            recorder.lag(noise / 1000);
            recorder.answered(at, sent, at + time / 2, at + time, 200);
        }
        recording += begun.elapsed();
        let begun = Instant::now();
        recorder.next_window((window + 1) * SECOND, NONE);
        recorder.publish(&place, Usage::default());
        pauses.push(begun.elapsed());
    }
    pauses.sort_unstable();
    println!(
        "{:.1} ns a request; a window's end pauses {:?} (median), {:?} (99 %), {:?} (longest)",
        recording.as_nanos() as f64 / (WINDOWS * REQUESTS) as f64,
        pauses[pauses.len() / 2],
        pauses[pauses.len() * 99 / 100],
        pauses[pauses.len() - 1],
    );
}
