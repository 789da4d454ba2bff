//! Limits of an instance: it is held to them, spared by them, and shown under them; or it is not
//! started at all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Home, Serving, cannot_run, eventually, free_address, get, json, processes, said, shared,
};

/// Serves; a POST takes more memory than it was given.
const APP: &str = r#"
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"up\n")
    def do_POST(self):
        self.server.hoard = b"x" * 200_000_000
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

/// Whether this user may make control groups here; where not, Tenfold has to say so, and stop.
fn is_allowed(output: &Output) -> bool {
    let said = said(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        !said.contains("cannot limit") || said.contains("; run it as root, or under"),
        "{said}"
    );
    let is_allowed = !said.contains("cannot limit");
    if !is_allowed {
        cannot_run("this user may make no control groups");
    }
    is_allowed
}

/// The whole answer.
fn post(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let fields = "Host: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    write!(stream, "POST / HTTP/1.1\r\n{fields}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_instance_is_limited_or_not_started() {
    let _machine = shared();
    let home = Home::new();
    let app = home.path().join("app.py");
    std::fs::write(&app, APP).unwrap();
    let tight = "up --listen 127.0.0.1:0 --memory 1MB -- python3";
    let output = home.run(&format!("{tight} {}", app.display()));
    if !is_allowed(&output) {
        return;
    }
    let told = "was killed at its limit of 1 MB of memory before it was ready; raise --memory";
    assert!(said(&output).contains(told), "{}", said(&output));

    let admin = free_address();
    let limits = format!("--cpus 0.5 --memory 50MB --admin {admin}");
    let up = home.serve(&format!("up --listen 127.0.0.1:0 {limits} -- python3 {}", app.display()));
    let status = || json(&home.run("status --json"))["instances"][0].clone();
    eventually("its limits are seen", || status()["limited"]["memory_used_bytes"].is_u64());
    assert_eq!(status()["limited"]["cpus"], 0.5);
    assert!(status()["limited"]["memory_bytes"].as_u64().unwrap().abs_diff(50_000_000) < 4096);
    // A GET would be sent to one more instance, and end that, too.
    let answer = post(up.address);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    up.tells("app-1 died and is started again (restart 1): was killed at its limit of 50 MB");
    eventually("it serves again", || up.get().is_ok());
    assert_eq!(status()["memory_kills"], 1);
    let metrics = || get(admin.parse().unwrap(), "/metrics").unwrap();
    let counted = "tenfold_instance_memory_kills_total{instance=\"app-1\"} 1\n";
    eventually("its end is scraped", || metrics().contains(counted));
    let throttled = "tenfold_instance_cpu_throttled_seconds_total{instance=\"app-1\"} ";
    eventually("so is its waiting", || metrics().contains(throttled));
}

/// Its guard may not know of the group yet, and the next Tenfold ends what is left.
#[test]
fn a_tenfold_killed_while_it_starts_leaves_no_control_group() {
    let _machine = shared();
    let home = Home::new();
    let mut killed = Vec::new();
    for milliseconds in (0..200).step_by(10) {
        let line = "up --listen 127.0.0.1:0 --cpus 0.5 -- sleep 1008.25";
        let mut up = home.tenfold(line).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        killed.push(format!("/tenfold-{}-", up.id()));
        up.kill().unwrap();
        up.wait().unwrap();
    }
    let next = home.run("up --listen 127.0.0.1:0 -- false");
    assert_eq!(next.status.code(), Some(1), "{}", said(&next));
    let left = || {
        let find = Command::new("find").args(["/sys/fs/cgroup", "-name", "tenfold-*"]).output();
        let found = String::from_utf8(find.unwrap().stdout).unwrap();
        found.lines().any(|group| killed.iter().any(|name| group.contains(name)))
    };
    eventually("no group is left", || !left());
    eventually("no instance is left", || processes("sleep 1008.25").is_empty());
}

#[test]
fn instances_under_a_quota_take_turns() {
    let _machine = shared();
    let home = Home::new();
    let start = "up --listen 127.0.0.1:0 -n 3 --cpus 0.5 --";
    if !is_allowed(&home.run(&format!("{start} false"))) {
        return;
    }
    let up = home.serve(&format!("{start} {} demo-app", env!("CARGO_BIN_EXE_tenfold")));
    let answers: Vec<String> = (0..12).map(|_| up.get().unwrap()).collect();
    for instance in 1..=3 {
        let own = answers.iter().filter(|answer| answer.contains(&format!("from {instance}")));
        assert_eq!(own.count(), 4, "{answers:?}");
    }
}

/// As in a container, where instances cannot have control groups of their own.
#[test]
fn what_a_shared_control_group_uses_is_not_said_of_each_instance() {
    let _machine = shared();
    let home = Home::new();
    let name = format!("tenfold-story-{}", std::process::id());
    let of = |top: &str, limit: &str| {
        let group = Path::new("/sys/fs/cgroup").join(top).join(&name);
        std::fs::create_dir(&group).ok()?;
        let limited = std::fs::write(group.join(limit), (400 << 20).to_string());
        limited.map_err(|_| std::fs::remove_dir(&group)).ok().map(|()| group)
    };
    let Some(group) = of("memory", "memory.limit_in_bytes").or_else(|| of("", "memory.max")) else {
        return cannot_run("this user may make no control group with a memory limit");
    };
    let up = format!("up --listen 127.0.0.1:0 -- {} demo-app", env!("CARGO_BIN_EXE_tenfold"));
    let enter = format!("echo $$ > {}/cgroup.procs", group.display());
    let mut up = Serving::start(&mut home.within(&enter, &home.tenfold(&up)));
    let status = || json(&home.run("status --json"))["instances"][0].clone();
    eventually("it is observed", || status()["limited"]["memory_bytes"] == 400 << 20);
    let status = status();
    assert!(status["rss_bytes"].as_u64().unwrap() > 0, "{status:#}");
    assert_eq!(status["limited"]["memory_used_bytes"], Value::Null, "{status:#}");
    up.end(Signal::TERM);
    eventually("the group is empty", || std::fs::remove_dir(&group).is_ok());
}
