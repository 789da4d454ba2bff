//! The engine over real sockets, against servers of a few lines.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::workload::spec::{Rhythm, Think};
use crate::{Demand, ErrorKind, KeepAlive, Reason, Target, Verdict};

thread_local! {
    static ENGINE: Cell<Engine> = const { Cell::new(Engine::Auto) };
}

/// Every test runs on each engine: `Auto` takes io_uring where this machine allows it.
macro_rules! on_each_engine {
    ($($test:ident),* $(,)?) => {
        mod auto {
            $(#[test] fn $test() { super::on(super::Engine::Auto, super::$test); })*
        }
        mod epoll {
            $(#[test] fn $test() { super::on(super::Engine::Epoll, super::$test); })*
        }
    };
}

on_each_engine! {
    closed_users_measure_a_server_of_fixed_delay,
    throughput_of_a_serial_server_is_right_after_a_mark,
    open_arrivals_keep_their_schedule,
    threads_share_a_limit_that_is_less_than_they_are,
    a_rate_beyond_the_connections_is_invalid,
    connections_closed_after_each_answer_are_opened_again,
    every_fault_has_its_kind,
    a_server_that_talks_first_or_hangs_up_is_not_tried_for_ever,
    silence_is_a_timeout_and_bounds_the_end,
    a_run_that_is_cut_waits_for_no_answer,
    a_dead_target_costs_little,
    users_and_rate_change_while_it_runs,
    steering_wakes_sleeping_threads_and_shows_at_once,
    a_pause_stops_the_load,
    a_quota_over_threads_is_exact_and_stop_ends_a_wait,
    a_mark_after_the_end_changes_nothing,
    large_bodies_go_both_ways,
    a_dropped_run_stops_at_once,
    what_cannot_run_is_refused_with_a_remedy,
}

fn on(engine: Engine, test: fn()) {
    ENGINE.set(engine);
    test();
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Serves every connection on a thread of its own until the test process ends.
fn serve(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(stream));
        }
    });
    address
}

/// Answers every request of a connection with what `answer` gives.
fn answer(answer: impl Fn() -> &'static [u8] + Send + Sync + 'static) -> SocketAddr {
    serve(move |mut stream| while read_head(&mut stream) && stream.write_all(answer()).is_ok() {})
}

fn delayed(delay: Duration) -> SocketAddr {
    answer(move || {
        thread::sleep(delay);
        OK
    })
}

/// Answers one request at a time, `service` apart, however late its thread wakes up.
fn serial(service: Duration) -> SocketAddr {
    let free = Mutex::new(Instant::now());
    answer(move || {
        let mut free = free.lock().unwrap();
        // Late by less than a request, it has been busy; else it was idle.
        let now = Instant::now();
        *free = if now < *free + service { *free } else { now } + service;
        thread::sleep(free.saturating_duration_since(Instant::now()));
        OK
    })
}

/// An address on loopback where nobody listens, nor will: a port that is given out to nobody.
fn nobody() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

fn read_head(stream: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut piece = [0; 1024];
    while !seen.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => seen.extend_from_slice(&piece[..count]),
            _ => return false,
        }
    }
    true
}

fn config(address: SocketAddr, workload: Workload) -> Config {
    let target = Target::parse(&format!("http://{address}/")).unwrap();
    let mut config = Config::new(target, workload);
    config.window = ms(100);
    config.engine = ENGINE.get();
    config
}

