//! Slow attacks by slowhttptest, and what other clients notice of them: nothing.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::stage::{GET, OK, Origin, Stage};

/// Connections of an attacker.
const CONNECTIONS: usize = 300;

/// Seconds that an attack goes on.
const LENGTH: &str = "3";

/// Header, body and reading at the pace of slowhttptest, for as long as `LENGTH` tells.
fn attack(address: SocketAddr, kind: &[&str]) -> Child {
    let count = CONNECTIONS.to_string();
    Command::new("slowhttptest")
        .args(kind)
        .args(["-c", &count, "-r", &count, "-l", LENGTH, "-p", "1"])
        .args(["-u", &format!("http://{address}/")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("slowhttptest starts; scripts/deps installs it")
}

/// Every other client is served while the attack lasts.
fn withstand(kind: &[&str], answer: &'static str) {
    let (origin, _seen) = Origin::answering(answer);
    let stage = Stage::new(|config| {
        config.timeouts.header = Duration::from_millis(500);
        config.timeouts.client_grace = Duration::from_millis(500);
        config.timeouts.body = Duration::from_millis(500);
        config.timeouts.stall = Duration::from_millis(500);
        config.limits.client_rate = 100_000;
    });
    stage.add(&origin, 2);
    let mut attack = attack(stage.balancer.local_addr(), kind);
    stage.until("the attack is on", |snapshot| {
        snapshot.clients.accepted as usize >= CONNECTIONS / 2
    });
    let mut served = 0;
    while attack.try_wait().unwrap().is_none() {
        let mut client = stage.client();
        client.send(GET);
        let head = client.head().expect("another client is served");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        client.reset();
        served += 1;
    }
    assert!(served > 0, "nobody else came");
    stage.until("all attackers are gone", |snapshot| snapshot.clients.open == 0);
}

#[test]
fn slow_headers_harm_nobody_else() {
    withstand(&["-H", "-i", "1"], OK);
}

#[test]
fn slow_bodies_harm_nobody_else() {
    withstand(&["-B", "-i", "1", "-s", "8192"], OK);
}

#[test]
fn slow_reading_harms_nobody_else() {
    let large = Box::leak(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", 4 << 20, "x".repeat(4 << 20))
            .into_boxed_str(),
    );
    withstand(&["-X", "-w", "1", "-y", "1", "-n", "1", "-z", "1", "-k", "1"], large);
}
