//! WebSocket through the balancer: autobahn's cases, judged with the balancer and without it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::stage::Stage;

/// A server that echoes messages, until dropped.
struct Echo {
    process: Child,
    address: SocketAddr,
}

impl Echo {
    fn new() -> Self {
        let mut process = Command::new(installed("websocket/bin/python"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories/websocket/echo.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Python with websockets runs; `make deps` installs it");
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Echo { process, address: ([127, 0, 0, 1], port.trim().parse().unwrap()).into() }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// What autobahn says of each case, but for these groups.
fn verdicts(address: SocketAddr, without: &[&str]) -> BTreeMap<String, (String, String)> {
    let reports = tempfile::tempdir().unwrap();
    let run = Command::new(installed("websocket/bin/kosoku"))
        .args(without.iter().flat_map(|group| ["--exclude", group]))
        .args(["--parallelism", "4", "--outdir"])
        .arg(reports.path())
        .arg(address.to_string())
        .output()
        .expect("the runner of the cases runs; `make deps` installs it");
    let index = std::fs::read_to_string(reports.path().join("index.json"));
    let index = index.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&run.stderr)));
    let index: Value = serde_json::from_str(&index).unwrap();
    let (_, cases) = index.as_object().unwrap().iter().next().unwrap();
    let text = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let verdict = |case| (text(case, "behavior"), text(case, "behaviorClose"));
    cases.as_object().unwrap().iter().map(|(id, case)| (id.clone(), verdict(case))).collect()
}

fn installed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps").join(name)
}

fn judge(without: &[&str], least: usize) {
    let echo = Echo::new();
    let stage = Stage::new(|_| ());
    stage.add_address("echo", echo.address, 8);
    let direct = verdicts(echo.address, without);
    let through = verdicts(stage.address(), without);
    assert!(direct.len() >= least, "only {} cases ran", direct.len());
    let differ: Vec<_> = direct.iter().filter(|&(id, verdict)| through[id] != *verdict).collect();
    assert!(differ.is_empty(), "without the balancer: {differ:?}");
    let good = |(behavior, _): &&(String, String)| behavior == "OK";
    assert!(through.values().filter(good).count() >= least * 9 / 10, "{through:?}");
}

#[test]
fn autobahn_sees_no_difference() {
    // But for large messages and compression, which take minutes.
    judge(&["9.*", "12.*", "13.*"], 247);
}

#[test]
#[ignore = "takes minutes, for `make soak`"]
fn autobahn_sees_no_difference_in_large_and_compressed_messages() {
    judge(&[], 500);
}