fn users(count: usize) -> Workload {
    Workload::closed(count, Duration::ZERO)
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn run_for(mut config: Config, length: Duration) -> Report {
    config.end = End::Duration(length);
    Run::start(config).unwrap().wait()
}

#[track_caller]
fn assert_ratio(value: f64, wanted: f64, room: f64) {
    assert!((value / wanted - 1.0).abs() <= room, "{value} is not within {room} of {wanted}");
}

fn closed_users_measure_a_server_of_fixed_delay() {
    let report = run_for(config(delayed(ms(20)), users(4)), ms(600));
    assert_eq!(report.duration, ms(600));
    // Whatever a busy machine adds to the delay, all four are always waiting (Little's law). Only the
    // answers that a stall puts behind the end are missing.
    let mean = report.response.mean().unwrap().as_secs_f64();
    assert!((1.5..4.6).contains(&(report.throughput * mean)), "{}", report.throughput * mean);
    assert!(report.throughput < 205.0, "{}", report.throughput);
    assert_eq!(report.error_count(), 0);
    assert_eq!(report.connections_opened, 4);
    assert_eq!(report.status.keys().copied().collect::<Vec<_>>(), [200]);
    let median = report.percentile(50.0).unwrap();
    assert!(median >= ms(20), "{median:?}");
    assert!(report.service.percentile(50.0) <= report.percentile(50.0));
    assert_eq!(report.percentile(99.9), None, "too few for it");
    assert_eq!(report.windows.len(), 6);
    assert!(report.cpu_seconds > 0.0 && report.busiest_thread < 1.0);
    let answered: u64 = report.windows.iter().map(|w| w.answered).sum();
    assert_ratio(answered as f64 / 0.6, report.throughput, 1e-9);
}

fn throughput_of_a_serial_server_is_right_after_a_mark() {
    let run = Run::start(config(serial(ms(50)), users(3))).unwrap();
    thread::sleep(ms(230));
    run.mark();
    thread::sleep(ms(780));
    let report = run.finish();
    // A busy machine makes it slower, nothing makes it faster; on virtual time it is exact.
    assert!((3.0..21.3).contains(&report.throughput), "{}", report.throughput);
    assert!(report.duration >= ms(780));
    assert!(report.requests <= 17, "warm-up is not counted");
}

fn open_arrivals_keep_their_schedule() {
    let mut config = config(delayed(ms(10)), Workload::poisson(400.0));
    config.threads = 2;
    let report = run_for(config, ms(700));
    assert_ratio(report.offered, 400.0, 0.3);
    assert!(report.achieved_ratio() > 0.5, "{}", report.achieved_ratio());
    assert!(report.connections_opened > 2);
    let lag = report.schedule_lag.percentile(50.0).unwrap();
    assert!(lag < ms(300), "{lag:?}");
}

fn threads_share_a_limit_that_is_less_than_they_are() {
    let mut config = config(delayed(ms(20)), Workload::open(200.0));
    if let Workload::Open { phases, .. } = &mut config.workload {
        phases[0].limit = Some(1);
    }
    config.threads = 3;
    let report = run_for(config, ms(600));
    let most = report.windows.iter().map(|window| window.in_flight).max();
    assert!(report.throughput < 52.0, "{} {most:?}", report.throughput);
}

fn a_rate_beyond_the_connections_is_invalid() {
    let mut config = config(serial(ms(20)), Workload::open(200.0));
    config.max_connections = 2;
    let report = run_for(config, ms(600));
    assert_eq!(report.verdict, Verdict::Invalid);
    let is_exhausted = |r: &Reason| matches!(r, Reason::ConnectionsExhausted { limit: 2, .. });
    assert!(report.reasons.iter().any(is_exhausted), "{:?}", report.reasons);
    assert!(report.achieved_ratio() < 0.6, "{}", report.achieved_ratio());
    assert!(report.throughput < 55.0, "{}", report.throughput);
    assert!(report.response.max() > report.service.max());
}

fn connections_closed_after_each_answer_are_opened_again() {
    let announced = serve(|mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(LAST);
    });
    let silent = serve(|mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(OK);
    });
    for (address, keep_alive) in [
        (announced, KeepAlive::Reuse),
        (silent, KeepAlive::Reuse),
        (delayed(ms(0)), KeepAlive::ClosePerRequest),
    ] {
        let mut config = config(address, users(2));
        config.keep_alive = keep_alive;
        config.end = End::Requests(40);
        let report = Run::start(config).unwrap().wait();
        assert_eq!((report.requests, report.error_count()), (40, 0));
        assert!((40..=42).contains(&report.connections_opened));
    }
}

