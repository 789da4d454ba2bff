//! A client's HTTP/2 connection. It gives each stream to a task. It ends if the client is idle, dead,
//! abusive or too slow to take its answers. It also ends when the balancer stops and the last stream is
//! done.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection};
use tokio::time::{sleep_until, timeout_at};

use crate::config::Config;
use crate::config::limits::Timeouts;
use crate::config::listener::Cleartext;
use crate::connection::buffer::Buffer;
use crate::connection::client::Client;
use crate::connection::client_limits::ClientUsage;
use crate::connection::client_stream::ClientStream;
use crate::connection::worker::{Shared, Worker};
use crate::http2::flood::{FrameCountedStream, FrameCounts};
use crate::http2::keepalive::{Keepalive, Liveness, Work};
use crate::http2::outbound::Piece;
use crate::http2::server_stream::StreamPool;
use crate::http2::{MAX_WINDOW, SEND_BYTES, STREAM_BYTES};
use crate::net::memory;
use crate::net::min_rate::MinRate;
use crate::net::peer::Peer;
use crate::net::timer::Timer;
use crate::server::http1_session;

type H2<'s> = Connection<&'s mut FrameCountedStream<ClientStream>, Piece>;

struct Session<'s> {
    connection: H2<'s>,
    count: Arc<FrameCounts>,
    pool: Arc<StreamPool>,
    peer: Peer,
    /// The client's usage, if that is counted.
    usage: Option<Arc<ClientUsage>>,
    listener: usize,
    worker: Arc<Worker>,
    timer: Timer,
    keepalive: Keepalive,
    /// The client's rate of taking answers. The library takes small answers at once, so no relay waits
    /// for them.
    min_rate: MinRate,
    /// Requests so far.
    requests: u64,
    arrivals: Arrivals,
    ending: ClosePhase,
}

/// Whether streams that have arrived are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrivals {
    Begun,
    /// Their resets may have come with them, so they wait for one turn (CVE-2023-44487).
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClosePhase {
    No,
    /// The client was told to open no more streams.
    Draining,
    /// The client was told that the connection ends. It has until then to read that.
    Closing(Instant),
}

/// Streams that were reset because the client broke a rule, over a connection's life (CVE-2025-8671).
const MAX_FAULTY_STREAMS: usize = 128;

/// Streams of the last second that were answered before their body had arrived. Frames that still come
/// for them are no fault. Each takes some hundred bytes.
const MAX_REMEMBERED_RESETS: usize = 1024;

/// How long a client has to read why its connection ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves an HTTP/2 connection. `ahead` was already read from it.
pub(crate) async fn serve(mut client: Client, ahead: Bytes, worker: Arc<Worker>) {
    let usage = client.usage.take();
    let Client { stream, listener, peer, .. } = client;
    let transport = stream.transport();
    let mut counted = FrameCountedStream::new(stream, ahead);
    let pool = StreamPool::new(transport, Arc::clone(&counted.count));
    if let Some(connection) = open(&mut counted, &worker).await {
        let mut session = Session::new(connection, pool, peer, usage, listener, &worker);
        // One poll is enough: it wakes this task when the balancer stops.
        let mut stop = pin!(worker.shared.stop.notified());
        poll_fn(|cx| {
            let _ = stop.as_mut().poll(cx);
            Poll::Ready(())
        })
        .await;
        poll_fn(|cx| session.poll(cx)).await;
    }
    if counted.count.is_flooded() {
        worker.tally(|tally| tally.http2_floods += 1);
    }
    if counted.count.is_blocked() {
        // The client reads nothing, so the reason of the end would only stay with the system.
        return counted.into_inner().abort();
    }
    // Unread bytes would reset the connection, and the reset would overtake the reason.
    let stream = counted.into_inner();
    let forwarding = &worker.shared.config.forwarding;
    Client::new(stream, peer, listener, forwarding).linger(&mut Buffer::default()).await;
}

/// Waits for the client's preface. When the balancer stops, it waits only as long as idle connections
/// are served, and for what has begun by then.
async fn open<'s>(
    counted: &'s mut FrameCountedStream<ClientStream>,
    worker: &Worker,
) -> Option<(H2<'s>, Arc<FrameCounts>)> {
    let Shared { config, .. } = &*worker.shared;
    let count = Arc::clone(&counted.count);
    let deadline = Instant::now() + config.timeouts.header;
    let idle = async {
        worker.shared.stopped().await;
        sleep_until((worker.shared.shutdown_deadlines().idle + CLOSE_TIMEOUT).into()).await;
    };
    let connection = tokio::select! {
        biased;
        connection = timeout_at(deadline.into(), builder(config).handshake(counted)) => connection,
        () = idle => return None,
    };
    Some((connection.ok()?.ok()?, count))
}

fn builder(config: &Config) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(config.limits.streams)
        .max_header_list_size(u32::try_from(config.limits.header_bytes).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_BYTES)
        // Uploads that nobody takes must not stop those of other streams.
        .initial_connection_window_size(
            config.limits.streams.saturating_mul(STREAM_BYTES).min(MAX_WINDOW),
        )
        .max_send_buffer_size(SEND_BYTES)
        // All streams may be reset at once before they are accepted.
        .max_pending_accept_reset_streams(config.limits.streams as usize)
        .max_concurrent_reset_streams(MAX_REMEMBERED_RESETS)
        .max_local_error_reset_streams(Some(MAX_FAULTY_STREAMS));
    builder
}

