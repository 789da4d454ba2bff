//! A page that is open while something is measured.

use std::net::SocketAddr;

use serde_json::Value;

use super::asking::{get, read_until, stream};
use crate::harness::{Home, alone, eventually, free_address, json, sound};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");
const PLAN: &str = "plan --rate 60 --p95 200ms --budget 20s --quiet --json -";

/// How wide the interval of one instance's throughput is, as a share.
fn width(plan: &Value) -> f64 {
    let predicted = &plan["curve"][0]["predicted"];
    let value = |name: &str| predicted[name].as_f64().unwrap();
    (value("high") - value("low")) / value("throughput")
}

#[test]
fn a_plan_with_its_page_open_keeps_verdict_and_interval() {
    let _machine = alone();
    let home = Home::new();
    let Some(without) = sound(json(&home.measure(&format!("{PLAN} -- {APP} demo-app")))) else {
        return;
    };
    let admin = free_address();
    let line = format!("{PLAN} --admin {admin} -- {APP} demo-app");
    let mut command = home.tenfold(&line);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let admin: SocketAddr = admin.parse().unwrap();
    eventually("its page is there", || std::net::TcpStream::connect(admin).is_ok());
    let state = get(admin, "/api/state").ok().json();
    assert_eq!((&state["kind"], &state["tick_ms"]), (&"plan".into(), &5000.into()));
    let mut events = stream(admin, state["sequence"].as_u64());
    let told = std::thread::spawn(move || read_until(&mut events, "event: end"));
    let with = json(&child.wait_with_output().unwrap());
    let told = told.join().unwrap();
    for name in ["event: plan", "event: tick", "event: define", "event: end"] {
        assert!(told.contains(name), "no {name}");
    }
    assert!(!told.contains("event: rows"), "rows cost what is measured");
    let ticks = told.matches("event: tick").count();
    let seconds = with["duration_s"].as_f64().unwrap();
    assert!(ticks as f64 <= seconds / 5.0 + 2.0, "{ticks} ticks in {seconds} s");
    let Some(with) = sound(with) else { return };
    assert_eq!(with["verdict"], without["verdict"]);
    assert_eq!(with["recommendation"]["instances"], without["recommendation"]["instances"]);
    // The same class of interval: as narrow, or by less than a factor of chance wider.
    assert!(width(&with) < 3.0 * width(&without) + 0.05, "{} {}", width(&with), width(&without));
}
