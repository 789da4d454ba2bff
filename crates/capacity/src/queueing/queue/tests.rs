use super::*;
use crate::model::network::Model;
use crate::model::prediction::predict;
use crate::testing::model;

fn exponential(mut m: Model) -> Model {
    let n = 400;
    let quantile = |i: i32| -(1.0 - (f64::from(i) + 0.5) / f64::from(n)).ln();
    let weight = 1.0 / f64::from(n);
    m.shape = ServiceShape { scv: 1.0, points: (0..n).map(|i| (quantile(i), weight)).collect() };
    m
}

fn close(a: f64, b: f64, share: f64) {
    assert!((a / b - 1.0).abs() < share, "{a} is not within {share} of {b}");
}

const POISSON: f64 = 1.0;

// M/M/1: R = 1 / (mu - lambda), exponentially distributed.
#[test]
fn one_exponential_server() {
    let m = exponential(model(1, 0.1, 0.0, 2.0));
    let r = predict(&m, &Workload::Open { rate: 7.0, arrival_scv: POISSON }, 1).response.unwrap();
    close(r.mean, 1.0 / 3.0, 1e-3);
    close(r.p95, 20f64.ln() / 3.0, 0.08);
}

// Erlang C: 1000/s at 8 ms wait 1.64 ms on 10 servers.
#[test]
fn ten_exponential_servers() {
    let m = exponential(model(1, 0.008, 0.0, 64.0));
    let w = Workload::Open { rate: 1000.0, arrival_scv: POISSON };
    close(predict(&m, &w, 10).response.unwrap().mean, 0.00964, 2e-3);
}

// M/D/1 waits half as long as M/M/1 (Pollaczek and Khinchine).
#[test]
fn constant_service_halves_the_wait() {
    let w = Workload::Open { rate: 7.0, arrival_scv: POISSON };
    let r = predict(&model(1, 0.1, 0.0, 2.0), &w, 1).response.unwrap();
    close(r.mean, 0.1 + 0.5 * 0.7 / 3.0, 1e-3);
}

#[test]
fn without_thinking_every_slot_is_busy() {
    let m = model(4, 0.1, 0.001, 8.0);
    let w = Workload::Closed { users: 12, think: 0.0 };
    close(predict(&m, &w, 3).throughput, m.capacity(3), 1e-9);
}

#[test]
fn an_overloaded_open_queue_has_no_response_time() {
    let w = Workload::Open { rate: 11.0, arrival_scv: POISSON };
    let p = predict(&model(1, 0.1, 0.0, 2.0), &w, 1);
    assert_eq!(p.response, None);
    close(p.throughput, 10.0, 1e-9);
}

// SYSTEMS: delay 1 s, users who think 1 s.
#[test]
fn closed_constant_times_follow_the_bounds() {
    let m = model(1, 1.0, 0.001, 2.0);
    let at = |users, n| predict(&m, &Workload::Closed { users, think: 1.0 }, n);
    close(at(1, 1).throughput, 0.5, 1e-6);
    close(at(10, 1).throughput, 1.0, 1e-6);
    close(at(10, 1).response.unwrap().p50, 9.0, 1e-3);
    close(at(10, 3).throughput, 3.0, 1e-6);
    close(at(10, 10).throughput, 5.0, 1e-6);
    close(at(10, 10).response.unwrap().p95, 1.0, 1e-6);
}

// Machine repairman, 2 users, Z = S = 1: P(0) = 1/5, X = 0.8.
#[test]
fn closed_exponential_times() {
    let m = exponential(model(1, 1.0, 0.001, 2.0));
    let p = predict(&m, &Workload::Closed { users: 2, think: 1.0 }, 1);
    close(p.throughput, 0.8, 1e-6);
    close(p.response.unwrap().mean, 1.5, 1e-6);
}