/// Whether the library detected a flood.
fn is_flood(error: &h2::Error) -> bool {
    error.is_library() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM)
}

impl<'s> Session<'s> {
    fn new(
        (mut connection, count): (H2<'s>, Arc<FrameCounts>),
        pool: Arc<StreamPool>,
        peer: Peer,
        usage: Option<Arc<ClientUsage>>,
        listener: usize,
        worker: &Arc<Worker>,
    ) -> Self {
        let Config { timeouts, limits, .. } = &worker.shared.config;
        let Timeouts { stall, idle, client_grace, .. } = *timeouts;
        // Even without a minimum rate, a client that takes nothing is too slow. A PING cannot show that.
        let min_rate = MinRate::new(client_grace, stall, limits.client_rate.max(1));
        // A few looks in the time that a stalled exchange has.
        let period = (stall / 4).min(idle).max(Duration::from_millis(1));
        let keepalive = Keepalive::new(connection.ping_pong(), period, Duration::ZERO);
        let (worker, timer, ending) = (Arc::clone(worker), Timer::new(), ClosePhase::No);
        Session {
            connection,
            count,
            pool,
            peer,
            usage,
            listener,
            worker,
            timer,
            keepalive,
            min_rate,
            requests: 0,
            arrivals: Arrivals::Begun,
            ending,
        }
    }

    /// Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.count.begin_turn();
        loop {
            if self.poll_streams(cx).is_ready() {
                return Poll::Ready(());
            }
            let stopping = self.worker.shared.stopping.load(Ordering::Relaxed);
            if let Some(reason) = self.breach()
                && !matches!(self.ending, ClosePhase::Closing(_))
            {
                self.close(reason);
            } else if (stopping || self.is_used_up()) && self.ending == ClosePhase::No {
                self.connection.graceful_shutdown();
                self.ending = ClosePhase::Draining;
                self.keepalive.hurry(CLOSE_TIMEOUT);
            } else {
                break;
            }
        }
        self.poll_clock(cx)
    }

    /// What the client did for which its connection ends. RFC 9113 5.4.1 allows that for an error of a stream.
    fn breach(&self) -> Option<Reason> {
        match () {
            () if self.count.is_flooded() => Some(Reason::ENHANCE_YOUR_CALM),
            () if self.count.is_malformed() => Some(Reason::PROTOCOL_ERROR),
            () => None,
        }
    }

    /// Whether the client must connect anew for more requests.
    fn is_used_up(&self) -> bool {
        self.requests >= self.worker.shared.config.limits.requests
    }

    fn poll_streams(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Poll::Ready(ended) = self.connection.poll_closed(cx) {
            if ended.is_err_and(|error| is_flood(&error)) {
                self.count.flood();
            }
            return Poll::Ready(());
        }
        if self.count.is_turn_over() && self.arrivals == Arrivals::Begun {
            self.arrivals = Arrivals::Held;
            return Poll::Pending;
        }
        self.arrivals = Arrivals::Begun;
        loop {
            let mut incoming = match ready!(self.connection.poll_accept(cx)) {
                Some(Ok(incoming)) => incoming,
                Some(Err(error)) if is_flood(&error) => {
                    self.count.flood();
                    return Poll::Ready(());
                }
                _ => return Poll::Ready(()),
            };
            self.requests += 1;
            let mut nobody = Context::from_waker(Waker::noop());
            if incoming.1.poll_reset(&mut nobody).is_ready() {
                continue;
            }
            if memory::is_used_up() {
                self.worker.tally(|tally| tally.memory_refused += 1);
                let (_, mut respond) = incoming;
                respond.send_reset(Reason::REFUSED_STREAM);
                continue;
            }
            let Some(stream) = self.pool.assign(incoming) else { continue };
            let mut client = Client::new(
                ClientStream::Http2(stream),
                self.peer,
                self.listener,
                &self.worker.shared.config.forwarding,
            );
            client.usage.clone_from(&self.usage);
            let worker = Arc::clone(&self.worker);
            tokio::spawn(async move {
                http1_session::serve_requests(&mut client, Cleartext::Http1, &worker).await;
            });
        }
    }

    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let deadline = match self.ending {
                ClosePhase::Closing(deadline) => deadline,
                _ => self.keepalive.next(),
            };
            let slow = self.min_rate.deadline(self.count.is_blocked(), self.count.taken());
            let slow = slow.filter(|slow| *slow < deadline);
            ready!(self.timer.poll(cx, slow.unwrap_or(deadline)));
            if slow.is_some() || matches!(self.ending, ClosePhase::Closing(_)) {
                return Poll::Ready(());
            }
            let limit = match self.ending {
                ClosePhase::Draining => CLOSE_TIMEOUT,
                _ => self.worker.shared.config.timeouts.idle,
            };
            let work = if self.count.is_blocked() {
                Work::Backlog
            } else if self.pool.busy() > 0 {
                Work::Streams
            } else {
                Work::Nothing
            };
            match self.keepalive.tick(cx, &self.count, work, limit) {
                Liveness::Fine => {}
                Liveness::Idle => self.close(Reason::NO_ERROR),
                Liveness::Dead => return Poll::Ready(()),
            }
            // This sends the frames that were queued.
            if self.poll_streams(cx).is_ready() {
                return Poll::Ready(());
            }
        }
    }

    fn close(&mut self, reason: Reason) {
        self.connection.abrupt_shutdown(reason);
        self.ending = ClosePhase::Closing(Instant::now() + CLOSE_TIMEOUT);
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.pool.close();
    }
}
