//! Real servers that serve one connection, or one request, at a time. Nothing stalls, however many clients
//! ask, and health checks get their turn too.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use balancer::{ActiveHealth, AppId, Backend, BackendHealth, Slots};

use crate::stage::{GET, PATIENCE, Stage, eventually};

/// A server process, ended with the test.
struct Server {
    child: Child,
    address: SocketAddr,
}

/// Keeps a connection until its client closes it, and takes no other one meanwhile.
const PYTHON: &str = r#"
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

impl Server {
    fn python() -> Server {
        let mut child = Command::new("python3")
            .args(["-c", PYTHON])
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/deps installs python3");
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = ([127, 0, 0, 1], port.trim().parse().unwrap()).into();
        Server { child, address }
    }

    /// Serves one request at a time.
    fn php(root: &std::path::Path) -> Server {
        std::fs::write(root.join("index.php"), "<?php echo 'ok';").unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("php")
            .args(["-S", &address.to_string(), "-t"])
            .arg(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("scripts/deps installs php-cli");
        eventually("php listens", || TcpStream::connect(address).is_ok());
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Eight clients that keep their connections, and a check every few milliseconds. One that stalls fails,
/// one that a busy machine holds up does not. Returns the slots in the end.
fn all_are_served_by(server: &Server, slots: Slots) -> usize {
    let stage = Stage::new(|config| {
        let (interval, timeout) = (Duration::from_millis(20), PATIENCE);
        config.threads = 3;
        let checks = ActiveHealth { interval, timeout, ..ActiveHealth::of("/") };
        config.apps[0].health.active = Some(checks);
    });
    stage.handle.add(AppId::FIRST, Backend::new("single", server.address, slots));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = stage.client();
                for _ in 0..20 {
                    client.send(GET);
                    let head = client.head().expect("an answer");
                    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                    let chunked = head.to_ascii_lowercase().contains("chunked");
                    client.expect(if chunked { "2\r\nok\r\n0\r\n\r\n" } else { "ok" });
                }
            });
        }
    });
    stage.until("it is checked", |snapshot| snapshot.apps[0].backends[0].counts.checks > 2);
    let backend = stage.backend();
    assert_eq!((backend.health, backend.counts.failed_checks), (BackendHealth::Up, 0), "{slots}");
    assert_eq!(backend.counts.requests, 160);
    backend.slots
}

#[test]
fn pythons_server_of_one_connection_serves_all() {
    let server = Server::python();
    assert_eq!(all_are_served_by(&server, Slots::Fixed(1)), 1);
    // A trial of four may be under way.
    assert!([1, 4].contains(&all_are_served_by(&server, Slots::Auto)));
}

#[test]
fn phps_server_of_one_request_serves_all() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::php(root.path());
    for slots in [Slots::Fixed(1), Slots::Auto] {
        all_are_served_by(&server, slots);
    }
}
