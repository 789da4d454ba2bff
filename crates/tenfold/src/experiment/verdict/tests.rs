use std::slice::from_ref;
use std::time::Duration;

use super::*;
use crate::config::Pattern;
use crate::experiment::Experiment;
use crate::experiment::answer;
use crate::experiment::knowledge::tests::{experiment, known};
use crate::experiment::observation::tests::seen;

/// What was measured of the goal's workload: throughput, p95 (ms), and cores that other programs used beside it.
type Seen = (f64, f64, f64);

const GOOD: Seen = (200.0, 30.0, 0.0);
const LATE: Seen = (180.0, 400.0, 0.0);

/// What was seen of this many instances, and by which share a request may yet cost less CPU.
fn seen_with(instances: usize, seen_as: Seen, warming: Option<f64>) -> Observation {
    let (throughput, p95, beside) = seen_as;
    let mut o = seen(instances, None, throughput, beside);
    (o.offered, o.probe.latency_ms.p95, o.warming) = (200.0, Some(p95), warming);
    o
}

/// The plan of an app of which this was measured, and that contradicts itself in so much.
fn judged(
    experiment: &Experiment,
    measured: &[Observation],
    contradictions: &[Contradiction],
) -> Plan {
    let mut known = known(experiment);
    measured.iter().for_each(|o| known.confirm(o));
    let mut plan = answer::plan(&known, String::new(), Duration::ZERO, None);
    judge(&known, &mut plan, contradictions);
    plan
}

/// The plan of an app whose goal was measured so with four and three instances.
fn plan_of(experiment: &Experiment, four: Seen, three: Seen) -> Plan {
    judged(experiment, &[seen_with(4, four, None), seen_with(3, three, None)], &[])
}

#[test]
fn a_model_that_is_contradicted_leaves_no_answer_where_the_count_rests_on_it() {
    let experiment = experiment();
    let (four, three) = (seen_with(4, GOOD, None), seen_with(3, LATE, None));
    let wrong = Contradiction::Carried { instances: 5, carried: 250.0, measured: 300.0 };
    let plan = judged(&experiment, from_ref(&four), &[wrong]);
    assert_eq!((plan.undecided, plan.verdict), (true, Verdict::Suspect));
    assert!(plan.recommendation.unwrap().reason.starts_with("No answer yet: the model says that"));
    let plan = judged(&experiment, &[four.clone(), three], &[wrong]);
    assert_eq!((plan.undecided, plan.verdict), (false, Verdict::Suspect), "both were measured");
    let reason = Contradiction::Reason { limited_by: capacity::Kind::Waiting };
    let plan = judged(&experiment, &[four], &[reason]);
    assert_eq!((plan.undecided, plan.verdict), (false, Verdict::Suspect), "the count stands");
}

/// The plan of an app whose requests take so much CPU (s) of their 20 ms, where these counts were measured after the
/// cores had become 1.4 times slower.
fn plan_on_slower_cores(demand: f64, counts: &[Observation]) -> Plan {
    let experiment = experiment();
    let mut known = known(&experiment);
    let set = |time_of_work, o: &mut Observation| {
        (o.time_of_work, o.app_cores) = (Some(time_of_work), demand * o.throughput());
    };
    let facts = known.learn();
    facts.rungs.iter_mut().chain(&mut facts.second).for_each(|o| set(20e-6, o));
    for count in counts {
        let mut later = count.clone();
        set(28e-6, &mut later);
        known.confirm(&later);
    }
    answer::plan(&known, String::new(), Duration::ZERO, None)
}

