//! HTTP/2 connections to a backend, without TLS (h2c, prior knowledge). Each thread has its own,
//! one as a rule: a second one is opened when the backend allows no more streams on the first.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use h2::Reason;
use h2::client::{Builder, Connection, SendRequest};
use tokio::sync::Notify;

use super::branch::Branch;
use super::flood::{Count, Counted};
use super::inbound::broken;
use super::keepalive::{Health, Keepalive, Work};
use super::outbound::Piece;
use super::{MAX_WINDOW, SEND_BYTES, STREAM_BYTES};
use crate::backend::BackendState;
use crate::limits::{Limits, Timeouts};
use crate::stream::BackendStream;
use crate::timer::Timer;

/// A backend's connections.
#[derive(Debug)]
pub(crate) struct Trunks {
    /// By thread.
    own: Box<[Own]>,
    /// The backend is gone: one that is still being opened gets one request.
    closed: AtomicBool,
}

/// One thread's.
#[derive(Debug, Default)]
struct Own {
    open: Mutex<Vec<Arc<Trunk>>>,
    /// One request opens a connection, the others wait for it.
    connecting: AtomicBool,
    connected: Notify,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Trunk {
    send: SendRequest<Piece>,
    /// Where requests go that name no host.
    pub(super) address: String,
    streams: AtomicUsize,
    /// Since when there is no stream.
    idle_since: Mutex<Instant>,
    /// It gets no more streams.
    closed: AtomicBool,
    /// Signalled when it is to end.
    end: Notify,
}

/// How long a backend may be silent while it has streams before it is asked whether it lives; as
/// long again, and its connection is given up.
const SILENCE: Duration = Duration::from_secs(15);

/// How long it is not asked again while it says nothing of itself: to servers of gRPC, PINGs less than five
/// minutes apart are an attack (gRFC A8).
const REST: Duration = Duration::from_secs(6 * 60);

impl Trunks {
    pub(crate) fn new(threads: usize) -> Self {
        let own = (0..threads).map(|_| Own::default()).collect();
        Trunks { own, closed: AtomicBool::new(false) }
    }

    /// A stream of a connection that is open and has room.
    pub(crate) fn reuse(&self, thread: usize) -> Option<Branch> {
        let mut open = self.own[thread].open();
        open.retain(|trunk| trunk.is_usable());
        open.iter().find_map(Trunk::branch)
    }

    /// A stream, of a new connection if there is none with room.
    pub(crate) async fn open(
        &self,
        backend: &Arc<BackendState>,
        thread: usize,
    ) -> io::Result<Branch> {
        let own = &self.own[thread];
        loop {
            let mut connected = pin!(own.connected.notified());
            connected.as_mut().enable();
            if let Some(branch) = self.reuse(thread) {
                return Ok(branch);
            }
            if own.connecting.swap(true, Ordering::Relaxed) {
                connected.await;
                continue;
            }
            let connecting = Connecting(own);
            let trunk = connect(backend).await?;
            let branch = trunk.branch();
            own.open().push(trunk);
            if self.closed.load(Ordering::SeqCst) {
                self.close();
            }
            drop(connecting);
            return branch.ok_or_else(|| io::Error::other("it allows no streams"));
        }
    }

    /// Closes this thread's connections that have had no stream for so long.
    pub(crate) fn sweep(&self, thread: usize, longest: Duration, now: Instant) {
        self.own[thread].open().retain(|trunk| {
            let keep = trunk.is_usable() && !trunk.is_idle(longest, now);
            if !keep {
                trunk.close();
            }
            keep
        });
    }

    /// Closes all, each when its last stream is done, now and from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for own in &self.own {
            own.open().drain(..).for_each(|trunk| trunk.close());
        }
    }

    /// Connections without a stream.
    pub(crate) fn idle_count(&self) -> usize {
        let idle = |own: &Own| {
            own.open().iter().filter(|trunk| trunk.streams.load(Ordering::Relaxed) == 0).count()
        };
        self.own.iter().map(idle).sum()
    }
}

