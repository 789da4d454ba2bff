//! A real balancer between a client and a backend that send any bytes. What the backend gets is whole
//! requests to a strict reader, and nothing of it comes with the next client's request.
//!
//! An input is what the client sends, a line `----`, and what the backend answers whatever it reads
//! with. A `!` at its beginning: the backend then closes.

#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use balancer::fuzzing::strict::{self, Body};
use balancer::{AppId, Backend, Balancer, Config};

/// What the origin does.
#[derive(Default)]
struct Script {
    answer: Vec<u8>,
    closes: bool,
    /// By connection, what came.
    seen: Vec<Vec<u8>>,
}

impl Script {
    /// What follows an upgrade is not HTTP.
    fn tunnels(&self) -> bool {
        self.answer.windows(5).any(|window| window == b" 101 ")
    }
}

static SCRIPT: Mutex<Script> =
    Mutex::new(Script { answer: Vec::new(), closes: false, seen: Vec::new() });
/// The input is over, and the request that follows is ours.
static PROBING: AtomicBool = AtomicBool::new(false);
static RIG: LazyLock<(Balancer, SocketAddr)> = LazyLock::new(start);

const PROBE: &[u8] = b"GET /probe HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
/// Far above what a step takes, far below what a run can wait for.
const SHORT: Duration = Duration::from_millis(20);

fn start() -> (Balancer, SocketAddr) {
    let mut config = Config { threads: 1, ..Config::default() };
    config.limits.body_bytes = 4096;
    let timeouts = &mut config.timeouts;
    (timeouts.header, timeouts.idle, timeouts.body) = (SHORT, SHORT, SHORT);
    (timeouts.response, timeouts.stall, timeouts.tunnel) = (SHORT, SHORT, SHORT);
    let balancer = Balancer::start(config).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = Backend::new("origin", listener.local_addr().unwrap(), 1);
    balancer.handle().add(AppId::FIRST, backend);
    std::thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    let address = balancer.local_addr();
    (balancer, address)
}

/// One connection at a time: there is one slot.
fn serve(mut stream: TcpStream) {
    reset_at_close(&stream);
    let (index, tunnels) = {
        let mut script = script();
        script.seen.push(Vec::new());
        (script.seen.len() - 1, script.tunnels() && !PROBING.load(Ordering::SeqCst))
    };
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        let mut script = script();
        let Some(seen) = script.seen.get_mut(index) else { return };
        seen.extend_from_slice(&bytes[..count]);
        if PROBING.load(Ordering::SeqCst) {
            // A body may come after its answer; the next request begins where it ends.
            if !tunnels && last_request(seen) == b"/probe" {
                drop(script);
                let _ = stream.write_all(FINE);
            }
            continue;
        }
        let (answer, closes) = (script.answer.clone(), script.closes);
        drop(script);
        let _ = stream.write_all(&answer);
        if closes {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn script() -> std::sync::MutexGuard<'static, Script> {
    SCRIPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No connection is left in TIME_WAIT: there are more of them than ports.
fn reset_at_close(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = stream.set_nodelay(true);
}

/// Everything that comes back, up to the end or a reset.
fn ask(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    reset_at_close(&stream);
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let (mut got, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        got.extend_from_slice(&piece[..count]);
    }
    got
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let address = RIG.1;
    let (closes, input) = match input {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, input),
    };
    const PART: &[u8] = b"----\n";
    let at = input.windows(PART.len()).position(|window| window == PART);
    let (request, answer) = match at {
        Some(at) => (&input[..at], &input[at + PART.len()..]),
        None => (input, FINE),
    };
    *script() = Script { answer: answer.to_vec(), closes, seen: Vec::new() };
    PROBING.store(false, Ordering::SeqCst);
    let got = ask(address, request);
    PROBING.store(true, Ordering::SeqCst);
    probe(address);
    let mut script = script();
    if !script.tunnels() {
        script.seen.drain(..).for_each(|bytes| drop(last_request(&bytes)));
        if !request.windows(4).any(|window| window == b"HEAD") {
            whole_answers(&got);
        }
    }
});

/// The next client's request and answer. On a busy machine the backend may take too long for once.
fn probe(address: SocketAddr) {
    let mut got = Vec::new();
    for _ in 0..100 {
        got = ask(address, PROBE);
        if got.ends_with(b"\r\n\r\nfine") {
            return;
        }
        assert!(!got.starts_with(b"HTTP/1.1 2"), "the next client got {}", got.escape_ascii());
    }
    panic!("the next client got {}", got.escape_ascii());
}

/// The target of the last request that is complete. All are requests of a proxy.
fn last_request(mut bytes: &[u8]) -> Vec<u8> {
    let mut last = Vec::new();
    while let Some(head) = strict::head(bytes).expect("a backend gets a header") {
        let framing = head.request_body().expect("a backend gets a request");
        assert_eq!(head.values("x-forwarded-for"), [b"127.0.0.1"]);
        let body = strict::body(framing, &bytes[head.len..]).expect("a backend gets a body");
        let Some(body) = body else { break };
        last = head.start[1].to_vec();
        bytes = &bytes[head.len + body.len..];
    }
    last
}

/// The last one may be incomplete.
fn whole_answers(mut bytes: &[u8]) {
    while let Some(head) = strict::head(bytes).expect("a client gets a header") {
        let framing = head.response_body(false).expect("a client gets an answer");
        if framing == Body::UntilClose {
            assert_eq!(head.values("connection"), [b"close"]);
            return;
        }
        let body = strict::body(framing, &bytes[head.len..]).expect("a client gets a body");
        let Some(body) = body else { return };
        bytes = &bytes[head.len + body.len..];
    }
}
