//! The streams of a client's HTTP/2 connection, as HTTP/1.1 connections.
//!
//! To the code that serves clients, a [`ServerStream`] is a keep-alive connection. It carries the request and the
//! answer of one stream, then those of the next one. A connection needs as many tasks as it has streams at once,
//! and it rarely starts a task for a stream.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Method, Request};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::h1::body::Framing;
use crate::http2::flood::FrameCounts;
use crate::http2::head::{read_response, write_request};
use crate::http2::inbound::{Inbound, broken};
use crate::http2::outbound::{Outbound, Piece, is_empty_body};
use crate::net::memory::{self, HeldBytes};
use crate::net::peer::Transport;

/// A stream that a client opened.
pub(crate) type Incoming = (Request<RecvStream>, SendResponse<Piece>);

/// What a connection and the tasks of its streams share.
#[derive(Debug)]
pub(crate) struct StreamPool {
    transport: Transport,
    frame_counts: Arc<FrameCounts>,
    entries: Mutex<PoolEntries>,
}

#[derive(Debug, Default)]
struct PoolEntries {
    all: Vec<PoolEntry>,
    /// Tasks that wait for a stream. The last one to come is the first to go: its memory is warm.
    parked: Vec<usize>,
    /// Entries of tasks that have ended.
    free: Vec<usize>,
    /// Whether no further stream will come.
    closed: bool,
}

#[derive(Debug, Default)]
struct PoolEntry {
    incoming: Option<Incoming>,
    /// Streams that were not answered when it came.
    unanswered: u32,
    waker: Option<Waker>,
    lingers: bool,
}

/// Streams that may stay open after their answer. The others are left for the client's next requests.
const MAX_LINGERING_STREAMS: usize = 16;

/// Bytes of a task and its buffers, without the message that it carries.
const STREAM_OVERHEAD_BYTES: usize = 8 * 1024;

/// A task's side of the streams that it serves, one after the other.
#[derive(Debug)]
pub(crate) struct ServerStream {
    pool: Arc<StreamPool>,
    entry: usize,
    /// Streams of the connection that were not answered when this one came.
    unanswered: u32,
    state: State,
    inbound: Inbound,
    /// Its task, its workspace, and what the library holds for its stream.
    _held: HeldBytes,
}

#[derive(Debug)]
enum State {
    /// Waits for the next stream.
    Idle,
    /// Waits for the answer's header.
    Asked {
        respond: SendResponse<Piece>,
        is_head: bool,
    },
    /// Sends the answer's body.
    Answering(Outbound),
    /// The stream is answered, and the rest of the request is read. A reset right after the answer makes
    /// some clients forget it.
    Lingering,
    Closed,
}

impl StreamPool {
    /// The pool of a connection over this transport.
    pub(crate) fn new(transport: Transport, frame_counts: Arc<FrameCounts>) -> Arc<Self> {
        let transport = Transport { http: Some("HTTP/2.0"), ..transport };
        Arc::new(StreamPool { transport, frame_counts, entries: Mutex::default() })
    }

    /// Gives a stream to a task that waits for one. Returns a connection for a new task if none waits.
    pub(crate) fn assign(self: &Arc<Self>, incoming: Incoming) -> Option<ServerStream> {
        let mut entries = self.entries();
        let unanswered = entries.busy();
        if let Some(parked) = entries.parked.pop() {
            let entry = &mut entries.all[parked];
            (entry.incoming, entry.unanswered) = (Some(incoming), unanswered);
            let waker = entry.waker.take();
            drop(entries);
            if let Some(waker) = waker {
                waker.wake();
            }
            return None;
        }
        let entry = entries.free.pop().unwrap_or_else(|| {
            entries.all.push(PoolEntry::default());
            entries.all.len() - 1
        });
        (entries.all[entry].incoming, entries.all[entry].unanswered) = (Some(incoming), unanswered);
        drop(entries);
        let (pool, inbound) = (Arc::clone(self), Inbound::default());
        Some(ServerStream {
            pool,
            entry,
            unanswered,
            state: State::Idle,
            inbound,
            _held: HeldBytes::new(STREAM_OVERHEAD_BYTES),
        })
    }

    /// Tasks with a stream that is not answered.
    pub(crate) fn busy(&self) -> usize {
        let entries = self.entries();
        entries.busy() as usize - entries.lingering()
    }

    /// Ends the tasks that wait for a stream.
    pub(crate) fn close(&self) {
        let mut entries = self.entries();
        entries.closed = true;
        let wakers: Vec<_> =
            entries.all.iter_mut().filter_map(|entry| entry.waker.take()).collect();
        entries.parked.clear();
        drop(entries);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether a stream may stay open to read the rest of its request after its answer.
    fn linger(&self, entry: usize) -> bool {
        let mut entries = self.entries();
        let has_room = entries.lingering() < MAX_LINGERING_STREAMS;
        entries.all[entry].lingers = has_room;
        has_room
    }

    fn entries(&self) -> MutexGuard<'_, PoolEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolEntries {
    /// Tasks with a stream.
    fn busy(&self) -> u32 {
        (self.all.len() - self.free.len() - self.parked.len()) as u32
    }

    fn lingering(&self) -> usize {
        self.all.iter().filter(|entry| entry.lingers).count()
    }
}

impl ServerStream {
    /// Ready when there is something to read, or the end.
    pub(crate) fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.state {
            State::Idle => self.poll_header(cx),
            State::Answering(outbound) if outbound.is_done() => {
                self.finish();
                self.poll_header(cx)
            }
            State::Closed => Poll::Ready(Ok(())),
            _ => self.inbound.poll_ready(cx).map_err(broken),
        }
    }

