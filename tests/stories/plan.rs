//! The main job on real apps: FibScale, a blocking backend, a product search.
//!
//! Times are asserted as ratios: the machine is noisy, and the tests' build is not optimised.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};
use std::time::Instant;

use capacity::ModelInputs;
use serde_json::Value;

use crate::harness::{Home, alone, eventually, example, free_address, json, said, shared, sound};

/// A plan of an example with further arguments, as JSON. None if Tenfold doubts it each time, as on a
/// machine that is busy with something else.
fn plan(home: &Home, name: &str, arguments: &str) -> Option<(Value, Output)> {
    let config = example(name).join("tenfold.toml");
    let arguments = format!("plan --quiet --json - --config {} {arguments}", config.display());
    let output = home.measure(&arguments);
    Some((sound(json(&output))?, output))
}

fn close(value: &Value, wanted: f64, share: f64) -> bool {
    (value.as_f64().unwrap() / wanted - 1.0).abs() <= share
}

fn kinds(plan: &Value) -> Vec<&str> {
    plan["findings"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect()
}

/// The probe of a purpose with so many instances, the last one if there are several.
fn probe<'a>(plan: &'a Value, purpose: &str, instances: u64) -> &'a Value {
    let probes = plan["probes"].as_array().unwrap();
    let fits = |p: &&Value| p["purpose"] == purpose && p["instances"] == instances;
    probes.iter().rfind(fits).unwrap_or_else(|| panic!("no such probe in {plan:#}"))
}

// Delay 1 s, 10 users thinking 1 s: the whole case as it was published, within the default budget.
#[test]
fn fibscale_saturates_at_one_and_four_hold_the_goal() {
    let _machine = alone();
    let Some((plan, output)) = plan(&Home::new(), "fibscale", "--budget 90s") else { return };
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(close(&probe(&plan, "ladder", 1)["throughput"], 1.0, 0.05), "{plan:#}");
    assert!(close(&probe(&plan, "goal", 3)["throughput"], 3.0, 0.05), "{plan:#}");
    assert_eq!(kinds(&plan)[..2], ["serialized", "waiting"]);
    assert_eq!(plan["recommendation"]["instances"], 4, "{plan:#}");
    assert_eq!(plan["recommendation"]["limited_by"], "serialized");
    assert!(plan["duration_s"].as_f64().unwrap() < 100.0);
}

// FibScale at a tenth of its delay, with every count up to 10 measured beside its prediction.
#[test]
fn fibscale_is_predicted_within_ten_percent() {
    let _machine = alone();
    let fast = "--env FIBSCALE_DELAY=0.1 --think 100ms --p95 200ms --sweep --max-instances 10";
    let Some((plan, output)) = plan(&Home::new(), "fibscale", fast) else { return };
    let curve = plan["curve"].as_array().unwrap();
    assert_eq!(curve.len(), 10, "{}", said(&output));
    let basis: ModelInputs = serde_json::from_value(plan["basis"].clone()).unwrap();
    let model = basis.model().unwrap();
    for (point, instances) in curve.iter().zip(1..) {
        let measured = point["measured"]["throughput"].as_f64().unwrap();
        assert!(close(&point["predicted"]["throughput"], measured, 0.10), "{point:#}");
        let again = capacity::expect(&model, &basis.goal.workload, instances);
        assert_eq!(point["predicted"]["throughput"], again.throughput, "from what was kept");
    }
}

/// Requests a second that an example answers without Tenfold, one after the other.
fn asked_alone(app: &mut Command, path: &str) -> f64 {
    const REQUESTS: u32 = 40;
    let address = free_address();
    let mut app = app.env("PORT", address.rsplit(':').next().unwrap()).spawn().unwrap();
    let address = address.parse().unwrap();
    let answers = || TcpStream::connect(address).is_ok();
    eventually("the app listens", answers);
    let begun = Instant::now();
    (0..REQUESTS).for_each(|_| drop(answer(address, path)));
    let rate = f64::from(REQUESTS) / begun.elapsed().as_secs_f64();
    app.kill().unwrap();
    app.wait().unwrap();
    rate
}

/// What is answered to a GET.
fn answer(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.lines().next().unwrap_or_default();
    assert!(["HTTP/1.0 200 OK", "HTTP/1.1 200 OK"].contains(&status), "{answer}");
    answer
}

