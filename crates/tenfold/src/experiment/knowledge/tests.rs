use std::time::Duration;

use capacity::recommendation::reason::{Head, Obstacle};
use fleet::Past;

use super::*;
use crate::config::{Goal, InstanceSource, MeasuredBalancer, Request, Runnable, Workload};
use crate::document::resources::Limited;
use crate::experiment::crash::Deaths;
use crate::experiment::observation::tests::seen;
use crate::experiment::{Depth, SuspectAnswer};

/// An app that serves one at a time, 50 a second: 200 are wanted, of which 1 % may fail.
pub fn experiment() -> Experiment {
    let request =
        Request { method: "GET".into(), path: "/".into(), headers: Vec::new(), body: Vec::new() };
    let program = fleet::Program::new(vec!["true".to_owned()], fleet::Logs::new("/dev/null"));
    Experiment {
        runnable: Runnable {
            app: fleet::App::named("app"),
            source: InstanceSource::Processes(program),
            watched: Vec::new(),
        },
        balancer: MeasuredBalancer::default(),
        workload: Workload { pattern: Pattern::Open { rate: 200.0 }, request },
        goal: Goal { p95: Some(Duration::from_millis(100)), p99: None, max_errors: 0.01 },
        max_instances: 8,
        budget: Duration::from_secs(90),
        depth: Depth::Confirm,
        suspect: SuspectAnswer::Refused,
        record: None,
    }
}

/// What was measured of one instance and of two, on eight cores.
pub fn known(experiment: &Experiment) -> Knowledge<'_> {
    let machine = Machine { cores: 8, online_cores: 8, ..Machine::read() };
    let mut known = Knowledge::new(experiment, machine, InFlightLimit::within(4096));
    known.learn().rungs = vec![seen(1, Some(1), 50.0, 0.0), seen(1, Some(2), 51.0, 0.0)];
    known.learn().second = Some(seen(2, Some(4), 101.0, 0.0));
    known
}

// One instance does 51 a second, and takes 20 ms for a request.
#[test]
fn a_goal_is_near_until_one_instance_did_twice_as_much() {
    let is_near = |pattern| {
        let mut experiment = experiment();
        experiment.workload.pattern = pattern;
        known(&experiment).is_goal_near()
    };
    let open = [200.0, 26.0, 25.0].map(|rate| is_near(Pattern::Open { rate }));
    assert_eq!(open, [true, true, false]);
    let closed = [380, 980]
        .map(|think| is_near(Pattern::Closed { users: 20, think: Duration::from_millis(think) }));
    assert_eq!(closed, [true, false], "50 and 20 a second");
}

#[test]
fn disturbed_probes_are_no_misses_of_the_model() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let sent = |instances, throughput, beside| {
        let mut o = seen(instances, None, throughput, beside);
        o.offered = 200.0;
        o
    };
    known.confirm(&sent(4, 150.0, 2.0));
    assert_eq!((known.misses, known.notes().len()), (0, 0), "{:?}", known.notes());
    let throughputs = |known: &Knowledge<'_>| -> Vec<f64> {
        known.several().iter().map(|s| s.throughput).collect()
    };
    assert_eq!(throughputs(&known), [101.0], "it is measured again");
    known.confirm(&sent(4, 199.0, 0.0));
    assert_eq!(throughputs(&known), [101.0, 199.0]);
    known.confirm(&sent(3, 90.0, 0.0));
    assert_eq!((known.misses, known.notes().len()), (1, 1), "that is one");
    known.confirm(&sent(5, 120.0, 2.0));
    known.confirm(&sent(5, 130.0, 2.0));
    assert_eq!(throughputs(&known)[3..], [120.0, 130.0], "twice in vain");
}

// With a core less two instances completed half as much, while another program took half of the other core.
#[test]
fn a_disturbed_trial_shows_nothing() {
    let experiment = experiment();
    let known = known(&experiment);
    assert!(known.is_undisturbed(&seen(2, Some(4), 100.0, 0.1)));
    assert!(!known.is_undisturbed(&seen(2, Some(4), 50.0, 0.5)));
    let mut stolen = seen(2, Some(4), 50.0, 0.5);
    stolen.stolen_cores = 0.5;
    assert!(!known.is_undisturbed(&stolen));
}

