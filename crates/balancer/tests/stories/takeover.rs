//! One balancer takes over the listening sockets of another, under traffic.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use balancer::{Address, AppId, Backend, Balancer, Config, Handle, Inherited, Listener};
use bytes::Bytes;
use h2::client::SendRequest;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{Domain, Socket, Type};
use tokio_rustls::TlsConnector;

use crate::secured::{Authority, Secured};
use crate::stage::{GET, OK, Origin, PATIENCE, Peer, Stage, block_on, eventually};

const LAST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// A balancer before `origin` that has the sockets of another and does not accept yet.
fn successor(
    address: impl Into<Address>,
    sockets: Vec<OwnedFd>,
    threads: usize,
    origin: &Origin,
) -> Stage {
    succeed(Listener::new(address), sockets, threads, origin)
}

fn succeed(listener: Listener, sockets: Vec<OwnedFd>, threads: usize, origin: &Origin) -> Stage {
    let config = Config { listeners: vec![listener], threads, ..Stage::config() };
    let balancer = Balancer::prepare(config, Inherited::new(sockets).unwrap()).unwrap();
    let handle = balancer.handle();
    let backend = Backend::new("origin", origin.address, 8);
    handle.add(AppId::FIRST, backend);
    Stage { balancer, handle }
}

fn connect(address: SocketAddr) -> Peer {
    Peer::new(TcpStream::connect(address).unwrap())
}

fn accepted(handle: &Handle) -> u64 {
    handle.snapshot().clients.accepted
}

#[test]
fn no_connection_is_lost_with_more_threads_nor_with_fewer() {
    let (origin, _seen) = Origin::answering(OK);
    let mut stage = Stage::before(&origin, 8);
    let address = stage.balancer.local_addr();
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let new_ones = || {
        while !over.load(Ordering::Relaxed) {
            let mut client = connect(address);
            client.send(GET);
            assert!(client.head().expect("an answer").starts_with("HTTP/1.1 200 "));
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    let kept_ones = || {
        let mut client = connect(address);
        while !over.load(Ordering::Relaxed) {
            client.send(GET);
            let head = client.head().expect("an answer");
            client.expect("ok");
            if head.contains("Connection: close") {
                client = connect(address);
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..3).flat_map(|_| [scope.spawn(new_ones), scope.spawn(kept_ones)]).collect();
        for threads in [3, 1, 4, 2, 2] {
            let sockets = stage.handle.listening_sockets().unwrap();
            let mut next = successor(address, sockets, threads, &origin);
            let enough = answered.load(Ordering::Relaxed) + 50;
            eventually("the old one serves", || answered.load(Ordering::Relaxed) > enough);
            assert_eq!(accepted(&next.handle), 0);
            next.balancer.open();
            block_on(stage.balancer.hand_over(PATIENCE, PATIENCE));
            assert_eq!(stage.handle.snapshot().clients.open, 0);
            eventually("the new one serves", || accepted(&next.handle) > 50);
            stage = next;
        }
        over.store(true, Ordering::Relaxed);
        assert!(clients.into_iter().all(|client| client.join().is_ok()));
    });
}

/// The kernel has established these connections, some with a request, before anybody accepts.
#[test]
fn connections_in_every_queue_are_served() {
    for threads in [1, 2, 5] {
        let (origin, _seen) = Origin::answering(OK);
        let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
        let sockets: Vec<OwnedFd> = (0..3)
            .map(|_| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                socket.set_reuse_port(true).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket.bind(&address.into()).unwrap();
                socket.listen(64).unwrap();
                address = socket.local_addr().unwrap().as_socket().unwrap();
                socket.into()
            })
            .collect();
        let mut clients: Vec<_> = (0..30).map(|_| connect(address)).collect();
        clients.iter_mut().step_by(2).for_each(|client| client.send(GET));
        let mut next = successor(address, sockets, threads, &origin);
        clients.extend((0..30).map(|_| connect(address)));
        clients.iter_mut().skip(1).step_by(2).for_each(|client| client.send(GET));
        clients.iter_mut().skip(30).step_by(2).for_each(|client| client.send(GET));
        assert_eq!(accepted(&next.handle), 0);
        next.balancer.open();
        clients.iter_mut().for_each(|client| client.expect(OK));
    }
}

#[test]
fn one_that_never_opens_changes_nothing() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::before(&origin, 8);
    let address = stage.balancer.local_addr();
    for threads in [1, 5] {
        let sockets = stage.handle.listening_sockets().unwrap();
        let next = successor(address, sockets, threads, &origin);
        let mut clients: Vec<_> = (0..20).map(|_| connect(address)).collect();
        drop(next);
        clients.extend((0..20).map(|_| connect(address)));
        for client in &mut clients {
            client.send(GET);
            client.expect(OK);
        }
    }
}

#[test]
fn a_kept_connection_gets_one_more_answer() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::before(&origin, 8);
    let address = stage.balancer.local_addr();
    let (mut used, idle) = (connect(address), connect(address));
    used.send(GET);
    used.expect(OK);
    eventually("both are accepted", || accepted(&stage.handle) == 2);
    let sockets = stage.handle.listening_sockets().unwrap();
    let mut next = successor(address, sockets, 1, &origin);
    next.balancer.open();
    let Stage { balancer, handle } = stage;
    // Longer than a busy machine takes to send one more request.
    let short = Duration::from_secs(2);
    let end = std::thread::spawn(move || block_on(balancer.hand_over(short, PATIENCE)));
    eventually("it stops", || handle.listening_sockets().unwrap().is_empty());
    used.send(GET);
    assert_eq!(used.rest(), LAST);
    assert_eq!(idle.rest(), "");
    end.join().unwrap();
}

