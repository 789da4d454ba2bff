//! What the generator measures of servers whose every answer is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::metrics::histogram::Histogram;
use crate::testing::ALONE;
use crate::verdict::judging::Judging;
use crate::verdict::littles_law::LittlesLaw;
use crate::verdict::unanswered::Unanswered;
use crate::workload::phase::{Phase, Spacing};
use crate::workload::rate_curve::RateCurve;
use crate::workload::schedule::Schedule;
use crate::workload::spec::{Rhythm, Think};
use crate::workload::user_count::UserCount;

/// Does nothing for the first half of a second of every 5 s; an answer takes 5 ms of the rest.
fn stalling(at: Nanos, _: u64) -> Nanos {
    let end = awake(at) + ms(5);
    if end / (5 * SECOND) > awake(at) / (5 * SECOND) { end + ms(500) } else { end }
}

fn awake(at: Nanos) -> Nanos {
    at.max(at / (5 * SECOND) * 5 * SECOND + ms(500))
}

fn fixed(at: Nanos, _: u64) -> Nanos {
    at + ms(20)
}

/// One in twenty takes ten times as long.
fn bimodal(at: Nanos, request: u64) -> Nanos {
    at + if (request * 7).is_multiple_of(20) { ms(50) } else { ms(5) }
}

/// Response times, in order, of arrivals that find so many connections, first come, first served.
fn true_times(
    arrivals: &[Nanos],
    connections: usize,
    answer: fn(Nanos, u64) -> Nanos,
) -> Vec<Nanos> {
    let mut free: BinaryHeap<Reverse<Nanos>> = (0..connections).map(|_| Reverse(0)).collect();
    let mut times = Vec::new();
    for (request, arrival) in arrivals.iter().enumerate() {
        let begun = free.pop().unwrap().0.max(*arrival);
        let end = answer(begun, request as u64);
        free.push(Reverse(end));
        times.push(end - arrival);
    }
    times.sort_unstable();
    times
}

#[track_caller]
fn assert_true(measured: &Histogram, truth: &[Nanos], percent: f64) {
    let measured = measured.percentile(percent).unwrap().as_secs_f64();
    let rank = (percent / 100.0 * truth.len() as f64).ceil() as usize;
    let truth = truth[rank - 1] as f64 / SECOND as f64;
    assert!((measured / truth - 1.0).abs() < 0.002, "p{percent}: {measured} of {truth}");
}

#[test]
fn percentiles_are_true_whatever_the_server_does() {
    let seconds = 20;
    let phases = [Phase::constant(400.0, Some(Duration::from_secs(seconds)))];
    for (answer, connections) in
        [(fixed as fn(Nanos, u64) -> Nanos, 20), (bimodal, 40), (stalling, 400), (stalling, 10)]
    {
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let mut sim = Sim::phases(&phases, spacing, connections, Server::Scheduled(answer));
            // Measured to the last answer.
            sim.run_until((seconds + 9) * SECOND);
            let (tally, _) = sim.finish();
            let curve = Arc::new(RateCurve::new(0, &phases));
            let mut schedule = Schedule::new(curve, spacing, ALONE, 1);
            let mut arrivals = Vec::new();
            while let Some(due) = schedule.next_due() {
                arrivals.push(due);
                schedule.advance();
            }
            let truth = true_times(&arrivals, connections as usize, answer);
            assert_eq!(tally.response.count(), truth.len() as u64);
            for percent in [50.0, 90.0, 99.0, 99.9] {
                assert_true(&tally.response, &truth, percent);
            }
        }
    }
}

#[test]
fn a_stall_shows_in_response_times_and_not_in_service_times() {
    let mut sim = Sim::open(400.0, 10, Server::Scheduled(stalling));
    let (tally, _) = sim.run_until(20 * SECOND).finish();
    let p99 = |times: &Histogram| times.percentile(99.0).unwrap().as_millis();
    assert_eq!(p99(&tally.service), 5, "ten of two thousand were under way");
    assert!((400..520).contains(&p99(&tally.response)), "{}", p99(&tally.response));
}

#[test]
fn paced_users_hide_no_stall() {
    let mut sim =
        Sim::rhythmic(4, Rhythm::Every(Duration::from_millis(10)), Server::Scheduled(stalling));
    let (tally, _) = sim.run_until(20 * SECOND).finish();
    assert_eq!(tally.due, 8000);
    // Fifty a user and stall fall into it, and as many more go by until these are made up for.
    assert!((1550..1650).contains(&tally.late), "{}", tally.late);
    let p95 = tally.response.percentile(95.0).unwrap();
    assert!((200..450).contains(&p95.as_millis()), "{p95:?}");
    assert_eq!(tally.service.percentile(95.0).unwrap().as_millis(), 5);
    assert_eq!(tally.lag.max(), Some(Duration::ZERO), "it is not the generator that is late");
}

