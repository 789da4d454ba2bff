//! A new Tenfold takes over from the one that runs, under load, and what signals do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::clients::{Clients, all_through};
use crate::harness::{
    Home, Serving, alone, eventually, example, free_address, get, json, processes, said, send,
    shared,
};
use crate::nginx::Nginx;

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// An open workload, until it is ended.
fn load(home: &Home, address: SocketAddr, arguments: &str) -> Clients {
    Clients::start(home.tenfold(&all_through(address, arguments)))
}

/// A number of `status`, over all instances or servers: a few may get all requests.
fn total(home: &Home, field: &str) -> u64 {
    let status = json(&home.run("status --json"));
    let instances = status["instances"].as_array().unwrap();
    instances.iter().map(|instance| instance[field].as_u64().unwrap()).sum()
}

fn pids(home: &Home) -> Vec<u64> {
    let status = json(&home.run("status --json"));
    let instances = status["instances"].as_array().unwrap();
    instances.iter().map(|instance| instance["pid"].as_u64().unwrap()).collect()
}

/// The exit code of a process that ends by itself.
fn ended(process: &mut Child) -> Option<i32> {
    eventually("it ends", || process.try_wait().unwrap().is_some());
    process.wait().unwrap().code()
}

/// An app that takes so long for a request.
fn slow(milliseconds: u32) -> String {
    let app = example("blocking").join("blocking.py");
    format!("--env BLOCKING_MS={milliseconds} -- python3 {}", app.display())
}

#[test]
fn three_takeovers_of_balance_fail_no_request() {
    let _machine = alone();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let address = free_address();
    let line = format!("balance --listen {address} --to {}", nginx.address);
    let mut running = home.serve(&line);
    let fresh = load(&home, running.address, "--rate 500 --no-keep-alive");
    let kept = load(&home, running.address, "--rate 500");
    let mut old = Vec::new();
    for threads in [3, 2, 1] {
        eventually("it serves", || total(&home, "requests") > 200);
        let next = home.serve(&format!("{line} --threads {threads} --takeover"));
        // It drains while the next one takes over.
        old.push(std::mem::replace(&mut running, next));
    }
    eventually("the last one serves", || total(&home, "requests") > 200);
    for old in &mut old {
        assert_eq!(ended(&mut old.child), Some(0));
    }
    fresh.end_without_failure();
    kept.end_without_failure();
    assert_eq!(running.end(Signal::TERM), Some(143));
    assert!(home.path().join("state/run").read_dir().unwrap().next().is_none());
}

#[test]
fn a_takeover_of_up_fails_no_request() {
    let _machine = alone();
    let home = Home::new();
    let (address, admin) = (free_address(), free_address());
    let line = format!("up --slots 1 --listen {address} --admin {admin}");
    let mut running = home.serve(&format!("{line} -n 4 -- {APP} demo-app"));
    let fresh = load(&home, running.address, "--rate 40 --no-keep-alive");
    let kept = load(&home, running.address, "--rate 40");
    eventually("it serves", || total(&home, "requests") > 5);
    let old = pids(&home);
    let _next = home.serve(&format!("{line} -n 3 --takeover -- {APP} demo-app"));
    assert!(get(admin.parse().unwrap(), "/status").unwrap().contains("app-3"));
    assert_eq!(ended(&mut running.child), Some(0));
    assert!(old.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
    assert_eq!(pids(&home).len(), 3);
    eventually("the new one serves", || total(&home, "requests") > 80);
    fresh.end_without_failure();
    kept.end_without_failure();
}

#[test]
fn a_failed_takeover_leaves_the_running_process_serving() {
    let _machine = shared();
    let home = Home::new();
    let address = free_address();
    let up = home.serve(&format!("up --listen {address} -- {APP} demo-app"));
    let line = format!("up --takeover --listen {address}");
    let failed = home.run(&format!("{line} -- false"));
    assert_eq!(failed.status.code(), Some(1), "{}", said(&failed));
    assert!(up.get().is_ok());

    // One that dies in the middle: its app is never ready.
    let mut dying = home.tenfold(&format!("{line} -- sleep 1007.25")).spawn().unwrap();
    eventually("its app runs beside it", || processes("sleep 1007.25").len() == 2);
    let second = home.run(&format!("{line} -- {APP} demo-app"));
    assert!(said(&second).contains("is taking over already"), "{}", said(&second));
    dying.kill().unwrap();
    dying.wait().unwrap();
    assert!(up.get().is_ok());
    eventually("its app has ended", || processes("sleep 1007.25").is_empty());
    assert_eq!(pids(&home).len(), 1);

    let elsewhere = home.run(&format!(
        "balance --takeover --socket state/run/{address}.sock --listen 127.0.0.2:{} --to {address}",
        up.address.port()
    ));
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(said(&elsewhere).contains(&address), "{}", said(&elsewhere));
    assert!(up.get().is_ok());
}

/// The second one waits until the first one serves, and takes over from that.
#[test]
fn a_takeover_during_a_takeover_comes_after_it() {
    let _machine = shared();
    let home = Home::new();
    let address = free_address();
    let line = format!("up --listen {address}");
    let mut old = home.serve(&format!("{line} -- {APP} demo-app"));
    let app = format!("sleep 4.25; exec {APP} demo-app");
    let mut slow = home.tenfold(&format!("{line} --takeover --"));
    slow.args(["sh", "-c", &app]);
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || Serving::start(&mut slow));
        old.tells("is about to take over");
        let last = home.serve(&format!("{line} --takeover -n 2 -- {APP} demo-app"));
        let mut slow = slow.join().unwrap();
        assert_eq!([ended(&mut old.child), ended(&mut slow.child)], [Some(0), Some(0)]);
        assert!(last.get().is_ok());
        assert_eq!(pids(&home).len(), 2);
    });
}

