//! Backends come and go, and the balancer stops, under traffic.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use balancer::{
    AppConfig, AppId, Backend, BackendId, Balancer, Config, Drained, Listener, Policy, StartError,
};

use crate::stage::{GET, OK, Origin, PATIENCE, POLICIES, Peer, Stage, block_on, eventually};

/// Signals when a request is in, answers when told.
fn held() -> (Origin, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (send, seen) = mpsc::channel();
    let (open, gate) = mpsc::channel();
    let gate = std::sync::Mutex::new(gate);
    let origin = Origin::new(move |mut peer| {
        while peer.head().is_some() {
            send.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            peer.send(OK);
        }
    });
    (origin, seen, open)
}

/// A backend with so many slots that has one request, and answers it when told.
fn with_one_in_flight(slots: usize) -> (Stage, BackendId, Peer, mpsc::Sender<()>) {
    let (origin, seen, open) = held();
    let stage = Stage::new(|_| ());
    let id = stage.add(&origin, slots);
    let mut client = stage.client();
    client.send(GET);
    seen.recv().unwrap();
    (stage, id, client, open)
}

#[test]
fn membership_changes_under_load_lose_no_request() {
    for policy in POLICIES.map(|name| name.parse::<Policy>().unwrap()) {
        let origins: Vec<_> = (0..4).map(|_| Origin::answering(OK).0).collect();
        let stage = Stage::new(|config| config.apps[0].policy = policy.clone());
        stage.add(&origins[0], 1);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = stage.client();
                        for _ in 0..150 {
                            client.send(GET);
                            client.expect(OK);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let mut round = 0;
                while !done.load(Ordering::SeqCst) {
                    let id = stage.add(&origins[1 + round % 3], 1 + round % 2);
                    stage.handle.set_slots(id, 1 + (round + 1) % 2);
                    match round % 3 {
                        0 => stage.handle.remove(id),
                        _ => assert_eq!(
                            runtime.block_on(stage.handle.drain(id, PATIENCE)),
                            Drained::Clean
                        ),
                    }
                    round += 1;
                }
            });
            let results: Vec<_> =
                clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::SeqCst);
            assert!(results.iter().all(Result::is_ok), "{policy}");
        });
        let snapshot = stage.handle.snapshot();
        assert_eq!(snapshot.apps[0].backends.len(), 1);
        assert_eq!((snapshot.clients.own_5xx, snapshot.apps[0].queue.depth), (0, 0), "{policy}");
    }
}

#[test]
fn drain_waits_for_the_last_request_and_gives_no_new_one() {
    let (stage, id, mut client, open) = with_one_in_flight(2);
    let handle = stage.handle.clone();
    let drain = std::thread::spawn(move || block_on(handle.drain(id, PATIENCE)));
    eventually("it drains", || stage.backend().state == balancer::BackendPhase::Draining);
    let mut late = stage.client();
    late.send(GET);
    stage.until("the new one waits", |snapshot| snapshot.apps[0].queue.depth == 1);
    open.send(()).unwrap();
    client.expect(OK);
    assert_eq!(drain.join().unwrap(), Drained::Clean);
    assert!(stage.handle.snapshot().apps[0].backends.is_empty());
    let (other, _seen) = Origin::answering(OK);
    stage.add(&other, 1);
    late.expect(OK);
}

#[test]
fn drain_gives_up_at_its_deadline() {
    let (stage, id, mut client, open) = with_one_in_flight(1);
    assert_eq!(block_on(stage.handle.drain(id, Duration::from_millis(20))), Drained::InFlight(1));
    assert!(stage.handle.snapshot().apps[0].backends.is_empty());
    open.send(()).unwrap();
    client.expect(OK);
    assert_eq!(block_on(stage.handle.drain(id, PATIENCE)), Drained::Clean);
}

#[test]
fn a_drain_that_nobody_waits_for_any_more_takes_the_backend_out() {
    let (stage, id, mut client, open) = with_one_in_flight(1);
    let drain = stage.handle.drain(id, PATIENCE);
    let gone = async { tokio::time::timeout(Duration::from_millis(1), drain).await };
    assert!(block_on(gone).is_err());
    assert!(stage.handle.snapshot().apps[0].backends.is_empty());
    open.send(()).unwrap();
    client.expect(OK);
}

#[test]
fn a_removed_backend_loses_its_idle_connections() {
    let (send, closed) = mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        while peer.head().is_some() {
            peer.send(OK);
        }
        send.send(()).unwrap();
    });
    let stage = Stage::new(|_| ());
    let id = stage.add(&origin, 1);
    assert_eq!(stage.ask(GET), OK);
    assert_eq!(stage.backend().idle_connections, 1);
    stage.handle.remove(id);
    closed.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn fewer_slots_close_idle_connections() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|_| ());
    let id = stage.add(&origin, 2);
    assert_eq!(stage.ask(GET), OK);
    stage.handle.set_slots(id, 1);
    assert_eq!((stage.backend().idle_connections, stage.backend().slots), (0, 1));
    assert_eq!(stage.ask(GET), OK);
}

