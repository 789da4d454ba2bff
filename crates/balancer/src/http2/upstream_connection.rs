//! One HTTP/2 connection to a backend, without TLS (h2c, prior knowledge).

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use h2::Reason;
use h2::client::{Builder, Connection, SendRequest};
use tokio::sync::Notify;

use crate::config::address::Address;
use crate::config::limits::{Limits, Timeouts};
use crate::http2::flood::{FrameCountedStream, FrameCounts};
use crate::http2::inbound::broken;
use crate::http2::keepalive::{Keepalive, Liveness, Work};
use crate::http2::outbound::Piece;
use crate::http2::{MAX_WINDOW, SEND_BYTES, STREAM_BYTES};
use crate::net::socket::Socket;
use crate::net::timer::Timer;

/// One connection.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    send: SendRequest<Piece>,
    /// The authority of requests without a host.
    pub(crate) address: String,
    pub(crate) frame_counts: Arc<FrameCounts>,
    streams: AtomicUsize,
    /// Since when it has no stream.
    idle_since: Mutex<Instant>,
    /// Whether it gets no more streams.
    closed: AtomicBool,
    /// Signalled when it is to end.
    end: Notify,
}

/// If a backend with streams is silent for this long, it gets a PING. After as long again, the
/// connection is given up.
const PING_AFTER_SILENCE: Duration = Duration::from_secs(15);

/// The time between two PINGs to a silent backend. gRPC servers treat PINGs less than five minutes apart
/// as an attack (gRFC A8).
const MIN_PING_INTERVAL: Duration = Duration::from_secs(6 * 60);

/// Opens a connection. `counted` is dropped when it ends.
pub(crate) async fn connect(
    address: &Address,
    counted: impl Send + 'static,
) -> io::Result<Arc<UpstreamConnection>> {
    let stream = Socket::connect(address).await?;
    let stream = FrameCountedStream::answering(stream);
    let count = Arc::clone(&stream.count);
    let (send, mut connection) = Builder::new()
        .enable_push(false)
        // The backend's first frame says how many it allows.
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_BYTES)
        // An answer that its client does not take must not stop the others.
        .initial_connection_window_size(MAX_WINDOW)
        .max_send_buffer_size(SEND_BYTES)
        // A busy backend answers requests that were given up meanwhile. With a limit, that would end the
        // connection and all its requests.
        .max_local_error_reset_streams(None)
        .max_header_list_size(Limits::MAX_HEADER_BYTES as u32)
        .handshake(stream)
        .await
        .map_err(broken)?;
    poll_fn(|cx| match poll_turn(&mut connection, cx, &count) {
        Poll::Ready(ended) => Poll::Ready(ended.and(Err(Reason::CONNECT_ERROR.into()))),
        Poll::Pending if send.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await
    .map_err(broken)?;
    let opened = Arc::new(UpstreamConnection {
        send,
        address: address.tcp().map_or("localhost".into(), |address| address.to_string()),
        frame_counts: Arc::clone(&count),
        streams: AtomicUsize::new(0),
        idle_since: Mutex::new(Instant::now()),
        closed: AtomicBool::new(false),
        end: Notify::new(),
    });
    let keepalive = Keepalive::new(connection.ping_pong(), PING_AFTER_SILENCE, MIN_PING_INTERVAL);
    tokio::spawn(drive(connection, Arc::clone(&opened), keepalive, count, counted));
    Ok(opened)
}

fn poll_turn(
    connection: &mut Connection<FrameCountedStream<Socket>, Piece>,
    cx: &mut Context<'_>,
    count: &FrameCounts,
) -> Poll<Result<(), h2::Error>> {
    count.begin_turn();
    Pin::new(connection).poll(cx)
}

/// Moves the frames of a connection until it ends.
async fn drive(
    connection: Connection<FrameCountedStream<Socket>, Piece>,
    opened: Arc<UpstreamConnection>,
    mut keepalive: Keepalive,
    count: Arc<FrameCounts>,
    counted: impl Send + 'static,
) {
    let mut connection = pin!(connection);
    let mut timer = Timer::new();
    let mut end = pin!(opened.end.notified());
    poll_fn(|cx| {
        count.begin_turn();
        loop {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            while end.as_mut().poll(cx).is_ready() {
                end.set(opened.end.notified());
            }
            let streams = opened.streams.load(Ordering::Relaxed);
            if streams == 0 && opened.closed.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            if timer.poll(cx, keepalive.next()).is_pending() {
                return Poll::Pending;
            }
            let work = if streams > 0 { Work::Streams } else { Work::Nothing };
            if keepalive.tick(cx, &count, work, Timeouts::MAX) != Liveness::Fine {
                return Poll::Ready(());
            }
        }
    })
    .await;
    opened.closed.store(true, Ordering::Relaxed);
    drop(counted);
}

impl UpstreamConnection {
    /// Counts one more stream, if there is room for it. Call [`UpstreamConnection::leave`] afterwards.
    pub(crate) fn enter(&self) -> Option<SendRequest<Piece>> {
        let room = self.streams.load(Ordering::Relaxed) < self.send.current_max_send_streams();
        room.then(|| {
            self.streams.fetch_add(1, Ordering::Relaxed);
            self.send.clone()
        })
    }

    pub(crate) fn has_streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0
    }

    /// Whether the backend still takes streams.
    pub(crate) fn is_usable(&self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        !self.closed.load(Ordering::Relaxed)
            && matches!(self.send.clone().poll_ready(&mut nobody), Poll::Ready(Ok(())))
    }

    pub(crate) fn is_idle(&self, longest: Duration, now: Instant) -> bool {
        let since = *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        self.streams.load(Ordering::Relaxed) == 0 && now.duration_since(since) >= longest
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.end.notify_waiters();
    }

    /// Uncounts a stream.
    pub(crate) fn leave(&self) {
        if self.streams.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            if self.closed.load(Ordering::Relaxed) {
                self.end.notify_waiters();
            }
        }
    }
}
