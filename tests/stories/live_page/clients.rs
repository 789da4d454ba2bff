//! Programs that others wrote: schemathesis by the description, and a script as Locust's documentation has it.

use std::path::Path;
use std::process::Command;

use super::asking::get;
use crate::harness::{Home, cannot_run, free_address, said, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// Starts, watches, changes and stops a load by Locust's documented requests.
const LOCUST: &str = r#"
import csv, io, json, sys, time, urllib.parse, urllib.request
base = sys.argv[1]

def get(path):
    with urllib.request.urlopen(base + path) as answer:
        return answer.read().decode()

def swarm(**fields):
    data = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(base + "/swarm", data=data) as answer:
        return json.load(answer)

assert swarm(user_count=3, spawn_rate=10)["success"]
stats = {}
deadline = time.time() + 60
while stats.get("user_count") != 3 or stats["stats"][-1]["num_requests"] < 20:
    assert time.time() < deadline, stats
    time.sleep(0.1)
    stats = json.loads(get("/stats/requests"))
assert stats["state"] == "running" and stats["stats"][-1]["name"] == "Aggregated"
assert stats["stats"][0]["name"] == "/", "Locust names requests by their path"
assert stats["total_rps"] > 0 and stats["fail_ratio"] == 0
assert swarm(user_count=1, spawn_rate=10)["message"]
rows = list(csv.DictReader(io.StringIO(get("/stats/requests/csv"))))
assert rows[-1]["Name"] == "Aggregated" and int(rows[-1]["Request Count"]) >= 20
assert list(csv.DictReader(io.StringIO(get("/stats/failures/csv")))) == []
assert json.loads(get("/exceptions")) == {"exceptions": []}
assert "per_class" in json.loads(get("/tasks"))
assert get("/stats/reset") == "ok"
assert json.loads(get("/stop"))["success"]
assert json.loads(get("/stats/requests"))["state"] == "stopped"
assert "<html" in get("/stats/report?download=1")
"#;

#[test]
fn a_script_for_locust_runs_as_documented() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let script = ["-c", LOCUST, &format!("http://{admin}")].map(str::to_owned);
    let output = Command::new("python3").args(script).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_description_is_valid_openapi() {
    let _machine = shared();
    let validator = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.deps/openapi/bin/openapi-spec-validator");
    if !validator.exists() {
        return cannot_run("openapi-spec-validator is not installed: run scripts/deps");
    }
    let home = Home::new();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let description = get(admin.parse().unwrap(), "/api/openapi.json").ok().body;
    let file = home.path().join("openapi.json");
    std::fs::write(&file, description).unwrap();
    let output = Command::new(validator).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// What scales without bounds or never ends is left out.
#[test]
fn the_description_is_true_for_whatever_is_sent() {
    let _machine = shared();
    let deps =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/schemathesis/bin/schemathesis");
    if !deps.exists() {
        return cannot_run("schemathesis is not installed: run scripts/deps");
    }
    let home = Home::new();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let line = format!(
        "run http://{admin}/api/openapi.json --seed 1 --max-examples 5 --phases examples,fuzzing --checks {checks} \
         --exclude-path /api/events --exclude-path /api/scale --exclude-path /api/reload --exclude-path /swarm --no-color"
    );
    let output = Command::new(deps).args(line.split_whitespace()).current_dir(home.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
