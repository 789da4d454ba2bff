//! Instances through the page: changed, and read without harm.

use std::net::SocketAddr;

use super::asking::{get, post};
use crate::harness::{Home, eventually, free_address, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// Writes what a terminal or a page could be fooled with.
const HOSTILE: &str = r#"
import http.server, os, sys
out = sys.stdout.buffer
out.write(b"\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\ \x1b[2J<img src=x onerror=alert(1)>\n")
out.write("right\u202eleft\n".encode())
out.write(b"nul\0 bad\xff\xfe utf8\n")
out.write(b"x" * 10_000_000 + b"\n")
out.write(b"the end\n")
out.flush()
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), H).serve_forever()
"#;

fn names(admin: SocketAddr, state: u64) -> Vec<String> {
    let seen = get(admin, "/api/state").ok().json();
    let rows = &seen["rows"];
    let instances = seen["instances"].as_array().unwrap().iter();
    let states = rows["state"].as_array().cloned().unwrap_or_default();
    let of_state = instances.zip(states).filter(|(_, is)| is == state);
    of_state.map(|(instance, _)| instance["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn instances_are_scaled_drained_and_restarted() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let up = home.serve(&format!("up -n 1 --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let admin: SocketAddr = admin.parse().unwrap();
    let last = post(admin, "/api/instances/app-1/drain", "{}").refused(409);
    assert!(last.contains("the last that serves"), "{last}");
    let told = post(admin, "/api/scale", r#"{"instances":3}"#).ok().json();
    assert_eq!(told["message"], "app has 3 instances now, it had 1");
    eventually("three are ready", || names(admin, 1).len() == 3);
    post(admin, "/api/instances/app-2/drain", "{}").ok();
    eventually("it is drained", || names(admin, 3) == ["app-2"]);
    for _ in 0..6 {
        assert!(!up.get().unwrap().contains("from 2"));
    }
    assert!(post(admin, "/api/instances/app-2/drain", "{}").refused(409).contains("put it back"));
    post(admin, "/api/instances/app-2/restart", "{}").ok();
    eventually("it serves again", || names(admin, 1).len() == 3);
    post(admin, "/api/reload", "{}").ok();
    assert!(post(admin, "/api/instances/app-9/restart", "{}").refused(404).contains("app-9"));
    assert!(
        post(admin, "/api/instances/%0d%0aX-A:%20b/restart", "{}")
            .refused(404)
            .contains("\\u{d}\\u{a}")
    );
    assert!(post(admin, "/api/scale", r#"{"instances":0}"#).refused(400).contains("1 to"));
    assert!(
        post(admin, "/api/scale", r#"{"instances":2,"app":"other"}"#)
            .refused(400)
            .contains("no app other")
    );
    let marks = get(admin, "/api/state").ok().json()["marks"].to_string();
    assert!(marks.contains("it had 1") && marks.contains("app-2 was drained"), "{marks}");
}

#[test]
fn what_an_app_writes_is_bounded_and_shows_what_it_hides() {
    let _machine = shared();
    let home = Home::new();
    std::fs::write(home.path().join("hostile.py"), HOSTILE).unwrap();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- python3 hostile.py"));
    let admin: SocketAddr = admin.parse().unwrap();
    let output = || get(admin, "/api/instances/app-1/output").ok();
    eventually("all of it came", || output().body.contains("the end"));
    let answer = output();
    let lines: Vec<String> = serde_json::from_value(answer.json()["lines"].clone()).unwrap();
    assert_eq!(lines[0], "link <img src=x onerror=alert(1)>");
    assert_eq!(lines[1], "right\\u{202e}left");
    assert_eq!(lines[2], "nul bad\u{fffd}\u{fffd} utf8");
    assert!(lines[3].len() <= 4096 && lines[3].starts_with("xxx"), "{}", lines[3].len());
    assert_eq!(lines[4], "the end");
    assert!(!answer.body.contains('\u{1b}') && !answer.body.contains("evil.example"));
}

#[test]
fn a_secret_of_the_command_is_nowhere() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let secret = "hunter2-planted";
    let mut command = home.tenfold(&format!(
        "up --listen 127.0.0.1:0 --admin {admin} --env API_TOKEN={secret} -- {APP} demo-app"
    ));
    let _up = crate::harness::Serving::start(&mut command);
    let admin: SocketAddr = admin.parse().unwrap();
    post(
        admin,
        "/api/load/start",
        &format!(r#"{{"rate":20,"path":"/?token={secret}","run_time_s":1}}"#),
    )
    .ok();
    let ended = || get(admin, "/api/state").ok().json()["load"]["state"] == "ended";
    eventually("the load ends", ended);
    let run = get(admin, "/api/state").ok().json()["load"]["run"].as_i64().unwrap();
    let paths = [
        "/api/state".to_owned(),
        "/api/history".to_owned(),
        "/api/load/statistics".to_owned(),
        "/api/load/document".to_owned(),
        "/api/load/files/report.html".to_owned(),
        "/api/load/files/requests.csv".to_owned(),
        "/api/runs".to_owned(),
        format!("/api/runs/{run}"),
        format!("/api/runs/{run}/trend"),
        format!("/api/runs/{run}/files/report.html"),
        "/stats/requests".to_owned(),
        "/metrics".to_owned(),
        "/status".to_owned(),
    ];
    for path in paths {
        assert!(!get(admin, &path).ok().body.contains(secret), "{path} tells it");
    }
    let mut events = super::asking::stream(admin, Some(0));
    let told = super::asking::read_until(&mut events, "load ended");
    assert!(told.contains("load ended") && !told.contains(secret), "{told}");
}
