use capacity::calibration::SLOWER_GAIN;
use capacity::testing::{bounds, ladder, measured, model, open, saturation};
use capacity::{
    Bounds, Goal, Kind, Measured, Model, Saturation, ServiceShape, Workload, recommend,
};

use super::*;

fn why(model: &Model, goal: &Goal, bounds: &Bounds, known: &[Measured]) -> String {
    reason(&recommend(model, goal, bounds, known))
}

// 400 requests a second of 20.5 ms each, one at a time.
#[test]
fn an_unconfirmed_answer_says_so() {
    let mut m = model(1, 0.0205, 0.0001, 2.0);
    m.fit(&[saturation(2, 2.0 / 0.0205, 0.0001, 0.1)]);
    let bounds = bounds(Kind::Serialized);
    let answer = |known: &[_]| recommend(&m, &open(400.0, 0.1), &bounds, known);
    let n = answer(&[]).instances;
    let guess = reason(&answer(&[]));
    let head = format!("Run {n} instances: nothing measured confirms it, but they should hold");
    assert!(guess.starts_with(&head), "{guess}");
    assert!(guess.contains(&format!(", {} would not (", n - 1)), "{guess}");
    let known = reason(&answer(&[measured(n, 0.05), measured(n - 1, 0.3)]));
    assert!(known.starts_with(&format!("Run {n} instances: they hold the goal (p95 50 ms")));
    assert!(known.contains(&format!(", {} do not (p95 300 ms measured)", n - 1)), "{known}");
}

// What a count is said to miss is what it missed.
#[test]
fn the_figure_that_misses_its_bound_is_named() {
    let mut m = model(1, 0.0205, 0.0001, 2.0);
    m.fit(&[saturation(2, 2.0 / 0.0205, 0.0001, 0.1)]);
    let bounds = bounds(Kind::Serialized);
    let goal = Goal { p99: Some(0.2), ..open(400.0, 0.1) };
    let fewer = recommend(&m, &goal, &bounds, &[]).instances - 1;
    let said = |fewer: Measured| {
        let n = fewer.instances + 1;
        why(&m, &goal, &bounds, &[fewer, measured(n, 0.04)])
    };
    let good = measured(fewer, 0.05);
    let failing = said(Measured { errors: 0.05, ..good });
    assert!(failing.contains(" do not (5 % of the requests failed)"), "{failing}");
    let late = said(Measured { p99: Some(0.3), ..good });
    assert!(late.contains(" do not (p99 300 ms measured)"), "{late}");
    let behind = said(Measured { throughput: 350.0, ..good });
    assert!(behind.contains(" do not (350 of 400 requests/s measured)"), "{behind}");
}

#[test]
fn a_maximum_of_one_is_named() {
    let m = model(1, 0.0205, 0.0001, 2.0);
    let bounds = Bounds { max_instances: 1, ..bounds(Kind::Serialized) };
    let reason = why(&m, &open(400.0, 0.1), &bounds, &[]);
    assert!(reason.contains("; more than one was not allowed (--max-instances)"), "{reason}");
}

// A second of sleep each, as far as two at once were tried, and a tenth of what that promised to forty.
#[test]
fn cores_that_were_never_busy_are_not_blamed() {
    let ladder = ladder(&[(1, 1.0), (2, 2.0)]);
    let m = Model::new(ladder, saturation(1, 2.0, 0.001, 0.1), ServiceShape::constant(), 2.0);
    let workload = Workload::Closed { users: 40, think: 0.0 };
    let goal = Goal { workload, ..open(1.0, 2.0) };
    let bounds = Bounds { max_instances: 1, ..bounds(Kind::Waiting) };
    let seen = Measured { throughput: 4.0, ..measured(1, 10.0) };
    let reason = why(&m, &goal, &bounds, &[seen]);
    let head = "The goal is out of reach here: 1 instance comes nearest (p95 10.0 s measured); but 4.00 \
                requests/s were completed where 40.0 were predicted";
    assert!(reason.starts_with(head), "{reason}");
    assert!(reason.ends_with("; more than one was not allowed (--max-instances)."), "{reason}");
    assert!(!reason.contains("cores") && !reason.contains("limited by"), "{reason}");
}

// The first rung was cold: its 20 ms are no least that a request takes.
#[test]
fn the_time_of_a_request_alone_is_named_if_it_misses_the_goal() {
    let ladder = ladder(&[(1, 50.0), (2, 400.0), (4, 410.0)]);
    let one = saturation(1, 410.0, 0.001, 0.5);
    let m = Model::new(ladder, one, ServiceShape::constant(), 2.0);
    let bounds = Bounds { max_instances: 1, ..bounds(Kind::Waiting) };
    let said = |p95| why(&m, &open(100.0, p95), &bounds, &[measured(1, 0.03)]);
    assert!(!said(0.01).contains("a request alone takes"), "{}", said(0.01));
    assert!(said(0.004).contains("a request alone takes 5.00 ms"), "{}", said(0.004));
}

// The model takes 390 of them to be the most; all 400 were answered, but late.
#[test]
fn the_reason_quotes_the_measured_throughput() {
    let m = model(8, 0.0205, 0.0001, 2.0);
    let bounds = Bounds { max_instances: 1, ..bounds(Kind::Waiting) };
    let said = |known: &[_]| why(&m, &open(400.0, 0.1), &bounds, known);
    let late = said(&[measured(1, 0.3)]);
    assert!(late.contains("1 instance comes nearest (p95 300 ms measured)"), "{late}");
    let behind = said(&[Measured { throughput: 300.0, p50: Some(0.01), ..measured(1, 0.3) }]);
    assert!(behind.contains("1 instance completes 300 of 400 requests/s"), "{behind}");
    assert!(said(&[]).contains("1 instance completes 390 of 400 requests/s"), "{}", said(&[]));
}