// A sleep of 20 ms takes up to 3 ms longer where idle cores are slow to wake.
#[test]
fn four_hundred_a_second_need_ten_blocking_instances() {
    let _machine = alone();
    let mut app = Command::new("python3");
    app.arg(example("blocking").join("blocking.py"));
    let before = asked_alone(&mut app, "/");
    let Some((plan, output)) = plan(&Home::new(), "blocking", "") else { return };
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let plateau = probe(&plan, "ladder", 1)["throughput"].as_f64().unwrap();
    let alone = [before, asked_alone(&mut app, "/")];
    let (least, most) = (alone[0].min(alone[1]), alone[0].max(alone[1]));
    assert!(
        plateau > 0.95 * least && plateau < 1.05 * most.max(50.0),
        "beside {alone:?}: {plan:#}"
    );
    assert_eq!(kinds(&plan)[..2], ["serialized", "waiting"]);
    let instances = plan["recommendation"]["instances"].as_u64().unwrap();
    assert!((9..=11).contains(&instances), "{plan:#}");
    let confirmed = probe(&plan, "goal", instances);
    assert!(confirmed["latency_ms"]["p95"].as_f64().unwrap() <= 100.0);
    assert!(close(&confirmed["throughput"], 400.0, 0.10), "{confirmed:#}");
}