impl Own {
    fn open(&self) -> MutexGuard<'_, Vec<Arc<Trunk>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the others go on when dropped, whatever came of it.
struct Connecting<'o>(&'o Own);

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.0.connecting.store(false, Ordering::Relaxed);
        self.0.connected.notify_waiters();
    }
}

async fn connect(backend: &Arc<BackendState>) -> io::Result<Arc<Trunk>> {
    backend.opening();
    let counted = Counting(Arc::clone(backend));
    let stream = BackendStream::connect(&backend.address).await?;
    let stream = Counted::answering(stream);
    let count = Arc::clone(&stream.count);
    let (send, mut connection) = Builder::new()
        .enable_push(false)
        // Until it has said how many it allows, in its first frame.
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_BYTES)
        // So that an answer that its client does not take cannot stop the others.
        .initial_connection_window_size(MAX_WINDOW)
        .max_send_buffer_size(SEND_BYTES)
        // A backend that was busy answers requests that were given up meanwhile. That would end the
        // connection when it has happened so often, and all that is in flight with it.
        .max_local_error_reset_streams(None)
        .max_header_list_size(Limits::MAX_HEADER_BYTES as u32)
        .handshake(stream)
        .await
        .map_err(broken)?;
    poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(ended.and(Err(Reason::CONNECT_ERROR.into()))),
        Poll::Pending if send.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await
    .map_err(broken)?;
    let trunk = Arc::new(Trunk {
        send,
        address: backend.address.tcp().map_or("localhost".into(), |address| address.to_string()),
        streams: AtomicUsize::new(0),
        idle_since: Mutex::new(Instant::now()),
        closed: AtomicBool::new(false),
        end: Notify::new(),
    });
    let keepalive = Keepalive::new(connection.ping_pong(), SILENCE, REST);
    tokio::spawn(drive(connection, Arc::clone(&trunk), keepalive, count, counted));
    Ok(trunk)
}

/// Moves a connection's frames until it ends.
async fn drive(
    connection: Connection<Counted<BackendStream>, Piece>,
    trunk: Arc<Trunk>,
    mut keepalive: Keepalive,
    count: Arc<Count>,
    counted: Counting,
) {
    let mut connection = pin!(connection);
    let mut timer = Timer::new();
    let mut end = pin!(trunk.end.notified());
    poll_fn(|cx| {
        loop {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            while end.as_mut().poll(cx).is_ready() {
                end.set(trunk.end.notified());
            }
            let streams = trunk.streams.load(Ordering::Relaxed);
            if streams == 0 && trunk.closed.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            if timer.poll(cx, keepalive.next()).is_pending() {
                return Poll::Pending;
            }
            let work = if streams > 0 { Work::Streams } else { Work::Nothing };
            if keepalive.tick(cx, &count, work, Timeouts::MAX) != Health::Fine {
                return Poll::Ready(());
            }
        }
    })
    .await;
    trunk.closed.store(true, Ordering::Relaxed);
    drop(counted);
}

/// A connection that its backend counts.
struct Counting(Arc<BackendState>);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.forget(1);
    }
}

impl Trunk {
    /// A stream, if there is room for one.
    fn branch(self: &Arc<Self>) -> Option<Branch> {
        let room = self.streams.load(Ordering::Relaxed) < self.send.current_max_send_streams();
        room.then(|| {
            self.streams.fetch_add(1, Ordering::Relaxed);
            Branch::new(self.send.clone(), Arc::clone(self))
        })
    }

    /// The backend has not said that it takes no more streams.
    fn is_usable(&self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        !self.closed.load(Ordering::Relaxed)
            && matches!(self.send.clone().poll_ready(&mut nobody), Poll::Ready(Ok(())))
    }

    fn is_idle(&self, longest: Duration, now: Instant) -> bool {
        let since = *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        self.streams.load(Ordering::Relaxed) == 0 && now.duration_since(since) >= longest
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.end.notify_waiters();
    }

    /// A stream is done.
    pub(super) fn leave(&self) {
        if self.streams.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            if self.closed.load(Ordering::Relaxed) {
                self.end.notify_waiters();
            }
        }
    }
}