#[test]
fn a_tunnel_goes_on_until_the_deadline() {
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
        peer.expect("still there?");
        peer.send("yes");
        peer.rest();
    });
    let stage = Stage::before(&origin, 8);
    let mut client = stage.client();
    client.send("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 101 "));
    let Stage { balancer, handle } = stage;
    let (start, limit) = (Instant::now(), Duration::from_secs(2));
    let end = std::thread::spawn(move || block_on(balancer.hand_over(Duration::ZERO, limit)));
    eventually("it stops", || handle.listening_sockets().unwrap().is_empty());
    client.send("still there?");
    client.expect("yes");
    assert_eq!(client.rest(), "");
    assert!(start.elapsed() >= limit);
    end.join().unwrap();
}

/// A stream in flight ends, and the next one begins elsewhere; sessions of TLS are not lost on anybody.
#[test]
fn tls_and_http2_are_taken_over() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let (ask, asked) = mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        while let Some(request) = peer.request() {
            if request.starts_with("GET /held ") {
                let (release, released) = mpsc::channel();
                ask.send(release).unwrap();
                released.recv().unwrap();
            }
            peer.send(OK);
        }
    });
    let mut old = succeed(authority.listener(&["a"]), Vec::new(), 1, &origin);
    old.balancer.open();
    let address = old.balancer.local_addr();
    let mut listener = authority.listener(&["a"]);
    listener.address = address.into();
    let sockets = old.handle.listening_sockets().unwrap();
    let mut next = succeed(listener, sockets, 2, &origin);
    // One store of sessions: those of the old one are offered to the new one.
    let config = authority.client();
    let connect =
        || Secured::over(TcpStream::connect(address).unwrap(), config.clone(), "a.test").unwrap();
    let mut kept = connect();
    kept.send(GET);
    kept.expect(OK);
    block_on(async {
        let mut requests = http2(address, &config).await;
        let get =
            |path: &str| http::Request::get(format!("https://a.test{path}")).body(()).unwrap();
        let (held, _) = requests.send_request(get("/held"), true).unwrap();
        let release = tokio::task::spawn_blocking(move || asked.recv_timeout(PATIENCE))
            .await
            .unwrap()
            .unwrap();
        next.balancer.open();
        let Stage { balancer, handle } = old;
        let end = tokio::task::spawn_blocking(|| block_on(balancer.hand_over(PATIENCE, PATIENCE)));
        while !handle.listening_sockets().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let refused = loop {
            match requests.send_request(get("/"), true) {
                // Sent before the old one's last word was heard, and so answered or refused.
                Ok((answer, _)) => drop(answer.await),
                Err(error) => break error,
            }
        };
        assert!(
            refused.is_go_away() && refused.reason() == Some(h2::Reason::NO_ERROR),
            "{refused}"
        );
        release.send(()).unwrap();
        assert_eq!(held.await.unwrap().status(), 200);
        kept.send(GET);
        assert_eq!(kept.rest().unwrap(), LAST);
        end.await.unwrap();
        let answer = http2(address, &config).await.send_request(get("/"), true).unwrap().0.await;
        assert_eq!(answer.unwrap().status(), 200);
    });
    let mut resumed = connect();
    resumed.send(GET);
    resumed.expect(OK);
}

/// A connection that has agreed on HTTP/2.
async fn http2(address: SocketAddr, config: &ClientConfig) -> SendRequest<Bytes> {
    let mut config = config.clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let host = ServerName::try_from("a.test").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(host, stream).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    requests.ready().await.unwrap()
}

/// What listens elsewhere is not taken for what is asked for.
#[test]
fn other_addresses_are_bound() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let (origin, _seen) = Origin::answering(OK);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut stage = successor(any, vec![other.into()], 1, &origin);
    assert_ne!(stage.balancer.local_addr(), address);
    stage.balancer.open();
    assert_eq!(stage.client_asks(GET), OK);
}

#[test]
fn a_unix_socket_is_handed_over_with_its_file() {
    let (origin, _seen) = Origin::answering(OK);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let ask = || {
        let mut client = UnixStream::connect(&path).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(GET.as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, OK);
    };
    let address = Address::Unix(path.clone());
    let mut stage = successor(address.clone(), Vec::new(), 2, &origin);
    stage.balancer.open();
    for threads in [3, 1] {
        ask();
        let sockets = stage.handle.listening_sockets().unwrap();
        drop(successor(address.clone(), stage.handle.listening_sockets().unwrap(), 1, &origin));
        ask();
        let mut next = successor(address.clone(), sockets, threads, &origin);
        next.balancer.open();
        block_on(stage.balancer.hand_over(PATIENCE, PATIENCE));
        stage = next;
    }
    ask();
    block_on(stage.balancer.shutdown(PATIENCE));
    assert!(!path.exists());
}
