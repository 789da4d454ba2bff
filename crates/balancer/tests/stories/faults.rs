//! Backends that lie, close, reset or are not there; clients that leave.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use balancer::{Policy, Reuse};

use crate::stage::{GET, OK, Origin, PATIENCE, POLICIES, Stage};

/// An address where nothing listens.
fn nowhere() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn malformed_answers_are_502_and_their_connection_ends() {
    for (answer, flaw) in [
        ("garbage\r\n\r\n", "its header is malformed"),
        ("HTTP/1.1 200 OK\r\nA: b\rContent-Length: 2\r\n\r\nok", "its header is malformed"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
            "it has both",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "a chunk's size is not hexadecimal",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "Content-Length is not a single"),
    ] {
        let (origin, _seen) = Origin::answering(answer);
        let stage = Stage::before(&origin, 1);
        let answer = stage.client_asks("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(flaw), "{answer}");
        let backend = stage.backend();
        assert_eq!(
            (backend.counts.malformed, backend.idle_connections, backend.in_flight),
            (1, 0, 0)
        );
    }
}

#[test]
fn an_answer_cut_short_is_never_a_whole_one() {
    for (answer, passed) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n",
        ),
    ] {
        let origin = Origin::new(move |mut peer| {
            peer.head();
            peer.send(answer);
        });
        let stage = Stage::before(&origin, 1);
        let mut client = stage.client();
        client.send(GET);
        client.expect(passed);
        assert_eq!(client.rest(), "<reset>");
        assert_eq!(stage.backend().counts.truncated, 1);
    }
}

#[test]
fn a_malformed_chunk_after_the_header_resets() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::new(move |mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
        let _ = wait.lock().unwrap().recv();
        peer.send("zz\r\n");
        peer.rest();
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    client.expect("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok");
    go.send(()).unwrap();
    assert_eq!(
        client.rest(),
        "<reset>",
        "an HTTP/1.0 client would take a plain end for a whole body"
    );
}

/// It takes the body for the next request, of whichever client.
#[test]
fn with_safe_reuse_a_backend_that_ignores_bodies_gets_no_second_request() {
    for (reuse, connects) in [(Reuse::Always, 1), (Reuse::Safe, 3)] {
        let (origin, _seen) = Origin::answering(OK);
        let stage = Stage::new(|config| config.apps[0].reuse = reuse);
        stage.add(&origin, 1);
        let mut client = stage.client();
        let with_body = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
        for request in [GET, with_body, with_body, GET, GET] {
            client.send(request);
            client.expect(OK);
        }
        assert_eq!(stage.backend().counts.connects, connects, "{reuse:?}");
    }
}

