//! `up`: the fleet behind the balancer, changed while it serves.

use std::io::{BufRead, Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Home, eventually, free_address, get, json, said, send, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

#[test]
fn up_scales_reports_and_stops() {
    let _machine = shared();
    let home = Home::new();
    let up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 -- {APP} demo-app"));
    assert!(up.get().unwrap().starts_with("Hello from "));
    let status = json(&home.run("status --json"));
    assert_eq!(status["instances"].as_array().unwrap().len(), 2);
    let scaled = home.run("scale 3");
    assert_eq!(said(&scaled).matches("ready").count(), 3, "{}", said(&scaled));
    let scaled = home.run("scale 1");
    assert_eq!(said(&scaled).matches("ready").count(), 1, "newest first down: {}", said(&scaled));
    assert!(said(&scaled).contains("-1 "), "{}", said(&scaled));
    let stopped = home.run("stop");
    assert_eq!(stopped.status.code(), Some(0), "{}", said(&stopped));
    assert!(up.get().is_err());
    let nothing = home.run("status");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(said(&nothing).contains("nothing runs here"), "{}", said(&nothing));
    let nobody = said(&home.run("status --listen 127.0.0.1:1"));
    assert!(nobody.contains("127.0.0.1:1.sock: say") && nobody.contains("--listen"), "{nobody}");
}

/// An app that needs a file.
fn needy(home: &Home) -> (std::path::PathBuf, String) {
    let script =
        format!("test -e database || {{ echo no database; exit 1; }}; exec {APP} demo-app");
    std::fs::write(home.path().join("needy.sh"), script).unwrap();
    (home.path().join("database"), "--listen 127.0.0.1:0 -- sh needy.sh".to_owned())
}

#[test]
fn up_waits_for_what_the_app_needs() {
    let _machine = shared();
    let home = Home::new();
    let (database, app) = needy(&home);
    let refused = home.run(&format!("up {app}"));
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));

    let mut up = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(4));
            std::fs::write(&database, "").unwrap();
        });
        home.serve(&format!("up -n 2 --wait {app}"))
    });
    up.tells("tenfold: has waited since ");
    up.tells("no database");
    up.tells("tenfold: the app has started, after ");
    up.get().unwrap();
    up.end(Signal::TERM);
}

#[test]
fn a_service_waits_until_it_is_stopped() {
    let _machine = shared();
    let home = Home::new();
    let (_, app) = needy(&home);
    for (argument, code) in [("", 143), ("--wait=false", 1)] {
        let up = home.tenfold(&format!("up {argument} {app}"));
        let mut up = home.as_service(&up);
        let up = up.env("INVOCATION_ID", "1").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut up = up.spawn().unwrap();
        let mut told = String::new();
        std::io::BufReader::new(up.stderr.as_mut().unwrap()).read_line(&mut told).unwrap();
        if code == 143 {
            assert!(told.starts_with("tenfold: has waited since "), "{told}");
            send(up.id(), Signal::TERM);
        }
        assert_eq!(up.wait().unwrap().code(), Some(code), "{argument}");
    }
}

#[test]
fn reload_fails_no_request() {
    let _machine = shared();
    let home = Home::new();
    let up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 -- {APP} demo-app"));
    let before = json(&home.run("status --json"));
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    up.get().unwrap();
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let reloaded = home.run("reload");
        over.store(true, Ordering::Relaxed);
        assert_eq!(reloaded.status.code(), Some(0), "{}", said(&reloaded));
    });
    assert!(answered.load(Ordering::Relaxed) > 4);
    let after = json(&home.run("status --json"));
    for (old, new) in
        before["instances"].as_array().unwrap().iter().zip(after["instances"].as_array().unwrap())
    {
        assert_eq!(old["name"], new["name"]);
        assert_ne!(old["pid"], new["pid"]);
    }
}

#[test]
fn a_dead_instance_is_replaced() {
    let _machine = shared();
    let home = Home::new();
    let up = home.serve(&format!("up -n 1 --listen 127.0.0.1:0 -- {APP} demo-app"));
    let pid = json(&home.run("status --json"))["instances"][0]["pid"].as_u64().unwrap();
    send(u32::try_from(pid).unwrap(), Signal::KILL);
    eventually("it answers again", || up.get().is_ok());
    assert_eq!(json(&home.run("status --json"))["instances"][0]["restarts"], 1);
}

#[test]
fn requests_wait_for_the_first_instance() {
    let _machine = shared();
    let home = Home::new();
    let address = free_address();
    let app = format!(
        "until [ -e {}/gate ]; do sleep 0.1; done; exec {APP} demo-app",
        home.path().display()
    );
    let mut command = home.tenfold(&format!("up --listen {address} --"));
    let mut up = command.args(["sh", "-c", &app]).stdout(Stdio::null()).spawn().unwrap();
    let running = || home.run("status").status.success();
    eventually("it can be asked", running);
    let queued = || json(&home.run("status --json"))["apps"][0]["queued"].as_u64().unwrap();
    std::thread::scope(|scope| {
        let early: Vec<_> =
            (0..3).map(|_| scope.spawn(|| get(address.parse().unwrap(), "/"))).collect();
        eventually("all wait", || queued() == 3);
        std::fs::write(home.path().join("gate"), "").unwrap();
        for answer in early {
            assert!(answer.join().unwrap().unwrap().starts_with("Hello from "));
        }
    });
    send(up.id(), Signal::TERM);
    assert_eq!(up.wait().unwrap().code(), Some(143));
}