// One in five thousand, where one in ten thousand may.
#[test]
fn a_small_share_that_fails_is_not_none() {
    let m = model(1, 0.0205, 0.0001, 2.0);
    let bounds = Bounds {
        max_instances: 1,
        failing: Some(Failing::Requests(0.0002)),
        ..bounds(Kind::Serialized)
    };
    let reason = why(&m, &open(10.0, 0.1), &bounds, &[]);
    let said = "0.02 % of the requests fail without any overload; more instances would fail";
    assert!(reason.contains(said), "{reason}");
}

// One thread, and a cluster of two workers, on a machine that has more cores.
#[test]
fn the_reason_names_the_cores_that_an_instance_keeps_busy() {
    for (workers, cores) in [(1, "the one core that"), (2, "the 1.9 cores that")] {
        let m = model(workers, 0.01, 0.0095, 8.0);
        let bounds = Bounds { max_instances: 8, ..bounds(Kind::CpuBound) };
        let reason = why(&m, &open(80.0, 0.1), &bounds, &[]);
        assert!(reason.contains(&format!("{cores} an instance keeps busy")), "{reason}");
    }
}

// `/api` of examples/threads under 100 users: one fills the cores but for what is lost in handing over.
#[test]
fn oversubscription_is_not_blamed_on_user_count() {
    let (one, relay) = (saturation(1, 34_579.0, 3.23e-5, 1.69), 1.64e-5);
    let rungs = [(1, 8000.0), (4, 16_700.0), (16, 31_550.0), (32, 33_750.0), (64, 34_579.0)];
    let ladder = ladder(&rungs);
    let two = saturation(2, 33_656.0, 3.65e-5, 1.83);
    let relayed = |s| Saturation { relay_demand: relay, relay_thread: 1.2e-5, ..s };
    let mut m = Model::new(ladder, relayed(one), ServiceShape::constant(), 2.0);
    m.fit(&[relayed(two)]);
    let workload = Workload::Closed { users: 100, think: 0.0 };
    let goal = Goal { p95: None, workload, ..open(1.0, 1.0) };
    let bounds = Bounds { max_instances: 4, ..bounds(Kind::CpuBound) };
    let r = recommend(&m, &goal, &bounds, &[]);
    let gain = m.capacity(2) / m.capacity(1);
    assert!(r.instances == 1 && (SLOWER_GAIN..1.0).contains(&gain), "{gain}: {}", reason(&r));
    let told = "a second would not help, for the cores are busy";
    assert!(reason(&r).contains(told), "{}", reason(&r));
}

#[test]
fn ordinals_take_the_right_article_and_ending() {
    assert_eq!(
        [2, 8, 11, 21, 80, 112].map(ordinal),
        ["a second", "an eighth", "an 11th", "a 21st", "an 80th", "a 112th"]
    );
}

// 100 users of an app that fills both cores: it did more than the model of it says.
#[test]
fn no_limit_is_told_below_what_was_measured() {
    let m = model(8, 0.002, 0.00051, 2.0);
    let goal =
        Goal { p95: None, workload: Workload::Closed { users: 100, think: 0.0 }, ..open(1.0, 1.0) };
    let seen = Measured { throughput: 4607.0, offered: 4607.0, ..measured(1, 0.02) };
    assert!(m.capacity(2) < 4100.0, "{}", m.capacity(2));
    let reason = why(&m, &goal, &Bounds { max_instances: 1, ..bounds(Kind::CpuBound) }, &[seen]);
    assert!(reason.contains("carry 4607 requests/s") && !reason.contains("raise"), "{reason}");
}

// Express at 10 requests/s of 2600, where two fill the cores.
#[test]
fn busy_cores_are_not_named_at_a_load_that_leaves_them_idle() {
    let mut m = model(1, 0.001, 0.0009, 1.0);
    m.fit(&[saturation(2, 980.0, 0.0009, 0.99)]);
    let r = recommend(&m, &open(10.0, 0.1), &bounds(Kind::CpuBound), &[]);
    assert_eq!(r.limited_by, Kind::Headroom);
    assert!(reason(&r).contains("a second is not needed"), "{}", reason(&r));
}

// Users were served 3 % better by two than by one, where the model takes two for slower.
#[test]
fn an_instance_that_was_measured_to_help_is_not_called_harmful() {
    let mut m = model(8, 0.004, 0.001, 2.0);
    m.fit(&[saturation(2, 1500.0, 0.0013, 1.95)]);
    let workload = Workload::Closed { users: 100, think: 0.0 };
    let goal = Goal { p95: None, workload, ..open(1.0, 1.0) };
    let seen = |n, throughput| Measured { throughput, offered: throughput, ..measured(n, 0.06) };
    let said = |known: &[_]| why(&m, &goal, &bounds(Kind::CpuBound), known);
    assert!(said(&[]).contains("a second would make it slower"), "{}", said(&[]));
    let known = said(&[seen(1, 1800.0), seen(2, 1854.0)]);
    assert!(known.contains("a second would not help, for the cores are busy"), "{known}");
}

#[test]
fn arrivals_that_were_more_by_chance_are_told() {
    let m = model(8, 0.02, 0.0001, 2.0);
    let goal = Goal { p95: None, ..open(10.0, 1.0) };
    let said = |sent| {
        let seen = Measured { throughput: sent, offered: sent, ..measured(1, 0.03) };
        why(&m, &goal, &bounds(Kind::Waiting), &[seen])
    };
    assert!(
        said(11.9).contains("(11.9 requests/s measured, as 11.9 were sent by chance)"),
        "{}",
        said(11.9)
    );
    assert!(said(10.1).contains("(10.1 requests/s measured)"), "{}", said(10.1));
}
