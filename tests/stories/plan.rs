//! The main job on real apps: FibScale, a blocking backend, a product search.
//!
//! Times are asserted as ratios: the machine is noisy, and the tests' build is not optimised.

use std::process::{Output, Stdio};

use capacity::Basis;
use rustix::process::Signal;
use serde_json::Value;

use crate::house::{Home, alone, eventually, example, json, processes, said, send, sound};

/// A plan of an example with further arguments, as JSON; none if Tenfold itself doubts it each time, as
/// on a machine that is busy with something else.
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
    let Some((plan, output)) = plan(&Home::new(), "fibscale", "") else { return };
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(close(&probe(&plan, "ladder", 1)["throughput"], 1.0, 0.05), "{plan:#}");
    assert!(close(&probe(&plan, "goal", 3)["throughput"], 3.0, 0.05), "{plan:#}");
    assert_eq!(kinds(&plan)[..2], ["serialized", "waiting"]);
    assert_eq!(plan["recommendation"]["instances"], 4, "{plan:#}");
    assert_eq!(plan["recommendation"]["limited_by"], "serialized");
    assert!(plan["duration_s"].as_f64().unwrap() < 90.0);
}

// The same at a tenth of the delay, every count up to 10 measured: the truth beside the prediction.
#[test]
fn fibscale_is_predicted_within_ten_percent() {
    let _machine = alone();
    let fast = "--env FIBSCALE_DELAY=0.1 --think 100ms --p95 200ms --sweep --max-instances 10";
    let Some((plan, output)) = plan(&Home::new(), "fibscale", fast) else { return };
    let curve = plan["curve"].as_array().unwrap();
    assert_eq!(curve.len(), 10, "{}", said(&output));
    let basis: Basis = serde_json::from_value(plan["basis"].clone()).unwrap();
    let model = basis.model().unwrap();
    for (point, instances) in curve.iter().zip(1..) {
        let measured = point["measured"]["throughput"].as_f64().unwrap();
        assert!(close(&point["predicted"]["throughput"], measured, 0.10), "{point:#}");
        let again = capacity::expect(&model, &basis.goal.workload, instances);
        assert_eq!(point["predicted"]["throughput"], again.throughput, "from what was kept");
    }
}

#[test]
fn four_hundred_a_second_need_ten_blocking_instances() {
    let _machine = alone();
    let Some((plan, output)) = plan(&Home::new(), "blocking", "") else { return };
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let plateau = probe(&plan, "ladder", 1)["throughput"].as_f64().unwrap();
    assert!((plateau / 49.0 - 1.0).abs() < 0.05, "near 50/s whatever the users: {plan:#}");
    assert_eq!(kinds(&plan)[..2], ["serialized", "waiting"]);
    let instances = plan["recommendation"]["instances"].as_u64().unwrap();
    assert!((9..=11).contains(&instances), "{plan:#}");
    let confirmed = probe(&plan, "goal", instances);
    assert!(confirmed["latency_ms"]["p95"].as_f64().unwrap() <= 100.0);
    assert!(close(&confirmed["throughput"], 400.0, 0.10), "{confirmed:#}");
}

// About 30 ms of CPU a request: two cores are full with two instances.
#[test]
fn a_third_search_would_not_help() {
    let _machine = alone();
    let home = Home::new();
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    let rate = 45 * cores / 2;
    let arguments =
        format!("--rate {rate} --p95 2s --env MAX_NUMBER=33 --max-instances {}", cores + 2);
    let Some((plan, output)) = plan(&home, "search", &arguments) else { return };
    assert_eq!(kinds(&plan)[0], "cpu_bound", "{}", said(&output));
    let recommendation = &plan["recommendation"];
    assert!(recommendation["instances"].as_u64().unwrap() <= cores, "{plan:#}");
    assert_eq!(recommendation["limited_by"], "cpu_bound");
    if cores == 2 {
        let reason = recommendation["reason"].as_str().unwrap();
        assert!(reason.contains("a third would not help"), "{reason}");
    }
}

// One process of many threads fills all cores; a second only competes for them.
#[test]
fn a_second_multi_threaded_instance_makes_it_slower() {
    let _machine = alone();
    let Some((plan, output)) = plan(&Home::new(), "threads", "--budget 40s") else { return };
    assert_eq!(kinds(&plan)[0], "oversubscribed", "{}", said(&output));
    let recommendation = &plan["recommendation"];
    assert_eq!(recommendation["instances"], 1, "{plan:#}");
    let reason = recommendation["reason"].as_str().unwrap();
    assert!(reason.contains("a second would make it slower"), "{reason}");
}

// The first such request comes with two in flight: the budget would go by with waiting for it.
#[test]
fn requests_that_never_end_do_not_hold_up_a_plan() {
    let _machine = alone();
    let hanging = "import http.server as h,itertools,os,time
n=itertools.count(1)
class H(h.BaseHTTPRequestHandler):
 def do_GET(s):time.sleep(999 if next(n)%80==0 else .05);s.send_response(200);s.end_headers()
 def log_message(s,*a):pass
h.ThreadingHTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()";
    let home = Home::new();
    let app = home.path().join("hanging.py");
    std::fs::write(&app, hanging).unwrap();
    let arguments = "plan --quiet --json - --rate 20 --budget 20s -- python3";
    let plan = json(&home.run(&format!("{arguments} {}", app.display())));
    let probes = plan["probes"].as_array().unwrap();
    let rungs = probes.iter().filter(|p| p["purpose"] == "ladder").count();
    assert!(rungs > 2, "{plan:#}");
}

