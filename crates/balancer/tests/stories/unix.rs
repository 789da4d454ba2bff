//! Unix sockets on either side.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use balancer::{Address, Listener};

use crate::stage::{ADDED, GET, OK, Origin, PATIENCE, Stage};

#[test]
fn a_backend_on_a_unix_socket_keeps_its_connection() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let app = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        for _ in 0..2 {
            let expected = format!("GET / HTTP/1.1\r\nHost: h\r\n{ADDED}\r\n");
            let mut request = vec![0; expected.len()];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(String::from_utf8(request).unwrap(), expected);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    // One thread, so that the second request finds the connection idle.
    let stage = Stage::new(|config| config.threads = 1);
    stage.add_address("app", Address::Unix(path.clone()), 1);
    let mut client = stage.client();
    for _ in 0..2 {
        client.send(GET);
        client.expect(OK);
    }
    app.join().unwrap();
    let backend = stage.backend();
    assert_eq!((backend.counts.connects, backend.counts.requests), (1, 2));
    assert_eq!(backend.address.to_string(), format!("unix:{}", path.display()));
}

#[test]
fn a_missing_socket_is_a_connect_error_that_names_no_path() {
    let stage = Stage::new(|_| ());
    stage.add_address("app", Address::Unix("/nonexistent/app.sock".into()), 1);
    let answer = stage.ask(GET);
    assert!(answer.starts_with("HTTP/1.1 502") && !answer.contains("nonexistent"), "{answer}");
}

/// A server that accepts nobody and has no room for one more refuses at once over a Unix socket. Over TCP
/// the client would have to wait.
#[test]
fn a_full_backlog_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(0).unwrap();
    let listener = UnixListener::from(std::os::fd::OwnedFd::from(socket));
    let fill = UnixStream::connect(&path).unwrap();
    let stage = Stage::new(|config| config.timeouts.connect = PATIENCE);
    stage.add_address("app", Address::Unix(path), 1);
    let mut client = stage.client();
    client.send(GET);
    stage.until("the request has its slot", |s| s.backends().any(|b| b.in_flight == 1));
    // Long enough for a first attempt; the test passes whether it was made or not.
    std::thread::sleep(Duration::from_millis(20));
    drop(listener.accept().unwrap());
    drop(fill);
    let mut stream = listener.accept().unwrap().0;
    stream.write_all(OK.as_bytes()).unwrap();
    client.expect(OK);
}

#[test]
fn clients_come_over_a_unix_socket_and_have_no_address() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.sock");
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.listeners.push(Listener::new(Address::Unix(path.clone())));
    });
    stage.add(&origin, 1);
    for _ in 0..4 {
        let mut client = UnixStream::connect(&path).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(GET.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, OK);
        let request = seen.recv().unwrap();
        assert!(!request.contains("X-Forwarded-For"), "{request}");
        assert!(request.contains("X-Forwarded-Proto: http\r\n"), "{request}");
    }
    drop(stage);
    assert!(!path.exists());
}
