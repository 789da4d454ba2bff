//! What one client can take from the others, who have another address.

use std::net::SocketAddr;

use balancer::{Cleartext, Config};

use crate::http2_abuse::{END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame};
use crate::stage::{GET, OK, Origin, Peer, Stage};

const SLOTS: usize = 16;
const QUEUE: usize = 64;

/// More than sockets hold of an answer that nobody reads.
const BIG: usize = 16 << 20;

/// A victim sends this many requests, one after the other.
const VICTIMS_REQUESTS: usize = 50;

fn stage() -> Stage {
    let origin = Origin::new(|mut peer| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /big ") {
                peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n"));
                peer.send(vec![b'x'; BIG]);
            } else if head.starts_with("POST ") {
                peer.rest_bytes();
                return;
            } else {
                peer.send(OK);
            }
        }
    });
    let stage = Stage::new(|config| {
        config.listeners[0].cleartext = Cleartext::Http1AndH2c;
        config.apps[0].queue.length = QUEUE;
    });
    stage.add(&origin, SLOTS);
    stage
}

/// A connection from 127.0.0.2 that takes little of what it is sent.
fn attacker(stage: &Stage, request: &[u8]) -> Peer {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
    socket.connect(&stage.address().into()).unwrap();
    let mut peer = Peer::new(socket.into());
    peer.send(request);
    peer
}

/// Nobody else is refused, nor kept waiting for longer than a test waits.
fn others_are_served(stage: &Stage) {
    stage.until("all slots and places are taken", |now| {
        let (app, backend) = (&now.apps[0], &now.apps[0].backends[0]);
        backend.in_flight == SLOTS && app.queue.depth >= SLOTS
    });
    for _ in 0..VICTIMS_REQUESTS {
        assert_eq!(stage.client_asks(GET), OK);
    }
}

#[test]
fn http2_requests_without_a_window_keep_nobody_from_slots_and_queue() {
    let stage = stage();
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let big = [&[0x82, 0x86, 0x41, 1, b'h', 0x44, 4][..], b"/big"].concat();
    let requests = (0..32).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &big));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let opening: Vec<u8> = preface.into_iter().chain(no_window).chain(requests).collect();
    let _attackers: Vec<_> = (0..4).map(|_| attacker(&stage, &opening)).collect();
    others_are_served(&stage);
}

#[test]
fn clients_that_do_not_read_keep_nobody_from_slots() {
    let stage = stage();
    let big = b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n";
    let _attackers: Vec<_> = (0..3 * SLOTS).map(|_| attacker(&stage, big)).collect();
    others_are_served(&stage);
}

#[test]
fn clients_that_do_not_send_their_bodies_keep_nobody_from_slots() {
    let stage = stage();
    let mut part = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n".to_vec();
    part.resize(192 << 10, b'x');
    let _attackers: Vec<_> = (0..3 * SLOTS).map(|_| attacker(&stage, &part)).collect();
    others_are_served(&stage);
}

/// Requests that are not answered.
fn silent(limit: usize, change: impl FnOnce(&mut Config)) -> Stage {
    let origin = Origin::new(|mut peer| while peer.head().is_some() {});
    let stage = Stage::new(|config| {
        config.listeners[0].cleartext = Cleartext::Http1AndH2c;
        config.limits.client_in_flight = limit;
        change(config);
    });
    stage.add(&origin, 1);
    stage
}

#[test]
fn requests_of_a_client_are_limited_over_http1_and_http2_in_flight_and_waiting() {
    let stage = silent(3, |_| {});
    let mut plain = [stage.client(), stage.client()];
    plain.iter_mut().for_each(|client| client.send(GET));
    stage.until("one is served, and one waits", |now| now.apps[0].queue.depth == 1);
    let get = [0x82, 0x86, 0x84, 0x41, 1, b'h'];
    let gets = (0..2).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &get));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let opening: Vec<u8> =
        preface.into_iter().chain(frame(SETTINGS, 0, 0, &[])).chain(gets).collect();
    let mut streams = stage.client();
    streams.send(opening);
    stage.until("one stream is refused", |now| now.clients.requests_refused == 1);
    assert!(stage.client_asks(GET).starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
}

#[test]
fn a_client_is_whom_a_trusted_proxy_names() {
    let stage = silent(1, |config| config.forwarding.trusted = vec!["127.0.0.1".parse().unwrap()]);
    let ask = |client: &str| {
        let mut peer = stage.client();
        peer.send(format!("GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {client}\r\n\r\n"));
        peer
    };
    let (_one, _other) = (ask("192.0.2.1"), ask("192.0.2.2"));
    let mut of_the_proxy = [stage.client(), stage.client()];
    of_the_proxy.iter_mut().for_each(|client| client.send(GET));
    stage.until("all of them wait", |now| now.apps[0].queue.depth == 3);
    assert!(ask("192.0.2.1").head().unwrap().starts_with("HTTP/1.1 429 "));
}

#[test]
fn memory_of_all_clients_is_bounded_and_serves_others_again_when_they_leave() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.threads = 1;
        config.listeners[0].cleartext = Cleartext::Http1AndH2c;
        config.limits.memory_bytes = 1 << 20;
    });
    stage.add(&origin, SLOTS);
    // POST / without an end: each may send 64 KiB unasked.
    let post = [0x83, 0x86, 0x84, 0x41, 1, b'h'];
    let posts = (0..32).flat_map(|n| frame(HEADERS, END_HEADERS, 2 * n + 1, &post));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let opening: Vec<u8> =
        preface.into_iter().chain(frame(SETTINGS, 0, 0, &[])).chain(posts).collect();
    let mut uploads = stage.client();
    uploads.send(opening);
    stage.until("half of the streams are refused", |now| now.clients.memory_refused > 16);
    let refused = stage.client_asks(GET);
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("memory_bytes"), "{refused}");
    uploads.reset();
    stage.until("others are served again", |_| stage.client_asks(GET) == OK);
}