#[test]
fn a_failed_start_ends_up_despite_waiting_requests() {
    let _machine = shared();
    let home = Home::new();
    let address = free_address();
    let app = "until [ -e gate ]; do sleep 0.1; done; exit 3";
    let mut command = home.tenfold(&format!("up --listen {address} --"));
    let up = command.args(["sh", "-c", app]).stderr(Stdio::piped()).spawn().unwrap();
    eventually("it can be asked", || home.run("status").status.success());
    let queued = || json(&home.run("status --json"))["apps"][0]["queued"].as_u64().unwrap();
    std::thread::scope(|scope| {
        let early = scope.spawn(|| get(address.parse().unwrap(), "/"));
        eventually("a request waits", || queued() == 1);
        std::fs::write(home.path().join("gate"), "").unwrap();
        let failed = Instant::now();
        let output = up.wait_with_output().unwrap();
        assert!(failed.elapsed() < Duration::from_secs(20), "a request may wait for 30 s");
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("app-1 exited with code 3"), "{}", said(&output));
        assert!(early.join().unwrap().is_err());
    });
}

/// What it says may go nowhere: the reader of a pipe has ended, or a terminal is closed.
#[test]
fn up_serves_while_nobody_reads_its_output() {
    let _machine = shared();
    let home = Home::new();
    let address = free_address();
    let mut command = home.tenfold(&format!("up --listen {address} -- {APP} demo-app"));
    let mut up = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((up.stdout.take(), up.stderr.take()));
    let serves = || get(address.parse().unwrap(), "/").is_ok();
    eventually("it serves", serves);
    let instance = || json(&home.run("status --json"))["instances"][0].clone();
    send(instance()["pid"].as_u64().unwrap().try_into().unwrap(), Signal::KILL);
    eventually("it is started again", || instance()["restarts"] == 1 && serves());
    send(up.id(), Signal::TERM);
    assert_eq!(up.wait().unwrap().code(), Some(143));
}

#[test]
fn prometheus_can_scrape_metrics() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let up = home.serve(&format!("up -n 1 --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    up.get().unwrap();
    let metrics = get(admin.parse().unwrap(), "/metrics").unwrap();
    assert!(
        metrics.contains(
            "tenfold_backend_requests_total{app=\"app\",backend=\"app-1\",address=\"127.0.0.1:"
        ),
        "{metrics}"
    );
    let sum = metrics.split("tenfold_response_time_seconds_sum{app=\"app\"} ").nth(1).unwrap();
    let sum: f64 = sum.split_whitespace().next().unwrap().parse().unwrap();
    assert!((0.02..10.0).contains(&sum), "one request of 20 ms: {metrics}");
    assert!(
        metrics.contains("tenfold_response_time_seconds_bucket{le=\"+Inf\",app=\"app\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("tenfold_queue_requests{app=\"app\"} 0"), "{metrics}");
    assert!(metrics.contains("# EOF"), "{metrics}");
    let refused = get(admin.parse().unwrap(), "/scale").unwrap_err();
    assert!(refused.starts_with("HTTP/1.1 404"), "only the socket's owner may change: {refused}");
    let mut browser = std::net::TcpStream::connect(&admin).unwrap();
    browser.write_all(b"GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    let mut status = [0; 12];
    browser.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 421", "a page whose name leads here reads nothing");
}

#[test]
fn an_address_in_use_is_an_error() {
    let _machine = shared();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let output = Home::new().run(&format!("up --listen {address} -- {APP} demo-app"));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&address.to_string()), "{}", said(&output));
}

/// It needs something that goes away, and comes back.
#[test]
fn an_app_that_recovers_from_a_crash_loop_serves_again() {
    let _machine = shared();
    let home = Home::new();
    let away = home.path().join("away");
    let script = format!("[ -e away ] && echo no database && exit 4\nexec {APP} demo-app\n");
    std::fs::write(home.path().join("dependent.sh"), script).unwrap();
    let mut up = home.serve("up --listen 127.0.0.1:0 -- sh dependent.sh");
    std::fs::write(&away, "").unwrap();
    let pid = json(&home.run("status --json"))["instances"][0]["pid"].as_u64().unwrap();
    send(u32::try_from(pid).unwrap(), Signal::KILL);
    up.tells("app-1 died and is started again (restart ");
    up.tells("app-1 crashed 6 times in a row, the last time: app-1 exited with code 4 before it");
    let status = said(&home.run("status"));
    assert!(status.contains(" backoff, ") && status.contains("\n  | no database\n"), "{status}");
    let instance = &json(&home.run("status --json"))["instances"][0];
    assert!(instance["next_start_s"].as_f64().is_some(), "{instance}");
    assert!(instance["crash_loop"].as_u64() >= Some(6), "{instance}");
    let scaled = home.run("scale 2");
    assert_eq!(scaled.status.code(), Some(1), "{}", said(&scaled));
    std::fs::remove_file(&away).unwrap();
    assert!(home.run("reload").status.success(), "it is started at once");
    assert!(up.get().is_ok());
    up.tells("app-1 serves again, after ");
    assert_eq!(up.end(Signal::TERM), Some(143));
}
