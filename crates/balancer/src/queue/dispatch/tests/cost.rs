//! Measures what a choice of a backend costs. `make bench-choosing` prints it. It asserts nothing,
//! because timings on a shared machine vary.

use super::*;
use crate::queue::dispatch::ring::hash;
use std::hint::black_box;

const ROUNDS: u32 = 200_000;

/// Nanoseconds for a request that is granted and one that is released, two in flight a backend.
fn cost(policy: Policy, backends: usize, weights: u32) -> u32 {
    // Keys may lead all requests to one backend.
    let slots = if policy.is_keyed() { 1000 } else { 4 };
    let mut d = new(policy, 100);
    for backend in 0..backends as u32 {
        let weight = 1 + backend % weights;
        d.add(
            "b",
            Slots::Fixed(slots),
            MemberTerms { weight, seed: hash(&backend.to_le_bytes()), ..terms() },
        );
    }
    let mut held: Vec<_> = (0..2 * backends).map(|_| granted(ask(&mut d)).id).collect();
    let (start, mut key) = (Instant::now(), 1_u64);
    for round in 0..ROUNDS {
        key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let hints = RequestHints { key: Some(key), ..RequestHints::default() };
        let Asked::Granted(grant) = black_box(d.ask(hints)) else { panic!("it is free") };
        let place = (key >> 33) as usize % held.len();
        let done = std::mem::replace(&mut held[place], grant.id);
        let ended = start + Duration::from_micros(u64::from(round));
        d.release(done, 0, Report::answered(start, ended, false));
    }
    (start.elapsed() / ROUNDS).as_nanos() as u32
}

#[test]
#[ignore = "a measurement, for `make bench-choosing`"]
fn choosing_costs() {
    println!("ns for a choice and a release    {:>6} {:>6} {:>6}", 4, 100, 1000);
    for policy in all() {
        for weights in [1, 8] {
            let costs = [4, 100, 1000].map(|backends| cost(policy.clone(), backends, weights));
            let weighted = if weights > 1 { "weighted" } else { "" };
            println!(
                "{:<22} {weighted:<9} {:>6} {:>6} {:>6}",
                policy.to_string(),
                costs[0],
                costs[1],
                costs[2]
            );
        }
    }
}
