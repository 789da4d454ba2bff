//! Large bodies, slow readers, both directions at once.

use std::sync::mpsc;

use crate::stage::{GET, OK, Origin, PATIENCE, Peer, Stage};

const LARGE: usize = 8 << 20;

/// Bytes that tell their place.
fn pattern(len: usize) -> String {
    (0..len).map(|n| char::from(b'a' + (n / 7 % 26) as u8)).collect()
}

#[test]
fn large_bodies_arrive_whole_in_each_framing() {
    let origin = Origin::new(|mut peer| {
        while let Some(request) = peer.request() {
            let body = request.split_once("\r\n\r\n").unwrap().1;
            if request.starts_with("POST /length") {
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ));
            } else {
                peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                for piece in body.as_bytes().chunks(100_003) {
                    peer.send(format!(
                        "{:x}\r\n{}\r\n",
                        piece.len(),
                        std::str::from_utf8(piece).unwrap()
                    ));
                }
                peer.send("0\r\n\r\n");
            }
        }
    });
    let stage = Stage::before(&origin, 1);
    let body = pattern(LARGE);
    let mut client = stage.client();
    for path in ["/length", "/chunks"] {
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {LARGE}\r\n\r\n{body}"
        ));
        let head = client.head().unwrap();
        let got = if head.contains("chunked") { dechunk(&mut client) } else { client.take(LARGE) };
        assert!(
            got == body,
            "{path}: a body of {} bytes arrived as {} others",
            body.len(),
            got.len()
        );
    }
}

fn dechunk(peer: &mut Peer) -> String {
    let mut body = String::new();
    loop {
        let mut size = String::new();
        while !size.ends_with("\r\n") {
            size.push_str(&peer.take(1));
        }
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        body.push_str(&peer.take(size));
        peer.expect("\r\n");
        if size == 0 {
            return body;
        }
    }
}

/// The answer streams while the request does: neither side is held back by the other's end. A client
/// that cannot wait until its body is gathered says so with `Expect`.
#[test]
fn both_directions_stream_at_once() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
        for _ in 0..3 {
            let piece = peer.take(2);
            peer.send(piece);
        }
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n");
    client.head().unwrap();
    for piece in ["ab", "cd", "ef"] {
        client.send(piece);
        client.expect(piece);
    }
}

/// Without a spool, the balancer takes no more than buffers hold: an origin that writes without end stalls.
#[test]
fn a_slow_reader_holds_its_origin_back() {
    const ENDLESS: usize = 256 << 20;
    let (send, stalled) = mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        peer.head();
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS}\r\n\r\n"));
        send.send(peer.write_until_stalled()).unwrap();
    });
    let stage = Stage::new(|config| config.limits.spool_memory_bytes = 0);
    stage.add(&origin, 1);
    let mut client = stage.client();
    client.send(GET);
    client.head().unwrap();
    let written = stalled.recv_timeout(PATIENCE).unwrap();
    assert!(written < 64 << 20, "{written} bytes went somewhere");
    drop(client);
    stage.until("the slot is free", |snapshot| snapshot.apps[0].backends[0].in_flight == 0);
}

/// An upload that its origin does not read is not gathered either.
#[test]
fn a_slow_origin_holds_its_client_back() {
    let (release, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::new(move |mut peer| {
        peer.head();
        let _ = wait.lock().unwrap().recv();
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000000\r\n\r\n");
    let written = client.write_until_stalled();
    assert!(written < 64 << 20, "{written} bytes went somewhere");
    drop(release);
}

/// Nor does a slow client hold back others: its body is gathered before it gets a slot.
#[test]
fn a_slow_upload_holds_no_slot() {
    let origin = Origin::new(|mut peer| {
        while peer.head().is_some_and(|head| {
            let body = if head.contains("chunked") { "3\r\nabc\r\n0\r\n\r\n" } else { "abc" };
            if head.starts_with("POST") {
                peer.expect(body);
            }
            true
        }) {
            peer.send(OK);
        }
    });
    for (field, pieces) in [
        ("Content-Length: 3", ["a", "b", "c"]),
        ("Transfer-Encoding: chunked", ["3\r\nab", "c\r\n", "0\r\n\r\n"]),
    ] {
        let stage = Stage::before(&origin, 1);
        let mut slow = stage.client();
        slow.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n"));
        for piece in pieces {
            assert_eq!(stage.client_asks(GET), OK);
            assert_eq!(stage.backend().in_flight, 0, "{field}");
            slow.send(piece);
        }
        slow.expect(OK);
    }
}

/// The slot is free when the origin is done, not when the client is.
#[test]
fn a_small_answer_frees_its_slot_before_it_is_read() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::before(&origin, 1);
    let mut slow = stage.client();
    slow.send(GET);
    assert_eq!(stage.client_asks(GET), OK);
    slow.expect(OK);
}
