//! Upgrades: a tunnel only after a 101 that was asked for.

use std::time::Duration;

use crate::stage::{ADDED, GET, OK, Origin, Stage};

const ASK: &str =
    "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

#[test]
fn bytes_go_both_ways_after_a_101() {
    let origin = Origin::new(|mut peer| {
        let head = peer.head().unwrap();
        assert_eq!(
            head,
            format!(
                "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{ADDED}\r\n"
            )
        );
        // The first bytes of the new protocol come with the header.
        peer.send(format!("{SWITCH}hello"));
        peer.expect("early");
        peer.expect("late");
        peer.send("bye");
        peer.finish();
        assert_eq!(peer.rest(), "end");
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send(format!("{ASK}early"));
    client.expect(SWITCH);
    client.expect("hello");
    client.send("late");
    client.expect("bye");
    assert_eq!((stage.backend().in_flight, stage.backend().upgraded), (0, 1));
    client.send("end");
    client.finish();
    assert_eq!(client.rest(), "");
    stage.until("the tunnel is over", |snapshot| snapshot.apps[0].backends[0].upgraded == 0);
    assert_eq!(stage.backend().counts.responses, [1, 0, 0, 0, 0]);
}

/// CVE-2026-2833 class: what follows a refused upgrade is HTTP.
#[test]
fn without_a_101_what_follows_is_the_next_request() {
    let origin = Origin::new(|mut peer| {
        while let Some(head) = peer.head() {
            if head.contains("/ws") {
                peer.send("HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n");
            } else {
                assert!(head.contains(ADDED), "a request that bypassed the balancer: {head}");
                peer.send(OK);
            }
        }
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send(format!("{ASK}{GET}"));
    client.expect("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    client.expect(OK);
}

#[test]
fn a_101_that_nobody_asked_for_is_502() {
    let (origin, _seen) = Origin::answering(SWITCH);
    let stage = Stage::before(&origin, 1);
    let answer = stage.client_asks(GET);
    assert!(
        answer.starts_with("HTTP/1.1 502 ")
            && answer.contains("it changes protocols though nobody asked"),
        "{answer}"
    );
    assert_eq!(stage.backend().counts.malformed, 1);
}

#[test]
fn a_silent_tunnel_is_closed() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send(SWITCH);
        peer.rest();
    });
    let stage = Stage::new(|config| config.timeouts.tunnel = Duration::from_millis(50));
    stage.add(&origin, 1);
    let mut client = stage.client();
    client.send(ASK);
    client.expect(SWITCH);
    assert_eq!(client.rest(), "");
}

/// A worker of one request at a time is free for the next one while a WebSocket is open.
#[test]
fn an_upgraded_connection_leaves_its_slot_to_others() {
    let origin = Origin::new(|mut peer| {
        while let Some(head) = peer.head() {
            if head.contains("/ws") {
                peer.send(SWITCH);
                peer.rest();
                return;
            }
            peer.send(OK);
        }
    });
    let stage = Stage::before(&origin, 1);
    let mut socket = stage.client();
    socket.send(ASK);
    socket.expect(SWITCH);
    for _ in 0..3 {
        let mut client = stage.client();
        client.send(GET);
        client.expect(OK);
    }
    assert_eq!((stage.backend().upgraded, stage.backend().idle_connections), (1, 1));
    drop(socket);
    stage.until("it is over", |snapshot| snapshot.apps[0].backends[0].upgraded == 0);
}
