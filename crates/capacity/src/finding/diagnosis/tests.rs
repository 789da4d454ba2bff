use super::*;
use crate::finding::evidence::{Admission, Crashes, Load, Memory, Pool};
use crate::finding::in_flight_limit::InFlightLimit;
use crate::finding::instance_limit::instance_limit;
use crate::finding::question::Question;
use crate::finding::result::{Details, MemoryLevel, Remedy};
use crate::limit_kind::Kind;
use crate::model::outcome::Outcome;
use crate::model::saturation::Saturation;
use crate::queueing::service_shape::ServiceShape;
use crate::queueing::workload::Workload;
use crate::testing::ladder;
use crate::testing::{model, saturation};

/// The workload is this share of what `instances` can do, and all of it was completed.
fn load(share: f64, instances: usize) -> Option<Load> {
    Some(Load { share, instances, outcome: Outcome::of(10.0, 10.0) })
}

fn kinds(model: &Model, evidence: &Evidence) -> Vec<Kind> {
    diagnose(model, evidence).iter().map(|f| f.kind).collect()
}

fn saturated(one: Saturation, two: Saturation) -> (Model, Evidence) {
    let mut m = model(1, 1.0 / one.throughput, one.app_demand, 2.0);
    m.fit(&[two]);
    (m, Evidence { two: Some(two), ..Evidence::new(one) })
}

#[test]
fn a_sleeping_serial_app() {
    let (m, e) = saturated(saturation(1, 1.0, 0.005, 0.0), saturation(2, 2.0, 0.005, 0.0));
    assert_eq!(kinds(&m, &e), [Kind::Serialized, Kind::Waiting]);
    assert_eq!(instance_limit(&m, &e), Kind::Serialized);
}

#[test]
fn a_single_threaded_burner() {
    let (m, e) = saturated(saturation(1, 33.0, 0.03, 1.05), saturation(2, 63.0, 0.03, 1.95));
    assert_eq!(kinds(&m, &e), [Kind::CpuBound]);
}

// Two threads that take turns at one core, as under an interpreter lock, half of the time asleep.
#[test]
fn threads_that_take_turns_at_a_core_are_cpu_bound() {
    let mut m = model(2, 0.02, 0.01, 4.0);
    let (one, two) = (saturation(1, 98.0, 0.01, 1.1), saturation(2, 195.0, 0.01, 2.2));
    m.fit(&[two]);
    let e = Evidence { two: Some(two), busiest_thread: Some(0.5), ..Evidence::new(one) };
    assert_eq!(kinds(&m, &e)[0], Kind::CpuBound);
}

// Two threads wait 12 ms and take turns at one core for 13 ms. The knee is soft, so there is one slot more
// than they fill. A request does not wait more because of that.
#[test]
fn an_extra_slot_does_not_hide_cpu() {
    let mut m = model(3, 0.02516, 0.01335, 2.0);
    m.ladder = ladder(&[(1, 39.75), (2, 73.68), (4, 76.1)]);
    assert_eq!(m.ladder.slots(), 3);
    let e =
        Evidence { busiest_thread: Some(0.5), ..Evidence::new(saturation(1, 76.1, 0.01335, 1.07)) };
    assert_eq!(kinds(&m, &e), [Kind::CpuBound]);
}

// 9 ms of CPU in 20: nine requests fill four cores.
#[test]
fn a_waiting_app_states_its_cpu_share() {
    let mut m = model(1, 0.02, 0.009, 4.0);
    let (one, two) = (saturation(1, 50.0, 0.009, 0.5), saturation(2, 100.0, 0.009, 1.0));
    m.fit(&[two]);
    let findings = diagnose(&m, &Evidence { two: Some(two), ..Evidence::new(one) });
    let Details::Waits { cpu_share, .. } = findings[1].details else { panic!("{findings:?}") };
    assert!((cpu_share - 0.45).abs() < 1e-9, "{findings:?}");
}

// Measured beside other programs: 123 and 225 requests/s, each give or take 3 %.
#[test]
fn a_shortfall_that_may_be_chance_is_none() {
    let measured = |s: Saturation| Saturation { error: 0.03, ..s };
    let one = measured(saturation(1, 123.0, 0.001, 0.1));
    let two = measured(saturation(2, 225.0, 0.001, 0.1));
    let (m, e) = saturated(one, two);
    assert!(!kinds(&m, &e).contains(&Kind::SharedDependency), "{:?}", kinds(&m, &e));
}