fn every_fault_has_its_kind() {
    let one = |bytes: &'static [u8]| {
        serve(move |mut stream| {
            read_head(&mut stream);
            let _ = stream.write_all(bytes);
        })
    };
    let unused = nobody();
    for (address, kind) in [
        (one(b"SSH-2.0-OpenSSH\r\n"), ErrorKind::Malformed),
        (one(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal"), ErrorKind::ClosedEarly),
        (one(b""), ErrorKind::ClosedEarly),
        (one(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), ErrorKind::TooLarge),
        (one(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), ErrorKind::ClientError),
        (one(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), ErrorKind::ServerError),
        (unused, ErrorKind::Connect),
    ] {
        let mut config = config(address, users(1));
        config.end = End::Requests(3);
        let report = Run::start(config).unwrap().wait();
        assert_eq!(report.errors.into_iter().collect::<Vec<_>>(), [(kind, 3)]);
        assert_eq!(report.response.count(), 0);
        assert_eq!(report.verdict, Verdict::Invalid);
    }
}

fn a_server_that_talks_first_or_hangs_up_is_not_tried_for_ever() {
    let banner = serve(|mut stream| {
        let _ = stream.write_all(b"220 ready\r\n");
        thread::sleep(ms(50));
    });
    for address in [banner, serve(drop)] {
        let mut config = config(address, users(1));
        config.end = End::Requests(5);
        let report = Run::start(config).unwrap().wait();
        assert_eq!((report.requests, report.error_count()), (5, 5));
        assert_eq!(report.connections_opened, 5);
    }
}

fn silence_is_a_timeout_and_bounds_the_end() {
    let mut config = config(delayed(Duration::from_secs(60)), users(2));
    config.timeout = ms(150);
    let run = Run::start(config).unwrap();
    thread::sleep(ms(400));
    let asked = Instant::now();
    let report = run.finish();
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(report.errors.keys().collect::<Vec<_>>(), [&ErrorKind::Timeout]);
    assert!(report.failed.min() >= Some(ms(149)), "{:?}", report.failed);
}

fn a_run_that_is_cut_waits_for_no_answer() {
    let run = Run::start(config(delayed(Duration::from_secs(60)), users(2))).unwrap();
    thread::sleep(ms(200));
    let asked = Instant::now();
    assert_eq!(run.cut().requests, 0);
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "the timeout is 30 s: {:?}",
        asked.elapsed()
    );
}

fn a_dead_target_costs_little() {
    let unused = nobody();
    let report = run_for(config(unused, users(10)), ms(500));
    assert!((10..=100).contains(&report.requests), "{}", report.requests);
    assert!(report.busiest_thread < 0.2, "{}", report.busiest_thread);
}

fn users_and_rate_change_while_it_runs() {
    let closed = Run::start(config(delayed(ms(10)), users(2))).unwrap();
    let open = Run::start(config(delayed(ms(10)), Workload::open(50.0))).unwrap();
    thread::sleep(ms(150));
    closed.control().set_users(12);
    open.control().set_rate(300.0);
    closed.mark();
    open.mark();
    thread::sleep(ms(450));
    assert!(closed.windows().iter().all(|window| window.users == 12));
    let (closed, open) = (closed.finish(), open.finish());
    // Only the best window counts: a stalled machine spoils the others.
    let most = closed.windows.iter().map(|window| window.answered).max();
    assert!(most > Some(30), "two users could not, in 100 ms: {most:?}");
    assert_ratio(open.offered, 300.0, 0.1);
}

/// An event that a sleeping generator would not bring about before its next window, in a minute.
fn until(what: &str, happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        thread::sleep(ms(1));
    }
}

