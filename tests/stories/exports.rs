//! What a plan exports holds its load: the real nginx and HAProxy with the exported file, in front of the app.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Home, alone, eventually, free_address, get, json, said, send};

/// Ended when the story is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        send(self.0.id(), Signal::TERM);
        let _ = self.0.wait();
    }
}

fn app() -> String {
    format!("{}/../../tests/apps/connections/app.py", env!("CARGO_MANIFEST_DIR"))
}

/// A plan of two instances that found this of idle connections.
fn plan(home: &Home, idle_connections: &str) {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/serialized.plan.json");
    let mut plan: Value =
        serde_json::from_str(&std::fs::read_to_string(recorded).unwrap()).unwrap();
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

#[test]
fn exported_balancers_serve_an_app_that_idle_connections_block() {
    let _machine = alone();
    for (kind, found) in [("one", "blocking"), ("threads", "harmless")] {
        let home = Home::new();
        plan(&home, found);
        let first: u16 = free_address().rsplit(':').next().unwrap().parse().unwrap();
        let first = first - first % 100 + 60;
        let start = |port: u16| {
            let mut app_command = Command::new("python3");
            app_command.args([&app(), kind]).env("PORT", port.to_string());
            Running(app_command.spawn().unwrap())
        };
        let _instances = [start(first), start(first + 1)];
        for port in [first, first + 1] {
            eventually("it answers", || get(([127, 0, 0, 1], port).into(), "/").is_ok());
        }
        for to in ["nginx", "haproxy"] {
            let listen = free_address();
            let exported = home.run(&format!(
                "export plan.json --to {to} -o {to} -n 2 --name shop --first-port {first} --listen {listen}"
            ));
            assert!(exported.status.success(), "{}", said(&exported));
            let folder = home.path().join(to);
            let mut balancer = Command::new(to);
            balancer.env("PATH", path());
            if to == "nginx" {
                let whole = folder.join("nginx.conf");
                std::fs::write(&whole, nginx_conf(&folder)).unwrap();
                balancer.arg("-c").arg(whole);
            } else {
                balancer.args(["-db", "-f"]).arg(folder.join("haproxy.cfg"));
            }
            let _balancer = Running(balancer.spawn().unwrap());
            let address: SocketAddr = listen.parse().unwrap();
            eventually("the balancer answers", || get(address, "/").is_ok());
            assert_all_served(&home, address, &format!("{kind} behind the exported {to}"));
        }
    }
}

/// Without a plan the first instance shows it.
#[test]
fn other_balancers_close_connections_that_would_block_others() {
    let _machine = alone();
    for program in ["nginx", "haproxy"] {
        let home = Home::new();
        let up = home.serve(&format!(
            "up -n 2 --balancer {program} --listen 127.0.0.1:0 -- python3 {} one",
            app()
        ));
        assert_all_served(&home, up.address, &format!("behind up --balancer {program}"));
    }
}

fn nginx_conf(folder: &Path) -> String {
    format!(
        "daemon off; pid {0}/pid; error_log {0}/error.log; worker_processes 1; events {{}}
         http {{
           access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;
           uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; include {0}/shop.conf;
         }}",
        folder.display()
    )
}