#[test]
fn a_lock_that_all_share() {
    let (m, e) = saturated(saturation(1, 10.0, 0.001, 0.1), saturation(2, 11.0, 0.001, 0.1));
    let findings = diagnose(&m, &e);
    assert_eq!(kinds(&m, &e), [Kind::SharedDependency, Kind::Waiting]);
    assert_eq!(findings[1].remedy, Remedy::ShorterWait);
}

#[test]
fn a_lock_and_the_cpu() {
    let (m, e) = saturated(saturation(1, 50.0, 0.018, 1.0), saturation(2, 66.0, 0.018, 1.3));
    assert_eq!(kinds(&m, &e), [Kind::SharedDependency, Kind::CpuBound]);
}

// Half of the cores are busy and the second instance brings half: only a trial can tell.
#[test]
fn a_trial_decides_between_lock_and_cores() {
    let (m, e) = saturated(saturation(1, 50.0, 0.016, 0.7), saturation(2, 70.0, 0.016, 1.2));
    let question = Question::of_two(&m, &e).unwrap();
    let after = |after| Evidence { trials: vec![question.answer(2, 70.0, after)], ..e.clone() };
    let shared = diagnose(&m, &after(69.0));
    assert_eq!(shared[0].kind, Kind::SharedDependency);
    assert_eq!(shared[0].confidence, 0.95);
    assert!(!kinds(&m, &after(40.0)).contains(&Kind::SharedDependency));
}

#[test]
fn threads_on_full_cores() {
    let mut m = model(2, 0.002, 0.002, 2.0);
    let (one, two) = (saturation(1, 950.0, 0.002, 2.0), saturation(2, 760.0, 0.0025, 2.0));
    m.fit(&[two]);
    let e = Evidence { two: Some(two), ..Evidence::new(one) };
    assert_eq!(kinds(&m, &e), [Kind::Oversubscribed, Kind::CpuBound]);
}

// Two JVMs that have compiled everything complete as much as one. One leaves no CPU to the second.
#[test]
fn one_that_fills_every_core_leaves_none_to_another() {
    let found = |one: Saturation, two: Saturation| {
        let mut m = model(2, 0.002, 0.002, 2.0);
        m.fit(&[two]);
        kinds(&m, &Evidence { two: Some(two), ..Evidence::new(one) })[0]
    };
    let (alone, beside) = (saturation(1, 950.0, 0.002, 2.0), saturation(2, 940.0, 0.002, 2.0));
    assert_eq!(found(alone, beside), Kind::Oversubscribed);
    // Other programs use half a core. What the instance would fill without them is not known.
    let others = saturation(1, 700.0, 0.002, 2.0);
    assert_eq!(found(others, saturation(2, 700.0, 0.002, 2.0)), Kind::CpuBound);
    assert_eq!(
        found(others, saturation(2, 650.0, 0.0021, 2.0)),
        Kind::Oversubscribed,
        "slower than one"
    );
}

fn five_at_a_time(unread: usize, connections: usize) -> (Model, Evidence) {
    let mut m = model(5, 0.1, 0.001, 2.0);
    let (one, two) = (saturation(1, 50.0, 0.001, 0.1), saturation(2, 100.0, 0.001, 0.2));
    m.fit(&[two]);
    let pool = Pool { to: "127.0.0.1:5432".to_owned(), connections };
    let admission = Admission { offered: 32, unread, pool: Some(pool) };
    (m, Evidence { two: Some(two), admission: Some(admission), ..Evidence::new(one) })
}

#[test]
fn a_pool_lets_requests_in() {
    let (m, e) = five_at_a_time(0, 5);
    let findings = diagnose(&m, &e);
    assert_eq!(kinds(&m, &e), [Kind::ConnectionLimited, Kind::Waiting]);
    let Details::Pooled { pool: Some(pool), .. } = &findings[0].details else {
        panic!("{findings:?}")
    };
    assert_eq!((pool.connections, pool.to.as_str()), (5, "127.0.0.1:5432"));
    assert_eq!(instance_limit(&m, &e), Kind::ConnectionLimited);
    let (m, e) = five_at_a_time(0, 1);
    assert_eq!(diagnose(&m, &e)[0].confidence, 0.7, "a pool of something else");
}