#[test]
fn cores_that_change_their_speed_make_a_plan_suspect() {
    let (four, three) = (seen_with(4, GOOD, None), seen_with(3, LATE, None));
    let told = "the same work took 1.40 times as much CPU before some probes as before others";
    let plan = plan_on_slower_cores(0.015, &[four.clone(), three.clone()]);
    assert_eq!((plan.verdict, plan.undecided), (Verdict::Suspect, false), "{plan:#?}");
    assert!(plan.verdict_reasons[0].starts_with(told), "{:?}", plan.verdict_reasons);
    let answer = plan.recommendation.unwrap();
    assert_eq!((answer.low, answer.instances), (3, 4), "three might do on the faster cores");
    let five = seen_with(5, GOOD, None);
    let plan = plan_on_slower_cores(0.015, &[five, four.clone()]);
    assert!(plan.undecided, "one less is known from the faster cores alone: {plan:#?}");
    let plan = plan_on_slower_cores(0.002, &[four.clone(), three]);
    assert_eq!(plan.verdict, Verdict::Valid, "a request waits for most of its time: {plan:#?}");
    let plan = plan_on_slower_cores(0.015, &[four]);
    assert_eq!(plan.verdict, Verdict::Valid, "a single time may be long by chance: {plan:#?}");
}

#[test]
fn users_without_a_goal_for_latency_rest_on_the_model() {
    let mut experiment = experiment();
    experiment.workload.pattern = Pattern::Closed { users: 40, think: Duration::from_millis(200) };
    (experiment.goal.p95, experiment.goal.p99) = (None, None);
    let (four, three) = (seen_with(4, GOOD, None), seen_with(3, LATE, None));
    let wrong = Contradiction::Carried { instances: 5, carried: 250.0, measured: 300.0 };
    assert!(judged(&experiment, &[four, three], &[wrong]).undecided);
}

#[test]
fn a_count_that_rests_on_a_cold_probe_is_no_answer() {
    let experiment = experiment();
    let (cold, warm) = (Some(0.4), None);
    let is_undecided = |measured: &[Observation]| {
        let plan = judged(&experiment, measured, &[]);
        (plan.undecided, plan.recommendation.unwrap().instances)
    };
    let (four, three) =
        (|warming| seen_with(4, GOOD, warming), |warming| seen_with(3, LATE, warming));
    assert_eq!(is_undecided(&[four(cold)]), (true, 4), "one less is not known");
    assert_eq!(is_undecided(&[four(warm), three(cold)]), (true, 4), "warm it might hold");
    assert_eq!(is_undecided(&[four(cold), three(warm)]), (false, 4), "warm they hold all the more");
}

#[test]
fn a_disturbed_answer_needs_allow_suspect() {
    let mut experiment = experiment();
    let (good, late) = ((200.0, 30.0, 3.0), (180.0, 400.0, 3.0));
    let plan = plan_of(&experiment, good, late);
    let r = plan.recommendation.as_ref().unwrap();
    assert!(plan.undecided && r.low < r.high, "{plan:#?}");
    let start = "No answer yet: other programs used 3.0 cores meanwhile; end them and measure again. Nearest: ";
    assert!(r.reason.starts_with(start) && r.reason.contains("--allow-suspect"), "{}", r.reason);
    experiment.suspect = SuspectAnswer::Accepted;
    let plan = plan_of(&experiment, good, late);
    assert_eq!((plan.undecided, plan.verdict), (false, Verdict::Suspect));
    assert!(plan.recommendation.unwrap().reason.starts_with("Run "));
}

#[test]
fn an_undisturbed_measurement_is_an_answer() {
    let plan = plan_of(&experiment(), (200.0, 30.0, 0.0), (180.0, 400.0, 0.0));
    assert_eq!((plan.undecided, plan.verdict), (false, Verdict::Valid), "{plan:#?}");
}

