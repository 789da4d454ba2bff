//! Open uploads hold little more than their content, and it goes back to the system when they are gone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::harness::{Home, alone, eventually, free_address};

const CONNECTIONS: usize = 60;
/// Streams of each connection: as many as it may have.
const STREAMS: u32 = 128;
/// Bytes of each body that never ends: as many as are gathered before a slot is asked for.
const PART: usize = 16_000;

/// RFC 9113 4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Bytes that an upload may hold beyond its content, in a build without optimisation.
const OVERHEAD: usize = 20_000;

/// A connection with an open upload in each of its streams, all of which have arrived.
fn uploads(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(4, 0, 0, &[])).unwrap();
    // Its SETTINGS, and the window of the connection, which comes with them.
    let (mut got, mut bytes) = (Vec::new(), [0; 4096]);
    let window = [0, 0, 4, 8, 0, 0, 0, 0, 0];
    while !got.windows(window.len()).any(|part| part == window) {
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the connection ended");
        got.extend_from_slice(&bytes[..count]);
    }
    let post = [0x83, 0x86, 0x84, 0x41, 1, b'h'];
    for stream_id in (0..STREAMS).map(|n| 2 * n + 1) {
        let part = frame(0, 0, stream_id, &[b'x'; PART]);
        stream.write_all(&[frame(1, 4, stream_id, &post), part].concat()).unwrap();
    }
    // A PING is answered after everything that came before it.
    stream.write_all(&frame(6, 0, 0, b"arrived?")).unwrap();
    while !got.windows(8).any(|part| part == b"arrived?") {
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the connection ended");
        got.extend_from_slice(&bytes[..count]);
    }
    stream
}

/// MiB that a process has.
fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_ascii_whitespace().next().unwrap().parse::<usize>().unwrap() / 1024
}

#[test]
fn uploads_hold_little_and_memory_returns_to_the_system() {
    let _machine = alone();
    let home = Home::new();
    let file = format!(
        "[balancer]\nlisteners = [{{ address = \"127.0.0.1:0\", cleartext = \"h2c\" }}]\n\
         limits = {{ memory_bytes = \"4GiB\" }}\n[app]\nbackends = [\"{}\"]\n",
        free_address()
    );
    std::fs::write(home.path().join("tenfold.toml"), file).unwrap();
    let balance = home.serve("balance");
    let pid = balance.child.id();
    let before = resident(pid);
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| uploads(balance.address)).collect();
    let uploads = CONNECTIONS * STREAMS as usize;
    let gathered = (uploads * PART) >> 20;
    eventually("they hold memory", || resident(pid) > gathered);
    let overhead = ((resident(pid) - before) << 20).saturating_sub(uploads * PART) / uploads;
    assert!(overhead < OVERHEAD, "{overhead} bytes beyond the content of each upload");
    drop(clients);
    // The threads keep some buffers for the next requests, 60 MiB with one thread, however many there were.
    eventually("it is given back", || resident(pid) < gathered * 3 / 4);
}
