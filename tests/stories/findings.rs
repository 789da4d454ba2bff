//! Findings on apps of `tests/apps` that have one bottleneck and no other, and on a pair.
//!
//! Apps that sleep are told apart by ratios that a busy machine leaves as they are; the others are
//! measured again when Tenfold itself says that the machine was too busy.

use std::path::Path;

use serde_json::Value;

use crate::house::{Home, alone, json, said};

/// Everybody asks at once and without a pause: the limit shows.
const ALL_IT_CAN: &str = "--users 40 --max-instances 2 --budget 15s";

/// The plan for an app.
fn plan(app: &str, arguments: &str) -> Value {
    let program = match Path::new(app).extension().and_then(|kind| kind.to_str()) {
        Some("py") => "python3",
        Some("rb") => "ruby",
        _ => "node",
    };
    let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apps").join(app);
    let home = Home::new();
    let output =
        home.measure(&format!("plan --quiet --json - {arguments} -- {program} {}", app.display()));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    json(&output)
}

fn kinds(plan: &Value) -> Vec<&str> {
    plan["findings"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect()
}

/// What the trial of this change speaks for.
fn shown<'a>(plan: &'a Value, change: &str) -> &'a str {
    let tried = plan["interventions"].as_array().unwrap();
    let trial = tried.iter().find(|trial| trial["change"] == change);
    trial.unwrap_or_else(|| panic!("{change} was not tried: {plan:#}"))["shows"].as_str().unwrap()
}

#[test]
fn one_request_at_a_time_is_serialized() {
    let _machine = alone();
    let plan = plan("serialized/app.rb", ALL_IT_CAN);
    assert_eq!(kinds(&plan), ["serialized", "waiting"], "{plan:#}");
    assert_eq!(shown(&plan, "second_instance"), "serialized");
}

#[test]
fn workers_that_sleep_are_waiting() {
    let _machine = alone();
    let plan = plan("waiting/app.py", ALL_IT_CAN);
    assert_eq!(kinds(&plan), ["waiting"], "{plan:#}");
    assert_eq!(plan["recommendation"]["limited_by"], "waiting");
}

#[test]
fn a_lock_that_instances_share_is_a_shared_dependency() {
    let _machine = alone();
    let plan = plan("shared_dependency/app.py", ALL_IT_CAN);
    assert_eq!(kinds(&plan)[0], "shared_dependency", "{plan:#}");
    assert_eq!(shown(&plan, "second_instance"), "shared_dependency");
    assert_eq!(plan["recommendation"]["instances"], 1, "more instances will not help: {plan:#}");
}

#[test]
fn a_pool_of_five_is_connection_limited() {
    let _machine = alone();
    let plan = plan("connection_limited/app.py", ALL_IT_CAN);
    assert_eq!(kinds(&plan)[0], "connection_limited", "{plan:#}");
    let evidence = plan["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("it has 5 connections to 127.0.0.1:"), "{evidence}");
}

#[test]
fn a_wait_and_a_pool_are_both_found() {
    let _machine = alone();
    let arguments = "--env SLEEP=0.1 --users 100 --max-instances 2 --budget 20s";
    let plan = plan("connection_limited/app.py", arguments);
    assert_eq!(kinds(&plan), ["connection_limited", "waiting"], "{plan:#}");
}

#[test]
fn a_healthy_app_has_headroom_and_nothing_else() {
    let _machine = alone();
    let plan = plan("headroom/app.js", "--rate 20 --p95 500ms --max-instances 2 --budget 15s");
    assert_eq!(kinds(&plan), ["headroom"], "{plan:#}");
    assert_eq!(plan["recommendation"]["limited_by"], "headroom");
}
