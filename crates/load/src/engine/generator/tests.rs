//! The generator on virtual time.

use std::time::Duration;

use super::*;
use crate::clock::time::{MILLISECOND, SECOND};
use crate::metrics::window::WindowTally;
use crate::testing::{BUSY, OK, Server, Sim, ms, p50};

fn throughput(windows: &[WindowTally]) -> f64 {
    let completed: f64 = windows.iter().map(|w| w.completed).sum();
    completed / windows.iter().map(WindowTally::seconds).sum::<f64>()
}

#[test]
fn users_wait_think_and_send_again() {
    let mut sim = Sim::closed(3, ms(150), Server::Parallel(ms(50), OK));
    let (tally, windows) = sim.run_until(10 * SECOND).finish();
    assert_eq!(tally.requests, 150);
    assert_eq!(windows.len(), 10);
    assert!((throughput(&windows) - 15.0).abs() < 1e-9);
    assert_eq!(tally.connections_opened, 3);
    assert_eq!(p50(&tally.response), 50);
    assert_eq!(tally.lag.max(), Some(Duration::ZERO));
}

#[test]
fn throughput_of_a_slow_serial_server_is_exact_in_any_interval() {
    for (from, length) in [(ms(130), ms(730)), (ms(77), ms(510)), (ms(999), ms(1620))] {
        let mut sim = Sim::closed(4, 0, Server::Serial(ms(500)));
        // Steady once each of the four waits for the three others: 2 s a request.
        sim.run_until(2 * SECOND + from);
        let mark = sim.now;
        sim.generator.recorder.mark(mark);
        let (tally, windows) = sim.run_until(2 * SECOND + from + length).finish();
        let plain = tally.requests as f64 / (length as f64 / SECOND as f64);
        let exact = throughput(&windows);
        assert!((exact - 2.0).abs() < 1e-6, "{exact}, plain count {plain}");
    }
}

#[test]
fn open_arrivals_wait_for_nobody() {
    let mut sim = Sim::open(100.0, 50, Server::Parallel(ms(45), OK));
    let (tally, windows) = sim.run_until(10 * SECOND).finish();
    assert_eq!((tally.due, tally.taken_up, tally.waited), (1000, 1000, 0));
    assert_eq!(tally.connections_opened, 5);
    assert_eq!(windows[5].due, 100);
    // The first window lacks what the others carry over.
    assert!((windows[5].completed - 100.0).abs() < 1e-6);
    assert_eq!(p50(&tally.response), 45);
}

#[test]
fn waiting_for_a_connection_counts_into_the_response_time() {
    let mut sim = Sim::open(20.0, 1, Server::Serial(ms(100)));
    let (tally, windows) = sim.run_until(10 * SECOND).finish();
    assert_eq!(tally.due, 200);
    assert_eq!(tally.taken_up, 100);
    assert!(tally.waited > 190);
    assert_eq!(p50(&tally.service), 100);
    let longest = tally.response.max().unwrap();
    assert!(longest > Duration::from_millis(4900), "{longest:?}");
    assert_eq!(windows[9].gauges.waiting, 100);
    assert_eq!(tally.lag.max(), Some(Duration::ZERO), "no lag of our own");
}

#[test]
fn arrivals_that_nobody_got_to_are_due_all_the_same() {
    let mut sim = Sim::open(100.0, 10, Server::Parallel(ms(1), OK));
    sim.run_until(SECOND);
    // The thread sleeps through the last second.
    sim.now = 2 * SECOND;
    let (tally, _) = sim.finish();
    assert_eq!((tally.due, tally.taken_up), (200, 100));
}

#[test]
fn answers_that_report_failure_are_errors_with_times_of_their_own() {
    let mut sim = Sim::closed(1, ms(90), Server::Parallel(ms(10), BUSY));
    let (tally, windows) = sim.run_until(SECOND).finish();
    assert_eq!(tally.requests, 10);
    assert_eq!(tally.errors[ErrorKind::ServerError as usize], 10);
    assert_eq!(tally.statuses().collect::<Vec<_>>(), [(503, 10)]);
    assert_eq!((tally.response.count(), tally.failed.count()), (0, 10));
    assert_eq!(windows[0].completed, 0.0);
    assert_eq!(tally.connections_opened, 1, "the connection is fine");
}

#[test]
fn kept_connections_that_the_server_closes_are_no_errors() {
    // Closed while the user thinks, or in the very moment of the next send.
    for pause in [ms(40), ms(100)] {
        let service = ms(100);
        let mut sim = Sim::closed(1, ms(100), Server::Closing { service, pause });
        let (tally, _) = sim.run_until(2 * SECOND).finish();
        assert_eq!(tally.errors, [0; ErrorKind::ALL.len()]);
        assert_eq!(tally.requests, 10);
        assert!(tally.reconnects >= 9, "{}", tally.reconnects);
        assert_eq!(p50(&tally.service), 100);
    }
}

#[test]
fn a_dead_target_is_tried_again_with_patience() {
    for (server, kind) in
        [(Server::Refusing, ErrorKind::Connect), (Server::Dropping, ErrorKind::ClosedEarly)]
    {
        let mut sim = Sim::closed(1, 0, server);
        let (tally, _) = sim.run_until(10 * SECOND).finish();
        // 10, 20, 40 .. 640 ms, then every second.
        assert_eq!(sim.opens[..4], [0, ms(10), ms(30), ms(70)], "{kind}");
        assert_eq!(sim.opens.len(), 16);
        assert_eq!(tally.errors[kind as usize], 16);
        assert_eq!(tally.requests, 16);
    }
}

