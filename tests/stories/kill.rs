//! Whatever ends Tenfold, no instance outlives it.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::house::{Home, alone, eventually, processes, said, send, shared};

/// An app with a child of its own, both told apart by `mark`.
fn family(home: &Home, mark: &str) -> String {
    let script =
        format!("sleep 60 {mark} & exec python3 -m http.server --bind 127.0.0.1 $PORT -d {mark}\n");
    let path = home.path().join("family.sh");
    std::fs::write(&path, script.replace("sleep 60", "python3 -c 'import time;time.sleep(60)'"))
        .unwrap();
    std::fs::create_dir_all(home.path().join(mark)).unwrap();
    format!("sh {}", path.display())
}

fn ends_with(signal: Signal, mark: &str) -> Option<i32> {
    let _machine = shared();
    let home = Home::new();
    let mut up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 -- {}", family(&home, mark)));
    eventually("children run", || processes(mark).len() >= 4);
    let code = up.end(signal);
    eventually("no instance outlives Tenfold", || processes(mark).is_empty());
    code
}

#[test]
fn sigkill_leaves_nothing() {
    assert_eq!(ends_with(Signal::KILL, "mark-kill"), None);
}

#[test]
fn sigterm_leaves_nothing() {
    assert_eq!(ends_with(Signal::TERM, "mark-term"), Some(143));
}

#[test]
fn sigint_leaves_nothing() {
    assert_eq!(ends_with(Signal::INT, "mark-int"), Some(130));
}

#[test]
fn an_interrupted_plan_prints_what_is_known() {
    let _machine = alone();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let arguments = format!("plan --users 4 --env MARK=mark-plan -- {program} demo-app");
    let mut plan = home.tenfold(&arguments);
    let plan = plan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The second probe is under way: the first rung of the ladder is known.
    std::thread::sleep(Duration::from_secs(4));
    send(plan.id(), Signal::INT);
    let output = plan.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("Interrupted: this is what was known"), "{}", said(&output));
    assert!(said(&output).contains("One instance"), "{}", said(&output));
    let runs = home.run("runs");
    assert!(said(&runs).contains("demo-app"), "kept, too: {}", said(&runs));
}
