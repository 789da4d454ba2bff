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

type Verdicts = BTreeMap<String, (String, String)>;

/// What autobahn says of each case, and of how it closed.
fn verdicts(address: SocketAddr, cases: &[&str]) -> Verdicts {
    let reports = tempfile::tempdir().unwrap();
    let run = Command::new(installed("websocket/bin/kosoku"))
        .args(cases)
        .arg("--outdir")
        .arg(reports.path())
        .arg(address.to_string())
        .output()
        .expect("the runner of the cases runs; `make deps` installs it");
    let index = std::fs::read_to_string(reports.path().join("index.json"));
    let index = index.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&run.stderr)));
    let index: Value = serde_json::from_str(&index).unwrap();
    let (_, cases) = index.as_object().unwrap().iter().next().unwrap();
    // NON-STRICT is also right. Whether a message is echoed before the fault that follows it ends
    // the connection depends on both arriving at once, which is nobody's promise.
    let text = |case: &Value, name: &str| match case[name].as_str().unwrap() {
        "NON-STRICT" => "OK".to_owned(),
        other => other.to_owned(),
    };
    let verdict = |case| (text(case, "behavior"), text(case, "behaviorClose"));
    cases.as_object().unwrap().iter().map(|(id, case)| (id.clone(), verdict(case))).collect()
}

fn installed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps").join(name)
}

/// Runs these cases with the balancer and without it. Some have deadlines that a busy machine
/// misses: where the verdicts differ, the case is judged again by itself.
fn judge(cases: &[&str], least: usize) {
    let echo = Echo::new();
    let stage = Stage::new(|_| ());
    stage.add_address("echo", echo.address, 8);
    let both = |cases: &[&str]| [echo.address, stage.address()].map(|to| verdicts(to, cases));
    let [direct, through] = both(cases);
    assert!(direct.len() >= least, "only {} cases ran", direct.len());
    for (case, verdict) in &direct {
        if through[case] != *verdict {
            let [direct, through] = both(&["--include", case]);
            assert_eq!(direct, through, "without and with the balancer");
        }
    }
    let good = through.values().filter(|(behavior, _)| behavior == "OK").count();
    assert!(good >= least * 9 / 10, "{through:?}");
}

#[test]
fn autobahn_sees_no_difference() {
    // But for large messages and compression, which take minutes.
    judge(&["--parallelism", "4", "-x", "9.*", "-x", "12.*", "-x", "13.*"], 247);
}

#[test]
#[ignore = "takes minutes, for `make soak`"]
fn autobahn_sees_no_difference_in_large_and_compressed_messages() {
    judge(&["-i", "9.*", "-i", "12.*", "-i", "13.*"], 250);
}
