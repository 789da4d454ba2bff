//! What happens to requests while instances die, come, go and are replaced, under a load that waits for
//! nobody. No GET fails, and no POST is executed twice. This also holds while one client attacks the
//! others.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use balancer::{AppId, Backend, Balancer};
use rustix::process::Signal;

use crate::harness::{Home, Serving, alone, eventually, get, json, said, send};

/// GETs a second, far below what one instance can do.
const RATE: usize = 2000;

/// One instance is killed every 2 s. With this many, none dies as often as an app that cannot run, whose
/// restarts wait ever longer.
const INSTANCES: usize = 8;

/// How long the load lasts. `make soak` makes it minutes.
pub fn span() -> Duration {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(6))
}

fn ledger() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/ledger.js")
}

fn up(home: &Home, instances: usize) -> Serving {
    // Who takes over has to be told the port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    home.serve(&format!(
        // A slow machine makes requests wait, however many: they are shed by none of these faults.
        "up -n {instances} --slots 64 --queue-length 100000 --listen {address} --env LEDGER={} -- node {}",
        home.path().join("ledger").display(),
        ledger().display()
    ))
}

/// Runs `fault` again and again while `load` runs, which is repeated until there were so many faults.
fn meanwhile(least: usize, load: impl Fn(), mut fault: impl FnMut(usize) + Send) {
    let (over, times) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let faults = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                fault(times.fetch_add(1, Ordering::Relaxed));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            load();
            while times.load(Ordering::Relaxed) <= least && !faults.is_finished() {
                load();
            }
        }));
        over.store(true, Ordering::Relaxed);
        faults.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Every request of an open load is answered 200.
fn no_get_fails(home: &Home, address: SocketAddr) {
    let seconds = span().as_secs();
    let output = home.run(&format!(
        "load http://{address}/ --rate {RATE} --duration {seconds}s --timeout 60s --quiet --json -"
    ));
    let report = json(&output);
    let (errors, statuses) = (&report["errors"], report["status"].as_object().unwrap());
    let only_200 = statuses.len() == 1 && statuses.contains_key("200");
    assert!(only_200 && errors == &serde_json::json!({}), "{errors} {statuses:?}");
    let requests = report["requests"].as_u64().unwrap();
    assert!(requests > 100, "too few to tell anything: {requests}");
}

/// Pids of the instances that serve, by name.
fn ready(home: &Home) -> HashMap<String, u32> {
    let status = json(&home.run("status --json"));
    let instances = status["instances"].as_array().unwrap();
    let ready = instances.iter().filter(|instance| instance["state"] == "ready");
    let entry = |instance: &serde_json::Value| {
        let pid = u32::try_from(instance["pid"].as_u64()?).ok()?;
        Some((instance["name"].as_str()?.to_owned(), pid))
    };
    ready.filter_map(entry).collect()
}

/// SIGKILL to the instances in turn, one every 2 s; one that is not ready is left alone.
fn kill_one(home: &Home, turn: usize) {
    let start = Instant::now();
    let name = format!("app-{}", turn % INSTANCES + 1);
    if let Some(pid) = ready(home).get(&name) {
        send(*pid, Signal::KILL);
    }
    std::thread::sleep(Duration::from_secs(2).saturating_sub(start.elapsed()));
}

#[test]
fn killed_instances_fail_no_get() {
    let _machine = alone();
    let home = Home::new();
    let up = up(&home, INSTANCES);
    meanwhile(3, || no_get_fails(&home, up.address), |turn| kill_one(&home, turn));
}

#[test]
fn scaling_and_reloading_fail_no_get() {
    let _machine = alone();
    let home = Home::new();
    let up = up(&home, 2);
    let change = |turn: usize| {
        let output = home.run(["scale 4", "reload", "scale 2"][turn % 3]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    };
    meanwhile(3, || no_get_fails(&home, up.address), change);
}

/// Who took over is nobody's child here: it is told to stop when the story is over, however.
struct Successor<'h>(&'h Home);

impl Drop for Successor<'_> {
    fn drop(&mut self) {
        self.0.run("stop");
    }
}

