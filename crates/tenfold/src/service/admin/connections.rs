//! The connections of one control listener: a bounded number, each with deadlines, so that nobody takes
//! the open files that the balancer's clients need.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use axum::{Extension, Router};
use http_body_util::LengthLimitError;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::task::AbortHandle;

use crate::service::access::peer::Ownership;

/// Open connections of the control socket.
pub const CONTROL_CONNECTIONS: usize = 16;
/// Open connections of the TCP address: streams, and as many for requests.
pub const PUBLIC_CONNECTIONS: usize = 64;

/// For a request's header, counted from the connection's begin or the last answer, and for its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// More than any request that `tenfold` sends.
pub const CONTROL_BODY_BYTES: usize = 256 * 1024;
/// More than any request of the page.
pub const PUBLIC_BODY_BYTES: usize = 64 * 1024;

/// Whether a stream is written on the connection of a request, so that it is not closed for another one.
#[derive(Clone, Debug, Default)]
pub struct Streaming(Arc<AtomicBool>);

impl Streaming {
    /// Begins or ends to keep the connection.
    pub fn keep(&self, keep: bool) {
        self.0.store(keep, Ordering::Relaxed);
    }

    fn is_kept(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves at most so many connections until `closed`; then answers what has begun. One more closes the oldest
/// that has no stream, for a request that is answered at all is answered within milliseconds.
pub async fn serve<L>(
    mut listener: L,
    connections: usize,
    routes: Router,
    closed: impl Future<Output = ()>,
) where
    L: Listener<Addr: Clone + Sync + 'static>,
{
    let mut server = Builder::new(TokioExecutor::new()).http1_only();
    server.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    let graceful = GracefulShutdown::new();
    let mut open: VecDeque<(AbortHandle, Streaming)> = VecDeque::with_capacity(connections);
    let mut closed = std::pin::pin!(closed);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut closed => break,
            accepted = listener.accept() => accepted,
        };
        open.retain(|(connection, _)| !connection.is_finished());
        let idle = open.iter().position(|(_, streaming)| !streaming.is_kept()).unwrap_or(0);
        if open.len() == connections
            && let Some((oldest, _)) = open.remove(idle)
        {
            oldest.abort();
        }
        let streaming = Streaming::default();
        let routes = routes
            .clone()
            .layer(Extension(streaming.clone()))
            .layer(Extension(Ownership::default()))
            .layer(Extension(ConnectInfo(peer)));
        let service = TowerToHyperService::new(routes);
        let connection =
            server.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let connection = tokio::spawn(graceful.watch(connection)).abort_handle();
        open.push_back((connection, streaming));
    }
    drop(listener);
    graceful.shutdown().await;
}

/// The routes with bodies of at most so many bytes, each read before anything is done.
pub fn with_bodies(routes: Router, most: usize) -> Router {
    routes.layer(from_fn(move |request, next| read_body(most, request, next)))
}

async fn read_body(most: usize, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match tokio::time::timeout(REQUEST_TIMEOUT, to_bytes(body, most)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(error)) if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) => {
            let sentence = format!("the body is longer than {} KiB: send less", most / 1024);
            (StatusCode::PAYLOAD_TOO_LARGE, sentence).into_response()
        }
        Ok(Err(_)) => {
            (StatusCode::BAD_REQUEST, "the body is broken: send it again").into_response()
        }
        Err(_) => {
            let sentence = "the body did not come in time: send it at once";
            (StatusCode::REQUEST_TIMEOUT, sentence).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::{get, post};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const MOST: usize = 16;

    async fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/", get(async || "here"))
            .route("/echo", post(async |body: String| body));
        let routes = with_bodies(routes, CONTROL_BODY_BYTES);
        tokio::spawn(serve(listener, MOST, routes, std::future::pending()));
        address
    }

    async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// All that comes until the connection ends.
    async fn read(mut stream: TcpStream) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn half_sent_requests_do_not_keep_others_out() {
        let address = start().await;
        let mut halves = Vec::new();
        for _ in 0..3 * MOST {
            halves.push(send(address, b"GET / HTTP/1.1\r\nhost:").await);
        }
        assert!(read(send(address, GET).await).await.ends_with("here"));
        // Closed for those that came later, long before their deadline.
        halves.truncate(2 * MOST);
        for half in halves {
            assert_eq!(read(half).await, "");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_has_a_deadline_for_its_header_and_its_body() {
        let address = start().await;
        assert_eq!(read(send(address, b"GET / HTTP/1.1\r\n").await).await, "");
        let body = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf";
        assert!(read(send(address, body).await).await.starts_with("HTTP/1.1 408 "));
    }

    #[tokio::test]
    async fn a_stream_is_not_closed_for_other_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let finish = Arc::new(tokio::sync::Notify::new());
        let finished = Arc::clone(&finish);
        let stream = async move |Extension(streaming): Extension<Streaming>| {
            streaming.keep(true);
            finished.notified().await;
            "whole"
        };
        let routes = Router::new().route("/", get(async || "here")).route("/stream", get(stream));
        tokio::spawn(serve(listener, 2, routes, std::future::pending()));
        let head = b"GET /stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let stream = send(address, head).await;
        for _ in 0..4 {
            assert!(read(send(address, GET).await).await.ends_with("here"));
        }
        finish.notify_one();
        assert!(read(stream).await.ends_with("whole"));
    }

    #[tokio::test]
    async fn started_requests_are_answered_before_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, has_begun) = tokio::sync::watch::channel(false);
        let (finish, finished) = tokio::sync::watch::channel(false);
        let routes = Router::new().route(
            "/",
            get(async move || {
                begun.send_replace(true);
                let _ = finished.clone().wait_for(|finished| *finished).await;
                "whole"
            }),
        );
        let closed = {
            let mut begun = has_begun;
            async move { drop(begun.wait_for(|begun| *begun).await) }
        };
        let server = tokio::spawn(serve(listener, MOST, routes, closed));
        let stream = send(address, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        finish.send_replace(true);
        assert!(read(stream).await.ends_with("whole"));
        server.await.unwrap();
    }
}