#[test]
fn the_json_follows_the_contract() {
    let _machine = alone();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let output = home.measure(&format!(
        "plan --quiet --json - --rate 60 --p95 200ms --budget 30s -- {program} demo-app"
    ));
    let plan = json(&output);
    assert_eq!(plan["schema"], "tenfold/plan/1");
    let absent = "started_at command machine goal verdict verdict_reasons probes curve findings \
                  recommendation cost"
        .split_whitespace()
        .find(|key| plan.get(key).is_none());
    assert_eq!(absent, None);
    let stop = &plan["stop"];
    assert!(stop["reason"].is_string() && stop["explanation"].is_string(), "{stop}");
    assert_eq!(plan["goal"]["users"], Value::Null, "absent is null, never 0");
    assert_eq!(plan["goal"]["p95_ms"], 200.0);
    let probe = probe(&plan, "goal", plan["recommendation"]["instances"].as_u64().unwrap());
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

/// The demo as an app of which only so many instances run; what becomes of the others, in shell.
fn no_more_than(home: &Home, most: usize, others: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tenfold");
    let script = format!("[ $TENFOLD_INSTANCE -le {most} ] && exec {program} demo-app\n{others}\n");
    let path = home.path().join("few.sh");
    std::fs::write(&path, script).unwrap();
    format!("sh {}", path.display())
}

// Two users keep two busy. The third is asked for to see whether more would help.
#[test]
fn an_instance_too_many_that_does_not_start_costs_no_answer() {
    let _machine = alone();
    let home = Home::new();
    let app = no_more_than(&home, 2, "echo no more than two of me >&2; exit 7");
    let arguments = "plan --quiet --json - --users 2 --budget 60s";
    let Some(plan) = sound(json(&home.measure(&format!("{arguments} -- {app}")))) else { return };
    assert_eq!(plan["recommendation"]["instances"], 2, "{plan:#}");
    let curve = plan["curve"].as_array().unwrap();
    assert!(curve[1]["measured"]["throughput"].is_number(), "{plan:#}");
    let notes = plan["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    let told: Vec<&str> = notes.filter(|note| note.contains("nothing could be measured")).collect();
    let [note] = told[..] else { panic!("{plan:#}") };
    let start =
        "With 3 running nothing could be measured: app-3 exited with code 7 before it was ready";
    assert!(note.starts_with(start) && note.ends_with("\n  | no more than two of me"), "{note}");
    let why = plan["stop"]["explanation"].as_str().unwrap();
    assert!(why.ends_with("; 3 could not be measured"), "{why}");
    assert_eq!(plan["stop"]["reason"], "confirmed", "{plan:#}");
}

// A measurement goes on while the instance is started again.
#[test]
fn an_instance_that_dies_while_it_is_measured_is_told() {
    let _machine = alone();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let script = format!("{program} demo-app & sleep 2; [ -e died ] && wait; touch died; exit 3\n");
    std::fs::write(home.path().join("mortal.sh"), script).unwrap();
    let output = home.run("plan --quiet --json - --users 2 --max-instances 1 -- sh mortal.sh");
    let plan = json(&output);
    assert_eq!(plan["verdict"], "suspect", "{plan:#}");
    let told = "app-1 died once while it was measured (exited with code 3); see why";
    assert!(plan["verdict_reasons"].to_string().contains(told), "{plan:#}");
}

// It might be waited for for a minute.
#[test]
fn an_instance_too_many_that_is_never_ready_does_not_outlast_the_budget() {
    let _machine = alone();
    let home = Home::new();
    let app = no_more_than(&home, 2, "exec sleep 4714");
    let arguments = "plan --quiet --json - --users 2 --budget 45s --ready-timeout 60s";
    let Some(plan) = sound(json(&home.run(&format!("{arguments} -- {app}")))) else { return };
    assert_eq!(plan["recommendation"]["instances"], 2, "{plan:#}");
    assert!(plan["duration_s"].as_f64().unwrap() < 50.0, "{plan:#}");
    assert!(plan["notes"].to_string().contains("when the budget was over"), "{plan:#}");
}

#[test]
fn a_signal_ends_the_wait_for_an_instance_too_many() {
    let _machine = alone();
    let home = Home::new();
    let app = no_more_than(&home, 2, "exec sleep 4715");
    let mut plan = home.tenfold(&format!("plan --quiet --json - --users 2 -- {app}"));
    let plan = plan.stdout(Stdio::piped()).spawn().unwrap();
    eventually("the third starts", || !processes("sleep 4715").is_empty());
    send(plan.id(), Signal::INT);
    let output = plan.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(json(&output)["stop"]["reason"], "interrupted");
    assert!(processes("sleep 4715").is_empty());
}