// An app that fails one request in two hundred, which the goal allows.
#[test]
fn an_app_does_not_fail_by_a_single_error() {
    let experiment = experiment();
    let failing = |requests, errors| {
        let mut known = known(&experiment);
        let first = &mut known.learn().rungs[0].probe;
        (first.requests, first.errors) = (requests, errors);
        (known.failing(), known.evidence().unwrap().errors.is_some())
    };
    assert_eq!(failing(26, 1), (None, false));
    assert_eq!(failing(50, 10), (Some(Failing::Requests(0.2)), true));
}

// Requests wait until it is started again, so that none of them fails.
#[test]
fn an_instance_that_dies_again_and_again_fails_without_a_failed_request() {
    let experiment = experiment();
    let failing = |index, restarts, memory_kills| {
        let mut known = known(&experiment);
        let past = Past { restarts, memory_kills, ..Past::default() };
        known.learn().deaths.insert(index, Deaths { name: "app".to_owned(), past });
        let (model, bounds) = known.model().unwrap();
        let answer = capacity::recommend(model, &known.goal(), bounds, &known.measurements());
        let findings = known.findings(model, answer.instances, answer.limited_by, answer.goal_met);
        let is_found = findings.iter().any(|f| f.kind == capacity::Kind::Failing);
        let failing = known.failing();
        let is_obstacle =
            |failing| answer.reason.head == Head::OutOfReach(Obstacle::Failing(failing));
        (failing, failing.is_some_and(is_obstacle), is_found)
    };
    assert_eq!(failing(1, 1, 0), (None, false, false), "by chance");
    assert_eq!(failing(1, 2, 2), (None, false, false), "at its memory limit");
    assert_eq!(failing(3, 9, 0), (None, false, false), "one too many");
    assert_eq!(failing(1, 2, 0), (Some(Failing::Deaths(2)), true, true));
}

// Killed at its memory limit and started again, it had used no CPU when the probe ended.
#[test]
fn cpu_of_an_instance_that_died_teaches_nothing() {
    let experiment = experiment();
    let learned = |is_interrupted| {
        let mut known = known(&experiment);
        let limited = Limited {
            cpus: Some(0.5),
            throttled_ratio: Some(1.0),
            throttled_cores: Some(0.5),
            ..Limited::default()
        };
        known.learn().rungs.iter_mut().for_each(|rung| rung.probe.limited = Some(limited));
        let mut killed = seen(1, None, 50.0, 0.0);
        (killed.app_cores, killed.busy_cores, killed.is_interrupted) =
            (0.05, Some(0.25), is_interrupted);
        known.learn().confirmed.push(killed);
        let other_cores = known.facts.confirmed[0].other_cores();
        let (quota, _) = known.quota().unwrap();
        (quota.demand.mean, known.several().len(), other_cores > 0.0)
    };
    assert_eq!(learned(true), (0.01, 1, false));
    let (demand, several, is_disturbed) = learned(false);
    assert!(demand < 0.008 && several == 2 && is_disturbed, "otherwise it would");
}

#[test]
fn an_instance_killed_between_two_probes_was_short_of_memory() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let past = Past { restarts: 1, memory_kills: 1, ..Past::default() };
    known.learn().deaths.insert(1, Deaths { name: "app".to_owned(), past });
    assert_eq!(known.memory().kills, 1);
    known.learn().rungs[1].probe.memory_kills = 1;
    assert_eq!(known.memory().kills, 1, "it is the same one");
}

// Two at a time that take 0.4 to 1.6 s each: two instances did 1.65 times one by chance.
#[test]
fn a_few_slow_requests_tell_little() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let reports = |instances, users, throughput, requests| {
        let mut o = seen(instances, Some(users), throughput, 0.0);
        (o.probe.requests, o.shape.scv, o.app_cores) = (requests, 0.12, 0.0);
        o
    };
    known.learn().rungs =
        vec![reports(1, 1, 1.06, 10), reports(1, 2, 2.01, 23), reports(1, 4, 2.17, 21)];
    known.learn().second = Some(reports(2, 8, 3.57, 32));
    let rungs = known.ladder().unwrap().rungs().iter().map(|r| r.error).collect::<Vec<_>>();
    assert!(rungs.iter().all(|error| (0.1..0.25).contains(error)), "{rungs:?}");
    let (model, _) = known.model().unwrap();
    let kinds = capacity::diagnose(model, &known.evidence().unwrap());
    assert!(kinds.iter().all(|f| f.kind != capacity::Kind::SharedDependency), "{kinds:?}");
}

