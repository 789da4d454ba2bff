//! `plan` behind the real nginx and HAProxy.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Home, alone, eventually, json, processes, said, send, shared, sound};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// What the bundled app needs behind a balancer: one request at a time, 20 ms each.
fn plan(home: &Home, program: &str) -> Value {
    let arguments = format!(
        "plan --quiet --json - --balancer {program} --rate 100 --p95 150ms --max-instances 4 --budget 30s \
         --allow-suspect -- {APP} demo-app"
    );
    json(&home.measure(&arguments))
}

/// The mean time (ms) in the balancer's queue when two instances were full.
fn queued(plan: &Value) -> f64 {
    let probes = plan["probes"].as_array().unwrap();
    let full = probes.iter().find(|probe| probe["purpose"] == "saturation").unwrap();
    full["queue_ms"]["mean"].as_f64().unwrap()
}

/// The cost stands in the JSON and in the text that is kept.
fn tells_cost(home: &Home, plan: &Value, spreads: &str) {
    let cost = &plan["balancer"]["cost"];
    // The last measurement may change the answer when no time is left to compare it.
    if sound(plan.clone()).is_some() {
        assert_eq!(cost["instances"], plan["recommendation"]["instances"], "{plan:#}");
    }
    // A disturbed machine takes the time for the comparison, also where a probe was measured again and is valid then.
    let mut probes = plan["probes"].as_array().unwrap().iter();
    let was_disturbed = probes.any(|probe| probe["verdict"] != "valid");
    let has_time = sound(plan.clone()).is_some() && !was_disturbed;
    let is_compared = !cost["built_in"].is_null() || has_time;
    let measured = [Some(&cost["behind"]), is_compared.then_some(&cost["built_in"])];
    for balanced in measured.into_iter().flatten() {
        assert!(balanced["p50_ms"].as_f64().unwrap() >= 20.0, "{cost:#}");
        assert!(balanced["cpu_us"].as_f64().unwrap() > 1.0, "{cost:#}");
    }
    let sentence = cost["text"].as_str().unwrap();
    assert!(sentence.contains(spreads), "{sentence}");
    assert!(sentence.starts_with(&format!("With {} instance", cost["instances"])), "{sentence}");
    let shown = said(&home.run("show last"));
    assert!(shown.contains(sentence) && shown.contains("\nBalancer: "), "{shown}");
}

#[test]
fn a_plan_behind_nginx_tells_what_it_costs() {
    let _machine = alone();
    let home = Home::new();
    let plan = plan(&home, "nginx");
    tells_cost(&home, &plan, "nginx (least_conn)");
    assert_eq!(queued(&plan), 0.0, "requests wait in the instances");
    let exported = said(&home.run("export last --to nginx --instances 2"));
    assert!(exported.contains("as when the plan was"), "{exported}");
    assert_eq!(processes(&home.path().join("state").display().to_string()), [0; 0]);
}

#[test]
fn a_plan_behind_haproxy_gives_it_the_slots_that_it_found() {
    let _machine = alone();
    let home = Home::new();
    let plan = plan(&home, "haproxy");
    tells_cost(&home, &plan, "HAProxy (leastconn)");
    assert_eq!(plan["balancer_slots"], 1, "{plan:#}");
    // Four at once, of which each instance holds one.
    assert!(queued(&plan) > 15.0, "{plan:#}");
}

#[test]
fn nothing_of_a_balancer_outlives_a_killed_plan() {
    let _machine = shared();
    let home = Home::new();
    let files = home.path().join("state/balancer").display().to_string();
    let mut plan = home.tenfold(&format!("plan --quiet --balancer nginx -- {APP} demo-app"));
    let mut plan = plan.stdout(Stdio::null()).spawn().unwrap();
    eventually("nginx runs", || !processes(&files).is_empty());
    send(plan.id(), Signal::KILL);
    plan.wait().unwrap();
    eventually("nginx is gone", || processes(&files).is_empty());
}

#[test]
fn a_plan_takes_the_balancer_and_its_settings_from_the_file() {
    let _machine = shared();
    let home = Home::new();
    let file = home.path().join("t.toml");
    let refused = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = home.run(&format!("plan --config t.toml -- {APP} demo-app"));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    let slots = refused("app.slots = 3\nbalancer.program = \"nginx\"\n");
    assert!(slots.contains("t.toml:1: nginx has no queue, so app.slots"), "{slots}");
    let health = refused("app.health.path = \"/\"\nbalancer.program = \"haproxy\"\n");
    assert!(health.contains("t.toml:1: app.health is of Tenfold's own balancer"), "{health}");
}
