//! Everything that may take too long, and the answer for it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use balancer::Timeouts;

use crate::stage::{FullBacklog, GET, OK, Origin, PATIENCE, Peer, Stage};

const SHORT: Duration = Duration::from_millis(60);

/// For what has to be done meanwhile: longer than a busy machine takes for it.
const LONG: Duration = Duration::from_secs(2);

const EXPECTING: &str =
    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";

fn stage(origin: &Origin, change: impl FnOnce(&mut Timeouts)) -> Stage {
    let stage = Stage::new(|config| change(&mut config.timeouts));
    stage.add(origin, 1);
    stage
}

/// Holds its connection without a word until the test is over.
fn silent(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> (Origin, mpsc::Sender<()>) {
    let (over, wait) = mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::new(move |mut peer| {
        script(&mut peer);
        let _ = wait.lock().unwrap().recv();
    });
    (origin, over)
}

/// The answer to a client that sends a byte now and then.
fn trickle(client: &mut Peer, byte: &'static str) -> String {
    std::thread::scope(|scope| {
        let (stop, stopped) = mpsc::channel::<()>();
        let mut writer = client.twin();
        scope.spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(5))
                == Err(mpsc::RecvTimeoutError::Timeout)
            {
                writer.send(byte);
            }
        });
        let head = client.head().unwrap();
        drop(stop);
        head
    })
}

#[test]
fn a_header_has_one_deadline_however_it_trickles() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, |timeouts| timeouts.header = SHORT);
    let mut client = stage.client();
    let start = Instant::now();
    let head = trickle(&mut client, "G");
    assert!(head.starts_with("HTTP/1.1 408 ") && head.contains("Connection: close"), "{head}");
    assert!(start.elapsed() >= SHORT);
}

#[test]
fn an_idle_client_is_closed_without_a_word() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, |timeouts| timeouts.idle = LONG);
    let (mut client, silent) = (stage.client(), stage.client());
    client.send(GET);
    client.expect(OK);
    assert_eq!(client.rest(), "");
    assert_eq!(silent.rest(), "");
}

/// Whatever it says that it is: over HTTP/1.1 nobody answers before.
#[test]
fn a_body_that_stops_coming_is_408() {
    for fields in [
        "Content-Length: 5",
        "Transfer-Encoding: chunked\r\nContent-Type: application/grpc",
        "Transfer-Encoding: chunked\r\nContent-Type: application/connect+json",
    ] {
        let (origin, _over) = silent(|_| ());
        let stage = stage(&origin, |timeouts| timeouts.body = SHORT);
        let mut client = stage.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n5"));
        stage.until("it is given up", |snapshot| snapshot.clients.own_4xx == 1);
        let answer = client.rest();
        assert!(
            answer.starts_with("HTTP/1.1 408 ")
                && answer.contains("408 no byte of the request body arrived for 60ms"),
            "{answer}"
        );
        assert_eq!(stage.backend().counts.requests, 0, "it got no slot");
    }
}

/// However often a piece of it comes, before a slot is asked for and with one.
#[test]
fn a_body_has_one_deadline_as_a_whole() {
    for (request, interim) in [
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n", ""),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
        ),
    ] {
        let (origin, _over) = silent(move |peer| {
            peer.head();
            peer.send(interim);
        });
        let stage = Stage::new(|config| {
            (config.timeouts.upload, config.limits.client_rate) = (LONG, 0);
        });
        stage.add(&origin, 1);
        let mut client = stage.client();
        client.send(request);
        client.expect(interim);
        let head = trickle(&mut client, "x");
        assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
        client.expect("408 the request body did not arrive within 2s\n");
    }
}

/// The backend has not said that it wants the body: it is the one that is waited for.
#[test]
fn early_hints_do_not_ask_for_a_body() {
    let (origin, _over) = silent(|peer| {
        peer.head();
        peer.send("HTTP/1.1 103 Early Hints\r\n\r\n");
    });
    let stage = stage(&origin, |timeouts| (timeouts.body, timeouts.response) = (SHORT, LONG));
    let mut client = stage.client();
    client.send(EXPECTING);
    client.expect("HTTP/1.1 103 Early Hints\r\n\r\n");
    let answer = client.rest();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

/// A request that holds a slot times out, too, once the backend or the client has begun with the body.
#[test]
fn a_body_that_was_expected_and_stops_coming_is_408() {
    for (interim, piece) in [("HTTP/1.1 100 Continue\r\n\r\n", ""), ("", "he")] {
        let (origin, _over) = silent(move |peer| {
            peer.head();
            peer.send(interim);
        });
        let stage = stage(&origin, |timeouts| timeouts.body = SHORT);
        let mut client = stage.client();
        client.send(format!("{EXPECTING}{piece}"));
        client.expect(interim);
        let answer = client.rest();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert_eq!(stage.backend().counts.client_aborts, 1);
    }
}

#[test]
fn a_backend_that_never_says_100_continue_is_504() {
    let (origin, _over) = silent(|_| ());
    let stage = stage(&origin, |timeouts| (timeouts.body, timeouts.response) = (SHORT / 6, SHORT));
    let mut client = stage.client();
    let start = Instant::now();
    client.send(EXPECTING);
    let answer = client.rest();
    assert!(answer.starts_with("HTTP/1.1 504 ") && start.elapsed() >= SHORT, "{answer}");
    assert_eq!(stage.backend().counts.timeouts, 1);
}

/// A byte now and then keeps a connection, but not a slot.
#[test]
fn a_body_that_trickles_loses_its_slot() {
    let (origin, _over) = silent(|peer| {
        peer.head();
        peer.send("HTTP/1.1 100 Continue\r\n\r\n");
    });
    let stage = Stage::new(|config| {
        (config.timeouts.client_grace, config.limits.client_rate) = (SHORT, 10_000);
    });
    stage.add(&origin, 1);
    let mut client = stage.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 50000\r\n\r\n",
    );
    client.head().unwrap();
    let head = trickle(&mut client, "x");
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
    client.expect("408 the request body came at fewer than 10000 bytes a second\n");
    assert_eq!((stage.backend().counts.client_aborts, stage.backend().in_flight), (1, 0));
}

