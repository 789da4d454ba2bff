//! HTTP/2 to backends: gRPC from end to end, and what a backend may do to a stream.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use balancer::{BackendHealth, Cleartext, Config, Protocol};
use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};

use crate::http2_abuse::{END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, SETTINGS, frame};
use crate::stage::{GET, PATIENCE, Peer, Stage, block_on, eventually};

const ACK: u8 = 1;
/// `:status: 200`.
const STATUS_200: &[u8] = &[0x88];

type Stream = (Request<RecvStream>, SendResponse<Bytes>);

/// A server of streams on a thread of its own. `play` gets each with its number, from 0, over all
/// connections; what it returns is said to the connection.
fn backend(
    streams: u32,
    play: impl Fn(usize, Stream) -> Then + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let (accepted, play) = (Arc::clone(&connections), Arc::new(play));
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let number = Arc::new(AtomicUsize::new(0));
        loop {
            let stream = listener.accept().await.unwrap().0;
            accepted.fetch_add(1, Ordering::SeqCst);
            let (play, number) = (Arc::clone(&play), Arc::clone(&number));
            tokio::spawn(async move {
                let mut builder = server::Builder::new();
                let mut connection =
                    builder.max_concurrent_streams(streams).handshake(stream).await.unwrap();
                while let Some(Ok(stream)) = connection.accept().await {
                    match play(number.fetch_add(1, Ordering::SeqCst), stream) {
                        Then::Nothing => {}
                        Then::GoAway => connection.graceful_shutdown(),
                    }
                }
            });
        }
    };
    std::thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(serve)
    });
    (address, connections)
}

enum Then {
    Nothing,
    GoAway,
}

/// A balancer of one thread, so of one connection.
fn stage(address: SocketAddr, slots: usize) -> Stage {
    let stage = Stage::new(|config: &mut Config| {
        config.threads = 1;
        config.timeouts.backend_idle = PATIENCE;
        config.apps[0].protocol = Protocol::H2c;
        config.listeners[0].cleartext = Cleartext::Http1AndH2c;
    });
    stage.add_address("h2c", address, slots);
    stage
}

fn answer(mut stream: Stream, body: &'static str) {
    let mut sent = stream.1.send_response(Response::new(()), false).unwrap();
    sent.send_data(body.into(), true).unwrap();
}

fn installed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps").join(name)
}

#[test]
fn grpc_passes_with_trailers_in_every_kind_of_call() {
    let echo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories/grpc/echo.py");
    let python = installed("grpc/bin/python");
    let mut server = Command::new(&python)
        .arg(&echo)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python with grpcio runs; `make deps` installs it");
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let stage = stage(SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap())), 8);
    let asked = Command::new(&python)
        .arg(&echo)
        .args(["ask", &stage.address().port().to_string()])
        .output()
        .unwrap();
    drop(server.stdin.take());
    server.wait().unwrap();
    let told = String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success(), "{told}");
    assert_eq!(stage.backend().counts.connects, 1);
}

#[test]
fn http1_clients_get_what_an_h2c_backend_sends() {
    let (address, _) = backend(10, |_, (request, mut respond)| {
        let head = &request;
        assert_eq!(head.uri().authority().unwrap(), "h");
        assert_eq!(head.headers()["x-forwarded-for"], "127.0.0.1");
        assert!(!head.headers().contains_key("host"));
        if head.uri().path() == "/trailers" {
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data("ab".into(), false).unwrap();
            let trailers = [("x-end".parse().unwrap(), "1".parse().unwrap())];
            body.send_trailers(HeaderMap::from_iter(trailers)).unwrap();
        } else {
            let response = Response::builder().status(404).header("content-length", "2");
            let mut body = respond.send_response(response.body(()).unwrap(), false).unwrap();
            body.send_data("no".into(), true).unwrap();
        }
        Then::Nothing
    });
    let stage = stage(address, 2);
    let mut client = stage.client();
    client.send("GET /trailers HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"), "{head}");
    client.expect("2\r\nab\r\n");
    client.expect("0\r\nx-end: 1\r\n\r\n");
    client.send("POST /else HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"), "{head}");
    client.expect("no");
}