#[test]
fn workers_leave_requests_outside() {
    let (m, e) = five_at_a_time(27, 5);
    assert_eq!(kinds(&m, &e), [Kind::Waiting]);
    assert_eq!(instance_limit(&m, &e), Kind::Waiting);
}

#[test]
fn a_quota_comes_before_the_cpu_that_it_cuts() {
    let (m, e) = saturated(saturation(1, 20.0, 0.01, 0.2), saturation(2, 40.0, 0.01, 0.4));
    let e = Evidence { throttled: Some(0.98), ..e };
    assert_eq!(kinds(&m, &e), [Kind::CpuThrottled], "it waits for the CPU alone");
    assert_eq!(instance_limit(&m, &e), Kind::CpuThrottled);
}

#[test]
fn memory_that_kills_comes_before_the_quota() {
    let (m, e) = saturated(saturation(1, 20.0, 0.01, 0.2), saturation(2, 40.0, 0.01, 0.4));
    let memory = Memory { kills: 2, limited: Some((20 << 20, 20 << 20)), ..Memory::default() };
    let e = Evidence { throttled: Some(0.98), memory, ..e };
    assert_eq!(kinds(&m, &e)[..2], [Kind::MemoryPressure, Kind::CpuThrottled]);
}

// Requests that failed when an instance was killed for its memory are no other fault.
#[test]
fn memory_that_kills_comes_before_what_fails_of_it() {
    let (m, e) = saturated(saturation(1, 20.0, 0.01, 0.2), saturation(2, 40.0, 0.01, 0.4));
    let errors = Some((0.016, "status_5xx".to_owned()));
    let first = |kills, deaths| {
        let crashes = Some(Crashes { name: "app-1".to_owned(), times: deaths, cause: None });
        let memory = Memory { kills, limited: Some((19 << 20, 20 << 20)), ..Memory::default() };
        kinds(&m, &Evidence { errors: errors.clone(), crashes, memory, ..e.clone() })[0]
    };
    assert_eq!(first(1, 1), Kind::MemoryPressure);
    assert_eq!(first(1, 3), Kind::Failing, "it died of something else, too");
}

#[test]
fn a_full_machine_is_no_matter_of_limits() {
    let (m, e) = saturated(saturation(1, 20.0, 0.01, 0.2), saturation(2, 40.0, 0.01, 0.4));
    let found = |used: u64| {
        let limited = Some((used << 20, 512 << 20));
        let memory = Memory { left: Some(0.03), limited, stalled: Some(0.2), ..Memory::default() };
        diagnose(&m, &Evidence { memory, ..e.clone() }).remove(0)
    };
    let (machine, limit) = (found(60), found(510));
    let level = |finding: &Finding| match finding.details {
        Details::MemoryShort { level, .. } => level,
        _ => panic!("{finding:?}"),
    };
    assert_eq!(machine.remedy, Remedy::MemoryOrFewer);
    assert_eq!(level(&machine), Some(MemoryLevel::Machine(0.03)));
    assert_eq!(limit.remedy, Remedy::MemoryEach);
    assert_eq!(level(&limit), Some(MemoryLevel::Limit(510 << 20, 512 << 20)));
}

#[test]
fn failures_above_the_goal_are_found() {
    let (m, e) = saturated(saturation(1, 20.0, 0.01, 0.2), saturation(2, 40.0, 0.01, 0.4));
    let e = Evidence { errors: Some((0.0014, "reset".into())), error_limit: 0.001, ..e };
    let findings = diagnose(&m, &e);
    let is_share = matches!(findings[0].details, Details::Errors { share: 0.0014, .. });
    assert!(is_share, "{findings:?}");
}