#[test]
fn page_cache_is_room_that_is_left() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let first = &mut known.learn().rungs[0];
    first.probe.limited = Some(Limited {
        memory_bytes: Some(512 << 20),
        memory_used_bytes: Some(510 << 20),
        ..Limited::default()
    });
    first.memory_left = Some(302 << 20);
    assert_eq!(known.memory().room, Some(302 << 20));
}

#[test]
fn a_probe_without_arrivals_misses_no_goal() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let mut nobody = seen(4, None, 0.0, 0.0);
    (nobody.slowest, nobody.probe.rate) = (None, Some(200.0));
    nobody.probe.verdict = Verdict::Invalid;
    known.confirm(&nobody);
    assert_eq!((known.measurements().len(), known.misses), (0, 0));
    nobody.offered = 200.0;
    known.confirm(&nobody);
    assert_eq!(known.measurements().len(), 1, "who came and got no answer missed it");
}

// In a container that may use less than the machine has free.
#[test]
fn a_second_instance_takes_no_memory_from_the_first() {
    let experiment = experiment();
    let has_room = |megabytes: u64| {
        let mut known = known(&experiment);
        known.machine.memory_bytes = Some(megabytes << 20);
        for rung in &mut known.learn().rungs {
            (rung.rss, rung.memory_available) = (Some(220 << 20), Some(8 << 30));
        }
        known.has_room_for_two()
    };
    assert!(has_room(450) && !has_room(400));
}

#[test]
fn times_of_a_crowded_machine_tell_more_than_none() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let mut confirm = |verdict, is_crowded, beside, p95| {
        let mut o = seen(4, None, 200.0, beside);
        (o.probe.verdict, o.probe.latency_ms.p95, o.is_crowded) = (verdict, Some(p95), is_crowded);
        known.confirm(&o);
        known.basis().unwrap().confirmed.iter().map(|m| m.p95).collect::<Vec<_>>()
    };
    assert_eq!(confirm(Verdict::Suspect, false, 0.0, 90.0), []);
    assert_eq!(confirm(Verdict::Suspect, true, 2.0, 80.0), []);
    assert_eq!(confirm(Verdict::Suspect, true, 0.0, 30.0), [Some(0.03)]);
    assert_eq!(
        confirm(Verdict::Valid, true, 0.0, 25.0),
        [Some(0.025)],
        "as long as there is no better"
    );
}

// What nobody has looked at says more than what was looked at and is suspect.
#[test]
fn one_less_is_measured_before_the_answer_is_measured_again() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let answer = known.recommended().unwrap();
    let mut beside = seen(answer, None, 200.0, 2.0);
    beside.offered = 200.0;
    known.confirm(&beside);
    let answer = known.recommended().unwrap();
    assert_eq!((known.facts().confirmed.len(), known.unconfirmed()), (1, Some(answer - 1)));
}

// Five that had just started took three times the CPU (tests/apps/thread_pool).
#[test]
fn instances_that_still_warm_up_teach_no_limit() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let mut cold = seen(5, None, 120.0, 0.0);
    (cold.offered, cold.app_cores, cold.warming) = (200.0, 7.9, Some(0.71));
    known.confirm(&cold);
    assert_eq!((known.misses, known.notes().len()), (0, 0), "{:?}", known.notes());
    assert_eq!(known.several().len(), 1, "it is measured again");
    known.confirm(&cold);
    let taught = known.several().last().map(|s| s.filling);
    assert_eq!(taught, Some(Filling::Partial), "they do so much, or more");
    let probe = cold.judged(0.0);
    assert_eq!(probe.verdict, Verdict::Suspect);
    assert!(probe.verdict_reasons[0].contains("may yet take 71 % less CPU"), "{probe:?}");
}

#[test]
fn two_that_were_measured_warm_later_replace_two_cold_ones() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let mut cold = seen(2, Some(4), 90.0, 0.0);
    cold.warming = Some(0.1);
    known.learn().second = Some(cold);
    assert!(known.second().is_some(), "nothing else is known");
    known.confirm(&seen(2, None, 60.0, 0.0));
    assert!(known.second().is_some(), "a load that leaves slots idle");
    known.confirm(&seen(2, Some(4), 101.0, 0.0));
    assert!(known.second().is_none());
    assert_eq!(known.several().last().unwrap().throughput, 101.0);
}

