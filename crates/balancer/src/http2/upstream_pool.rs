//! The HTTP/2 connections to a backend, without TLS (h2c, prior knowledge). Each thread usually has one.
//! It opens a second one when the backend allows no more streams on the first.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::config::address::Address;
use crate::http2::upstream_connection::{UpstreamConnection, connect};
use crate::http2::upstream_stream::UpstreamStream;

/// A backend's connections.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    /// By thread.
    own: Box<[ThreadConnections]>,
    /// The backend was removed. A connection that is still being opened gets one request.
    closed: AtomicBool,
}

/// The connections of one thread.
#[derive(Debug, Default)]
struct ThreadConnections {
    open: Mutex<Vec<Arc<UpstreamConnection>>>,
    /// One request opens a connection, and the others wait for it.
    connecting: AtomicBool,
    connected: Notify,
}

impl UpstreamPool {
    pub(crate) fn new(threads: usize) -> Self {
        let own = (0..threads).map(|_| ThreadConnections::default()).collect();
        UpstreamPool { own, closed: AtomicBool::new(false) }
    }

    /// A stream of an open connection with room.
    pub(crate) fn reuse(&self, thread: usize) -> Option<UpstreamStream> {
        let mut open = self.own[thread].open();
        open.retain(|connection| connection.is_usable());
        open.iter().find_map(UpstreamStream::open)
    }

    /// A stream, on a new connection if none has room. The value of `count` is dropped when a new
    /// connection ends.
    pub(crate) async fn open<C: Send + 'static>(
        &self,
        thread: usize,
        address: &Address,
        count: impl Fn() -> C,
    ) -> io::Result<UpstreamStream> {
        let own = &self.own[thread];
        loop {
            let mut connected = pin!(own.connected.notified());
            connected.as_mut().enable();
            if let Some(stream) = self.reuse(thread) {
                return Ok(stream);
            }
            if own.connecting.swap(true, Ordering::Relaxed) {
                connected.await;
                continue;
            }
            let connecting = Connecting(own);
            let connection = connect(address, count()).await?;
            let stream = UpstreamStream::open(&connection);
            own.open().push(connection);
            if self.closed.load(Ordering::SeqCst) {
                self.close();
            }
            drop(connecting);
            return stream.ok_or_else(|| io::Error::other("it allows no streams"));
        }
    }

    /// Closes connections of this thread that have been idle for `longest`.
    pub(crate) fn sweep(&self, thread: usize, longest: Duration, now: Instant) {
        self.own[thread].open().retain(|connection| {
            let keep = connection.is_usable() && !connection.is_idle(longest, now);
            if !keep {
                connection.close();
            }
            keep
        });
    }

    /// Closes all connections, each after its last stream, and keeps none from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for own in &self.own {
            own.open().drain(..).for_each(|connection| connection.close());
        }
    }

    /// Connections without a stream.
    pub(crate) fn idle_count(&self) -> usize {
        let idle = |own: &ThreadConnections| {
            own.open().iter().filter(|connection| !connection.has_streams()).count()
        };
        self.own.iter().map(idle).sum()
    }
}

impl ThreadConnections {
    fn open(&self) -> MutexGuard<'_, Vec<Arc<UpstreamConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the other requests go on when dropped, whatever the result.
struct Connecting<'o>(&'o ThreadConnections);

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.0.connecting.store(false, Ordering::Relaxed);
        self.0.connected.notify_waiters();
    }
}
