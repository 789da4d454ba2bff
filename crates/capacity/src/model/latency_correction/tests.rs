use super::*;
use crate::goal::Goal;
use crate::model::network::Model;
use crate::model::prediction::expect;
use crate::testing::{measured, open};
use crate::testing::{model, saturation};

/// 20 ms each, measured at 4 instances with half more time than predicted, and at 5 as predicted.
fn corrected() -> (Model, Model, Goal) {
    let mut plain = model(1, 0.02, 0.001, 2.0);
    plain.fit(&[saturation(2, 100.0, 0.001, 0.1)]);
    let goal = open(100.0, 0.1);
    let time = |n| expect(&plain, &goal.workload, n).response.unwrap().p95;
    let seen = |n, p95| Measured { p50: None, p99: None, ..measured(n, p95) };
    let mut fitted = plain.clone();
    fitted.correct_latency(&goal, &[seen(5, time(5)), seen(4, 1.5 * time(4))]);
    (plain, fitted, goal)
}

#[test]
fn a_latency_correction_applies_to_neighbouring_counts() {
    let (plain, fitted, goal) = corrected();
    let ratio = |n| {
        let p95 = |m| expect(m, &goal.workload, n).response.unwrap().p95;
        p95(&fitted) / p95(&plain)
    };
    let part = 1.5_f64.powf(REPEATABLE_SHARE);
    for (count, expected) in [(3, part), (5, 1.0), (9, 1.0)] {
        assert!((ratio(count) - expected).abs() < 1e-6, "{count}: {}", ratio(count));
    }
}

// Puma with two workers at 580 requests/s: 2.3 ms predicted, and 5.9 ms measured of 1,740 requests.
#[test]
fn a_measured_count_keeps_all_but_what_chance_explains() {
    let plain = model(2, 0.0013, 0.0004, 2.0);
    let goal = open(580.0, 0.1);
    let p95 = |m: &Model, n| expect(m, &goal.workload, n).response.unwrap().p95;
    let kept = |times: f64, slowdown| {
        let mut fitted = plain.clone();
        let seen = times * p95(&plain, 1);
        let probe = Measured {
            p50: None,
            p99: Some(1.5 * seen),
            throughput: 580.0,
            offered: 580.0,
            duration: 3.0,
            slowdown,
            ..measured(1, seen)
        };
        fitted.correct_latency(&goal, &[probe]);
        [1, 2].map(|n| (p95(&fitted, n) / p95(&plain, n)).ln() / times.ln())
    };
    let [own, next] = kept(2.6, 1.0);
    assert!(own > 0.98 && next < 0.6, "{own}, {next}: the next count by twice at most");
    assert!((kept(1.1, 1.0)[0] - REPEATABLE_SHARE).abs() < 1e-6, "it may be chance");
    assert!((kept(1.3, 1.0)[0] - 0.80).abs() < 0.01, "{}", kept(1.3, 1.0)[0]);
    assert!((kept(1.3, 1.3)[0] - REPEATABLE_SHARE).abs() < 1e-6, "or a disturbance");
}

#[test]
fn percentiles_stay_in_their_order_and_throughput_as_it_was() {
    let (plain, fitted, goal) = corrected();
    let p = expect(&fitted, &goal.workload, 4);
    assert_eq!(p.throughput, expect(&plain, &goal.workload, 4).throughput);
    let r = p.response.unwrap();
    assert!(r.p50 <= r.p95 && r.p95 <= r.p99, "{r:?}");
}

// Express at 10 requests/s: 0.41 ms on a busy ladder, and 1.13 ms on cores that sleep.
#[test]
fn with_little_to_do_every_count_is_as_slow_as_the_measured_one() {
    let plain = model(1, 0.0004, 0.0003, 2.0);
    let goal = open(10.0, 0.1);
    let p95 = |m: &Model, n| expect(m, &goal.workload, n).response.unwrap().p95;
    let probe = |p50, p95| Measured {
        p50: Some(p50),
        p95,
        p99: None,
        throughput: 10.2,
        offered: 10.2,
        ..measured(1, 0.0)
    };
    let mut fitted = plain.clone();
    fitted.correct_latency(&goal, &[probe(0.00113, Some(0.0026))]);
    for n in [1, 2, 10] {
        assert!((p95(&fitted, n) - 0.0026).abs() < 1e-5, "{n}: {}", p95(&fitted, n));
    }
    let mut without_p95 = plain.clone();
    without_p95.correct_latency(&goal, &[probe(0.0012, None)]);
    let ratio = p95(&without_p95, 1) / p95(&plain, 1);
    assert!((ratio - 3.0).abs() < 0.05, "as the median: {ratio}");
}

// If two share the load, one of them has half of it. That keeps it busy, and nothing sleeps.
#[test]
fn a_busy_count_does_not_pay_for_sleeping_cores() {
    let mut fitted = model(1, 0.02, 0.001, 2.0);
    let goal = open(15.0, 0.2);
    let p50 = |m: &Model, n| expect(m, &goal.workload, n).response.unwrap().p50;
    let (one, three) = (p50(&fitted, 1), p50(&fitted, 3));
    let slow = Measured { throughput: 15.0, offered: 15.0, ..measured(4, 0.06) };
    fitted.correct_latency(&goal, &[slow]);
    assert!(p50(&fitted, 3) > 1.5 * three, "{}", p50(&fitted, 3));
    assert!(p50(&fitted, 1) < 1.7 * one, "{}", p50(&fitted, 1));
}

// If more is sent than completed, the times are those of a queue that grew for as long as the probe.
#[test]
fn an_overload_says_nothing() {
    let (plain, _, goal) = corrected();
    let mut fitted = plain.clone();
    fitted.correct_latency(&goal, &[Measured { throughput: 80.0, ..measured(4, 0.5) }]);
    assert_eq!(fitted, plain);
}
