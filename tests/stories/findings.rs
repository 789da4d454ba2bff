//! Findings on apps of `tests/apps` that have one bottleneck and no other, and on pairs.
//!
//! Apps are measured again when Tenfold itself says that the machine was too busy. A busy machine makes
//! even a sleep longer. So checks that rest on rates hold only of a plan that Tenfold stands for.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use serde_json::Value;

use crate::harness::{
    Home, alone, cannot_judge, cannot_run, eventually, example, free_address, json, said, shared,
    sound,
};

/// Everybody asks at once and without a pause: the limit shows.
const ALL_IT_CAN: &str = "--users 40 --max-instances 2 --budget 15s";

/// The plan for an app.
fn plan(app: &str, arguments: &str) -> Value {
    let output = measure(app, arguments);
    let plan = json(&output);
    // What a busy machine may have changed is no answer.
    let codes: &[i32] = if plan["undecided"] == true { &[4] } else { &[0, 3] };
    assert!(codes.contains(&output.status.code().unwrap()), "{}", said(&output));
    plan
}

/// Its plan, unless Tenfold doubts it each time because the machine was busy with something else.
fn sound_plan(app: &str, arguments: &str) -> Option<Value> {
    sound(json(&measure(app, arguments)))
}

/// The plan of an app that is held to limits, where this user may set them.
fn limited_plan(app: &str, arguments: &str) -> Option<Value> {
    let output = measure(app, arguments);
    if said(&output).contains("; run it as root, or under") {
        assert_eq!(output.status.code(), Some(1), "never unlimited in silence: {}", said(&output));
        cannot_run("this user may make no control groups");
        return None;
    }
    // An instance that does not even get its quota is not stopped by it.
    sound(json(&output))
}

fn measure(app: &str, arguments: &str) -> Output {
    let app = folder().join(app);
    let program = match app.extension().and_then(|kind| kind.to_str()) {
        Some("py") => "python3",
        Some("rb") => "ruby",
        _ => "node",
    };
    measure_command(arguments, &format!("{program} {}", app.display()))
}

