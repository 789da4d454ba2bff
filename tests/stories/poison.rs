//! Requests that end instances must not stop the service for others, whoever sends them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::Signal;

use crate::harness::{Home, alone};

const APP: &str = "import os,http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version='HTTP/1.1'
    def go(self):
        self.rfile.read(int(self.headers.get('content-length') or 0))
        if 'crash' in self.path: os._exit(3)
        self.send_response(200); self.send_header('content-length','2'); self.end_headers(); self.wfile.write(b'ok')
    do_GET=do_POST=go
    def log_message(self,*a): pass
http.server.ThreadingHTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()
";

/// The status of a request from this address, and how long it took.
fn ask(from: [u8; 4], to: SocketAddr, method: &str, path: &str) -> (Option<String>, Duration) {
    let began = Instant::now();
    let answer = || -> std::io::Result<String> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from((from, 0)))?;
        connect(&socket, &to)?;
        let mut stream = TcpStream::from(socket);
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let status = answer().ok().and_then(|answer| Some(answer.split(' ').nth(1)?.to_owned()));
    (status, began.elapsed())
}

fn others_are_served_beside(method: &str, poison: &str, may_lose: usize) {
    let _machine = alone();
    let home = Home::new();
    let app = home.path().join("app.py");
    std::fs::write(&app, APP).unwrap();
    let line = format!("up -n 3 --listen 127.0.0.1:0 -- python3 {}", app.display());
    let mut up = home.serve(&line);
    let to = up.address;
    let end = Instant::now() + Duration::from_secs(6);
    std::thread::scope(|scope| {
        let victims = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|from| {
            scope.spawn(move || {
                let mut lost = 0;
                while Instant::now() < end {
                    let (status, took) = ask(from, to, method, "/");
                    lost += usize::from(status.as_deref() != Some("200"));
                    assert!(took < Duration::from_secs(1), "{from:?} waited {took:?}");
                    std::thread::sleep(Duration::from_millis(20));
                }
                lost
            })
        });
        for _ in 0..20 {
            ask([127, 0, 0, 1], to, method, poison);
            std::thread::sleep(Duration::from_millis(250));
        }
        let lost: usize = victims.into_iter().map(|victim| victim.join().unwrap()).sum();
        assert!(lost <= may_lose, "{lost} requests of others were lost");
    });
    up.end(Signal::TERM);
}

#[test]
fn a_get_that_ends_instances_stops_nobody() {
    others_are_served_beside("GET", "/crash", 0);
}

#[test]
fn a_query_that_ends_instances_stops_nobody_at_its_path() {
    others_are_served_beside("GET", "/?crash", 0);
}

// A POST that is at the same instance is lost with it, until the poison is known after two deaths.
#[test]
fn a_post_that_ends_instances_stops_nobody() {
    others_are_served_beside("POST", "/crash", 2);
}