/// What the kernel holds has moved, but pays for little of a rate as high as this.
#[test]
fn an_answer_that_is_taken_too_slowly_is_cut_off() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
        peer.write_until_stalled();
    });
    let stage = Stage::new(|config| {
        (config.timeouts.client_grace, config.limits.client_rate) = (SHORT, 1 << 40);
    });
    stage.add(&origin, 1);
    let mut client = stage.client();
    client.send(GET);
    client.head().unwrap();
    stage
        .until("it is given up", |snapshot| snapshot.apps[0].backends[0].counts.client_aborts == 1);
}

/// A slow backend is not held against its client.
#[test]
fn an_answer_that_trickles_is_passed_on() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            peer.send("x");
        }
    });
    let stage = Stage::new(|config| config.timeouts.client_grace = SHORT / 6);
    stage.add(&origin, 1);
    assert!(stage.client_asks(GET).ends_with(&"x".repeat(20)));
}

#[test]
fn a_backend_that_does_not_answer_is_504() {
    for said in ["", "HTTP/1.1 200 OK\r\nA: "] {
        let (origin, _over) = silent(move |peer| peer.send(said));
        let stage = stage(&origin, |timeouts| timeouts.response = SHORT);
        let mut client = stage.client();
        client.send(GET);
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 504 ") && !head.contains("Connection: close"), "{head}");
        let backend = stage.backend();
        assert_eq!(
            (backend.counts.timeouts, backend.in_flight, backend.idle_connections),
            (1, 0, 0)
        );
        client.expect("504 backend origin did not answer within 60ms\n");
    }
}

#[test]
fn a_backend_that_trickles_its_header_is_504() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nA: ");
        // For as long as its client would wait.
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            peer.send("b");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let stage = stage(&origin, |timeouts| timeouts.response = SHORT);
    let mut client = stage.client();
    client.send(GET);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 504 "));
}

/// What the kernel takes for it is not read; the rest has nowhere to go.
#[test]
fn a_backend_that_does_not_read_is_504() {
    let (origin, _over) = silent(|_| ());
    let stage = stage(&origin, |timeouts| timeouts.response = SHORT);
    let mut client = stage.client();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000000\r\n\r\n");
    let mut writer = client.twin();
    let writing = std::thread::spawn(move || writer.write_until_stalled());
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 504 ") && head.contains("Connection: close"), "{head}");
    assert_eq!(stage.backend().counts.timeouts, 1);
    drop(client);
    writing.join().unwrap();
}

#[test]
fn an_answer_that_stalls_is_cut_off() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let (origin, _over) = silent(move |peer| peer.send(head));
        let stage = stage(&origin, |timeouts| timeouts.stall = SHORT);
        let mut client = stage.client();
        client.send(GET);
        assert_eq!(client.rest(), format!("{head}<reset>"));
        assert_eq!(stage.backend().counts.timeouts, 1);
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
        peer.write_until_stalled();
    });
    let stage = stage(&origin, |timeouts| timeouts.stall = SHORT);
    let mut client = stage.client();
    client.send(GET);
    client.head().unwrap();
    stage
        .until("it is given up", |snapshot| snapshot.apps[0].backends[0].counts.client_aborts == 1);
}

#[test]
fn a_backend_that_never_accepts_is_502() {
    let full = FullBacklog::new();
    let stage = Stage::new(|config| config.timeouts.connect = SHORT);
    stage.add_address("full", full.address, 1);
    let answer = stage.client_asks(GET);
    assert!(
        answer.starts_with("HTTP/1.1 502 ")
            && answer.contains("cannot be reached: no connection within 60ms"),
        "{answer}"
    );
}

#[test]
fn idle_backend_connections_are_closed_in_time() {
    let (send, closed) = mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        while peer.head().is_some() {
            peer.send(OK);
        }
        send.send(()).unwrap();
    });
    let stage = stage(&origin, |timeouts| timeouts.backend_idle = SHORT);
    assert_eq!(stage.ask(GET), OK);
    closed.recv_timeout(PATIENCE).unwrap();
    stage.until("none is idle", |snapshot| snapshot.apps[0].backends[0].idle_connections == 0);
}