#[test]
fn paced_users_who_cannot_keep_up_leave_requests_unsent() {
    let mut sim =
        Sim::rhythmic(2, Rhythm::Every(Duration::from_millis(50)), Server::Parallel(ms(100), OK));
    let (tally, _) = sim.run_until(10 * SECOND).finish();
    assert_eq!((tally.due, tally.taken_up), (400, 200));
    assert!(tally.response.max().unwrap() > Duration::from_millis(4900));
}

#[test]
fn a_phase_drops_what_exceeds_its_limit() {
    let mut phase = Phase::constant(100.0, Some(Duration::from_secs(10)));
    phase.limit = Some(5);
    let mut sim = Sim::phases(&[phase], Spacing::Even, 50, Server::Parallel(ms(100), OK));
    let (tally, windows) = sim.run_until(11 * SECOND).finish();
    // Five every 100 ms instead of ten.
    assert_eq!((tally.due, tally.dropped), (500, 500));
    assert_eq!(tally.connections_opened, 5);
    assert!(windows.iter().all(|window| window.gauges.waiting == 0));
}

#[test]
fn the_time_in_the_system_is_that_of_the_requests() {
    let uniform =
        Think::Uniform { least: Duration::from_millis(5), most: Duration::from_millis(25) };
    let mut sims = [
        Sim::closed(7, ms(30), Server::Scheduled(bimodal)),
        Sim::closed(7, 0, Server::Serial(ms(3))),
        Sim::rhythmic(9, Rhythm::Think(uniform), Server::Scheduled(fixed)),
        Sim::rhythmic(9, Rhythm::Every(Duration::from_millis(70)), Server::Scheduled(bimodal)),
        Sim::open(300.0, 50, Server::Scheduled(bimodal)),
        Sim::open(300.0, 3, Server::Scheduled(stalling)),
    ];
    for (index, sim) in sims.iter_mut().enumerate() {
        let (tally, windows) = sim.run_until(60 * SECOND).finish();
        let little =
            LittlesLaw::of(Judging::Law, &tally, windows.iter(), 60 * SECOND, &[]).unwrap();
        assert!(little.gap() < 0.01, "{index}: {little:?}");
    }
}

#[test]
fn users_come_at_the_ramp_and_a_pause_moves_everything() {
    let user_count = UserCount::new(0, Some(10.0), 0);
    let think = Rhythm::Think(Think::Constant(Duration::from_millis(100)));
    let traffic = Traffic::Closed(Users::new(user_count, think, ALONE, 1));
    let mut sim =
        Sim::new(traffic, Server::Parallel(ms(1), OK), None).with_plan(Plan::Closed(user_count));
    sim.run_until(SECOND);
    sim.set_users(20);
    sim.run_until(SECOND + ms(550));
    assert_eq!(sim.generator.gauges().users, 6);
    sim.load_clock.pause(sim.now);
    sim.steer(|_, _| {});
    sim.run_until(5 * SECOND);
    assert_eq!(sim.generator.gauges().users, 6, "nobody comes in a pause");
    sim.load_clock.resume(sim.now);
    sim.steer(|_, _| {});
    sim.run_until(5 * SECOND + ms(100));
    assert_eq!(sim.generator.gauges().users, 7);
    sim.set_users(0);
    let (tally, windows) = sim.run_until(7 * SECOND).finish();
    assert_eq!(windows.last().unwrap().gauges.users, 0);
    assert_eq!(tally.lag.max(), Some(Duration::ZERO), "a pause makes nothing late");
}

#[test]
fn requests_that_hang_at_the_end_keep_littles_law() {
    let hanging = |at: Nanos, _: u64| at + if at < ms(4800) { ms(5) } else { 100 * SECOND };
    let end = ms(6300);
    for (mut sim, users, hung) in [
        (Sim::open(50.0, 1000, Server::Scheduled(hanging)), 0, 25),
        // Most wait for one of ten connections.
        (Sim::open(50.0, 10, Server::Scheduled(hanging)), 0, 25),
        (Sim::closed(5, ms(50), Server::Scheduled(hanging)), 5, 5),
    ] {
        let (tally, windows) = sim.run_until(end).finish();
        let ages = sim.generator.recorder.final_record().unanswered;
        let old = Unanswered::of(&ages, &tally, users).unwrap();
        assert_eq!(old.requests, hung, "due more than 1 s before the end");
        assert!((ms(1400)..=ms(1500)).contains(&old.longest), "{old:?}");
        let books = |ages| LittlesLaw::of(Judging::Law, &tally, windows.iter(), end, ages).unwrap();
        assert!(books(&ages).gap() < 0.01 && books(&[]).gap() > 0.05, "{users}");
    }
}