fn measure_command(arguments: &str, command: &str) -> Output {
    Home::new().measure(&format!("plan --quiet --json - {arguments} -- {command}"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apps")
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
    let Some(plan) = sound_plan("serialized/app.rb", ALL_IT_CAN) else { return };
    assert_eq!(kinds(&plan), ["serialized", "waiting"], "{:#}", plan["findings"]);
    assert_eq!(shown(&plan, "second_instance"), "serialized");
}

#[test]
fn workers_that_sleep_are_waiting() {
    let _machine = alone();
    let Some(plan) = sound_plan("waiting/app.py", ALL_IT_CAN) else { return };
    assert_eq!(kinds(&plan), ["waiting"], "{:#}", plan["findings"]);
    assert_eq!(plan["recommendation"]["limited_by"], "waiting");
}

#[test]
fn a_lock_between_instances_is_a_shared_dependency() {
    let _machine = alone();
    let Some(plan) = sound_plan("shared_dependency/app.py", ALL_IT_CAN) else { return };
    assert_eq!(kinds(&plan)[0], "shared_dependency", "{:#}", plan["findings"]);
    assert_eq!(shown(&plan, "second_instance"), "shared_dependency");
    assert_eq!(plan["recommendation"]["instances"], 1, "more instances will not help: {plan:#}");
}

#[test]
fn a_second_instance_that_is_slower_is_told() {
    let _machine = alone();
    let goal = "--rate 15 --p95 400ms --max-instances 2 --budget 20s";
    let Some(plan) = sound_plan("slow_second/app.rb", goal) else { return };
    assert_eq!(kinds(&plan)[0], "uneven_instances", "{:#}", plan["findings"]);
    let finding = &plan["findings"][0];
    let evidence = finding["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("instance 2 takes "), "{evidence}");
    let service = |at: usize| finding["by_instance"][at]["service_ms"].as_f64().unwrap();
    assert!((2.5..6.0).contains(&(service(1) / service(0))), "{finding:#}");
    let reason = plan["recommendation"]["reason"].as_str().unwrap();
    assert!(reason.contains("but instances differ: instance 2 takes "), "{reason}");
    assert!(!kinds(&plan).contains(&"shared_dependency"), "{:#}", plan["findings"]);
}

/// A server beside the app; ended when the story is over.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_full_database_is_named() {
    let _machine = alone();
    let address = free_address();
    let port = address.split(':').next_back().unwrap();
    let database = folder().join("database/db.py");
    let database = Command::new("python3").arg(database).arg(port).spawn().unwrap();
    let _database = Beside(database);
    eventually("the database listens", || TcpStream::connect(&address).is_ok());
    let arguments = format!("--watch db=:{port} --env DB={port} {ALL_IT_CAN}");
    let Some(plan) = sound_plan("database/app.py", &arguments) else { return };
    assert_eq!(kinds(&plan)[0], "shared_dependency", "{:#}", plan["findings"]);
    let evidence = plan["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("; db uses ") && evidence.ends_with(" 16 connections"), "{evidence}");
}

#[test]
fn a_watched_port_without_a_listener_is_refused() {
    let _machine = shared();
    let address = free_address();
    let port = address.split(':').next_back().unwrap();
    let arguments = format!("plan --watch db=:{port} --users 2 --budget 10s -- sleep 60");
    let output = Home::new().run(&arguments);
    let told = format!("listens on port {port}; start it first, or correct --watch db=:{port}");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains(&told), "{}", said(&output));
}

#[test]
fn a_pool_of_five_is_connection_limited() {
    let _machine = alone();
    let Some(plan) = sound_plan("connection_limited/app.py", ALL_IT_CAN) else { return };
    assert_eq!(kinds(&plan)[0], "connection_limited", "{:#}", plan["findings"]);
    let evidence = plan["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("it has 5 connections to 127.0.0.1:"), "{evidence}");
}

#[test]
fn waiting_and_a_pool_are_both_found() {
    let _machine = alone();
    let arguments = "--env SLEEP=0.15 --users 100 --max-instances 2 --budget 20s";
    let Some(plan) = sound_plan("connection_limited/app.py", arguments) else { return };
    assert_eq!(kinds(&plan), ["connection_limited", "waiting"], "{:#}", plan["findings"]);
}

#[test]
fn a_healthy_app_has_only_headroom() {
    let _machine = alone();
    let arguments = "--rate 20 --p95 500ms --max-instances 2 --budget 20s";
    let Some(plan) = sound_plan("headroom/app.js", arguments) else { return };
    assert_eq!(kinds(&plan), ["headroom"], "{:#}", plan["findings"]);
    assert_eq!(plan["recommendation"]["limited_by"], "headroom");
}

#[test]
fn a_computing_thread_is_cpu_bound() {
    let _machine = alone();
    let arguments = "--users 4 --max-instances 2 --budget 20s";
    let Some(plan) = sound_plan("cpu/cpu.rb", arguments) else { return };
    assert_eq!(kinds(&plan), ["cpu_bound"], "{:#}", plan["findings"]);
}

#[test]
fn spinning_threads_are_oversubscribed() {
    let _machine = alone();
    let arguments = "--users 4 --max-instances 2 --budget 20s";
    let Some(plan) = sound_plan("oversubscribed/app.js", arguments) else { return };
    assert_eq!(kinds(&plan), ["oversubscribed", "cpu_bound"], "{:#}", plan["findings"]);
    assert_eq!(shown(&plan, "second_instance"), "oversubscribed");
    assert_eq!(plan["recommendation"]["instances"], 1, "fewer is faster: {plan:#}");
}

#[test]
fn a_cpu_quota_is_found_as_throttling() {
    let _machine = alone();
    let arguments = "--cpus 0.2 --users 4 --max-instances 2 --budget 20s";
    let Some(plan) = limited_plan("quota/quota.py", arguments) else { return };
    assert_eq!(kinds(&plan)[0], "cpu_throttled", "{:#}", plan["findings"]);
    assert_eq!(plan["recommendation"]["limited_by"], "cpu_throttled");
}

#[test]
fn a_leak_is_memory_pressure_before_memory_is_short() {
    let _machine = alone();
    let plan = plan("leak/leak.js", "--users 4 --max-instances 2 --budget 20s");
    assert_eq!(kinds(&plan)[0], "memory_pressure", "{:#}", plan["findings"]);
    let evidence = plan["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("every request leaves "), "{evidence}");
}

// Its heap is there from the start, and grows by what every request leaves until it is collected.
#[test]
fn first_time_heap_growth_is_not_a_leak() {
    let _machine = alone();
    let app = folder().join("garbage/Garbage.java");
    let arguments = "--users 20 --think 100ms --p95 200ms --max-instances 2 --budget 25s";
    let output = measure_command(arguments, &format!("java {}", app.display()));
    let plan = json(&output);
    assert!(!kinds(&plan).contains(&"memory_pressure"), "{:#}", plan["findings"]);
}

#[test]
fn a_quota_and_a_leak_are_both_found() {
    let _machine = alone();
    let arguments = "--cpus 0.2 --memory 256MB --users 4 --max-instances 2 --budget 30s";
    let Some(plan) = limited_plan("quota_and_memory/app.py", arguments) else { return };
    let mut kinds = kinds(&plan);
    assert_eq!(kinds[0], "memory_pressure", "{:#}", plan["findings"]);
    // The instance that was killed may have had a request.
    kinds.retain(|kind| *kind != "failing");
    assert_eq!(kinds[..2], ["memory_pressure", "cpu_throttled"], "{:#}", plan["findings"]);
}

// A page from memory, by a program that needs less of a core for it than whoever passes it on.
#[test]
fn a_server_faster_than_the_balancer_is_balancer_bound() {
    let _machine = alone();
    let source = example("static-cost");
    let place = tempfile::tempdir().unwrap();
    let server = place.path().join("static");
    let compiled =
        Command::new("cc").arg("-O2").arg("-o").arg(&server).arg(source.join("static.c")).output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{}", said(&compiled));
    let command =
        format!("{} {{port}} {} 0", server.display(), source.join("index.html").display());
    let output = measure_command("--users 4 --max-instances 1 --budget 30s", &command);
    let Some(plan) = sound(json(&output)) else { return };
    assert_eq!(kinds(&plan)[0], "balancer_bound", "{:#}", plan["findings"]);
    assert_eq!(shown(&plan, "no_balancer"), "balancer_bound");
}

// Each request in flight takes three of its files, and 512 are not enough for 400.
#[test]
fn a_goal_beyond_the_file_limit_is_generator_bound() {
    let _machine = alone();
    let home = Home::new();
    let app = folder().join("generator_bound/app.js");
    let arguments = "--users 400 --max-instances 2 --budget 8s";
    let tenfold =
        home.tenfold(&format!("plan --quiet --json - {arguments} -- node {}", app.display()));
    let output = home.within("ulimit -n 512", &tenfold).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{}", said(&output));
    let plan = json(&output);
    if plan["verdict"] == "invalid" {
        return cannot_judge(&format!("the measurement is not valid: {}", plan["verdict_reasons"]));
    }
    assert_eq!(kinds(&plan)[0], "generator_bound", "{:#}", plan["findings"]);
    let remedy = plan["findings"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("ulimit -n 1456"), "{remedy}");
    assert_eq!(plan["stop"]["reason"], "generator_bound", "{plan:#}");
    assert_eq!(plan["verdict"], "suspect", "the goal was not measured: {plan:#}");
    // Unless a busy machine made the ladder flat.
    if plan["slots"].is_null() {
        assert_eq!(kinds(&plan), ["generator_bound"], "{:#}", plan["findings"]);
        assert_eq!(plan["recommendation"]["limited_by"], "generator_bound", "{plan:#}");
    }
}

// One instance has its CPU full and two have the lock: only a core less can tell one from the other.
#[test]
fn measuring_with_one_core_less_tells_a_lock_from_cpu() {
    let _machine = alone();
    let costs = "--env SLEEP=0 --env CPU=0.0125 --env HOLD=0.011";
    let arguments = format!("{costs} --users 8 --max-instances 2 --budget 20s");
    let Some(plan) = sound_plan("shared_dependency/app.py", &arguments) else { return };
    assert_eq!(kinds(&plan), ["shared_dependency", "cpu_bound"], "{:#}", plan["findings"]);
    assert_eq!(shown(&plan, "one_core_less"), "shared_dependency");
    let evidence = plan["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("; with a core less it was "), "{evidence}");
}
