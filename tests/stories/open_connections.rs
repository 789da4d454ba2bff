//! Connections that stay open while instances change behind the real nginx and HAProxy.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::harness::{Home, Serving, said, shared};

/// Keeps connections, notes the body of each POST in a file, and echoes what WebSockets send. It tells these when
/// it is asked to end.
const APP: &str = r#"
import asyncio, base64, hashlib, os, signal

sockets = set()

async def echo(reader, writer, key):
    accept = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    accept = base64.b64encode(accept)
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    sockets.add(writer)
    while True:
        kind, length = await reader.readexactly(2)
        mask = await reader.readexactly(4)
        text = await reader.readexactly(length & 127)
        writer.write(bytes([kind, length & 127]) + bytes(b ^ mask[i % 4] for i, b in enumerate(text)))

async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
            if "sec-websocket-key" in fields:
                await echo(reader, writer, fields["sec-websocket-key"])
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            await asyncio.sleep(0.005)
            if head[0].startswith("POST"):
                with open("posts", "ab", 0) as posts:
                    posts.write(body + b"\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]))
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    await end.wait()
    for writer in sockets:
        writer.write(b"\x88\x02\x03\xe9")
    await asyncio.sleep(0.2)

asyncio.run(main())
"#;

/// Sends a POST on a connection that is kept. Whoever balances may close one that is idle; it is sent anew then, as
/// clients do.
fn post(kept: &mut Option<TcpStream>, address: SocketAddr, body: &str) {
    for _ in 0..3 {
        let is_new = kept.is_none();
        let mut stream = kept.take().unwrap_or_else(|| TcpStream::connect(address).unwrap());
        let request =
            format!("POST / HTTP/1.1\r\nHost: app\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let sent = stream.write_all(request.as_bytes());
        let answer = sent.map(|()| read_answer(&mut stream)).unwrap_or_default();
        if answer.is_empty() && !is_new {
            continue;
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{body}: {answer:?}");
        if !answer.to_lowercase().contains("connection: close") {
            *kept = Some(stream);
        }
        return;
    }
    panic!("{body} was never answered");
}

/// An answer with its body `ok`; nothing if the connection was closed instead.
fn read_answer(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\nok") {
        match stream.read(&mut byte) {
            Ok(1) => answer.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer for 20 s"),
            _ => break,
        }
    }
    String::from_utf8(answer).unwrap()
}

struct WebSocket(TcpStream);

impl WebSocket {
    fn open(address: SocketAddr) -> WebSocket {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        let request = "GET / HTTP/1.1\r\nHost: app\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        WebSocket(stream)
    }

    /// Sends a text and gets it back.
    fn echoes(&mut self) {
        self.0.write_all(b"\x81\x82\0\0\0\0hi").unwrap();
        let mut frame = [0; 4];
        self.0.read_exact(&mut frame).unwrap();
        assert_eq!(&frame, b"\x81\x02hi");
    }

    /// All that comes until it is closed.
    fn last_words(&mut self) -> Vec<u8> {
        let mut words = Vec::new();
        self.0.read_to_end(&mut words).unwrap();
        words
    }
}

fn behind(home: &Home, program: &str, count: usize) -> Serving {
    std::fs::write(home.path().join("app.py"), APP).unwrap();
    home.serve(&format!(
        "up -n {count} --balancer {program} --listen 127.0.0.1:0 --drain 3s -- python3 app.py"
    ))
}

fn changes(home: &Home, command: &str) {
    let output = home.run(command);
    assert!(output.status.success(), "{command}: {}", said(&output));
}

fn every_post_is_executed_once(program: &str) {
    let _machine = shared();
    let home = Home::new();
    let up = behind(&home, program, 1);
    let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut kept = None;
                while !over.load(Ordering::Relaxed) {
                    let id = sent.fetch_add(1, Ordering::Relaxed);
                    post(&mut kept, up.address, &format!("post-{id}"));
                }
            });
        }
        for command in ["scale 3", "reload", "scale 1"] {
            changes(&home, command);
        }
        over.store(true, Ordering::Relaxed);
    });
    let mut executed = BTreeMap::new();
    for line in std::fs::read_to_string(home.path().join("posts")).unwrap().lines() {
        *executed.entry(line.to_owned()).or_insert(0) += 1;
    }
    let twice: Vec<_> = executed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(executed.len(), sent.load(Ordering::Relaxed));
}

#[test]
fn nginx_executes_every_post_once_while_instances_change() {
    every_post_is_executed_once("nginx");
}

#[test]
fn haproxy_executes_every_post_once_while_instances_change() {
    every_post_is_executed_once("haproxy");
}

// Any change starts new workers, and the old ones end `--drain` later.
#[test]
fn a_websocket_behind_nginx_survives_a_change_for_the_drain() {
    let _machine = shared();
    let home = Home::new();
    let up = behind(&home, "nginx", 1);
    let mut open = WebSocket::open(up.address);
    open.echoes();
    changes(&home, "scale 2");
    open.echoes();
    assert_eq!(open.last_words(), b"", "nginx closes the connection");
    WebSocket::open(up.address).echoes();
}

#[test]
fn a_websocket_behind_haproxy_survives_changes_of_other_instances() {
    let _machine = shared();
    let home = Home::new();
    let up = behind(&home, "haproxy", 1);
    let mut open = WebSocket::open(up.address);
    for command in ["scale 3", "scale 1"] {
        changes(&home, command);
        open.echoes();
    }
}

#[test]
#[ignore = "waits 30 s for WebSockets; `make soak` runs it"]
fn a_websocket_behind_haproxy_is_told_of_the_end_of_its_instance() {
    let _machine = shared();
    let home = Home::new();
    let up = behind(&home, "haproxy", 2);
    let mut open = [WebSocket::open(up.address), WebSocket::open(up.address)];
    open.iter_mut().for_each(WebSocket::echoes);
    changes(&home, "scale 1");
    // One on each instance.
    let survivors = open.iter_mut().filter_map(|socket| {
        socket.0.write_all(b"\x81\x82\0\0\0\0hi").unwrap();
        let mut frame = [0; 4];
        socket.0.read_exact(&mut frame).unwrap();
        (&frame == b"\x81\x02hi").then_some(()).or_else(|| {
            assert_eq!(&frame, b"\x88\x02\x03\xe9", "the app says that it goes away");
            None
        })
    });
    assert_eq!(survivors.count(), 1);
}
