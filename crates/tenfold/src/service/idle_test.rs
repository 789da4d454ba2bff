//! Whether an idle connection to an instance makes others wait. A server that gives each connection a worker of few
//! (Python's `http.server` with HTTP/1.1 has one) answers nobody else while a balancer keeps its connections.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::document::idle_connections::IdleConnections;

/// An answer that takes as many times as long as the first waits for something.
const SLOW: u32 = 8;
/// The least time for an answer: a scheduler's pause is no wait.
const LEAST_PATIENCE: Duration = Duration::from_millis(300);
/// Connections that are held idle: as many as a pool of workers has at most, and as a balancer keeps.
const MAX_HELD: usize = 64;
/// Time for holding more than one of them.
const HOLDING: Duration = Duration::from_millis(500);
/// An answer by chance late must not seem to have waited: both times must agree.
const TIMES: usize = 2;

/// A connection to an instance. It is closed when this is dropped.
struct Connection {
    requests: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

/// What came of a request beside idle connections.
enum Beside {
    Answered,
    /// It was answered as soon as they were closed.
    WaitedForThem,
    /// It was not, or not answered at all.
    Unknown,
}

/// Sends a request of the workload on one connection, and others beside those that are kept idle. The first may take
/// `patience`. `None` where that tells nothing.
pub async fn with_requests(target: &load::Target, patience: Duration) -> Option<IdleConnections> {
    let address = *target.addresses.first()?;
    let mut first = Connection::open(address).await?;
    timeout(patience, first.ask(target)).await.ok()??;
    let begun = Instant::now();
    if !first.is_open().await {
        return Some(IdleConnections::Closed);
    }
    // The first answer may be a slow one that fills caches, and the connection may be closed only now.
    timeout(patience, first.ask(target)).await.ok()??;
    let patience = (begun.elapsed() * SLOW).max(LEAST_PATIENCE);
    drop(first);
    for _ in 0..TIMES {
        match hold(address, target, patience).await? {
            IdleConnections::Blocking => {}
            found => return Some(found),
        }
    }
    Some(IdleConnections::Blocking)
}

/// Keeps ever more connections idle, until a request waits for them.
async fn hold(
    address: SocketAddr,
    target: &load::Target,
    patience: Duration,
) -> Option<IdleConnections> {
    let (mut held, begun) = (Vec::new(), Instant::now());
    while held.len() < 2 || (held.len() <= MAX_HELD && begun.elapsed() < HOLDING) {
        let mut next = Connection::open(address).await?;
        match beside(&mut held, next.ask(target), patience).await {
            Beside::Answered => held.push(next),
            Beside::WaitedForThem => return Some(IdleConnections::Blocking),
            Beside::Unknown => return None,
        }
    }
    Some(IdleConnections::Harmless)
}

/// The same with a connection that says nothing, and a request that asks for nothing (RFC 9110, 9.3.7): for an app
/// whose requests are not known.
pub async fn without_requests(address: SocketAddr) -> Option<IdleConnections> {
    let ping = load::Target {
        addresses: vec![address],
        unix: None,
        tls: None,
        host: address.to_string(),
        path: "*".to_owned(),
        method: "OPTIONS".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    for _ in 0..TIMES {
        let mut held = vec![Connection::open(address).await?];
        let mut next = Connection::open(address).await?;
        match beside(&mut held, next.ask(&ping), LEAST_PATIENCE).await {
            Beside::Answered => return Some(IdleConnections::Harmless),
            Beside::Unknown => return None,
            Beside::WaitedForThem => {}
        }
    }
    Some(IdleConnections::Blocking)
}

/// Waits for an answer beside idle connections, and closes them where it does not come.
async fn beside(
    held: &mut Vec<Connection>,
    answer: impl Future<Output = Option<()>>,
    patience: Duration,
) -> Beside {
    tokio::pin!(answer);
    let result = match timeout(patience, &mut answer).await {
        Ok(answered) => return answered.map_or(Beside::Unknown, |()| Beside::Answered),
        Err(_) if held.is_empty() => return Beside::Unknown,
        Err(_) => {
            held.clear();
            timeout(patience, &mut answer).await
        }
    };
    match result {
        Ok(Some(())) => Beside::WaitedForThem,
        _ => Beside::Unknown,
    }
}

impl Connection {
    async fn open(address: SocketAddr) -> Option<Connection> {
        let stream = timeout(LEAST_PATIENCE, TcpStream::connect(address)).await.ok()?.ok()?;
        stream.set_nodelay(true).ok()?;
        let (requests, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        Some(Connection { requests, task: tokio::spawn(async move { drop(connection.await) }) })
    }

    /// Returns when the answer is whole; `None` where there is none.
    async fn ask(&mut self, target: &load::Target) -> Option<()> {
        let mut request = Request::builder().method(target.method.as_str()).uri(&target.path);
        let has_host = target.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        if !has_host {
            request = request.header("Host", &target.host);
        }
        for (name, value) in &target.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(target.body.clone()))).ok()?;
        self.requests.ready().await.ok()?;
        let mut body = self.requests.send_request(request).await.ok()?.into_body();
        while let Some(frame) = body.frame().await {
            frame.ok()?;
        }
        Some(())
    }

    /// Whether another request can follow the last one.
    async fn is_open(&mut self) -> bool {
        matches!(timeout(LEAST_PATIENCE, self.requests.ready()).await, Ok(Ok(())))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    use super::*;

    const KEPT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    const CLOSED: &str = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// Workers that serve a connection each until it is closed.
    fn server(workers: usize, answer: &'static str) -> SocketAddr {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        for _ in 0..workers {
            let listener = Arc::clone(&listener);
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                    while lines.by_ref().any(|line| line.is_empty()) {
                        let sent = (&stream).write_all(answer.as_bytes());
                        if sent.is_err() || answer == CLOSED {
                            break;
                        }
                    }
                }
            });
        }
        listener.local_addr().unwrap()
    }

    async fn found(address: SocketAddr) -> Option<IdleConnections> {
        let target = load::Target::parse(&format!("http://{address}/")).unwrap();
        with_requests(&target, Duration::from_secs(5)).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn workers_that_idle_connections_hold_make_others_wait() {
        assert_eq!(found(server(1, KEPT)).await, Some(IdleConnections::Blocking));
        assert_eq!(found(server(4, KEPT)).await, Some(IdleConnections::Blocking));
        assert_eq!(found(server(MAX_HELD + 2, KEPT)).await, Some(IdleConnections::Harmless));
        assert_eq!(found(server(1, CLOSED)).await, Some(IdleConnections::Closed));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_silent_connection_tells_it_too() {
        let one = without_requests(server(1, KEPT)).await;
        assert_eq!(one, Some(IdleConnections::Blocking));
        let several = without_requests(server(4, KEPT)).await;
        assert_eq!(several, Some(IdleConnections::Harmless));
    }

    #[tokio::test]
    async fn a_server_that_answers_nobody_tells_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(without_requests(listener.local_addr().unwrap()).await, None);
    }
}
