//! The warm path allocates nothing. A program of its own: its allocator counts for all threads.

mod counting;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use balancer::{AppId, Backend, Balancer, Config};

use counting::{allocations, excuse_this_thread};

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
