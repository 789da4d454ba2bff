//! The connections of one control listener: a bounded number, each with deadlines, so that nobody takes
//! the open files that the balancer's clients need.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::task::AbortHandle;

/// Open connections of a listener. One more closes the oldest, for a request that is answered at all is
/// answered within milliseconds.
pub const MAX_CONNECTIONS: usize = 16;

/// For a request's header, counted from the connection's begin or the last answer, and for its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// More than any request that `tenfold` sends.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Serves each connection with the routes that `routes_for` gives its address, until `closed`; then
/// answers what has begun.
pub async fn serve<L: Listener>(
    mut listener: L,
    routes_for: impl Fn(&L::Addr) -> Router,
    closed: impl Future<Output = ()>,
) {
    let mut server = Builder::new(TokioExecutor::new()).http1_only();
    server.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    let graceful = GracefulShutdown::new();
    let mut open: VecDeque<AbortHandle> = VecDeque::with_capacity(MAX_CONNECTIONS);
    let mut closed = std::pin::pin!(closed);
    loop {
        let (stream, address) = tokio::select! {
            () = &mut closed => break,
            accepted = listener.accept() => accepted,
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() == MAX_CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let routes = routes_for(&address).layer(from_fn(read_body));
        let service = TowerToHyperService::new(routes);
        let connection =
            server.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        open.push_back(tokio::spawn(graceful.watch(connection)).abort_handle());
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Reads the whole body before anything is done.
async fn read_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let refusal = match tokio::time::timeout(REQUEST_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await
    {
        Ok(Ok(body)) => return next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(_)) => (StatusCode::BAD_REQUEST, "the body is broken, or longer than 256 KiB"),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body did not come in time: send it at once"),
    };
    refusal.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::{get, post};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    async fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/", get(async || "here"))
            .route("/echo", post(async |body: String| body));
        tokio::spawn(serve(listener, move |_| routes.clone(), std::future::pending()));
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
        for _ in 0..3 * MAX_CONNECTIONS {
            halves.push(send(address, b"GET / HTTP/1.1\r\nhost:").await);
        }
        assert!(read(send(address, GET).await).await.ends_with("here"));
        // Closed for those that came later, long before their deadline.
        halves.truncate(2 * MAX_CONNECTIONS);
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
        let server = tokio::spawn(serve(listener, move |_| routes.clone(), closed));
        let stream = send(address, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        finish.send_replace(true);
        assert!(read(stream).await.ends_with("whole"));
        server.await.unwrap();
    }
}
