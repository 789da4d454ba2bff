//! Backends that go down and come back, by what they do and by being asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use balancer::{ActiveHealth, BackendHealth, HealthEvents, Policy};

use crate::stage::{GET, OK, Origin, PATIENCE, Peer, Stage, block_on};

fn next(events: &mut HealthEvents) -> (BackendHealth, String) {
    let event =
        block_on(async { tokio::time::timeout(PATIENCE, events.next()).await.expect("an event") });
    let event = event.expect("the balancer runs");
    (event.health, event.reason)
}

/// Answers, or closes at once, as it is told.
fn moody(sound: &Arc<AtomicBool>) -> Origin {
    let sound = Arc::clone(sound);
    Origin::new(move |mut peer: Peer| {
        while sound.load(Ordering::SeqCst) && peer.request().is_some() {
            peer.send(if sound.load(Ordering::SeqCst) { OK } else { "" });
        }
    })
}

#[test]
fn an_instance_that_is_gone_gets_no_requests_until_it_is_back() {
    let spot = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = spot.local_addr().unwrap();
    drop(spot);
    let (steady, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.apps[0].policy = Policy::First;
        config.apps[0].health.passive.rest = Duration::from_millis(50);
    });
    let mut events = stage.handle.health_events();
    stage.add_address("gone", address, 4);
    stage.add(&steady, 4);
    for _ in 0..3 {
        assert_eq!(stage.backend().health, BackendHealth::Up);
        assert_eq!(stage.ask(GET), OK);
    }
    assert_eq!(next(&mut events).0, BackendHealth::Down);
    let listener = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut peer = Peer::new(stream.unwrap());
            while peer.request().is_some() {
                peer.send(OK);
            }
        }
    });
    stage.until("it is tried again", |_| {
        assert_eq!(stage.ask(GET), OK);
        stage.backend().health == BackendHealth::Up
    });
    assert_eq!(stage.backend().health_reason, None);
}

#[test]
fn with_all_backends_down_a_request_waits_for_recovery() {
    let sound = Arc::new(AtomicBool::new(false));
    let origin = moody(&sound);
    let stage = Stage::new(|config| {
        let checks =
            ActiveHealth { interval: Duration::from_millis(10), ..ActiveHealth::of("/up") };
        config.apps[0].health.active = Some(checks);
    });
    let mut events = stage.handle.health_events();
    stage.add(&origin, 1);
    let (health, reason) = next(&mut events);
    assert_eq!(health, BackendHealth::Down);
    assert!(reason.starts_with("3 checks in a row failed"), "{reason}");
    let mut client = stage.client();
    client.send(GET);
    stage.until("it waits", |snapshot| snapshot.apps[0].queue.depth == 1);
    sound.store(true, Ordering::SeqCst);
    client.expect(OK);
    assert_eq!(next(&mut events).0, BackendHealth::Up);
}

/// What there is to wait for then is a slot, for as long as any other request waits for one.
#[test]
fn a_request_that_waited_for_recovery_waits_on_for_a_slot() {
    // Longer than a busy machine keeps this story waiting.
    let limit = Duration::from_secs(3);
    let stage = Stage::new(|config| {
        let health = &mut config.apps[0].health;
        (health.passive.failures, health.passive.rest) = (1, Duration::from_secs(3600));
        health.all_down_wait = limit;
    });
    stage.add_address("gone", "127.0.0.1:1".parse::<std::net::SocketAddr>().unwrap(), 1);
    assert!(stage.client_asks(GET).contains("none of 1 instances is fit to serve"));
    let began = Instant::now();
    let mut clients = [stage.client(), stage.client()];
    clients.iter_mut().for_each(|client| client.send(GET));
    stage.until("both wait", |snapshot| snapshot.apps[0].queue.depth == 2);
    let origin = Origin::new(move |mut peer| {
        while peer.request().is_some() {
            std::thread::sleep((began + limit * 5 / 4).saturating_duration_since(Instant::now()));
            peer.send(OK);
        }
    });
    stage.add(&origin, 1);
    clients.iter_mut().for_each(|client| client.expect(OK));
}

#[test]
fn without_a_wait_the_refusal_says_that_all_are_down() {
    let (origin, _seen) = Origin::answering("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let stage = Stage::new(|config| {
        let health = &mut config.apps[0].health;
        health.active = Some(ActiveHealth { fall: 1, ..ActiveHealth::of("/up") });
        health.all_down_wait = Duration::ZERO;
    });
    stage.add(&origin, 1);
    stage.until("it is down", |s| s.apps[0].backends[0].health == BackendHealth::Down);
    let answer = stage.client_asks(GET);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: "), "{answer}");
    assert!(answer.contains("none of 1 instances is fit to serve"), "{answer}");
    assert!(answer.contains("status 500"), "{answer}");
    assert_eq!(stage.handle.snapshot().apps[0].queue.shed.all_down, 1);
}

#[test]
fn a_check_looks_at_status_and_body() {
    const TELLING: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nal\r\n3\r\nive\r\n0\r\n\r\n";
    for (body, health) in [("alive", BackendHealth::Up), ("fine", BackendHealth::Down)] {
        let (origin, seen) = Origin::answering(TELLING);
        let stage = Stage::new(|config| {
            let checks = ActiveHealth {
                host: Some("app.example".into()),
                body: Some(body.into()),
                fall: 1,
                interval: Duration::from_millis(5),
                timeout: PATIENCE,
                ..ActiveHealth::of("/up?deep=1")
            };
            config.apps[0].health.active = Some(checks);
        });
        stage.add(&origin, 1);
        let request = seen.recv().unwrap();
        assert!(request.starts_with("GET /up?deep=1 HTTP/1.1\r\nHost: app.example\r\n"));
        stage.until("checked", |snapshot| snapshot.apps[0].backends[0].counts.checks > 3);
        assert_eq!(stage.backend().health, health);
        assert_eq!(origin.most_open.load(Ordering::SeqCst), 1, "no more connections than slots");
    }
}