// A full limit alone is the page cache.
#[test]
fn a_full_cache_is_no_pressure() {
    let (m, e) = saturated(saturation(1, 20.0, 0.01, 0.2), saturation(2, 40.0, 0.01, 0.4));
    let memory = Memory { limited: Some((20 << 20, 20 << 20)), ..Memory::default() };
    assert!(!kinds(&m, &Evidence { memory, ..e }).contains(&Kind::MemoryPressure));
}

#[test]
fn refused_connections_and_full_tables() {
    let (m, e) = five_at_a_time(27, 0);
    let e = Evidence { connect_failures: 3, open_files: Some((1020, 1024)), ..e };
    let findings = diagnose(&m, &e);
    assert_eq!(findings[0].kind, Kind::ConnectionLimited);
    let all = Details::Connections { failed: 3, open_files: Some((1020, 1024)) };
    assert_eq!(findings[0].details, all);
}

#[test]
fn headroom_is_the_only_finding() {
    let (m, e) = saturated(saturation(1, 50.0, 0.001, 0.1), saturation(2, 100.0, 0.001, 0.1));
    let e = Evidence { load: load(0.2, 1), ..e };
    let findings = diagnose(&m, &e);
    assert_eq!(kinds(&m, &e), [Kind::Headroom]);
    let Details::Room { capacity: Some((most, limit)), .. } = findings[0].details else {
        panic!("{findings:?}")
    };
    assert!((most - 50.0).abs() < 0.1 && limit == Kind::Serialized, "{findings:?}");
    let several = Evidence { load: load(0.6, 4), ..e };
    assert_eq!(kinds(&m, &several), [Kind::Serialized, Kind::Waiting, Kind::Headroom]);
}

#[test]
fn without_an_end_nothing_is_said_of_it() {
    let ladder = ladder(&[(1, 1.0), (2, 2.0), (4, 4.0)]);
    let one = saturation(1, 4.0, 0.001, 0.1);
    let m = Model::new(ladder, one, ServiceShape::constant(), 2.0);
    let e = Evidence { load: load(0.1, 1), ..Evidence::new(one) };
    assert_eq!(kinds(&m, &e), [Kind::Headroom]);
    let room = Details::Room { share: 0.1, instances: 1, capacity: None };
    assert_eq!(diagnose(&m, &e)[0].details, room);
}

// The budget ended the ladder at two, and the goal's users got a tenth of what it had promised.
#[test]
fn an_app_below_its_offered_load_has_no_headroom() {
    let one = saturation(1, 2.0, 0.001, 0.1);
    let ladder = ladder(&[(1, 1.0), (2, 2.0)]);
    let m = Model::new(ladder, one, ServiceShape::constant(), 2.0);
    let load = |outcome| Some(Load { share: 0.01, instances: 1, outcome });
    let with = |load| Evidence { load, ..Evidence::new(one) };
    assert_eq!(kinds(&m, &with(load(Outcome::of(38.0, 40.0)))), [Kind::Headroom]);
    assert_eq!(kinds(&m, &with(load(Outcome::of(4.0, 40.0)))), [Kind::Waiting]);
}

// Each request waits 200 ms. Up to 64 at once were tried, and the goal has 400 users.
#[test]
fn a_load_that_cannot_be_sent_is_generator_bound() {
    let endless = ladder(&[1, 2, 4, 8, 16, 32, 64].map(|c| (c, 5.0 * c as f64)));
    let one = saturation(1, 320.0, 0.001, 0.4);
    let m = Model::new(endless, one, ServiceShape::constant(), 2.0);
    let workload = Workload::Closed { users: 400, think: 0.0 };
    let shortage = InFlightLimit::within(512).shortage(&workload, 0.2);
    let e = Evidence { shortage, ..Evidence::new(one) };
    let findings = diagnose(&m, &e);
    assert_eq!(kinds(&m, &e), [Kind::GeneratorBound]);
    assert_eq!((instance_limit(&m, &e), findings[0].confidence), (Kind::GeneratorBound, 0.99));
    assert_eq!(findings[0].remedy, Remedy::OpenFiles(1456));
    // An end of growth that was reached is still the app's own.
    let serial = Evidence { shortage, ..Evidence::new(saturation(1, 5.0, 0.001, 0.1)) };
    let kinds = kinds(&model(1, 0.2, 0.001, 2.0), &serial);
    assert_eq!(kinds, [Kind::GeneratorBound, Kind::Serialized, Kind::Waiting]);
}