#[test]
fn takeover_without_a_running_process_starts_anew() {
    let _machine = shared();
    let home = Home::new();
    let address = free_address();
    let up = home.serve(&format!("up --takeover --listen {address} -- {APP} demo-app"));
    assert!(up.get().is_ok());
    let other = Home::new().run(&format!("balance --takeover --listen {address} --to 127.0.0.1:1"));
    assert_eq!(other.status.code(), Some(1));
    assert!(said(&other).contains("already in use"), "not ours to take: {}", said(&other));
}

/// systemd's view: the main process is told to start a new one, and says who that is.
#[test]
fn sigusr2_starts_a_process_that_takes_over() {
    let _machine = shared();
    let home = Home::new();
    let manager = UnixDatagram::bind(home.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let hear = || {
        let mut text = [0; 100];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    let mut command = home.tenfold(&format!("up --listen {} -- {APP} demo-app", free_address()));
    command.env("NOTIFY_SOCKET", home.path().join("notify"));
    let mut running = Serving::start(&mut command);
    assert_eq!(hear(), "READY=1");
    send(running.child.id(), Signal::USR2);
    let heard = [hear(), hear()];
    assert!(heard.contains(&"READY=1".to_owned()), "{heard:?}");
    let next = heard.iter().find_map(|text| text.strip_prefix("MAINPID=")).unwrap();
    assert_eq!(ended(&mut running.child), Some(0));
    assert!(running.get().is_ok());
    send(next.parse().unwrap(), Signal::TERM);
    assert_eq!(hear(), "STOPPING=1");
    // The last thing that it does.
    let sockets = home.path().join("state/run");
    eventually("it ends", || sockets.read_dir().unwrap().next().is_none());
}

/// The first lets the request in flight finish; no second is needed.
#[test]
fn a_signal_drains_requests_in_flight() {
    let _machine = shared();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let home = Home::new();
        let mut up = home.serve(&format!("up --listen 127.0.0.1:0 {}", slow(500)));
        let mut client = TcpStream::connect(up.address).unwrap();
        let idle = TcpStream::connect(up.address).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        eventually("it is in flight", || total(&home, "in_flight") == 1);
        send(up.child.id(), signal);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!((&idle).read(&mut [0]).unwrap(), 0);
        assert_eq!(ended(&mut up.child), Some(code));
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    let _machine = shared();
    let home = Home::new();
    let mut up = home.serve(&format!("up --listen 127.0.0.1:0 {}", slow(60_000)));
    let mut client = TcpStream::connect(up.address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    eventually("it is in flight", || total(&home, "in_flight") == 1);
    let app = pids(&home)[0];
    send(up.child.id(), Signal::TERM);
    eventually("it drains", || TcpStream::connect(up.address).is_err());
    assert_eq!(up.end(Signal::TERM), Some(143));
    let gone = || !Path::new(&format!("/proc/{app}")).exists();
    eventually("no instance is left", gone);
}