// Four keep all eight cores busy, so that the generator waits for one for a fifth of the time.
#[test]
fn an_app_that_fills_the_cores_is_no_suspect_and_says_how_far_it_can_be_off() {
    let experiment = experiment();
    let mut known = known(&experiment);
    let mut four = seen(4, None, 200.0, 0.0);
    (four.offered, four.app_cores, four.busy_cores) = (200.0, 7.5, Some(7.6));
    (four.probe.verdict, four.probe.latency_ms.p95) = (Verdict::Suspect, Some(90.0));
    four.crowding = 1.25;
    assert_eq!(known.unconfirmed(), Some(known.recommended().unwrap()));
    known.confirm(&four);
    assert!(known.is_confirmed(4), "a second time would be no better");
    let plan = answer::plan(&known, String::new(), Duration::ZERO, None);
    assert_eq!((plan.verdict, plan.undecided), (Verdict::Valid, false), "{plan:#?}");
    let told = "too long by 20 % at most, which makes p95 72 ms to 90 ms";
    assert!(plan.notes.iter().any(|note| note.contains(told)), "{:?}", plan.notes);
}

// Four and three were measured: of ten counts those from two to five are shown.
#[test]
fn counts_that_say_nothing_are_left_out_of_the_table() {
    use crate::report::plan::{Rows, text};
    let plan = plan_of(&experiment(), (200.0, 30.0, 0.0), (180.0, 400.0, 0.0));
    let rows = |rows| {
        let said = text(&plan, rows);
        let table = said.split("The goal's workload").nth(1).unwrap().split("\n\n").next().unwrap();
        table
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect::<Vec<usize>>()
    };
    assert_eq!(rows(Rows::All), (1..=plan.curve.len()).collect::<Vec<_>>());
    assert_eq!(rows(Rows::Relevant)[..4], [2, 3, 4, 5]);
}

#[test]
fn a_sweep_of_some_counts_shows_these_alone_and_names_the_answer_that_it_lacks() {
    let mut experiment = experiment();
    experiment.depth = Depth::Sweep { counts: vec![8, 3, 1], each: None };
    let mut known = known(&experiment);
    for (instances, throughput) in [(8, 200.0), (3, 150.0), (1, 50.0)] {
        let mut o = seen(instances, None, throughput, 0.0);
        (o.offered, o.probe.latency_ms.p95) =
            (200.0, Some(if instances == 8 { 30.0 } else { 900.0 }));
        known.confirm(&o);
    }
    let plan = answer::plan(&known, String::new(), Duration::ZERO, None);
    assert_eq!(plan.curve.iter().map(|point| point.instances).collect::<Vec<_>>(), [1, 3, 8]);
    let r = plan.recommendation.unwrap();
    assert!((4..8).contains(&r.instances), "{r:?}");
    let lacks = format!("{0} running, so add {0} to --counts. Nearest: {0} instances", r.instances);
    assert!(plan.undecided && r.reason.contains(&lacks), "{}", r.reason);
}

#[test]
fn without_a_workload_the_answer_is_what_one_instance_and_two_carry() {
    use crate::report::plan::{Rows, text};
    let experiment = Experiment { depth: Depth::Capacity, ..experiment() };
    let mut known = known(&experiment);
    let plan = |known: &Knowledge<'_>| answer::plan(known, String::new(), Duration::ZERO, None);
    let sound = plan(&known);
    assert_eq!((sound.goal.users, sound.goal.rate, &sound.recommendation), (None, None, &None));
    assert!(sound.is_met() && !sound.undecided, "{sound:#?}");
    let said = text(&sound, Rows::Relevant);
    assert!(said.contains(" requests/s, limited by each instance serving one "), "{said}");
    assert!(said.contains("Two carry 101, so a second helps. To learn how many"), "{said}");
    assert!(!said.contains("The goal's workload"), "{said}");
    known.learn().rungs = vec![seen(1, Some(1), 50.0, 3.0), seen(1, Some(2), 51.0, 3.0)];
    known.learn().second = Some(seen(2, Some(4), 101.0, 3.0));
    let disturbed = plan(&known);
    assert!(disturbed.undecided, "{disturbed:#?}");
    assert!(disturbed.answer().unwrap().starts_with("No answer yet: other programs used 3.0"));
}
