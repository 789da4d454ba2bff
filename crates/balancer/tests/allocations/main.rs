//! The warm path allocates nothing, and a client cannot make the balancer hold much. A program of its own: its allocator counts for all threads.

mod counting;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use balancer::{AppId, Backend, Balancer, Cleartext, Config};

use counting::{allocations, excuse_this_thread, most_held, turn};

/// Enough to fill the pools, histograms and buffers that are filled once.
const WARM: usize = 100;
const COUNTED: usize = 200;
/// What is done once a second, like a new date, may fall into a few of them.
const TRIES: usize = 20;

fn read_to(stream: &mut TcpStream, end: &str) {
    let (mut got, mut bytes) = (Vec::new(), [0; 65536]);
    while !got.ends_with(end.as_bytes()) {
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "the connection ended after {:?}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&bytes[..count]);
    }
}

/// One request at a time from each of the clients in turn, all over the same backend connection.
#[test]
fn a_warm_exchange_allocates_nothing() {
    let _turn = turn();
    excuse_this_thread();
    let config = Config { threads: 1, ..Config::default() };
    let balancer = Balancer::start(config).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = Backend::new("origin", listener.local_addr().unwrap(), 1);
    balancer.handle().add(AppId::FIRST, backend);
    let connect = || {
        let stream = TcpStream::connect(balancer.local_addr()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    };
    let mut clients = [connect(), connect(), connect()];
    let mut backend = None;
    let body = "b".repeat(16 * 1024);
    for (request, asked, answer) in [
        ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n", "\r\n\r\n", "ok"),
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\n", &body),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "hello", "ok"),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        let mut exchange = |round: usize| {
            let client = &mut clients[round % 3];
            client.write_all(request.as_bytes()).unwrap();
            let backend = backend.get_or_insert_with(|| listener.accept().unwrap().0);
            read_to(backend, asked);
            backend.write_all(answer.as_bytes()).unwrap();
            read_to(client, &answer[answer.len() - 2..]);
        };
        (0..WARM).for_each(&mut exchange);
        assert!(allocations() > 0, "the balancer's thread is not counted");
        let mut counts = (0..TRIES).map(|_| {
            let before = allocations();
            (0..COUNTED).for_each(&mut exchange);
            allocations() - before
        });
        assert!(
            counts.any(|count| count == 0),
            "every {COUNTED} exchanges of {request:?} allocate"
        );
    }
}

/// CVE-2019-9517: a wide window, many requests, and nothing that is sent is taken.
#[test]
fn an_http2_client_that_takes_nothing_costs_bounded_memory() {
    const STREAMS: u32 = 128;
    /// The figure of the table of limits, and some for the streams themselves.
    const OF_A_STREAM: usize = (104 + 16) << 10;

    let _turn = turn();
    excuse_this_thread();
    let mut config = Config { threads: 1, ..Config::default() };
    config.listeners[0].cleartext = Cleartext::H2c;
    config.timeouts.client_grace = Duration::from_millis(500);
    config.limits.client_rate = 1 << 40;
    let balancer = Balancer::start(config).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = Backend::new("origin", listener.local_addr().unwrap(), STREAMS as usize);
    balancer.handle().add(AppId::FIRST, backend);
    std::thread::spawn(move || {
        excuse_this_thread();
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                excuse_this_thread();
                let mut stream = stream.unwrap();
                read_to(&mut stream, "\r\n\r\n");
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n");
                let _ = stream.write_all(&[b'x'; 1 << 20]);
            });
        }
    });
    // RFC 9113: the preface, SETTINGS_INITIAL_WINDOW_SIZE and a WINDOW_UPDATE of the most, GET / for each stream.
    let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    opening.extend(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff");
    opening.extend(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0");
    for stream in 0..STREAMS {
        opening.extend(b"\0\0\x06\x01\x05");
        opening.extend((2 * stream + 1).to_be_bytes());
        opening.extend(b"\x82\x86\x84\x41\x01h");
    }
    let most = most_held(|| {
        let mut client = TcpStream::connect(balancer.local_addr()).unwrap();
        client.write_all(&opening).unwrap();
        let start = Instant::now();
        let mut open = true;
        while open {
            assert!(start.elapsed() < Duration::from_secs(60), "the client is never cut off");
            std::thread::sleep(Duration::from_millis(5));
            let now = balancer.handle().snapshot();
            open = now.clients.accepted == 0 || now.clients.open > 0;
        }
    });
    assert!(most < OF_A_STREAM * STREAMS as usize, "{} KiB", most >> 10);
    assert!(most > STREAMS as usize * 4096, "nothing was held: {} KiB", most >> 10);
}