#[test]
fn shutdown_finishes_what_is_in_flight_and_closes_what_is_idle() {
    let (origin, seen, open) = held();
    let Stage { balancer, handle } = Stage::before(&origin, 1);
    let address = balancer.local_addr();
    let connect = || crate::stage::Peer::new(std::net::TcpStream::connect(address).unwrap());
    let (idle, mut busy) = (connect(), connect());
    busy.send(GET);
    seen.recv().unwrap();
    eventually("both are accepted", || handle.snapshot().clients.open == 2);
    let shutdown = std::thread::spawn(move || block_on(balancer.shutdown(PATIENCE)));
    assert_eq!(idle.rest(), "");
    open.send(()).unwrap();
    assert_eq!(busy.rest(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    shutdown.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
    assert_eq!(handle.snapshot().clients.open, 0);
}

/// The next connection waits until one ends, or the balancer stops; those that the kernel has
/// established by then are served, however many.
#[test]
fn connections_are_limited_until_the_end() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| (config.threads, config.limits.connections) = (1, 1));
    stage.add(&origin, 1);
    let mut first = stage.client();
    first.send(GET);
    first.expect(OK);
    let mut second = stage.client();
    second.send(GET);
    std::thread::sleep(Duration::from_millis(120));
    assert_eq!(stage.handle.snapshot().clients.accepted, 1);
    drop(first);
    second.expect(OK);

    let mut queued: Vec<_> = (0..200).map(|_| stage.client()).collect();
    queued.iter_mut().for_each(|client| client.send(GET));
    // A client's last step of the handshake may be on its way for longer than its `connect`.
    eventually("all are established", || waiting_requests(stage.address(), GET) == 200);
    block_on(stage.balancer.shutdown(PATIENCE));
    for client in queued {
        assert!(client.rest().starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

/// Connections to an address that the kernel has, with a request that nobody has read.
fn waiting_requests(to: SocketAddr, request: &str) -> usize {
    const ESTABLISHED: &str = "01";
    let port = format!(":{:04X}", to.port());
    let unread = format!(":{:08X}", request.len());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let waits = |line: &&str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        fields[1].ends_with(&port) && fields[3] == ESTABLISHED && fields[4].ends_with(&unread)
    };
    table.lines().skip(1).filter(waits).count()
}

#[test]
fn shutdown_cuts_off_at_its_deadline() {
    let (origin, seen, _open) = held();
    let Stage { balancer, .. } = Stage::before(&origin, 1);
    let mut client =
        crate::stage::Peer::new(std::net::TcpStream::connect(balancer.local_addr()).unwrap());
    client.send(GET);
    seen.recv().unwrap();
    let start = Instant::now();
    block_on(balancer.shutdown(Duration::from_millis(50)));
    assert!(start.elapsed() < PATIENCE);
    assert_eq!(client.rest(), "");
}

/// Its end would be that of the answer.
#[test]
fn an_answer_that_a_stop_cuts_off_is_seen_as_incomplete() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\n\r\nhalf");
        peer.rest();
    });
    let stage = Stage::before(&origin, 1);
    let mut client = stage.client();
    client.send("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    client.until(b"half");
    block_on(stage.balancer.shutdown(Duration::from_millis(50)));
    assert!(client.rest().ends_with("half<reset>"));
}

#[test]
fn starting_says_what_is_wrong() {
    let (origin, _seen) = Origin::answering(OK);
    let taken = Config { listeners: vec![Listener::new(origin.address)], ..Config::default() };
    assert!(
        matches!(Balancer::start(taken), Err(StartError::AddressInUse { address }) if address == origin.address.into())
    );
    assert!(matches!(
        Balancer::start(Config { threads: 0, ..Config::default() }),
        Err(StartError::Config(_))
    ));
    let foreign = Listener::new("203.0.113.1:80".parse::<balancer::Address>().unwrap());
    let foreign = Config { listeners: vec![foreign], ..Config::default() };
    assert!(Balancer::start(foreign).err().unwrap().to_string().contains("203.0.113.1:80"));
}

#[test]
fn threads_are_named_and_known() {
    let stage = Stage::new(|config| config.threads = 3);
    for (index, id) in stage.handle.thread_ids().into_iter().enumerate() {
        let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap();
        assert_eq!(name, format!("balancer-{index}\n"));
    }
    assert_eq!(stage.handle.thread_ids().len(), 3);
}

#[test]
fn apps_have_backends_and_queues_of_their_own() {
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.apps.push(AppConfig::named("other"));
    });
    let other = AppId::nth(1);
    let backend = Backend::new("elsewhere", origin.address, 1);
    let elsewhere = stage.handle.add(other, backend);
    assert_eq!(elsewhere.app(), other);
    let mut waiting = stage.client();
    waiting.send(GET);
    stage.until("it waits for the first app", |snapshot| snapshot.apps[0].queue.depth == 1);
    assert!(seen.try_recv().is_err(), "another app's backend is free and not asked");
    stage.add(&origin, 1);
    waiting.expect(OK);
    let snapshot = stage.handle.snapshot();
    assert_eq!((snapshot.apps[1].name.as_str(), snapshot.apps[1].queue.max_depth), ("other", 0));
    assert_eq!(snapshot.apps[1].backends[0].counts.requests, 0);
    stage.handle.remove(elsewhere);
    assert!(stage.handle.snapshot().apps[1].backends.is_empty());
    assert_eq!(stage.handle.snapshot().apps[0].backends.len(), 1);
}
