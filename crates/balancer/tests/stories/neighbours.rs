//! What one client can take from others who share its address: an office, a NAT, a proxy that is not trusted.

use std::process::{Command, Stdio};
use std::time::Duration;

use balancer::Cleartext;

use crate::http2_abuse::{END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame};
use crate::stage::{GET, OK, Origin, Stage};

/// A request takes an instance so long.
const SERVICE: Duration = Duration::from_millis(10);

/// Requests of the neighbour that wait, before it is looked at how others are served.
const WAITING: usize = 150;

/// A neighbour's requests, one after the other. Each takes two turns of the one slot.
const REQUESTS: usize = 10;

/// More than sockets hold of an answer that nobody reads.
const BIG: usize = 4 << 20;

fn stage(slots: usize) -> Stage {
    let origin = Origin::new(|mut peer| {
        while let Some(head) = peer.head() {
            std::thread::sleep(SERVICE);
            if head.starts_with("GET /big ") {
                peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n"));
                peer.send(vec![b'x'; BIG]);
            } else {
                peer.send(OK);
            }
        }
    });
    let stage = Stage::new(|config| config.listeners[0].cleartext = Cleartext::Http1AndH2c);
    stage.add(&origin, slots);
    stage
}

/// Others are served while most of what came before them still waits.
fn others_are_served(stage: &Stage) {
    let depth = |stage: &Stage| stage.handle.snapshot().apps[0].queue.depth;
    stage.until("the neighbour's requests wait", |now| now.apps[0].queue.depth >= WAITING);
    for _ in 0..REQUESTS {
        assert_eq!(stage.client_asks(GET), OK);
    }
    assert!(depth(stage) >= WAITING / 3, "{} wait", depth(stage));
}

#[test]
fn slowhttptest_does_not_come_before_its_neighbours() {
    let stage = stage(1);
    let mut attack = Command::new("slowhttptest")
        .args(["-X", "-c", "300", "-r", "300", "-w", "512", "-y", "1024", "-n", "1", "-z", "32"])
        .args(["-k", "3", "-l", "30", "-u", &format!("http://{}/", stage.address())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("slowhttptest starts; scripts/deps installs it");
    others_are_served(&stage);
    attack.kill().unwrap();
    attack.wait().unwrap();
}

#[test]
fn many_http2_streams_do_not_come_before_their_neighbours() {
    let stage = stage(1);
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let big = [&[0x82, 0x86, 0x41, 1, b'h', 0x44, 4][..], b"/big"].concat();
    let requests = (0..100).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &big));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let opening: Vec<u8> = preface.into_iter().chain(no_window).chain(requests).collect();
    let connect = |_| {
        let mut client = stage.client();
        client.send(&opening);
        client
    };
    let _attackers: Vec<_> = (0..3).map(connect).collect();
    others_are_served(&stage);
}

/// A slot is free for others before its answer is read.
#[test]
fn slow_readers_hold_no_slots() {
    const SLOTS: usize = 4;
    let stage = stage(SLOTS);
    let connect = |_| {
        let mut client = stage.client();
        client.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        client
    };
    let attackers: Vec<_> = (0..4 * SLOTS).map(connect).collect();
    stage.until("all of them have been served", |now| {
        now.apps[0].backends[0].counts.requests == attackers.len() as u64
    });
    assert_eq!(stage.client_asks(GET), OK);
    assert!(stage.handle.snapshot().clients.open >= attackers.len() as u64, "some were cut off");
}
