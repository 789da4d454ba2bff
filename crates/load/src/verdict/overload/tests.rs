//! Courses of which a human would say at a glance whether their target keeps up.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::clock::time::MILLISECOND;

const TIMEOUT: Nanos = 10 * SECOND;

/// Whether arrivals at these times, in seconds, overload a target that ends them after so many seconds, or never.
fn is_overload(seconds: usize, requests: impl Iterator<Item = (f64, Option<f64>)>) -> bool {
    overload(seconds, requests).is_some()
}

fn overload(
    seconds: usize,
    requests: impl Iterator<Item = (f64, Option<f64>)>,
) -> Option<Overload> {
    let start = |window: usize| window as Nanos * SECOND;
    let mut windows: Vec<WindowTally> = (0..seconds)
        .map(|window| WindowTally { end: start(window + 1), ..WindowTally::open_at(start(window)) })
        .collect();
    let mut tally: Tally = Tally::default();
    for (at, ended) in requests.take_while(|(at, _)| *at < seconds as f64) {
        windows[at as usize].due += 1;
        windows[at as usize].sent += 1;
        let timeout = TIMEOUT as f64 / SECOND as f64;
        let end = ended.map_or(at + timeout, |ended| ended.min(at + timeout));
        let Some(window) = windows.get_mut(end as usize) else { continue };
        if end < at + timeout {
            let response = ((end - at) * SECOND as f64) as Nanos;
            window.answered += 1;
            window.response += response;
            tally.response.record_nanos(response);
        } else {
            (window.errors, window.lost, window.abandoned) =
                (window.errors + 1, window.lost + 1, window.abandoned + 1);
        }
    }
    Overload::of(Source::Arrivals(Nanos::MAX), &windows, &tally, TIMEOUT)
}

/// A target that serves one request after the other.
fn one_by_one(
    arrivals: impl Iterator<Item = f64>,
    mut service: impl FnMut(f64) -> f64,
) -> impl Iterator<Item = (f64, Option<f64>)> {
    let mut free = 0.0_f64;
    arrivals.map(move |at| {
        free = free.max(at);
        free += service(free);
        (at, Some(free))
    })
}

/// Arrivals at equal distances where the rate is constant.
fn arrivals(rate: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
    let mut at = 0.0;
    std::iter::from_fn(move || {
        let now = at;
        at += 1.0 / rate(at);
        Some(now)
    })
}

#[test]
fn any_rate_above_what_is_answered_is_overload() {
    for (rate, capacity, seconds) in [
        (13.0, 8.0, 3),
        (13.0, 8.0, 10),
        (13.0, 8.0, 20),
        (13.0, 8.0, 30),
        (13.0, 8.0, 60),
        (20.0, 8.0, 20),
        (80.0, 8.0, 60),
        (3.0, 2.0, 20),
        (60.0, 50.0, 10),
        (10_500.0, 10_000.0, 10),
    ] {
        let course = one_by_one(arrivals(|_| rate), |_| 1.0 / capacity);
        assert!(is_overload(seconds, course), "{rate}/s on {capacity}/s for {seconds} s");
    }
}

#[test]
fn a_rate_that_changes_overloads_too() {
    let ramp = |t: f64| 5.0 + 15.0 * t / 20.0;
    assert!(is_overload(20, one_by_one(arrivals(ramp), |_| 0.125)));
    let peak = |rate| move |t: f64| if (10.0..20.0).contains(&t) { rate } else { 1.0 };
    assert!(is_overload(30, one_by_one(arrivals(peak(20.0)), |_| 0.125)), "50 are left of 220");
    assert!(!is_overload(60, one_by_one(arrivals(peak(14.0)), |_| 0.125)), "it caught up");
}

#[test]
fn a_slow_start_that_catches_up_is_no_overload() {
    for (seconds, cold) in [(20, 5.0), (30, 10.0), (60, 20.0)] {
        let service = |now: f64| if now < cold { 0.125 } else { 0.02 };
        assert!(!is_overload(seconds, one_by_one(arrivals(|_| 13.0), service)), "{seconds} s");
    }
}

#[test]
fn a_target_that_is_slow_by_nature_is_not_overloaded() {
    let mut random = SmallRng::seed_from_u64(1);
    let mut slow = |rate: f64, seconds, long: f64| {
        let mut time = || if random.random::<f64>() < 0.5 { 0.010 } else { long };
        is_overload(seconds, arrivals(|_| rate).map(|at| (at, Some(at + time()))))
    };
    let told = [(100.0, 10, 2.0), (100.0, 20, 4.0), (10.0, 20, 2.0)].map(|(r, s, l)| slow(r, s, l));
    assert_eq!(told, [false; 3]);
    let ramp = |t: f64| 10.0 + 9.0 * t;
    assert!(!is_overload(10, arrivals(ramp).map(|at| (at, Some(at + 2.0)))), "the rate rises");
}

#[test]
fn a_stall_or_a_hanging_request_is_no_overload() {
    let stall = |now: f64| if now % 5.0 >= 3.0 { 5.0 - now % 5.0 } else { 0.001 };
    for seconds in [10, 15, 20, 60] {
        assert!(!is_overload(seconds, one_by_one(arrivals(|_| 100.0), stall)), "{seconds} s");
    }
    let hangs = |(number, at): (usize, f64)| (at, (number % 5 > 0).then_some(at + 0.005));
    assert!(!is_overload(60, arrivals(|_| 50.0).enumerate().map(hangs)));
}

#[test]
fn a_stable_queue_is_no_overload() {
    let mut random = SmallRng::seed_from_u64(7);
    let mut told = 0;
    for _ in 0..100 {
        let draw = |random: &mut SmallRng, rate: f64| -(1.0 - random.random::<f64>()).ln() / rate;
        let mut others = SmallRng::seed_from_u64(random.random());
        let mut at = 0.0;
        let poisson = std::iter::from_fn(|| {
            at += draw(&mut random, 20.0);
            Some(at)
        });
        told += u32::from(is_overload(30, one_by_one(poisson, |_| draw(&mut others, 25.0))));
    }
    assert!(told <= 2, "{told} of 100 at 80 %");
}

#[test]
fn what_was_offered_is_answered_failed_or_unanswered() {
    for seconds in [20, 60] {
        let course = one_by_one(arrivals(|_| 13.0), |_| 0.125);
        let Overload { offered, sent, answered, failed, unanswered, .. } =
            overload(seconds, course).unwrap();
        assert_eq!((sent, answered + failed + unanswered), (offered, offered));
        assert!(offered.abs_diff(13 * seconds as u64) <= 1, "{offered}");
        assert_eq!(failed > 0, seconds > 30);
    }
}

#[test]
fn users_offer_no_more_than_is_answered() {
    let windows: Vec<WindowTally> = (0..10)
        .map(|second| WindowTally {
            end: (second + 1) * SECOND,
            due: 60,
            answered: 49,
            ..WindowTally::open_at(second * SECOND)
        })
        .collect();
    let mut tally: Tally = Tally::default();
    tally.response.record_nanos(100 * MILLISECOND);
    let of = |source| Overload::of(source, &windows, &tally, TIMEOUT).is_some();
    assert!(of(Source::Arrivals(Nanos::MAX)) && !of(Source::Users));
}