// Too much for one and not for two, also where the cores become faster or slower by a third meanwhile.
#[test]
fn the_cores_limit_product_searches() {
    let _machine = alone();
    let home = Home::new();
    let cores = std::thread::available_parallelism().unwrap().get();
    let mut app = Command::new("node");
    app.arg(example("search").join("server.js")).env("MAX_NUMBER", "33");
    let rate = 0.7 * asked_alone(&mut app, "/products/search") * cores as f64;
    let arguments =
        format!("--rate {rate:.1} --p95 2s --env MAX_NUMBER=33 --max-instances {}", cores + 2);
    let Some((plan, output)) = plan(&home, "search", &arguments) else { return };
    assert_eq!(kinds(&plan)[0], "cpu_bound", "{}", said(&output));
    let recommendation = &plan["recommendation"];
    assert!(recommendation["instances"].as_u64().unwrap() <= cores as u64, "{plan:#}");
    assert_eq!(recommendation["limited_by"], "cpu_bound");
    // Where they change their speed meanwhile, one may hold the goal, or two leave some of them to a third.
    let reason = recommendation["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("the {cores} cores")), "{reason}");
}

// One process of many threads fills all cores; a second only competes for them.
#[test]
fn a_second_multi_threaded_instance_does_not_help() {
    let _machine = alone();
    let Some((plan, output)) = plan(&Home::new(), "threads", "--budget 90s") else { return };
    assert_eq!(kinds(&plan)[0], "oversubscribed", "{}", said(&output));
    let recommendation = &plan["recommendation"];
    assert_eq!(recommendation["instances"], 1, "{plan:#}");
    let reason = recommendation["reason"].as_str().unwrap();
    // It does 6 to 10 % less, and the cores may change as much between two probes. So the measurements decide.
    let measured = |count| probe(&plan, "goal", count)["throughput"].as_f64().unwrap();
    let is_slower = measured(2) < capacity::calibration::SLOWER_GAIN * measured(1);
    let says = if is_slower { "a second would make it slower" } else { "a second would not help" };
    assert!(reason.contains(says), "{reason}");
}

// The second instance, which runs already, is measured first and for as long as there is time; what it cannot take
// is the answer's.
#[test]
fn the_answer_is_measured_after_a_wrong_first_count() {
    let _machine = shared();
    let app = format!("{}/../../tests/apps/serialized/app.rb", env!("CARGO_MANIFEST_DIR"));
    let goal = "--rate 20 --p95 300ms --max-instances 2 --budget 14s";
    let plan = json(&Home::new().run(&format!("plan --quiet --json - {goal} -- ruby {app}")));
    let answer = plan["recommendation"]["instances"].as_u64().unwrap();
    assert!(probe(&plan, "goal", answer)["requests"].as_u64().unwrap() > 0, "{plan:#}");
}

#[test]
fn only_the_listed_counts_are_measured() {
    let _machine = shared();
    let app = format!("{}/../../tests/apps/serialized/app.rb", env!("CARGO_MANIFEST_DIR"));
    let asked = "--users 2 --think 100ms --counts 1,3 --sweep=1s";
    let plan = json(&Home::new().run(&format!("plan --quiet --json - {asked} -- ruby {app}")));
    let instances = |list: &str, wanted: fn(&Value) -> bool| -> Vec<u64> {
        let all = plan[list].as_array().unwrap().iter().filter(|item| wanted(item));
        all.map(|item| item["instances"].as_u64().unwrap()).collect()
    };
    assert_eq!(instances("curve", |_| true), [1, 3], "{plan:#}");
    let mut measured = instances("probes", |probe| probe["purpose"] == "goal");
    measured.dedup();
    assert_eq!(measured, [3, 1], "{plan:#}");
    assert_eq!(plan["stop"]["explanation"], "1 and 3 were measured");
}

#[test]
fn without_a_workload_one_and_two_instances_are_measured() {
    let _machine = shared();
    let app = format!("{}/../../tests/apps/serialized/app.rb", env!("CARGO_MANIFEST_DIR"));
    let asked = "--budget 20s --allow-suspect";
    let output = Home::new().run(&format!("plan --quiet --json - {asked} -- ruby {app}"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let plan = json(&output);
    assert!(plan["recommendation"].is_null() && plan["goal"]["users"].is_null(), "{plan:#}");
    assert_eq!(plan["capacity"]["limited_by"], "serialized", "{plan:#}");
    assert_eq!(plan["capacity"]["second_helps"], true, "{plan:#}");
    assert_eq!(plan["stop"]["reason"], "capacity");
}

// One plan for all of it: measuring takes the time.
#[test]
fn a_plan_is_printed_written_priced_and_kept() {
    let _machine = alone();
    let home = Home::new();
    assert!(said(&home.run("runs")).contains("No runs yet"));
    let program = env!("CARGO_BIN_EXE_tenfold");
    let first = home.measure(&format!(
        "plan --quiet --rate 30 --p95 500ms --max-instances 2 --budget 20s --prices aws:us-east-1 \
         --json plan.json --env PASSWORD=s3cret -- env TOKEN=s3cret {program} demo-app"
    ));
    let written: Value =
        serde_json::from_slice(&std::fs::read(home.path().join("plan.json")).unwrap()).unwrap();
    let expected = if written["undecided"] == true { 4 } else { 0 };
    assert_eq!(first.status.code(), Some(expected), "{}", said(&first));
    assert!(said(&first).contains("env TOKEN=*** "), "{}", said(&first));
    follows_the_contract(&written);
    has_a_machine_to_spare(&written);

    assert!(said(&home.run("runs")).contains("demo-app"));
    assert_eq!(home.files_with("s3cret"), [""; 0]);
    assert_eq!(said(&home.run("show last")), said(&first));
    assert_eq!(json(&home.run("show last --json -")), written);
    let none = home.run("show 7");
    assert_eq!(none.status.code(), Some(2));
    assert!(said(&none).contains("there is no run 7: `tenfold runs` lists them"));
}

fn follows_the_contract(plan: &Value) {
    assert_eq!(plan["schema"], "tenfold/plan/1");
    let absent = "started_at command machine goal verdict verdict_reasons probes curve findings \
                  recommendation cost"
        .split_whitespace()
        .find(|key| plan.get(key).is_none());
    assert_eq!(absent, None);
    let stop = &plan["stop"];
    assert!(stop["reason"].is_string() && stop["explanation"].is_string(), "{stop}");
    assert_eq!(plan["goal"]["users"], Value::Null, "absent is null, never 0");
    assert_eq!(plan["goal"]["p95_ms"], 500.0);
    let probe = probe(plan, "goal", plan["recommendation"]["instances"].as_u64().unwrap());
    let of_times = |times: &Value| {
        ["mean", "p50", "p75", "p90", "p95", "p99", "max"].iter().all(|k| times.get(k).is_some())
    };
    assert!(
        ["latency_ms", "service_ms", "queue_ms"].iter().all(|k| of_times(&probe[k])),
        "{probe:#}"
    );
    let cpu = &probe["cpu_cores"];
    assert!(
        ["app", "balancer", "generator", "machine"].iter().all(|k| cpu[k].is_number()),
        "{probe:#}"
    );
}

fn has_a_machine_to_spare(plan: &Value) {
    let cost = &plan["cost"];
    assert_eq!(cost["origin"]["as_of"], "2026-07-20", "{plan:#}");
    let instances = plan["recommendation"]["instances"].as_u64().unwrap();
    let offers = cost["offers"].as_array().unwrap();
    assert!(offers.len() >= 4, "{cost:#}");
    for offer in offers {
        let number = |key: &str| offer[key].as_u64().unwrap();
        assert_eq!(number("machines"), instances.div_ceil(number("instances_each")) + 1);
    }
}

#[test]
fn every_count_gets_as_many_arrivals_as_the_rate_says() {
    let _machine = alone();
    let app = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/apps/sleep/sleep.js");
    let output = Home::new().measure(&format!(
        "plan --quiet --json - --rate 97.5 --counts 1,2,3 --sweep=2s --max-instances 3 -- node {app}"
    ));
    let Some(plan) = sound(json(&output)) else { return };
    let probes = plan["probes"].as_array().unwrap().iter();
    let offered: Vec<f64> = probes
        .filter(|probe| probe["purpose"] == "goal")
        .map(|probe| probe["offered"].as_f64().unwrap())
        .collect();
    // 195 Poisson arrivals vary by 7 %, one standard deviation.
    let is_exact = |offered: &f64| (offered / 97.5 - 1.0).abs() < 0.03;
    assert!(offered.len() == 3 && offered.iter().all(is_exact), "{offered:?}");
}