/// Go's server answers like this when it has the whole of a small body at the start.
#[test]
fn trailers_follow_a_body_with_a_length() {
    let (address, _) = backend(10, |_, (request, mut respond)| {
        let (field, value, content) = match request.uri().path() {
            "/call" => ("content-type", "application/grpc", ""),
            _ => ("trailer", "x-end", "ab"),
        };
        let response = Response::builder().header(field, value);
        let response = response.header("content-length", content.len()).body(()).unwrap();
        let mut body = respond.send_response(response, false).unwrap();
        if !content.is_empty() {
            body.send_data(content.into(), false).unwrap();
        }
        let trailers = [("x-end".parse().unwrap(), "1".parse().unwrap())];
        body.send_trailers(HeaderMap::from_iter(trailers)).unwrap();
        Then::Nothing
    });
    let stage = stage(address, 2);
    let mut client = stage.client();
    for (path, body) in [("/call", ""), ("/else", "2\r\nab\r\n")] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let head = client.head().unwrap();
        assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n"), "{head}");
        client.expect(body);
        client.expect("0\r\nx-end: 1\r\n\r\n");
    }
}

#[test]
fn requests_share_a_connection_up_to_what_the_backend_allows() {
    let together = Arc::new(Barrier::new(6));
    let (address, connections) = backend(2, move |_, stream| {
        let together = Arc::clone(&together);
        // Answers when all six are there.
        tokio::task::spawn_blocking(move || {
            together.wait();
            answer(stream, "ok");
        });
        Then::Nothing
    });
    let stage = stage(address, 6);
    let mut clients: Vec<_> = (0..6).map(|_| stage.client()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    for client in &mut clients {
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[test]
fn a_refused_stream_is_sent_again() {
    let (address, _) = backend(10, |number, mut stream| {
        match number {
            1 => stream.1.send_reset(Reason::REFUSED_STREAM),
            _ => answer(stream, "ok"),
        }
        Then::Nothing
    });
    let stage = stage(address, 1);
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    for _ in 0..3 {
        assert!(stage.ask(post).ends_with("2\r\nok\r\n0\r\n\r\n"));
    }
    assert_eq!((stage.backend().counts.retries, stage.backend().counts.closed), (1, 0));
}

/// A call of gRPC, whose beginning we no longer have: its client sends it again.
#[test]
fn a_refusal_is_passed_on_where_it_cannot_be_sent_again() {
    let (address, _) = backend(10, |_, (mut request, mut respond)| {
        tokio::spawn(async move {
            request.body_mut().data().await.unwrap().unwrap();
            respond.send_reset(Reason::REFUSED_STREAM);
        });
        Then::Nothing
    });
    let stage = stage(address, 1);
    block_on(async {
        let stream = tokio::net::TcpStream::connect(stage.address()).await.unwrap();
        let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let call = Request::post("http://h/").header("content-type", "application/grpc");
        let (answer, mut body) = send.send_request(call.body(()).unwrap(), false).unwrap();
        body.send_data("hello".into(), false).unwrap();
        assert_eq!(answer.await.unwrap_err().reason(), Some(Reason::REFUSED_STREAM));
    });
}

/// Servers of gRPC close an old connection like this, whatever calls are on their way.
#[test]
fn a_server_that_goes_away_is_fit_all_the_same() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let mut peer = Peer::new(peer.unwrap());
            peer.send(frame(SETTINGS, 0, 0, &[]));
            peer.until(b"hello");
            // The last stream that it will answer is none.
            peer.send(frame(GOAWAY, 0, 0, &[0; 8]));
        }
    });
    let stage = stage(address, 1);
    stage.add_address("another", address, 1);
    block_on(async {
        let stream = tokio::net::TcpStream::connect(stage.address()).await.unwrap();
        let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..6 {
            let call = Request::post("http://h/").header("content-type", "application/grpc");
            let (answer, mut body) = send.send_request(call.body(()).unwrap(), false).unwrap();
            body.send_data("hello".into(), false).unwrap();
            assert_eq!(answer.await.unwrap_err().reason(), Some(Reason::REFUSED_STREAM));
        }
    });
    let snapshot = stage.handle.snapshot();
    assert!(snapshot.backends().all(|backend| backend.health == BackendHealth::Up));
}