#[test]
fn patience_begins_anew_after_an_answer() {
    let mut sim = Sim::closed(1, 0, Server::Dropping);
    sim.run_until(ms(300));
    assert_eq!(sim.opens, [0, ms(10), ms(30), ms(70), ms(150)]);
    sim.server = Server::Parallel(ms(100), OK);
    sim.run_until(ms(400));
    // The answer on its way at 410 ms comes; the connection then ends, and that is no failure.
    sim.server = Server::Dropping;
    sim.opens.clear();
    sim.run_until(ms(475));
    assert_eq!(sim.opens, [ms(410), ms(420), ms(440)]);
}

#[test]
fn silence_ends_at_the_timeout() {
    let mut sim = Sim::closed(2, 0, Server::Silent);
    let (tally, _) = sim.run_until(5 * SECOND).finish();
    assert_eq!(sim.opens, [0, 0, 2 * SECOND, 2 * SECOND, 4 * SECOND, 4 * SECOND]);
    assert_eq!(tally.errors[ErrorKind::Timeout as usize], 4);
    let waited = tally.failed.max().unwrap().as_secs_f64();
    assert!((waited - 2.0).abs() < 0.01, "{waited}");
}

#[test]
fn a_quota_is_kept_exactly() {
    for (traffic, users) in [
        (Sim::closed(3, ms(10), Server::Silent).generator.traffic, 3),
        (Sim::open(100.0, 2, Server::Silent).generator.traffic, 0),
    ] {
        let mut sim = Sim::new(traffic, Server::Parallel(ms(30), OK), Some(25));
        sim.run_until(200 * MILLISECOND);
        assert!(!sim.generator.is_spent());
        sim.run_until(2 * SECOND);
        assert!(sim.generator.is_spent());
        let (tally, windows) = sim.finish();
        assert_eq!((tally.requests, tally.due, tally.taken_up), (25, 25, 25));
        assert_eq!(windows.last().unwrap().gauges.users, users, "to the end");
    }
}

#[test]
fn nothing_is_sent_after_the_end() {
    let mut sim = Sim::closed(2, 0, Server::Parallel(ms(100), OK));
    let (tally, windows) = sim.run_until(ms(250)).finish();
    assert_eq!(tally.requests, 4);
    assert!((throughput(&windows) - 20.0).abs() < 1e-9);
    assert!(sim.coming.is_empty());
}

#[test]
fn a_request_of_a_broken_connection_is_not_repeated_after_the_end() {
    // The second request goes out at 100 ms; its connection breaks at 150 ms, after the end.
    let server = Server::Closing { service: ms(100), pause: ms(50) };
    let mut sim = Sim::closed(1, 0, server);
    let (tally, _) = sim.run_until(ms(120)).finish();
    assert_eq!((sim.opens.len(), tally.requests), (1, 1));
    assert!(sim.generator.is_spent());
}

#[test]
fn users_come_and_go_while_it_runs() {
    let mut sim = Sim::closed(10, 0, Server::Parallel(ms(100), OK));
    sim.run_until(ms(850));
    sim.set_users(2);
    sim.run_until(ms(1950));
    sim.set_users(5);
    let (_, windows) = sim.run_until(ms(2950)).finish();
    let users: Vec<u64> = windows.iter().map(|w| w.gauges.users).collect();
    assert_eq!(users, [2, 5, 5]);
    // Retired users finish the request that they have at 850 ms.
    assert_eq!(windows[0].answered, 9 * 10);
    assert_eq!(windows[1].answered, 10 * 2);
    assert!((windows[2].completed - 0.95 * 50.0).abs() < 1e-9);
}

#[test]
fn a_pause_sends_nothing_and_hides_nothing() {
    for mut sim in [
        Sim::closed(1, 0, Server::Parallel(ms(10), OK)),
        Sim::open(100.0, 5, Server::Parallel(ms(10), OK)),
    ] {
        sim.run_until(ms(995));
        sim.load_clock.pause(sim.now);
        sim.steer(|_, _| {});
        sim.run_until(ms(2995));
        sim.load_clock.resume(sim.now);
        sim.steer(|_, _| {});
        let (tally, windows) = sim.run_until(4 * SECOND).finish();
        assert!((195..=205).contains(&tally.requests), "{}", tally.requests);
        assert!(windows[1].answered <= 1 && windows[1].due == 0);
        assert_eq!(tally.lag.max(), Some(Duration::ZERO));
        assert_eq!(tally.response.max(), tally.service.max());
    }
}

#[test]
fn arrivals_without_a_connection_do_not_age_in_a_pause() {
    let mut sim = Sim::open(20.0, 1, Server::Serial(ms(100)));
    for (until, paused) in [(1050, true), (3050, false)] {
        sim.run_until(ms(until));
        match paused {
            true => sim.load_clock.pause(sim.now),
            false => sim.load_clock.resume(sim.now),
        }
        sim.steer(|_, _| {});
    }
    let (tally, windows) = sim.run_until(4 * SECOND).finish();
    assert_eq!(windows[1].answered + windows[2].answered, 2, "at 1.0 and 1.1 s");
    assert_eq!(windows[3].answered, 9);
    let longest = tally.response.max().unwrap();
    assert!(longest <= Duration::from_millis(1001), "{longest:?}");
}

#[test]
fn a_new_rate_takes_effect_at_once() {
    let mut sim = Sim::open(10.0, 50, Server::Parallel(ms(10), OK));
    sim.run_until(SECOND);
    sim.set_rate(200.0);
    let (_, windows) = sim.run_until(3 * SECOND).finish();
    let due: Vec<u64> = windows.iter().map(|w| w.due).collect();
    assert!((10..=11).contains(&due[0]), "{due:?}");
    assert!((199..=201).contains(&due[1]), "{due:?}");
}

mod littles_law;
mod openings;
