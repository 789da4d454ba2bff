//! A slot of a backend with a connection to it.

use crate::backends::backend_state::CountedConnection;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::backends::backend_state::BackendState;
use crate::backends::backend_stream::{BackendStream, Check};
use crate::net::timer::Timer;
use crate::queue::shared_queue::{Class, Slot};

/// On drop, closes the connection and then releases the slot.
pub(crate) struct BackendConnection<'a> {
    stream: Option<BackendStream>,
    pub(crate) slot: Slot<'a>,
    /// At most 1024 threads exist.
    thread: u16,
    pub(crate) history: History,
}

/// Whether a connection has carried requests before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    Fresh,
    /// The backend may close it before the request arrives.
    Reused,
}

impl<'a> BackendConnection<'a> {
    /// A slot on `thread`, without a connection yet.
    pub(crate) fn new(slot: Slot<'a>, thread: usize) -> Self {
        BackendConnection { stream: None, slot, thread: thread as u16, history: History::Fresh }
    }

    /// Takes an idle connection, if there is one.
    pub(crate) fn reuse(&mut self, check: Check) -> bool {
        let backend = &self.slot.backend;
        self.stream = match &backend.upstream {
            Some(upstream) => upstream
                .reuse(self.thread.into())
                .map(|stream| BackendStream::Http2(Box::new(stream))),
            None => backend.take_idle(self.thread.into(), check),
        };
        self.history = if self.stream.is_some() { History::Reused } else { History::Fresh };
        self.stream.is_some()
    }

    /// Closes the present connection, if any, and opens a new one. Fails at `cut_off`, too.
    pub(crate) async fn connect(
        &mut self,
        timer: &mut Timer,
        limit: Duration,
        cut_off: impl Fn() -> Option<Instant>,
    ) -> io::Result<()> {
        self.close();
        let deadline = Instant::now() + limit;
        let backend = Arc::clone(&self.slot.backend);
        let mut connecting = pin!(open(&backend, self.thread.into()));
        let stream = std::future::poll_fn(|cx| {
            if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let end = cut_off().map_or(deadline, |end| end.min(deadline));
            timer.poll(cx, end).map(|()| {
                let message = format!("no connection within {limit:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            })
        })
        .await?;
        (self.stream, self.history) = (Some(stream), History::Fresh);
        Ok(())
    }

    /// The connection. It exists after [`BackendConnection::reuse`] or [`BackendConnection::connect`]
    /// succeeded.
    pub(crate) fn stream(&mut self) -> &mut BackendStream {
        self.stream.as_mut().expect("a lease that relays is connected")
    }

    /// Keeps the connection for the next request, and then releases the slot.
    pub(crate) fn give_back(mut self, now: Instant) {
        if let Some(stream) = self.stream.take() {
            self.slot.backend.give_back(stream, self.thread.into(), now);
        }
    }

    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            match self.slot.class() {
                Class::Request => self.slot.backend.close(stream),
                Class::Upgraded => drop(stream),
            }
        }
    }
}

impl Drop for BackendConnection<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens a new connection, or a stream of an HTTP/2 connection.
async fn open(backend: &Arc<BackendState>, thread: usize) -> io::Result<BackendStream> {
    if let Some(upstream) = &backend.upstream {
        // Boxed because the future is large. Otherwise every client connection would reserve room for
        // it.
        let stream =
            Box::pin(upstream.open(thread, &backend.address, || CountedConnection::new(backend)))
                .await?;
        return Ok(BackendStream::Http2(Box::new(stream)));
    }
    backend.opening();
    let opening = Opening(backend);
    let stream = BackendStream::connect(&backend.address).await?;
    std::mem::forget(opening);
    Ok(stream)
}

/// A connection that is counted but not established yet.
struct Opening<'b>(&'b BackendState);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.forget(1);
    }
}
