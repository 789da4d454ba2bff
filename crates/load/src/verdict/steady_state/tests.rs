//! Courses of which a human would say at a glance what they are.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::clock::time::{MILLISECOND, Nanos, SECOND};

/// A time series in which `at` gives, for each second, requests per second and milliseconds a request. Both
/// vary by chance, the first as arrivals do.
fn time_series(seconds: u64, seed: u64, at: impl Fn(f64) -> (f64, f64)) -> TimeSeries {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut time_series = TimeSeries::new(0);
    let mut gap = 0.0;
    for tick in 0..seconds * 1000 {
        let (rate, ms) = at(tick as f64 / 1e3);
        let mut left = rate / 1e3;
        while gap < left {
            left -= gap;
            let now = (tick + 1) * MILLISECOND - (left / rate * SECOND as f64) as Nanos;
            let response = ms * (0.7 + 0.6 * random.random::<f64>());
            time_series.answered(now, (response * MILLISECOND as f64) as Nanos);
            gap = -(1.0 - random.random::<f64>()).ln();
        }
        gap -= left;
    }
    time_series.end(seconds * SECOND);
    time_series
}

/// Verdicts on as many courses that differ by chance alone.
fn judged(seconds: u64, at: impl Fn(f64) -> (f64, f64)) -> Vec<Steadiness> {
    (0..40).map(|seed| Steadiness::of(&time_series(seconds, seed, &at), 0, 0)).collect()
}

fn cuts(seconds: u64, at: impl Fn(f64) -> (f64, f64)) -> Vec<f64> {
    let cut = |steadiness| match steadiness {
        Steadiness::After(cut, _) => cut as f64 / SECOND as f64,
        Steadiness::Unknown => -1.0,
        Steadiness::Never { .. } => f64::INFINITY,
    };
    judged(seconds, at).into_iter().map(cut).collect()
}

#[test]
fn a_steady_run_is_not_cut() {
    for (seconds, rate) in [(5, 5000.0), (10, 40.0), (60, 400.0), (60, 3.0)] {
        let cuts = cuts(seconds, |_| (rate, 20.0));
        let long = cuts.iter().filter(|cut| **cut > seconds as f64 / 10.0).count();
        assert!(long <= 1, "{seconds} s at {rate}/s: {cuts:?}");
        assert!(cuts.iter().all(|cut| cut.is_finite()), "{cuts:?}");
    }
}

#[test]
fn a_warm_up_is_cut_where_it_ends() {
    let jit = |t: f64| (1000.0 - 600.0 * (-t / 2.0).exp(), 20.0 + 40.0 * (-t / 2.0).exp());
    let step = |t: f64| if t < 5.0 { (400.0, 20.0) } else { (800.0, 10.0) };
    let slow = |t: f64| (500.0, if t < 4.0 { 30.0 } else { 20.0 });
    for (name, least, most, cuts) in [
        ("jit", 4.0, 16.0, cuts(40, jit)),
        ("step", 5.0, 6.5, cuts(30, step)),
        ("slow", 4.0, 6.5, cuts(30, slow)),
    ] {
        assert!(cuts.iter().all(|cut| (least..=most).contains(cut)), "{name}: {cuts:?}");
    }
}

#[test]
fn a_stall_is_no_warm_up() {
    // Every 5 s nothing for half a second, and then everything that waited.
    let stalling = |t: f64| match t % 5.0 {
        phase if phase < 4.5 => (400.0, 5.0),
        phase if phase < 4.99 => (0.1, 5.0),
        _ => (20_000.0, 250.0),
    };
    for seconds in [10, 12, 23, 60] {
        let cuts = cuts(seconds, stalling);
        assert!(cuts.iter().all(|cut| *cut < 2.0), "{seconds} s: {cuts:?}");
    }
}

#[test]
fn a_run_that_goes_on_changing_is_not_steady() {
    let queue = |t: f64| (100.0, 10.0 + 50.0 * t);
    let leak = |t: f64| (1000.0 / (1.0 + t / 20.0), 10.0 * (1.0 + t / 20.0));
    let late = |t: f64| if t < 18.0 { (500.0, 20.0) } else { (250.0, 40.0) };
    for (name, judged) in
        [("queue", judged(10, queue)), ("leak", judged(60, leak)), ("late", judged(30, late))]
    {
        let changing = judged.iter().filter(|s| matches!(s, Steadiness::Never { .. })).count();
        assert_eq!(changing, judged.len(), "{name}: {judged:?}");
    }
}

#[test]
fn synchronous_users_of_a_slow_server_are_steady() {
    for (users, seconds) in [(10, 12_u64), (100, 60), (3, 60)] {
        let mut time_series = TimeSeries::new(0);
        for round in 1..seconds {
            for user in 0..users {
                time_series.answered(round * SECOND + user * 100_000, SECOND + user * 100_000);
            }
        }
        time_series.end(seconds * SECOND);
        match Steadiness::of(&time_series, 0, 0) {
            Steadiness::After(cut, _) => assert!(cut <= SECOND, "{users} {cut}"),
            other => assert_eq!(other, Steadiness::Unknown, "{users}"),
        }
    }
}

#[test]
fn too_few_answers_leave_steadiness_unknown() {
    assert_eq!(judged(1, |_| (1000.0, 1.0))[0], Steadiness::Unknown);
    assert_eq!(judged(30, |_| (0.5, 1.0))[0], Steadiness::Unknown);
    assert_eq!(Steadiness::of(&time_series(10, 1, |_| (1e-9, 1.0)), 0, 0), Steadiness::Unknown);
}

#[test]
fn a_target_that_stops_answering_is_never_steady() {
    for hangs_at in [4.0, 9.0, 15.0] {
        let cuts = cuts(20, |t| (if t < hangs_at { 200.0 } else { 0.0 }, 5.0));
        assert!(cuts.iter().all(|cut| *cut == f64::INFINITY), "{hangs_at}: {cuts:?}");
    }
}