#[test]
fn a_takeover_fails_no_get() {
    let _machine = alone();
    let home = Home::new();
    let mut up = up(&home, 2);
    let _successor = Successor(&home);
    let first = ready(&home);
    let renew = |turn: usize| {
        if turn == 0 {
            send(up.child.id(), Signal::USR2);
            let others = || first.iter().all(|(name, pid)| ready(&home).get(name) != Some(pid));
            eventually("others serve", others);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    meanwhile(1, || no_get_fails(&home, up.address), renew);
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
}

/// An instance that the story runs itself; killed when it is over.
struct Node {
    process: Child,
    address: SocketAddr,
}

impl Node {
    fn start() -> Node {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let port = address.port().to_string();
        let process = Command::new("node").arg(ledger()).env("PORT", port).spawn().unwrap();
        eventually("node answers", || get(address, "/").is_ok());
        Node { process, address }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Faster than a fleet could: ten times a second a member goes, by turns at once and drained, and
/// comes again.
#[test]
fn membership_changes_fail_no_get() {
    let _machine = alone();
    let home = Home::new();
    let nodes: Vec<_> = (0..4).map(|_| Node::start()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let mut config = balancer::Config { threads: 1, ..balancer::Config::default() };
    config.apps[0].queue.length = 100_000;
    let balancer = Balancer::start(config).unwrap();
    let handle = balancer.handle();
    let add = |node: &Node| handle.add(AppId::FIRST, Backend::new("node", node.address, 64));
    let mut members: Vec<_> = nodes.iter().map(add).collect();
    let change = |turn: usize| {
        let start = Instant::now();
        let at = turn % nodes.len();
        if turn.is_multiple_of(2) {
            handle.remove(members[at]);
        } else {
            runtime.block_on(handle.drain(members[at], Duration::from_secs(5)));
        }
        members[at] = add(&nodes[at]);
        std::thread::sleep(Duration::from_millis(100).saturating_sub(start.elapsed()));
    };
    meanwhile(30, || no_get_fails(&home, balancer.local_addr()), change);
}

/// POSTs over a connection, each with an id of its own, until the time is up: how many were answered.
/// One that fails is never sent again.
fn post(address: SocketAddr, user: usize, until: Instant) -> usize {
    let (mut answered, mut connection) = (0, None);
    for number in 0.. {
        if Instant::now() >= until {
            break;
        }
        let connect = || {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stream
        };
        let stream = connection.get_or_insert_with(connect);
        let (id, mut answer) = (format!("{user}-{number}"), [0; 4096]);
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", id.len());
        let sent = stream.write_all((head + &id).as_bytes());
        match sent.and_then(|()| stream.read(&mut answer)) {
            Ok(count) if answer[..count].starts_with(b"HTTP/1.1 200 ") => answered += 1,
            _ => connection = None,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    answered
}

/// How many there are, and those that occur more than once.
fn executed(file: &Path) -> (usize, Vec<String>) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for id in std::fs::read_to_string(file).unwrap().lines() {
        *counts.entry(id.to_owned()).or_default() += 1;
    }
    let twice = counts.iter().filter(|entry| *entry.1 > 1).map(|entry| entry.0.clone());
    (counts.len(), twice.collect())
}

#[test]
fn no_post_is_executed_twice() {
    let _machine = alone();
    let home = Home::new();
    let up = up(&home, INSTANCES);
    let fault = |turn: usize| match turn % 4 {
        1 => drop(home.run(&format!("scale {}", INSTANCES - 1))),
        3 => drop(home.run(&format!("scale {INSTANCES}"))),
        _ => kill_one(&home, turn / 2),
    };
    let (address, answered, loads) = (up.address, AtomicUsize::new(0), AtomicUsize::new(0));
    let load = || {
        let until = Instant::now() + span();
        let first = loads.fetch_add(8, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let users: Vec<_> = (first..first + 8)
                .map(|user| scope.spawn(move || post(address, user, until)))
                .collect();
            let count: usize = users.into_iter().map(|user| user.join().unwrap()).sum();
            answered.fetch_add(count, Ordering::Relaxed);
        });
    };
    meanwhile(4, load, fault);
    let answered = answered.into_inner();
    let (executed, twice) = executed(&home.path().join("ledger"));
    assert!(twice.is_empty(), "executed twice: {twice:?}");
    assert!(answered > 100 && executed >= answered, "{executed} executed, {answered} answered");
}
