//! Whatever ends Tenfold, no instance outlives it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Home, alone, eventually, processes, said, send, shared};

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

/// An app whose child has a process group of its own in the same session.
fn job_control(home: &Home, mark: &str) -> String {
    let path = home.path().join("job.py");
    let child = "import os,time; os.setpgid(0,0); time.sleep(60)";
    let app = format!(
        "import os,sys,subprocess,http.server\n\
         subprocess.Popen([sys.executable,'-c','{child}','{mark}'])\n\
         address=('127.0.0.1',int(os.environ['PORT']))\n\
         http.server.HTTPServer(address,http.server.SimpleHTTPRequestHandler).serve_forever()\n"
    );
    std::fs::write(&path, app).unwrap();
    format!("python3 {}", path.display())
}

#[test]
fn a_child_in_a_group_of_its_own_ends_with_its_instance() {
    let _machine = shared();
    let home = Home::new();
    let mark = "mark-own-group";
    let app = job_control(&home, mark);
    let mut up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 -- {app}"));
    eventually("children run", || processes(mark).len() == 2);
    let before = processes(mark);
    assert!(home.run("scale 1").status.success());
    assert_eq!(processes(mark).len(), 1, "the other instance keeps its child");
    assert!(home.run("reload").status.success());
    eventually("the successor's child runs", || processes(mark).len() == 1);
    assert!(processes(mark).iter().all(|pid| !before.contains(pid)));
    up.end(Signal::TERM);
    assert!(processes(mark).is_empty());

    let mut up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 -- {app}"));
    eventually("children run", || processes(mark).len() == 2);
    up.end(Signal::KILL);
    eventually("the guard ends them", || processes(mark).is_empty());
}

/// The guards of a Tenfold.
fn guards(tenfold: u32) -> Vec<u32> {
    let found = std::process::Command::new("pgrep")
        .args(["-P", &tenfold.to_string(), "-f", " guard$"])
        .output()
        .unwrap();
    let pids = String::from_utf8(found.stdout).unwrap();
    pids.lines().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn a_dead_guard_is_replaced_and_its_death_with_tenfold_leaves_nothing() {
    let _machine = shared();
    let home = Home::new();
    let mark = "mark-guard";
    let app = family(&home, mark);
    let mut up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 -- {app}"));
    eventually("children run", || processes(mark).len() >= 4);
    let first = guards(up.child.id());
    assert_eq!(first.len(), 1);
    send(first[0], Signal::KILL);
    let replaced = |guards: &[u32]| guards.len() == 1 && guards != first;
    eventually("another guard", || replaced(&guards(up.child.id())));
    let second = guards(up.child.id());
    send(second[0], Signal::KILL);
    up.end(Signal::KILL);
    let killed = Instant::now();
    eventually("the standby ends them", || processes(mark).is_empty());
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
}

#[test]
fn sigkill_leaves_no_process() {
    assert_eq!(ends_with(Signal::KILL, "mark-kill"), None);
}

#[test]
fn sigterm_leaves_no_process() {
    assert_eq!(ends_with(Signal::TERM, "mark-term"), Some(143));
}

#[test]
fn sigint_leaves_no_process() {
    assert_eq!(ends_with(Signal::INT, "mark-int"), Some(130));
}

#[test]
fn an_interrupted_plan_prints_what_is_known() {
    let _machine = alone();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let arguments = format!("plan --users 4 --env MARK=mark-plan -- {program} demo-app");
    let mut plan = home.tenfold(&arguments);
    let mut plan = plan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(plan.stderr.take().unwrap()).lines();
    let mut said_so = progress.by_ref().map_while(Result::ok);
    let second = said_so.find(|line| line.contains("with 2 in flight"));
    assert!(second.is_some(), "the first rung ends");
    send(plan.id(), Signal::INT);
    let output = plan.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("Interrupted: this is what was known"), "{text}");
    assert!(text.contains("requests/s") && text.contains("\n  1 "), "the first rung: {text}");
    assert!(!text.contains("one request at a time"), "one rung does not tell: {text}");
    let runs = home.run("runs");
    assert!(said(&runs).contains("demo-app"), "kept, too: {}", said(&runs));
}

#[test]
fn a_silent_app_does_not_delay_an_interrupt() {
    let _machine = shared();
    let home = Home::new();
    let app = "import socket,os,time
s=socket.create_server(('127.0.0.1',int(os.environ['PORT'])))
time.sleep(60)";
    std::fs::write(home.path().join("silent.py"), app).unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::HUP, 129)] {
        let plan = home.tenfold("plan --users 4 -- python3 silent.py");
        let mut plan = home.within("true", &plan);
        let plan = plan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually("its instance runs", || processes("silent.py").len() == 2);
        // Long enough that it is asked; what follows holds before it is, too.
        std::thread::sleep(Duration::from_secs(1));
        send(plan.id(), signal);
        let interrupted = Instant::now();
        let output = plan.wait_with_output().unwrap();
        assert!(interrupted.elapsed() < Duration::from_secs(20), "the budget is 90 s");
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(processes("silent.py").is_empty());
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let _machine = shared();
    let home = Home::new();
    let mut runs =
        home.tenfold("runs").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(runs.stdout.take());
    assert_eq!(runs.wait().unwrap().code(), Some(0));
}
