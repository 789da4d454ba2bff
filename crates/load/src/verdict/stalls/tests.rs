//! Users before targets that stall, and before targets that are slow now and then.

use super::*;
use crate::clock::time::MILLISECOND;
use crate::testing::{OK, Server, Sim};

const LENGTH: Nanos = 20 * SECOND;

const fn ms(count: Nanos) -> Nanos {
    count * MILLISECOND
}

/// Stalls for the last 1.5 s of each 5.
fn stalling(at: Nanos, _: u64) -> Nanos {
    let done = at + ms(1);
    if done % ms(5000) < ms(3500) { done } else { done.next_multiple_of(ms(5000)) + ms(1) }
}

/// A number from 0 to 1 for a request.
fn chance(number: u64) -> f64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1_u64 << 53) as f64
}

fn judged(users: u64, think: Nanos, server: Server) -> Option<Stalls> {
    let mut sim = Sim::closed(users, think, server);
    let (tally, _) = sim.run_until(LENGTH).finish();
    let time_series = sim.generator.recorder.final_record().time_series;
    let users = users as f64;
    Stalls::of(UserFigures {
        time_series: &time_series,
        since: 0,
        tally: &tally,
        users,
        length: LENGTH,
    })
}

#[test]
fn users_see_a_stall_once_and_the_corrected_p99_is_that_of_an_open_workload() {
    for users in [1, 4, 20] {
        let stalls = judged(users, 0, Server::Scheduled(stalling)).unwrap();
        // The last one has not ended.
        assert_eq!((stalls.count, stalls.measured.p99), (3, 0.001), "{users} users");
        assert!(
            (1.49..1.51).contains(&stalls.longest) && (4.4..4.9).contains(&stalls.seconds),
            "{stalls:?}"
        );
        // The same target at the same mean rate, in whole periods, while nobody waits for anybody.
        let mut open = Sim::open(500.0, 2000, Server::Scheduled(stalling));
        let (tally, _) = open.run_until(LENGTH).finish();
        let truth = tally.response.percentile(99.0).unwrap().as_secs_f64();
        assert!((stalls.corrected.p99 / truth - 1.0).abs() < 0.05, "{stalls:?}, in truth {truth}");
    }
}

#[test]
fn targets_that_are_slow_now_and_then_do_not_stall() {
    // One answer of a whole run.
    let once = |at, number| at + if number == 5000 { ms(1500) } else { ms(1) };
    // Some pages take long, and others go on.
    let pages = |at, number| at + if chance(number) < 0.005 { ms(2000) } else { ms(1) };
    // Exponential and log-normal times.
    let exponential = |at, number| at + (ms(20) as f64 * -(1.0 - chance(number)).ln()) as Nanos;
    let skewed = |at, number| {
        let normal = (0..12).map(|i| chance(12 * number + i)).sum::<f64>() - 6.0;
        at + (ms(5) as f64 * (1.5 * normal).exp()) as Nanos
    };
    let servers = [once, pages, exponential, skewed].map(Server::Scheduled);
    let lockstep = Server::Parallel(ms(1000), OK);
    for (number, server) in servers.into_iter().chain([lockstep]).enumerate() {
        for users in [2, 10] {
            let told = judged(users, 0, server);
            // Two users are often on the long pages both, which nobody can tell from a stall.
            let is_alike = number == 1 && users == 2;
            assert!(told.is_none() || is_alike, "target {number}, {users} users: {told:?}");
        }
    }
}

#[test]
fn a_pause_of_the_users_is_no_stall() {
    assert_eq!(judged(2, ms(900), Server::Parallel(ms(1), OK)), None);
}
