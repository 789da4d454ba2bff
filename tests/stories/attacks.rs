//! One client attacks, and others are served as before, at the same address and at another one: no request
//! of them fails, and their p99 is at most doubled. `make soak` looks at the latter, for which the machine has to be idle.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use balancer::{AppId, Backend, Balancer, Cleartext, Slots};

use crate::faults::span;
use crate::harness::alone;

/// Slots of the server that is attacked, if they are not searched for.
const SLOTS: usize = 16;

/// slowhttptest attacks from here, too.
const ATTACKER: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Behind the same address as the attacker, as in an office, and behind another one.
const VICTIMS: [Ipv4Addr; 2] = [ATTACKER, Ipv4Addr::new(127, 0, 0, 3)];

/// How long the victim is looked at before the attack.
const BEFORE: Duration = Duration::from_secs(5);

/// Times before and during the attack take turns, and medians are compared. A machine may be slow for some seconds.
const ROUNDS: u32 = 5;

/// A server that works for 2 ms, or sends 4 MiB to who asks for `/big`.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer_all(stream.unwrap()));
        }
    });
    address
}

fn answer_all(mut stream: TcpStream) {
    let (mut bytes, big) = ([0; 4096], vec![b'x'; 4 << 20]);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        let body = if bytes[..count].starts_with(b"GET /big ") { &big[..] } else { b"ok" };
        std::thread::sleep(Duration::from_millis(2));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), body].concat()).is_err() {
            return;
        }
    }
}

/// A connection of this client, which has sent `opening`.
fn connect(client: Ipv4Addr, address: SocketAddr, opening: &[u8]) -> TcpStream {
    let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
    let socket = rustix::net::socket(family, kind, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(client, 0)).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(opening).unwrap();
    stream
}

/// Opens this many connections of the attacker, each of which reads 20 KB/s.
fn read_slowly(address: SocketAddr, connections: usize, opening: &[u8], over: &AtomicBool) {
    let connect = || {
        let stream = connect(ATTACKER, address, opening);
        stream.set_nonblocking(true).unwrap();
        stream
    };
    let mut streams: Vec<_> = (0..connections).map(|_| connect()).collect();
    while !over.load(Ordering::Relaxed) {
        for stream in &mut streams {
            // One that was cut off asks again.
            if let Ok(0) | Err(_) = stream.read(&mut [0; 1000]).or_else(nothing_yet) {
                *stream = connect();
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A read that would have to wait, as one of a byte.
fn nothing_yet(error: Error) -> std::io::Result<usize> {
    if error.kind() == ErrorKind::WouldBlock { Ok(1) } else { Err(error) }
}

/// What opens a connection of HTTP/2 that allows no byte of an answer and asks for 128 large ones (RFC 9113).
fn requests_without_a_window() -> Vec<u8> {
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    const END_STREAM_AND_HEADERS: u8 = 5;
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let head = [0, 0, payload.len() as u8, kind, flags];
        [&head[..], &stream.to_be_bytes(), payload].concat()
    };
    let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    opening.extend(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // GET http://h/big, by the static table of HPACK (RFC 7541).
    let big = [&[0x82, 0x86, 0x41, 1, b'h', 0x44, 4][..], b"/big"].concat();
    opening.extend((0..128).flat_map(|n| frame(HEADERS, END_STREAM_AND_HEADERS, 2 * n + 1, &big)));
    opening
}

/// Response times of the victim, which asks again and again, sorted. None of its requests fails.
fn response_times(victim: Ipv4Addr, address: SocketAddr, span: Duration) -> Vec<Duration> {
    let (until, mut times) = (Instant::now() + span, Vec::new());
    let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    while Instant::now() < until {
        let (start, mut answer) = (Instant::now(), String::new());
        let mut stream = connect(victim, address, request);
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "after {} requests: {answer}", times.len());
        times.push(start.elapsed());
    }
    times.sort();
    times
}

/// The victim is served during an attack, which ends when it is told.
fn withstand(attack: impl Fn(SocketAddr, &AtomicBool) + Sync) {
    let _machine = alone();
    let is_soak = std::env::var_os("SOAK_SECONDS").is_some();
    let rounds = if is_soak { ROUNDS } else { 1 };
    let of_slots = |slots| VICTIMS.map(|victim| (slots, victim));
    for (slots, victim) in [Slots::Fixed(SLOTS), Slots::Auto].into_iter().flat_map(of_slots) {
        let span = span() / 4 / rounds;
        let round = |_| withstand_for(span, victim, slots, &attack);
        let (mut before, mut during): (Vec<_>, Vec<_>) = (0..rounds).map(round).unzip();
        let told =
            format!("p99 of {victim} with {slots} slots: {before:?} before, {during:?} during");
        println!("{told}");
        before.sort();
        during.sort();
        let middle = rounds as usize / 2;
        assert!(!is_soak || during[middle] <= 2 * before[middle], "{told}");
    }
}

/// The victim's p99 before the attack and during it. The server has these slots.
fn withstand_for(
    span: Duration,
    victim: Ipv4Addr,
    slots: Slots,
    attack: &(impl Fn(SocketAddr, &AtomicBool) + Sync),
) -> (Duration, Duration) {
    let mut config = balancer::Config { threads: 1, ..balancer::Config::default() };
    config.listeners[0].cleartext = Cleartext::Http1AndH2c;
    let balancer = Balancer::start(config).unwrap();
    balancer.handle().add(AppId::FIRST, Backend::new("server", server(), slots));
    let address = balancer.local_addr();
    let p99 = |times: &[Duration]| times[times.len() * 99 / 100];
    let before = p99(&response_times(victim, address, span.min(BEFORE)));
    let over = AtomicBool::new(false);
    let during = std::thread::scope(|scope| {
        scope.spawn(|| attack(address, &over));
        let times = std::panic::catch_unwind(|| response_times(victim, address, span));
        over.store(true, Ordering::Relaxed);
        p99(&times.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    (before, during)
}

#[test]
fn slow_readers_do_not_slow_down_other_clients() {
    let big = b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n";
    withstand(|address, over| read_slowly(address, 3 * SLOTS, big, over));
}

#[test]
fn http2_requests_without_a_window_do_not_slow_down_other_clients() {
    let opening = requests_without_a_window();
    withstand(|address, over| read_slowly(address, 10, &opening, over));
}

#[test]
fn slowhttptest_does_not_slow_down_other_clients() {
    withstand(|address, over| {
        let mut attack = Command::new("slowhttptest")
            .args([
                "-X", "-c", "1000", "-r", "500", "-w", "512", "-y", "1024", "-n", "1", "-z", "32",
            ])
            .args(["-k", "3", "-p", "3", "-l", "100000", "-u", &format!("http://{address}/big")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("slowhttptest starts; scripts/deps installs it");
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            if attack.try_wait().unwrap().is_some() {
                break;
            }
        }
        // It may have ended.
        let _ = attack.kill();
        attack.wait().unwrap();
    });
}