// CPU milliseconds a request, by rung. One app's code is compiled meanwhile. Another app's loop serves
// several requests in a turn.
#[test]
fn a_rung_that_may_have_been_cold_is_measured_again() {
    let experiment = experiment();
    let doubtful = |demands: [f64; 4]| {
        let mut known = known(&experiment);
        let rung = |(i, demand): (usize, f64)| {
            let mut o = seen(1, Some(1 << i), 50.0, 0.0);
            o.app_cores = demand * 1e-3 * o.throughput();
            o
        };
        known.learn().rungs = demands.into_iter().enumerate().map(rung).collect();
        known.doubtful_rung()
    };
    assert_eq!(doubtful([150.0, 29.0, 24.0, 17.0]), Some(2));
    assert_eq!(doubtful([40.0, 21.0, 20.0, 20.0]), Some(0), "nothing was compiled at first");
    assert_eq!(doubtful([25.0, 21.0, 20.0, 20.0]), None);
    assert_eq!(doubtful([4.0, 0.3, 0.2, 0.1]), None, "it costs next to nothing");
}

// A host that is short of cores takes more of them from a guest that wants more.
#[test]
fn stolen_cores_that_follow_the_load_are_no_dependency() {
    let experiment = experiment();
    let demand = |stolen_share: f64| {
        let mut known = known(&experiment);
        known.learn().rungs =
            [50.0, 100.0, 150.0, 200.0].map(|t| seen(1, Some(4), t, t * 0.005)).into();
        known
            .learn()
            .rungs
            .iter_mut()
            .for_each(|o| o.stolen_cores = stolen_share * o.other_cores());
        known.learn().second = None;
        known.unwatched_demand()
    };
    assert!((demand(0.0) - 0.005).abs() < 1e-6);
    assert!(demand(1.0).abs() < 1e-6);
}

// A later measurement changes the answer, and no time is left to compare the new one.
#[test]
fn a_changed_answer_takes_the_cost_of_the_nearest_count_that_was_compared() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let sent = |instances, throughput| seen(instances, None, throughput, 0.0);
    let at = |known: &Knowledge<'_>, answer| {
        let cost = known.balancing_cost(answer).unwrap();
        let compared = match cost.queue {
            CentralQueue::Measured(queue) => Some(queue.measured.throughput),
            CentralQueue::NotMeasured | CentralQueue::NoWorkload => None,
        };
        (cost.behind.measured.instances, cost.behind.measured.throughput, compared)
    };
    assert_eq!(at(&known, Some(4)), (1, 51.0, None), "only one instance was measured");
    known.confirm(&sent(2, 99.0));
    assert_eq!(at(&known, Some(4)), (2, 99.0, None));
    known.confirm(&sent(5, 199.0));
    known.learn().behind_own_queue.push(sent(5, 198.0));
    assert_eq!(at(&known, Some(5)), (5, 199.0, Some(198.0)));
    assert_eq!(at(&known, Some(4)), (5, 199.0, Some(198.0)), "4 was not measured");
    known.confirm(&sent(4, 190.0));
    assert_eq!(at(&known, Some(4)), (5, 199.0, Some(198.0)), "4 was not compared");
    known.learn().behind_own_queue.push(sent(4, 191.0));
    assert_eq!(at(&known, Some(4)), (4, 190.0, Some(191.0)));
    assert_eq!(at(&known, None), (1, 51.0, None), "without a workload");
}

#[test]
fn a_slow_second_instance_stands_in_the_answer_and_is_no_shared_dependency() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let work = |instance, requests, service| InstanceWork {
        instance,
        requests,
        failed: 0,
        answered: requests,
        service,
        deviation: 0.001,
        in_flight: 1.0,
        cpu: None,
    };
    let mut two = seen(2, Some(4), 62.5, 0.0);
    two.by_instance = vec![work(1, 250, 0.02), work(2, 62, 0.08)];
    known.learn().second = Some(two);
    let plan = crate::experiment::answer::plan(&known, String::new(), Duration::ZERO, None);
    let kinds: Vec<Kind> = plan.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds[0], Kind::UnevenInstances, "{kinds:?}");
    assert!(!kinds.contains(&Kind::SharedDependency), "{kinds:?}");
    assert_eq!(plan.findings[0].by_instance.len(), 2);
    let marked = plan.curve.iter().filter(|point| point.assumes.is_some());
    assert_eq!(marked.count(), plan.curve.len() - 1, "all but one instance");
}