#[test]
fn errors_come_first() {
    let (m, e) = saturated(saturation(1, 1.0, 0.005, 0.0), saturation(2, 2.0, 0.005, 0.0));
    let errors = Some((0.2, "status 500".to_owned()));
    let e = Evidence { errors, error_limit: 0.001, generator_thread: 0.97, ..e };
    assert_eq!(kinds(&m, &e)[..2], [Kind::Failing, Kind::GeneratorBound]);
}

#[test]
fn a_trial_acquits_the_balancer() {
    let m = model(4, 0.001, 0.0004, 2.0);
    let e = Evidence { balancer_thread: 0.9, ..Evidence::new(saturation(1, 4000.0, 0.0004, 2.0)) };
    assert_eq!(kinds(&m, &e)[0], Kind::BalancerBound);
    let question = Question::of_one(&m, &e)[0];
    let acquitted = Evidence { trials: vec![question.answer(1, 4000.0, 4100.0)], ..e };
    assert_eq!(kinds(&m, &acquitted), [Kind::CpuBound]);
}

// The second instance brings nothing either, and one request at a time keeps the balancer as busy.
#[test]
fn a_full_balancer_hides_the_limit_of_the_app() {
    let (m, e) = saturated(saturation(1, 9000.0, 1e-5, 1.2), saturation(2, 8500.0, 1e-5, 1.2));
    let full = |e| Evidence { balancer_thread: 0.98, ..e };
    assert_eq!(kinds(&m, &full(e.clone())), [Kind::BalancerBound]);
    let busy = Evidence { busiest_thread: Some(0.9), ..e };
    assert_eq!(kinds(&m, &full(busy)), [Kind::BalancerBound], "a busy thread was not the limit");
}

// On sixteen cores, one instance leaves a quarter of the balancer's thread, as the trial said. Two would
// need all of it.
#[test]
fn a_full_balancer_is_no_shared_dependency() {
    let relayed = |s: Saturation| Saturation { relay_demand: 2.2e-5, relay_thread: 1.5e-5, ..s };
    let (one, two) = (saturation(1, 49_000.0, 2e-5, 1.0), saturation(2, 65_000.0, 2e-5, 1.3));
    let (one, two) = (relayed(one), relayed(two));
    let mut m = model(1, 1.0 / one.throughput, one.app_demand, 16.0);
    m.fit(&[two]);
    let alone = Evidence { balancer_thread: 0.735, ..Evidence::new(one) };
    let trials = vec![Question::of_one(&m, &alone)[0].answer(1, 49_000.0, 50_000.0)];
    let e = Evidence { two: Some(two), balancer_thread: 0.975, trials, ..alone };
    assert_eq!(kinds(&m, &e), [Kind::CpuBound]);
    assert_eq!(Question::of_two(&m, &e), None);
}

// One thread fills the one core that the quota grants: a larger quota alone would not help it.
#[test]
fn a_thread_may_be_as_full_as_the_quota() {
    let (m, e) = saturated(saturation(1, 50.0, 0.02, 1.0), saturation(2, 100.0, 0.02, 2.0));
    let e = Evidence { throttled: Some(0.9), busiest_thread: Some(0.97), ..e };
    assert_eq!(kinds(&m, &e), [Kind::CpuThrottled, Kind::CpuBound]);
}

// Go with SQLite: 1.35 of two cores, no thread full, and more than half of a request is CPU.
#[test]
fn an_app_at_no_limit_has_a_finding() {
    let m = model(4, 0.002, 0.0015, 2.0);
    let (m, e) = (m, Evidence::new(saturation(1, 900.0, 0.0015, 1.45)));
    assert_eq!(kinds(&m, &e), [Kind::CpuBound]);
    assert_eq!((instance_limit(&m, &e), diagnose(&m, &e)[0].confidence), (Kind::CpuBound, 0.3));
    // A single one in flight, and no end in sight.
    let open = Model::new(ladder(&[(1, 400.0), (2, 800.0)]), e.one, ServiceShape::constant(), 2.0);
    assert_eq!(kinds(&open, &e), [instance_limit(&open, &e)]);
}
