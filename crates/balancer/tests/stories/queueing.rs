//! Slots, the queue, and who waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use balancer::{AppId, Backend, Policy, Slots};

use crate::stage::{GET, OK, Origin, POLICIES, Peer, Stage};

/// Answers each request when told to, with its path.
fn gated() -> (Origin, mpsc::Receiver<String>, mpsc::Sender<()>) {
    let (send, seen) = mpsc::channel();
    let (open, gate) = mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let origin = Origin::new(move |mut peer| {
        while let Some(head) = peer.head() {
            let _ = send.send(head.split(' ').nth(1).unwrap().to_owned());
            if gate.lock().unwrap().recv().is_err() {
                return;
            }
            peer.send(OK);
        }
    });
    (origin, seen, open)
}

fn asking(stage: &Stage, path: &str) -> Peer {
    let mut client = stage.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    client
}

fn wait_for_depth(stage: &Stage, depth: usize) {
    stage.until("that many wait", |snapshot| snapshot.apps[0].queue.depth == depth);
}

#[test]
fn first_come_first_served_with_one_slot() {
    let (origin, seen, open) = gated();
    let stage = Stage::before(&origin, 1);
    let mut clients = vec![asking(&stage, "/0")];
    assert_eq!(seen.recv().unwrap(), "/0");
    for n in 1..5 {
        clients.push(asking(&stage, &format!("/{n}")));
        wait_for_depth(&stage, n);
    }
    for (n, client) in clients.iter_mut().enumerate() {
        assert!(seen.try_recv().is_err(), "one at a time");
        open.send(()).unwrap();
        client.expect(OK);
        if n < 4 {
            assert_eq!(seen.recv().unwrap(), format!("/{}", n + 1));
        }
    }
    assert_eq!(origin.most_open.load(Ordering::SeqCst), 1);
    assert_eq!(stage.handle.snapshot().apps[0].queue.max_depth, 4);
}

#[test]
fn a_client_that_left_is_skipped() {
    let (origin, seen, open) = gated();
    let stage = Stage::before(&origin, 1);
    let mut first = asking(&stage, "/0");
    seen.recv().unwrap();
    let left = asking(&stage, "/left");
    wait_for_depth(&stage, 1);
    let mut last = asking(&stage, "/last");
    wait_for_depth(&stage, 2);
    drop(left);
    stage.until("one is gone", |snapshot| snapshot.apps[0].queue.shed.client_gone == 1);
    open.send(()).unwrap();
    first.expect(OK);
    assert_eq!(seen.recv().unwrap(), "/last");
    open.send(()).unwrap();
    last.expect(OK);
}

/// Also when it has sent more than it waits for, which is not read before its turn.
#[test]
fn a_client_that_left_after_pipelining_is_noticed() {
    let (origin, seen, _open) = gated();
    let stage = Stage::before(&origin, 1);
    let _first = asking(&stage, "/0");
    seen.recv().unwrap();
    let mut left = asking(&stage, "/left");
    wait_for_depth(&stage, 1);
    left.send(GET);
    drop(left);
    stage.until("it is gone", |snapshot| snapshot.apps[0].queue.shed.client_gone == 1);
}

#[test]
fn a_full_queue_answers_503_and_keeps_the_connection() {
    let (origin, seen, open) = gated();
    let stage = Stage::new(|config| config.apps[0].queue.length = 1);
    stage.add(&origin, 1);
    let mut first = asking(&stage, "/0");
    seen.recv().unwrap();
    let mut second = asking(&stage, "/1");
    wait_for_depth(&stage, 1);
    let mut third = asking(&stage, "/2");
    let head = third.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After: 1\r\n"), "{head}");
    third
        .expect("503 queue full: 1 requests already wait; add instances or raise --queue-length\n");
    open.send(()).unwrap();
    first.expect(OK);
    open.send(()).unwrap();
    second.expect(OK);
    third.send(GET);
    open.send(()).unwrap();
    third.expect(OK);
    let snapshot = stage.handle.snapshot();
    assert_eq!((snapshot.apps[0].queue.shed.full, snapshot.clients.own_5xx), (1, 1));
}

