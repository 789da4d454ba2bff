//! What a plan exports holds its load: instances by the exported units and Procfile, behind the real nginx and HAProxy
//! with the exported files.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Home, alone, cannot_run, eventually, free_address, json, said, send};
use crate::user_manager::UserManager;

/// Ended when the story is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        send(self.0.id(), Signal::TERM);
        let _ = self.0.wait();
    }
}

fn app() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apps/connections/app.py")
}

/// A plan of two instances of the app, which found this of idle connections.
fn plan(home: &Home, kind: &str, idle_connections: &str) {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/serialized.plan.json");
    let mut plan: Value =
        serde_json::from_str(&std::fs::read_to_string(recorded).unwrap()).unwrap();
    let app = app().canonicalize().unwrap();
    let arguments = if kind == "port" { vec!["port", "{port}"] } else { vec![kind] };
    plan["command"] = json!(["/usr/bin/python3", app]);
    plan["command"].as_array_mut().unwrap().extend(arguments.into_iter().map(Value::from));
    plan["app"] = json!({
        "directory": app.parent(), "env": {}, "env_files": [], "ready_path": null, "ready_timeout_s": 30.0,
        "grace_s": 10.0, "drain_s": 30.0, "ports": null, "queue_length": 100, "queue_wait_s": 5.0,
        "response_timeout_s": 60.0
    });
    plan["probes"] = json!([]);
    plan["started_at"] = json!("2026-11-24T01:02:03.5Z");
    plan["idle_connections"] = json!(idle_connections);
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
}

/// Every request is answered.
fn assert_all_served(home: &Home, address: SocketAddr, what: &str) {
    let load = home.run(&format!("load http://{address}/ --rate 60 --duration 3s --json -"));
    let report = json(&load);
    assert_eq!(report["errors"], json!({}), "{what}: {}", said(&load));
    // Those of the last tenth of a second may be under way at the end.
    let unanswered = report["requests_unanswered"].as_u64().unwrap_or(0);
    assert!(unanswered <= 6, "{what}: {unanswered} unanswered in {report:#}");
}

fn path() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin"
}

/// What each export of a plan starts serves behind what each starts in front.
#[test]
fn exports_hold_the_load_of_each_kind_of_app() {
    let honcho = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/honcho/bin/honcho");
    if !honcho.exists() {
        return cannot_run("honcho is not installed: run scripts/deps");
    }
    let _machine = alone();
    for (kind, idle_connections) in [
        ("one", "blocking"),
        ("request", "harmless"),
        ("threads", "harmless"),
        ("pool", "blocking"),
        ("async", "harmless"),
        ("slow", "harmless"),
        ("http10", "harmless"),
        ("port", "harmless"),
    ] {
        let home = Home::new();
        plan(&home, kind, idle_connections);
        let first: u16 = free_address().rsplit(':').next().unwrap().parse().unwrap();
        let first = first - first % 100 + 60;
        let listen = free_address();
        let to = "systemd,procfile,nginx,haproxy";
        let exported = home.run(&format!(
            "export plan.json --to {to} -o out -n 2 --name shop --first-port {first} --listen {listen}"
        ));
        assert!(exported.status.success(), "{}", said(&exported));
        let out = home.path().join("out");
        let ready = || {
            for port in [first, first + 1] {
                eventually("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
            }
        };
        if let Some(manager) = UserManager::start(&out, &[&app()]) {
            assert_eq!(manager.ask("start shop.target"), "");
            ready();
            assert_serves(&home, "nginx", &listen, &format!("{kind} of systemd behind nginx"));
        }
        let mut foreman = Command::new(&honcho);
        foreman.current_dir(&out).args(["start", "-c", "web=2", "-p", &first.to_string()]);
        let _instances = Running(foreman.spawn().unwrap());
        ready();
        assert_serves(&home, "haproxy", &listen, &format!("{kind} of a Procfile behind HAProxy"));
    }
}

/// The program with its exported file serves at this address.
fn assert_serves(home: &Home, program: &str, listen: &str, what: &str) {
    let out = home.path().join("out");
    let mut balancer = Command::new(program);
    balancer.env("PATH", path());
    if program == "nginx" {
        let whole = home.path().join("nginx.conf");
        std::fs::write(&whole, nginx_conf(&out, home.path())).unwrap();
        balancer.arg("-c").arg(whole);
    } else {
        balancer.args(["-db", "-f"]).arg(out.join("haproxy.cfg"));
    }
    let _balancer = Running(balancer.spawn().unwrap());
    let address: SocketAddr = listen.parse().unwrap();
    eventually("the balancer listens", || TcpStream::connect(address).is_ok());
    assert_all_served(home, address, what);
}

/// Without a plan the first instance shows it.
#[test]
fn other_balancers_close_connections_that_would_block_others() {
    let _machine = alone();
    for program in ["nginx", "haproxy"] {
        let home = Home::new();
        let up = home.serve(&format!(
            "up -n 2 --balancer {program} --listen 127.0.0.1:0 -- python3 {} one",
            app().display()
        ));
        assert_all_served(&home, up.address, &format!("behind up --balancer {program}"));
    }
}

fn nginx_conf(out: &Path, directory: &Path) -> String {
    format!(
        "daemon off; pid {0}/pid; error_log {0}/error.log; worker_processes 1; events {{}}
         http {{
           access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;
           uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; include {1}/shop.conf;
         }}",
        directory.display(),
        out.display()
    )
}