fn steering_wakes_sleeping_threads_and_shows_at_once() {
    let hits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&hits);
    let address = answer(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        OK
    });
    let seen = |count: u64| hits.load(Ordering::Relaxed) >= count;
    let start = |workload| {
        let mut config = config(address, workload);
        config.window = Duration::from_secs(60);
        config.threads = 2;
        Run::start(config).unwrap()
    };
    let open = start(Workload::open(0.001));
    let control = open.control();
    until("the first arrival", || seen(1));
    control.set_rate(1000.0);
    assert_eq!(control.present().demand, Demand::Rate(1000.0));
    until("more arrivals", || seen(100));
    control.ramp_rate(0.0, ms(1));
    until("no arrivals", || control.present().demand == Demand::Rate(0.0));
    drop(open.finish());

    let before = hits.load(Ordering::Relaxed);
    let closed = start(Workload::closed(1, Duration::from_secs(60)));
    let control = closed.control();
    until("the first user", || seen(before + 1));
    control.pause();
    control.set_users(5);
    let paused = control.present();
    assert_eq!(paused.demand, Demand::Users { now: 5, goal: 5, ramp: None });
    assert!(paused.paused && paused.steered);
    control.resume();
    until("five users", || seen(before + 5));
    control.set_ramp(Some(0.01));
    control.set_users(100);
    let ramping = control.present().demand;
    assert_eq!(ramping, Demand::Users { now: 6, goal: 100, ramp: Some(0.01) });
    until("the first of the ramp", || seen(before + 6));
    assert_eq!(closed.finish().warm_up, None);
}

fn a_pause_stops_the_load() {
    let run = Run::start(config(delayed(ms(1)), users(2))).unwrap();
    run.control().pause();
    until("nothing is sent any more", || {
        run.mark();
        thread::sleep(ms(100));
        run.snapshot().requests == 0
    });
    run.control().resume();
    until("requests again", || run.snapshot().requests > 10);
    run.finish();
}

fn a_quota_over_threads_is_exact_and_stop_ends_a_wait() {
    let hits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&hits);
    let address = answer(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        OK
    });
    let mut limited = config(address, users(3));
    limited.threads = 2;
    limited.end = End::Requests(101);
    let report = Run::start(limited).unwrap().wait();
    assert_eq!((report.requests, hits.load(Ordering::Relaxed)), (101, 101));
    assert_eq!(report.bytes, 101 * OK.len() as u64);
    let mut fewer_users = config(address, users(1));
    fewer_users.threads = 3;
    fewer_users.end = End::Requests(10);
    let report = Run::start(fewer_users).unwrap().wait();
    assert_eq!((report.requests, report.threads), (10, 1));

    // A thread left without users would never send its share.
    let mut steered = config(address, users(4));
    steered.threads = 2;
    steered.end = End::Requests(1001);
    let run = Run::start(steered).unwrap();
    run.control().set_users(1);
    assert!(matches!(run.control().present().demand, Demand::Users { goal: 2, .. }));
    assert_eq!(run.wait().requests, 1001);

    let run = Run::start(config(address, users(1))).unwrap();
    assert!(run.is_running());
    let control = run.control();
    let stopper = thread::spawn(move || {
        thread::sleep(ms(100));
        control.stop();
    });
    assert!(run.wait().duration >= ms(90));
    stopper.join().unwrap();
}

fn a_mark_after_the_end_changes_nothing() {
    let mut config = config(delayed(ms(1)), users(1));
    config.end = End::Requests(20);
    let run = Run::start(config).unwrap();
    while run.is_running() {
        thread::sleep(ms(5));
    }
    run.mark();
    assert_eq!(run.finish().requests, 20);
}

fn large_bodies_go_both_ways() {
    const SIZE: usize = 3_000_000;
    let address = serve(|mut stream| {
        let mut left = vec![0; 64 * 1024];
        let mut seen = 0;
        // The head is a few hundred bytes; the body is what counts.
        while seen < SIZE {
            match stream.read(&mut left) {
                Ok(count @ 1..) => seen += count,
                _ => return,
            }
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&vec![b'x'; SIZE]);
        let _ = stream.read(&mut left);
    });
    let mut config = config(address, users(1));
    config.target.method = "POST".into();
    config.target.body = vec![b'y'; SIZE];
    config.keep_alive = KeepAlive::ClosePerRequest;
    config.end = End::Requests(3);
    let report = Run::start(config).unwrap().wait();
    assert_eq!((report.requests, report.error_count()), (3, 0));
    assert!(report.bytes > 3 * SIZE as u64);
}