#[test]
fn a_wait_that_is_too_long_answers_503() {
    for backends in [0, 1] {
        let (origin, seen, _open) = gated();
        let stage = Stage::new(|config| config.apps[0].queue.wait = Duration::from_millis(30));
        let mut held = None;
        if backends == 1 {
            stage.add(&origin, 1);
            held = Some(asking(&stage, "/0"));
            seen.recv().unwrap();
        }
        let mut client = asking(&stage, "/1");
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After"), "{head}");
        client.expect("503 no instance was free for 30ms; add instances or raise --queue-wait\n");
        assert_eq!(stage.handle.snapshot().apps[0].queue.shed.timeout, 1);
        drop(held);
    }
}

#[test]
fn a_request_waits_for_the_first_backend() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|_| ());
    let mut client = asking(&stage, "/");
    wait_for_depth(&stage, 1);
    stage.add(&origin, 1);
    client.expect(OK);
}

/// Under many clients on several threads there are never more connections than slots, for each
/// policy, and every request is answered.
#[test]
fn connections_never_exceed_slots() {
    for policy in POLICIES.map(|name| name.parse::<Policy>().unwrap()) {
        let origins: Vec<_> = (0..3).map(|_| Origin::answering(OK).0).collect();
        let stage =
            Stage::new(|config| (config.apps[0].policy, config.threads) = (policy.clone(), 3));
        for origin in &origins {
            stage.add(origin, 2);
        }
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let mut client = stage.client();
                    for _ in 0..50 {
                        client.send(GET);
                        client.expect(OK);
                    }
                });
            }
        });
        for origin in &origins {
            let most = origin.most_open.load(Ordering::SeqCst);
            assert!((1..=2).contains(&most), "{policy}: {most} connections at once");
        }
        let requests: u64 = stage.handle.snapshot().apps[0]
            .backends
            .iter()
            .map(|backend| backend.counts.requests)
            .sum();
        assert_eq!(requests, 600, "{policy}");
    }
}

/// Python's `HTTPServer`, `php -S`: a second connection is not served before the first is closed.
#[test]
fn a_backend_of_one_connection_at_a_time_does_not_deadlock() {
    let origin = Origin::serial(|mut peer| {
        while peer.head().is_some() {
            peer.send(OK);
        }
    });
    let stage = Stage::new(|config| config.threads = 3);
    stage.add(&origin, 1);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut client = stage.client();
                    client.send(GET);
                    client.expect(OK);
                }
            });
        }
    });
}

/// Each request takes a few milliseconds, however many there are.
#[test]
fn slots_are_found_while_requests_wait() {
    let origin = Origin::new(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(4));
            peer.send(OK);
        }
    });
    let stage = Stage::new(|_| ());
    stage.handle.add(AppId::FIRST, Backend::new("origin", origin.address, Slots::Auto));
    assert_eq!(stage.backend().slots, 1);
    let found = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = stage.client();
                while !found.load(Ordering::SeqCst) {
                    client.send(GET);
                    client.expect(OK);
                }
            });
        }
        stage.until("more than one", |snapshot| {
            let more = snapshot.apps[0].backends[0].slots >= 4;
            found.store(more, Ordering::SeqCst);
            more
        });
    });
}

#[test]
fn round_robin_passes_over_a_backend_that_hangs() {
    let (hangs, seen, open) = gated();
    let (answers, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.apps[0].policy = Policy::RoundRobin);
    stage.add(&hangs, 1);
    stage.add(&answers, 1);
    let mut first = asking(&stage, "/0");
    seen.recv().unwrap();
    for _ in 0..4 {
        asking(&stage, "/1").expect(OK);
    }
    open.send(()).unwrap();
    first.expect(OK);
}
