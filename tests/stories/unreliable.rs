//! What `load` says of a target that drops requests, or stalls.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{Home, get, json, said, shared};

/// The server of `tests/apps/unreliable`.
struct Unreliable {
    process: Child,
    address: SocketAddr,
}

impl Unreliable {
    fn start(habit: &str) -> Unreliable {
        let app = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/apps/unreliable/app.py");
        let mut command = Command::new("python3");
        command.arg(app).args(habit.split_whitespace()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = ([127, 0, 0, 1], port.trim().parse().unwrap()).into();
        Unreliable { process, address }
    }

    fn dropped(&self) -> u64 {
        let answer = get(self.address, "/dropped").unwrap();
        answer.rsplit("\r\n\r\n").next().unwrap().trim().parse().unwrap()
    }
}

impl Drop for Unreliable {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn count(report: &Value, field: &str) -> u64 {
    report[field].as_u64().unwrap()
}

#[test]
fn requests_that_the_target_drops_are_errors() {
    let _machine = shared();
    let home = Home::new();
    for load in
        ["--rate 50 --duration 6s", "--rate 50 --duration 6s --no-keep-alive", "-c 3 -n 300"]
    {
        let target = Unreliable::start("drop 3");
        let url = format!("http://{}/", target.address);
        let run = home.run(&format!("load {url} {load} --keep-warm-up --quiet --json -"));
        let report = json(&run);
        let failed = count(&report["errors"], "closed_early");
        assert_eq!(failed, target.dropped(), "{load}: {}", said(&run));
        assert!(count(&report, "requests").abs_diff(3 * failed) <= 3, "{load}: {report:#}");
        assert_eq!(count(&report, "requests_repeated"), 0, "{load}");
        assert_eq!(report["verdict"], "suspect", "{load}");
    }
}

#[test]
fn a_script_counts_what_the_target_drops() {
    let _machine = shared();
    let home = Home::new();
    let target = Unreliable::start("drop 3");
    // Two requests a session, so that the second goes out on a used connection.
    let script = format!(
        "config:\n  target: http://{}\n  phases:\n    - {{duration: 3, arrivalRate: 20}}\nscenarios:\n  - flow:\n      \
         - get: {{url: /}}\n      - get: {{url: /}}\n",
        target.address
    );
    std::fs::write(home.path().join("shop.yml"), script).unwrap();
    let report = json(&home.run("load shop.yml --keep-warm-up --quiet --json -"));
    assert_eq!(count(&report["errors"], "closed_early"), target.dropped(), "{report:#}");
    assert!(target.dropped() > 20, "{}", target.dropped());
}

#[test]
fn users_who_wait_through_stalls_are_told_what_others_would_have_seen() {
    let _machine = shared();
    let home = Home::new();
    let target = Unreliable::start("stall 0.8 2");
    let forms = "--json r.json --markdown r.md --junit r.xml --report r.html";
    let url = format!("http://{}/", target.address);
    let run = home.run(&format!("load {url} -c 4 --duration 8s --keep-warm-up --quiet {forms}"));
    let told = "users waited through ";
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("r.json")).unwrap();
    assert!(said(&run).contains(told), "{}", said(&run));
    let stalls = &report["stalls"];
    let ms = |value: &Value| value.as_f64().unwrap();
    assert!((3..=4).contains(&count(stalls, "count")), "{stalls}");
    // Most would have come in the first 98 % of a stall's 800 ms, and waited for the rest of it.
    assert!((600.0..850.0).contains(&ms(&stalls["corrected_ms"]["p99"])), "{stalls}");
    assert!(ms(&stalls["corrected_ms"]["p99"]) > 5.0 * ms(&report["response_ms"]["p99"]));
    for name in ["r.md", "r.xml", "r.html"] {
        assert!(read(name).contains(told), "{name}");
    }
}