#[test]
fn a_stream_that_is_reset_otherwise_may_have_been_acted_on() {
    let (address, _) = backend(10, |_, mut stream| {
        stream.1.send_reset(Reason::INTERNAL_ERROR);
        Then::Nothing
    });
    let stage = stage(address, 1);
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    assert!(stage.ask(post).starts_with("HTTP/1.1 502"));
    assert_eq!(stage.backend().counts.retries, 0);
}

#[test]
fn a_backend_that_goes_away_loses_no_request() {
    let (address, connections) = backend(10, |number, stream| {
        answer(stream, "ok");
        if number % 3 == 2 { Then::GoAway } else { Then::Nothing }
    });
    let stage = stage(address, 1);
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    for _ in 0..10 {
        assert!(stage.ask(post).ends_with("2\r\nok\r\n0\r\n\r\n"));
    }
    assert!(connections.load(Ordering::SeqCst) >= 3);
}

#[test]
fn a_client_that_leaves_resets_its_stream() {
    let (send, told) = std::sync::mpsc::channel();
    let (address, _) = backend(10, move |_, (_, mut respond)| {
        let send = send.clone();
        send.send(None).unwrap();
        tokio::spawn(async move {
            let reset = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
            send.send(Some(reset.unwrap())).unwrap();
        });
        Then::Nothing
    });
    let stage = stage(address, 1);
    let mut client = stage.client();
    client.send(GET);
    assert_eq!(told.recv_timeout(crate::stage::PATIENCE), Ok(None));
    client.reset();
    assert_eq!(told.recv_timeout(crate::stage::PATIENCE), Ok(Some(Reason::CANCEL)));
}

/// A backend that answers a request with an interim answer and these frames.
fn answering_frames(frames: Vec<u8>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut peer = Peer::new(listener.accept().unwrap().0);
        peer.send(frame(SETTINGS, 0, 0, &[]));
        peer.until(b"request");
        // `:status: 103`.
        peer.send([frame(HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'3']), frames].concat());
        peer.rest_bytes();
    });
    address
}

/// RFC 9113 8.1: they make an answer malformed, so no client may take it for a whole one.
#[test]
fn an_answer_with_pseudo_header_fields_in_its_trailers_is_cut_off() {
    let last = END_STREAM | END_HEADERS;
    let answer = |trailers: &[u8]| {
        let content = [frame(HEADERS, END_HEADERS, 1, STATUS_200), frame(0, 0, 1, b"hello")];
        [content.concat(), frame(HEADERS, last, 1, trailers)].concat()
    };
    let field = [0, 1, b'x', 1, b'y'];
    for (frames, whole) in [
        (answer(STATUS_200), false),
        (answer(&[&field, STATUS_200].concat()), false),
        (answer(&[0, 2, b':', b'x', 1, b'y']), false),
        (answer(&field), true),
        (frame(HEADERS, last, 1, STATUS_200), true),
    ] {
        let stage = stage(answering_frames(frames), 1);
        let answer = stage.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nrequest");
        let end =
            ["\r\n0\r\n\r\n", "\r\n0\r\nx: y\r\n\r\n"].iter().any(|end| answer.ends_with(end));
        assert_eq!(answer.contains("HTTP/1.1 200 OK\r\n") && end, whole, "{answer}");
    }
}

