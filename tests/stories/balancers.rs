//! `up` behind the real nginx and HAProxy.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;

use crate::harness::{
    Home, Serving, eventually, free_address, get, json, processes, said, send, shared,
};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// Serves the bundled app behind a balancer.
fn behind(home: &Home, program: &str, count: usize) -> Serving {
    home.serve(&format!(
        "up -n {count} --balancer {program} --listen 127.0.0.1:0 --drain 5s -- {APP} demo-app"
    ))
}

/// The balancer's processes, by its files.
fn balancers(home: &Home) -> Vec<u32> {
    processes(&home.path().join("state/balancer").display().to_string())
}

/// Asks all the time while something happens. No request may fail.
fn under_load(address: SocketAddr, change: impl FnOnce()) {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    get(address, "/").unwrap();
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        change();
        over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 4);
}

fn scaling_loses_no_request(program: &str) {
    let _machine = shared();
    let home = Home::new();
    let mut up = behind(&home, program, 1);
    under_load(up.address, || {
        for count in [4, 1, 2] {
            let scaled = home.run(&format!("scale {count}"));
            assert_eq!(said(&scaled).matches("ready").count(), count, "{}", said(&scaled));
        }
        let reloaded = home.run("reload");
        assert!(reloaded.status.success(), "{}", said(&reloaded));
    });
    let status = json(&home.run("status --json"));
    let policy = status["apps"][0]["policy"].as_str().unwrap();
    assert!(policy.to_lowercase().starts_with(&format!("least_conn of {program} ")), "{policy}");
    up.get().unwrap();
    let counted = || {
        let status = json(&home.run("status --json"));
        status["instances"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["requests"].as_u64().unwrap())
            .sum::<u64>()
    };
    eventually("its log tells of requests", || counted() > 0);
    assert_eq!(up.end(Signal::TERM), Some(143));
    assert_eq!(balancers(&home), [0; 0]);
}

#[test]
fn nginx_loses_no_request_while_instances_change() {
    scaling_loses_no_request("nginx");
}

#[test]
fn haproxy_loses_no_request_while_instances_change() {
    scaling_loses_no_request("haproxy");
}

fn what_dies_comes_back(program: &str, name: &str) {
    let _machine = shared();
    let home = Home::new();
    let up = behind(&home, program, 2);
    let instance = json(&home.run("status --json"))["instances"][0]["pid"].as_u64().unwrap();
    send(u32::try_from(instance).unwrap(), Signal::KILL);
    up.tells("app-1 died and is started again (restart 1)");
    let serves = || json(&home.run("status --json"))["instances"][0]["state"] == "ready";
    eventually("the instance serves again", serves);
    up.get().unwrap();
    let own = home.path().join("state/balancer");
    let master = processes(&own.display().to_string())[0];
    send(master, Signal::KILL);
    up.tells(&format!("{name} was killed by signal 9"));
    assert!(up.get().is_ok(), "the connection waits for the next one");
    up.tells(&format!("{name} serves again"));
    assert_ne!(balancers(&home)[0], master);
}

#[test]
fn a_killed_nginx_or_instance_comes_back() {
    what_dies_comes_back("nginx", "nginx");
}

#[test]
fn a_killed_haproxy_or_instance_comes_back() {
    what_dies_comes_back("haproxy", "HAProxy");
}

#[test]
fn nothing_of_a_balancer_outlives_a_killed_tenfold() {
    let _machine = shared();
    for program in ["nginx", "haproxy"] {
        let home = Home::new();
        let mut up = behind(&home, program, 1);
        let port = up.address;
        assert_eq!(up.end(Signal::KILL), None);
        eventually("all is gone", || balancers(&home).is_empty() && get(port, "/").is_err());
    }
}

#[test]
fn slots_are_searched_for_where_the_balancer_can() {
    let _machine = shared();
    // A search begins with one.
    for (program, slots) in [("tenfold", 1), ("haproxy", 256)] {
        let home = Home::new();
        let _up = behind(&home, program, 1);
        assert_eq!(json(&home.run("status --json"))["instances"][0]["slots"], slots, "{program}");
    }
}

#[test]
fn a_balancer_that_cannot_be_used_is_refused_with_a_remedy() {
    let _machine = shared();
    let home = Home::new();
    let up = |more: &str| home.run(&format!("up {more} -- {APP} demo-app"));
    for (more, why) in [
        ("--balancer nginx --slots 4", "nginx has no queue, so --slots cannot hold requests back"),
        ("--balancer haproxy --slots auto", "give a number as --slots"),
        ("--balancer nginx --policy queue", "leave out --policy or --balancer"),
        ("--balancer haproxy --listen unix:/s", "write unix:/s as HOST:PORT alone"),
    ] {
        let refused = up(more);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
    std::fs::write(home.path().join("t.toml"), "app.slots = 3\nbalancer.program = \"nginx\"\n")
        .unwrap();
    let refused = said(&up("--config t.toml"));
    assert!(refused.contains("t.toml:1: nginx has no queue, so app.slots"), "{refused}");
    let old = home.path().join("nginx");
    std::fs::write(&old, "#!/bin/sh\necho nginx version: nginx/1.10.3 >&2\n").unwrap();
    std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command =
        home.tenfold(&format!("up --balancer nginx --listen {} -- {APP} demo-app", free_address()));
    let output = command.env("PATH", home.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("is nginx 1.10.3, and only 1.15.3 or later"),
        "{}",
        said(&output)
    );
}