/// Queue poisoning: bytes after an answer must not answer the next request.
#[test]
fn bytes_after_an_answer_are_dropped_with_their_connection() {
    let origin = Origin::new(|mut peer| {
        while peer.head().is_some() {
            peer.send(format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
        }
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    for _ in 0..3 {
        client.send(GET);
        client.expect(OK);
    }
    assert_eq!(stage.backend().counts.connects, 3);
}

/// Surplus bytes may also come late, on a connection that is already idle.
#[test]
fn bytes_on_an_idle_connection_end_it() {
    let (sent, late) = mpsc::channel();
    let (idle, go) = mpsc::channel();
    let go = std::sync::Mutex::new(go);
    let served = AtomicUsize::new(0);
    let origin = Origin::new(move |mut peer| {
        while peer.head().is_some() {
            peer.send(OK);
            if served.fetch_add(1, Ordering::SeqCst) == 0 {
                go.lock().unwrap().recv().unwrap();
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
                sent.send(()).unwrap();
            }
        }
    });
    let stage = Stage::new(|config| config.threads = 1);
    stage.add(&origin, 1);
    let mut client = stage.client();
    client.send(GET);
    client.expect(OK);
    idle.send(()).unwrap();
    late.recv_timeout(PATIENCE).unwrap();
    // Another connection lets the event loop look at its sockets first.
    drop(stage.client());
    stage.until("accepted", |snapshot| snapshot.clients.accepted == 2);
    client.send(GET);
    client.expect(OK);
    assert_eq!(stage.backend().counts.connects, 2);
}

/// The backend closes an idle connection as the next request comes: it sees the request twice when
/// that is safe, and never otherwise.
#[test]
fn a_stale_connection_is_retried_only_when_that_is_safe() {
    for (method, expected) in [
        ("GET", "HTTP/1.1 200 "),
        ("PUT", "HTTP/1.1 200 "),
        ("POST", "HTTP/1.1 502 "),
        ("PATCH", "HTTP/1.1 502 "),
    ] {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let origin = Origin::new(move |mut peer| {
            while peer.request().is_some() {
                // The second one is taken, and dropped without an answer.
                if count.fetch_add(1, Ordering::SeqCst) == 1 {
                    return;
                }
                peer.send(OK);
            }
        });
        let stage = Stage::before(&origin, 1);
        let mut client = stage.client();
        client.send(GET);
        client.expect(OK);
        client.send(format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"));
        let head = client.head().unwrap();
        assert!(head.starts_with(expected), "{method}: {head}");
        let idempotent = expected.contains("200");
        assert_eq!(requests.load(Ordering::SeqCst), if idempotent { 3 } else { 2 }, "{method}");
        assert_eq!(stage.backend().counts.retries, u64::from(idempotent));
    }
}

/// A body that was streamed is gone: what the client sends next is another request.
#[test]
fn a_request_whose_body_was_streamed_is_not_sent_again() {
    const BODY: usize = 20_000;
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let origin = Origin::new(move |mut peer| {
        while let Some(request) = peer.request() {
            count.fetch_add(1, Ordering::SeqCst);
            if request.starts_with("PUT") {
                return;
            }
            peer.send(OK);
        }
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send(GET);
    client.expect(OK);
    client.send(format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {BODY}\r\n\r\n"));
    client.send("x".repeat(BODY));
    client.send(GET.repeat(BODY / GET.len() + 1));
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

/// However it was cut into chunks, a small body is kept for as long.
#[test]
fn a_chunked_body_is_sent_again_too() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let origin = Origin::new(move |mut peer| {
        while let Some(head) = peer.head() {
            if head.starts_with("PUT") {
                peer.expect("6\r\nchunks\r\n0\r\nX-A: b\r\n\r\n");
            }
            if count.fetch_add(1, Ordering::SeqCst) == 1 {
                return;
            }
            peer.send(OK);
        }
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send(GET);
    client.expect(OK);
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nch");
    client.send("\r\n4;x=y\r\nunks\r\n0\r\nX-A: b\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
    client.expect(OK);
    client.expect(OK);
    assert_eq!(requests.load(Ordering::SeqCst), 4);
}

#[test]
fn a_fresh_connection_without_an_answer_is_502() {
    for reset in [false, true] {
        let origin = Origin::new(move |mut peer| {
            peer.head();
            if reset {
                peer.reset();
            }
        });
        let stage = Stage::before(&origin, 1);
        let answer = stage.client_asks("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 502 ")
                && answer.contains("closed the connection without an answer"),
            "{answer}"
        );
        assert_eq!((stage.backend().counts.closed, stage.backend().counts.retries), (1, 0));
    }
}

/// An instance dies with requests in flight: another one gets those that it does no harm to send
/// again, and never the same one.
#[test]
fn a_request_that_died_unanswered_goes_elsewhere_only_when_that_is_safe() {
    for (method, expected, seen) in [("GET", "HTTP/1.1 200 ", 1), ("POST", "HTTP/1.1 502 ", 0)] {
        let deaths = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&deaths);
        let dying = Origin::new(move |mut peer| {
            peer.request();
            count.fetch_add(1, Ordering::SeqCst);
        });
        let (alive, requests) = Origin::answering(OK);
        let stage = Stage::new(|config| config.apps[0].policy = Policy::First);
        stage.add(&dying, 1);
        stage.add(&alive, 1);
        let request = format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
        let answer = stage.client_asks(&request);
        assert!(answer.starts_with(expected), "{method}: {answer}");
        assert_eq!((deaths.load(Ordering::SeqCst), requests.try_iter().count()), (1, seen));
        assert_eq!(stage.handle.snapshot().apps[0].retries.sent, seen as u64);
    }
}

#[test]
fn an_unreachable_backend_is_passed_over_for_any_method() {
    for policy in POLICIES.map(|name| name.parse::<Policy>().unwrap()) {
        let (origin, seen) = Origin::answering(OK);
        let stage = Stage::new(|config| config.apps[0].policy = policy.clone());
        stage.add_address("down", nowhere(), 4);
        stage.add(&origin, 4);
        let mut client = stage.client();
        for _ in 0..4 {
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
            client.expect(OK);
            assert!(seen.recv().unwrap().ends_with("\r\n\r\nhi"));
        }
        assert!(seen.try_recv().is_err(), "executed twice");
        // A key may belong to the other one.
        let spread = !policy.to_string().contains("hash");
        assert!(!spread || stage.backend().counts.connect_errors > 0, "{policy}");
    }
}

#[test]
fn unreachable_backends_are_502_within_the_attempts() {
    let stage = Stage::new(|config| config.apps[0].attempts = 2);
    for _ in 0..3 {
        stage.add_address("down", nowhere(), 1);
    }
    let answer = stage.client_asks("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 502 ")
            && answer.contains("backend down cannot be reached: Connection refused")
            && !answer.contains("127.0.0.1"),
        "{answer}"
    );
    let errors: u64 = stage.handle.snapshot().apps[0]
        .backends
        .iter()
        .map(|backend| backend.counts.connect_errors)
        .sum();
    assert_eq!(errors, 2);
}

/// One GET ended three of four instances, as each in turn got it.
#[test]
fn a_request_that_ends_who_gets_it_ends_two_at_most() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let mortal = Origin::new(move |mut peer| {
        peer.head();
        count.fetch_add(1, Ordering::SeqCst);
    });
    let stage = Stage::new(|config| config.apps[0].attempts = 4);
    for _ in 0..4 {
        stage.add_address("mortal", mortal.address, 1);
    }
    let answer = stage.client_asks("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(ended.load(Ordering::SeqCst), 2);
}

#[test]
fn a_client_that_resets_frees_its_slot() {
    let (send, seen) = mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        peer.head();
        send.send(()).unwrap();
        peer.rest();
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send(GET);
    seen.recv().unwrap();
    client.reset();
    stage.until("the slot is free", |snapshot| snapshot.apps[0].backends[0].in_flight == 0);
    assert_eq!(stage.backend().counts.client_aborts, 1);
}

#[test]
fn a_client_that_only_finished_sending_gets_its_answer() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::before(&origin, 1);
    assert_eq!(stage.ask(GET), OK);
}

#[test]
fn a_client_that_leaves_within_its_body_frees_its_slot() {
    let (send, seen) = mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        peer.head();
        send.send(()).unwrap();
        peer.rest();
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200001\r\n\r\n");
    client.send("x".repeat(200_000));
    seen.recv().unwrap();
    drop(client);
    stage.until("it is counted", |snapshot| snapshot.apps[0].backends[0].counts.client_aborts == 1);
    stage.until("the slot is free", |snapshot| snapshot.apps[0].backends[0].in_flight == 0);
}

#[test]
fn so_does_one_that_resets_while_the_backend_takes_no_more_of_its_body() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        std::thread::park();
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
    while client.write_until_stalled() > 0 {}
    client.reset();
    stage.until("it is counted", |snapshot| snapshot.apps[0].backends[0].counts.client_aborts == 1);
    stage.until("the slot is free", |snapshot| snapshot.apps[0].backends[0].in_flight == 0);
}

/// NTLM and Negotiate authenticate a connection: nobody else may get it.
#[test]
fn an_authenticated_connection_is_not_shared() {
    const PLAIN: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    const NTLM: &str = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: NTLM TlRM\r\n\r\n";
    const BASIC: &str = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YQ==\r\n\r\n";
    const ASKS: &str =
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n";
    for (request, answer, kept) in [(BASIC, OK, 1), (NTLM, OK, 0), (PLAIN, ASKS, 0)] {
        let (origin, seen) = Origin::answering(answer);
        let stage = Stage::before(&origin, 1);
        let mut client = stage.client();
        client.send(request);
        client.expect(answer);
        assert_eq!(stage.backend().idle_connections, kept, "{request}{answer}");
        let field = request.lines().find(|line| line.starts_with("Authorization"));
        assert!(seen.recv().unwrap().contains(field.unwrap_or_default()));
    }
}