/// A server that, once so many requests were given up, answers them all, and from then on each that
/// comes. Counts connections and requests.
fn late_backend(given_up: usize) -> (SocketAddr, Arc<[AtomicUsize; 2]>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let counted = Arc::clone(&counts);
    let answer = |stream: &u32| frame(HEADERS, END_STREAM | END_HEADERS, *stream, STATUS_200);
    let play = move |mut peer: std::net::TcpStream, asked: &AtomicUsize| {
        let (mut late, mut header) = (Vec::new(), [0; 9]);
        peer.read_exact(&mut [0; 24]).unwrap();
        peer.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        while peer.read_exact(&mut header).is_ok() {
            let [_, middle, low, kind, flags, stream @ ..] = header;
            let mut payload = vec![0; usize::from(middle) << 8 | usize::from(low)];
            peer.read_exact(&mut payload).unwrap();
            let stream = u32::from_be_bytes(stream);
            asked.fetch_add(usize::from(kind == HEADERS), Ordering::SeqCst);
            match kind {
                SETTINGS if flags != ACK => peer.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap(),
                HEADERS if late.len() == given_up => peer.write_all(&answer(&stream)).unwrap(),
                RST_STREAM if late.len() < given_up => {
                    late.push(stream);
                    if late.len() == given_up {
                        peer.write_all(&late.iter().flat_map(answer).collect::<Vec<_>>()).unwrap();
                    }
                }
                _ => {}
            }
        }
    };
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            counted[0].fetch_add(1, Ordering::SeqCst);
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || play(peer.unwrap(), &counted[1]));
        }
    });
    (address, counts)
}

#[test]
fn answers_to_requests_that_were_given_up_do_no_harm() {
    // More than the library takes of what it thinks are faults.
    const GIVEN_UP: usize = 1_200;
    let (address, counts) = late_backend(GIVEN_UP);
    let [connections, asked] = &*counts;
    let stage = stage(address, 1);
    for count in 1..=GIVEN_UP {
        let mut client = stage.client();
        client.send(GET);
        eventually("asked", || asked.load(Ordering::SeqCst) == count);
        client.reset();
        eventually("given up", || stage.backend().in_flight == 0);
    }
    assert!(stage.ask(GET).starts_with("HTTP/1.1 200"));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

/// HTTP/2 by its library has fewer characters for targets and hosts than HTTP/1.1.
#[test]
fn requests_that_http2_cannot_express_are_client_errors() {
    let (address, _) = backend(10, |_, stream| {
        answer(stream, "ok");
        Then::Nothing
    });
    let stage = stage(address, 1);
    for request in ["GET /<a> HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: %61\r\n\r\n"] {
        for _ in 0..4 {
            let answer = stage.client_asks(request);
            assert!(answer.starts_with("HTTP/1.1 400"), "{request}{answer}");
        }
    }
    assert_eq!(stage.backend().counts.closed, 0);
    assert!(stage.ask(GET).ends_with("2\r\nok\r\n0\r\n\r\n"));
}

#[test]
fn more_trailers_than_a_header_has_fields_are_refused() {
    let (address, _) = backend(10, |_, (_, mut respond)| {
        // Answers when the request is over.
        tokio::spawn(async move { std::future::poll_fn(|cx| respond.poll_reset(cx)).await });
        Then::Nothing
    });
    let stage = stage(address, 1);
    let trailers = "a: b\r\n".repeat(129);
    let answer = stage.client_asks(&format!(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}\r\n"
    ));
    assert!(answer.ends_with("the trailers have too many fields\n"), "{answer}");
}

/// A connection that is established when its backend is no longer there is for one request.
#[test]
fn a_connection_to_a_removed_backend_ends_with_its_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stage = Stage::new(|config: &mut Config| {
        config.threads = 1;
        config.apps[0].protocol = Protocol::H2c;
        config.timeouts.connect = PATIENCE;
    });
    let id = stage.add_address("h2c", listener.local_addr().unwrap(), 1);
    let mut client = stage.client();
    client.send(GET);
    let (stream, _) = listener.accept().unwrap();
    stage.handle.remove(id);
    stream.set_nonblocking(true).unwrap();
    block_on(async {
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let mut connection = server::handshake(stream).await.unwrap();
        answer(connection.accept().await.unwrap().unwrap(), "ok");
        let ended = tokio::time::timeout(PATIENCE, connection.accept()).await;
        assert!(matches!(ended, Ok(None | Some(Err(_)))), "the connection stays");
    });
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
}