fn a_dropped_run_stops_at_once() {
    let run = Run::start(config(delayed(Duration::from_secs(60)), users(2))).unwrap();
    thread::sleep(ms(30));
    let dropped = Instant::now();
    drop(run);
    assert!(dropped.elapsed() < Duration::from_secs(10));
}

fn what_cannot_run_is_refused_with_a_remedy() {
    let nowhere = nobody();
    let refuse = |change: &dyn Fn(&mut Config)| {
        let mut config = config(nowhere, users(1));
        change(&mut config);
        let error = Run::start(config).expect_err("must be refused").to_string();
        assert!(error.contains("give") || error.contains("use") || error.contains("leave"));
        error
    };
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = refuse(&|c| c.workload = Workload::open(rate));
        assert!(error.contains("cannot be scheduled"), "{error}");
    }
    let too_fast = refuse(&|c| (c.workload, c.threads) = (Workload::open(3e6), 2));
    assert!(too_fast.contains("2 generator threads can send; give at most 2000000"), "{too_fast}");
    assert!(refuse(&|c| c.workload = users(0)).contains("at least 1 user"));
    assert!(refuse(&|c| c.workload = users(2_000_000_000)).contains("open files"));
    refuse(&|c| c.threads = 0);
    refuse(&|c| c.max_connections = 0);
    refuse(&|c| c.timeout = Duration::ZERO);
    refuse(&|c| c.window = Duration::ZERO);
    refuse(&|c| c.end = End::Requests(0));
    refuse(&|c| c.target.headers.push(("X".into(), "a\r\nb".into())));
    // TEST-NET-1 (RFC 5737) is nobody's. What the system said is in the sentence, once.
    let elsewhere = |c: &mut Config| c.local_addresses = vec!["192.0.2.1".parse().unwrap()];
    assert!(refuse(&elsewhere).contains("cannot send from 192.0.2.1: "));
    let mut config = config(nowhere, users(1));
    elsewhere(&mut config);
    assert!(std::error::Error::source(&Run::start(config).unwrap_err()).is_none());
}

#[test]
fn the_report_says_which_engine_ran() {
    let ran = |engine| {
        let mut config = config(delayed(ms(0)), users(1));
        config.engine = engine;
        config.end = End::Requests(1);
        Run::start(config).map(|run| run.wait().engine)
    };
    assert_eq!(ran(Engine::Epoll).unwrap(), Engine::Epoll);
    let auto = ran(Engine::Auto).unwrap();
    match ran(Engine::Uring) {
        Ok(engine) => assert_eq!((engine, auto), (Engine::Uring, Engine::Uring)),
        Err(refused) => {
            assert!(refused.to_string().contains("use --engine epoll"), "{refused}");
            assert_eq!(auto, Engine::Epoll);
        }
    }
}

#[test]
fn a_run_that_ends_in_its_ramp_says_so() {
    // It answers nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let rhythm = Rhythm::Think(Think::Constant(Duration::ZERO));
    let mut config = Config::new(target, Workload::Closed { users: 9, ramp: Some(0.1), rhythm });
    let short = Duration::from_millis(50);
    (config.end, config.timeout) = (End::Duration(short), short);
    let reasons = Run::start(config).unwrap().wait().reasons;
    let is_it = |r: &Reason| matches!(r, Reason::UsersComing { came: 1, wanted: 9, .. });
    assert!(reasons.iter().any(is_it), "{reasons:?}");
}

#[test]
fn users_who_share_a_connection_need_one_file() {
    let users = 10_000_000;
    let target = Target::parse("http://127.0.0.1:1/").unwrap();
    let mut config = Config::new(target, Workload::closed(users, Duration::ZERO));
    config.protocol = Protocol::Http2 { streams: users };
    config.limit_connections().unwrap();
}
