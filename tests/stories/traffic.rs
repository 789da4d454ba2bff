//! `balance` in front of a real nginx, and `load` on it.

use crate::harness::{Home, alone, example, json, said, shared};
use crate::nginx::Nginx;

#[test]
fn balance_spreads_over_existing_servers() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let balance = home.serve(&format!("balance --listen 127.0.0.1:0 --to {}", nginx.address));
    assert_eq!(balance.get().unwrap(), "hello 127.0.0.1\n");
    let status = json(&home.run("status --json"));
    assert_eq!(status["instances"][0]["requests"], 1);
    let refused = home.run("scale 2");
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("runs no instances"), "{}", said(&refused));
}

#[test]
fn load_reports_throughput_and_times() {
    let _machine = alone();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let url = format!("http://{}/", nginx.address);
    let output = home.measure(&format!("load {url} --rate 200 --duration 2s --quiet --json -"));
    let report = json(&output);
    assert_eq!(report["schema"], "tenfold/load/1");
    assert_eq!(report["errors"], serde_json::json!({}));
    let throughput = report["throughput"].as_f64().unwrap();
    assert!((throughput / 200.0 - 1.0).abs() < 0.05, "{report:#}");
    let text = said(&home.run(&format!("load {url} -n 50 -c 5 --quiet")));
    assert!(text.contains("50 requests") && text.contains("status 200: 50"), "{text}");
    assert!(said(&home.run("runs")).contains("requests/s with 5 users"));
}

#[test]
fn steps_and_traces_send_what_they_say() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let url = format!("http://{}/", nginx.address);
    let trace = home.path().join("minutes.csv");
    std::fs::write(&trace, "minute,requests\n1998-07-07T19:10Z,200\n1998-07-07T19:11Z,0\n")
        .unwrap();
    let trace = format!("--trace {} --trace-speed 60 --trace-scale 0.75", trace.display());
    for (shape, requests) in [("--steps 200:500ms,0-200:500ms,0:1s", 150), (trace.as_str(), 150)] {
        let report = json(&home.run(&format!("load {url} {shape} --quiet --json -")));
        assert_eq!(report["requests"], requests, "{report:#}");
        assert_eq!(report["duration_s"], 2.0);
        assert_eq!(report["warm_up"], serde_json::Value::Null);
    }
    std::fs::write(home.path().join("bad.csv"), "0,5\n1,many\n").unwrap();
    let bad = home.path().join("bad.csv");
    let refused = home.run(&format!("load {url} --trace {}", bad.display()));
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("line 2: 'many' is not a rate"), "{}", said(&refused));
}

/// Throughput of so many blocking instances under 40 users. A tenth of a second each: a machine that
/// does something else meanwhile can still keep up with ten.
fn of_blocking(instances: usize) -> f64 {
    let home = Home::new();
    let app = example("blocking").join("blocking.py");
    let up = home.serve(&format!(
        "up -n {instances} --slots 1 --listen 127.0.0.1:0 --env BLOCKING_MS=100 -- python3 {}",
        app.display()
    ));
    let url = format!("http://{}/", up.address);
    let output = home.measure(&format!("load {url} --users 40 --duration 4s --quiet --json -"));
    json(&output)["throughput"].as_f64().unwrap()
}

#[test]
fn ten_blocking_instances_give_ten_times() {
    let _machine = alone();
    let (one, ten) = (of_blocking(1), of_blocking(10));
    // A stall of the machine takes a tenth of the one or the other.
    assert!((8.0..12.5).contains(&(ten / one)), "{one} and {ten}");
}

#[test]
fn a_slow_server_misses_the_goal() {
    let _machine = alone();
    let home = Home::new();
    let app = home
        .serve(&format!("up --listen 127.0.0.1:0 -- {} demo-app", env!("CARGO_BIN_EXE_tenfold")));
    let url = format!("http://{}/", app.address);
    let output = home.measure(&format!("load {url} --users 4 --duration 2s --p95 30ms --quiet"));
    assert_eq!(output.status.code(), Some(3), "4 users wait 80 ms: {}", said(&output));
}

#[test]
fn an_invalid_url_is_refused() {
    let _machine = shared();
    let output = Home::new().run("load not-a-url --quiet");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("http://127.0.0.1:8080/path"), "{}", said(&output));
}