    pub(crate) fn transport(&self) -> Transport {
        self.pool.transport
    }

    /// Streams of the connection that were not answered when this one came.
    pub(crate) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Ready when the client has reset the stream.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Asked { respond, .. } => respond.poll_reset(cx).map(drop),
            State::Answering(outbound) if !outbound.is_done() => {
                outbound.stream().poll_reset(cx).map(drop)
            }
            _ => Poll::Pending,
        }
    }

    /// Tells the client that its answer is incomplete.
    pub(crate) fn abort(&mut self, reason: Reason) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Asked { mut respond, .. } => respond.send_reset(reason),
            State::Answering(mut outbound) if !outbound.is_done() => {
                outbound.stream().send_reset(reason);
            }
            _ => {}
        }
        self.inbound.clear();
    }

    /// Ready when a stream's header can be read, or when no stream will come.
    fn poll_header(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_next(cx));
        match self.state {
            State::Asked { .. } => self.inbound.poll_ready(cx).map_err(broken),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Takes the next stream. A request that HTTP/1.1 cannot express is reset.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut entries = self.pool.entries();
            let is_left = entries.all[self.entry].incoming.is_none() && memory::is_scarce();
            if entries.closed || is_left {
                self.state = State::Closed;
                return Poll::Ready(());
            }
            let entry = &mut entries.all[self.entry];
            let Some((request, mut respond)) = entry.incoming.take() else {
                match &mut entry.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    none => {
                        *none = Some(cx.waker().clone());
                        entries.parked.push(self.entry);
                    }
                }
                return Poll::Pending;
            };
            self.unanswered = entry.unanswered;
            drop(entries);
            let (is_head, ended) =
                (request.method() == Method::HEAD, request.body().is_end_stream());
            match write_request(&request, ended, self.inbound.text()) {
                Ok(framing) => {
                    let held = framing == Framing::Empty && !ended;
                    match held {
                        true => self.inbound.begin_held(request.into_body()),
                        false => self.inbound.begin(framing, request.into_body()),
                    }
                    self.state = State::Asked { respond, is_head };
                    return Poll::Ready(());
                }
                Err(reason) => {
                    respond.send_reset(reason);
                    self.inbound.clear();
                }
            }
        }
    }

    /// The stream is answered. The rest of its request is refused.
    fn finish(&mut self) {
        self.inbound.clear();
        self.state = State::Idle;
    }

    /// Sends the header of an interim or final answer. Returns the bytes that are used up.
    fn answer(&mut self, text: &[u8]) -> io::Result<usize> {
        let State::Asked { respond, is_head } = &mut self.state else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let parsed = read_response(text, *is_head)?;
        if parsed.head.status().is_informational() {
            respond.send_informational(parsed.head).map_err(broken)?;
            return Ok(parsed.len);
        }
        let chunked = parsed.framing == Framing::Chunked;
        let empty = chunked && is_empty_body(&text[parsed.len..]);
        let ended = empty || parsed.framing == Framing::Empty;
        let stream = respond.send_response(parsed.head, ended).map_err(broken)?;
        self.pool.frame_counts.answered();
        self.state = State::Answering(match ended {
            true => Outbound::finished(stream),
            false => Outbound::new(stream, parsed.framing),
        });
        Ok(if empty { text.len() } else { parsed.len })
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        ready!(stream.poll_read_ready(cx))?;
        if stream.pool.frame_counts.is_malformed() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        match stream.state {
            State::Closed | State::Idle => Poll::Ready(Ok(())),
            _ => stream.inbound.poll_read(cx, room).map_err(broken),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        text: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        let mut at = 0;
        while at < text.len() && matches!(stream.state, State::Asked { .. }) {
            at += stream.answer(&text[at..])?;
        }
        match &mut stream.state {
            State::Answering(_) if at == text.len() => Poll::Ready(Ok(at)),
            State::Answering(outbound) => outbound.poll_write_after(cx, text, at),
            _ if at > 0 => Poll::Ready(Ok(at)),
            _ => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The connection sends for all its streams when it is polled next.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let is_answered = match &stream.state {
            State::Answering(outbound) => outbound.is_done(),
            State::Lingering => return Poll::Ready(Ok(())),
            _ => false,
        };
        if is_answered && stream.pool.linger(stream.entry) {
            stream.state = State::Lingering;
        } else {
            stream.inbound.clear();
            stream.state = State::Closed;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for ServerStream {
    fn drop(&mut self) {
        let mut entries = self.pool.entries();
        let entry = std::mem::take(&mut entries.all[self.entry]);
        if entry.waker.is_some() {
            entries.parked.retain(|&parked| parked != self.entry);
        }
        entries.free.push(self.entry);
        drop(entries);
        // A stream that came too late is reset as its parts are dropped.
        drop(entry);
    }
}
