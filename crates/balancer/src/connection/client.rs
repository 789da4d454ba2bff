//! A client's connection: reading its next request, noticing that it left, ending it.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::AsyncWrite;

use crate::config::Config;
use crate::config::forwarding::Forwarding;
use crate::config::limits::Limits;
use crate::connection::buffer::{Buffer, Size};
use crate::connection::client_limits::{ClientUsage, CountedUse, Resource};
use crate::connection::client_stream::{ClientStream, Peeked};
use crate::connection::failure::Failure;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::h1::Flaw;
use crate::h1::forwarded_fields::Origin;
use crate::h1::scan::{Scan, Scanner};
use crate::net::memory;
use crate::net::peer::Peer;
use crate::net::socket::ByteStream;
use crate::net::timer::Timer;
use crate::queue::dispatch::request_hints::Turn;

pub(crate) struct Client {
    pub(crate) stream: ClientStream,
    /// The index of its listener in the configuration.
    pub(crate) listener: usize,
    pub(crate) peer: Peer,
    pub(crate) timer: Timer,
    /// The peer's usage, unless the peer is a proxy that asks for others.
    pub(crate) usage: Option<Arc<ClientUsage>>,
    pub(crate) origin: Origin,
    /// Whether it offered so small a window that it can hardly take an answer.
    takes_little: bool,
    /// Requests so far.
    pub(crate) requests: u64,
    /// When the body of the request must be there, if it has one.
    pub(crate) upload: Option<Instant>,
    /// When the last answer ended. It starts the idle time without reading the clock again.
    pub(crate) answered: Option<Instant>,
}

/// What a connection gives to a task that waits for a request.
pub(crate) enum NextRequest {
    /// A header at the start of the input, within this many bytes.
    Request(usize),
    Failed(Failure),
    /// The client left or was idle for too long, or the balancer stops.
    Nothing,
}

/// Notices that a client reset its connection while nothing is read from it.
pub(crate) struct ResetWatch {
    over: bool,
}

/// The state of reading the next request.
struct Reading {
    scanner: Scanner,
    /// The end of the idle time, then of the header. It is set at the first wait, which most headers
    /// never need.
    deadline: Option<Instant>,
    begun: bool,
    /// RFC 9112 2.2: one empty line before a request line is ignored.
    may_skip: bool,
}

/// Bytes of a request line beside its target. No known method needs more.
const REQUEST_LINE_EXTRA_BYTES: usize = 64;

/// A smaller window than this is of a client that is made to read slowly. All common systems offer at least
/// ten packets, because senders begin with so many (RFC 6928).
const MIN_WINDOW: u32 = 4096;

/// How long, and for how many bytes, a closed connection is still read, so that a reset does not destroy
/// its answer.
const LINGER_TIME: Duration = Duration::from_secs(1);

const LINGER_BYTES: usize = 1 << 20;

impl Client {
    pub(crate) fn new(
        stream: ClientStream,
        peer: Peer,
        listener: usize,
        forwarding: &Forwarding,
    ) -> Self {
        let origin = Origin::new(peer, forwarding);
        let timer = Timer::new();
        let takes_little = stream.offered_window().is_some_and(|window| window < MIN_WINDOW);
        let (usage, requests, upload, answered) = (None, 0, None, None);
        Client {
            stream,
            listener,
            peer,
            timer,
            usage,
            origin,
            takes_little,
            requests,
            upload,
            answered,
        }
    }

    /// The turn of its request among those from its address.
    pub(crate) fn turn(&self) -> Turn {
        match &self.stream {
            ClientStream::Http2(stream) => Turn::After(stream.unanswered()),
            _ if self.takes_little => Turn::Shared,
            _ => Turn::default(),
        }
    }

    /// Counts a request of the client that asks, until the returned value is dropped. Fails if the
    /// client has too many at once or all memory is used up. Trusted proxies and clients without an
    /// address are not limited.
    pub(crate) fn count(
        &self,
        asker: Option<IpAddr>,
        worker: &Worker,
    ) -> Result<Option<CountedUse>, Failure> {
        let Config { forwarding, limits, .. } = &worker.shared.config;
        if memory::is_used_up() {
            worker.tally(|tally| tally.memory_refused += 1);
            return Err(Failure::MemoryFull(limits.memory_bytes));
        }
        let entered = match (&self.usage, asker) {
            (Some(usage), _) => usage.enter(Resource::Request),
            (None, Some(address)) if !forwarding.trusts(asker) => {
                worker.shared.census.usage(address).enter(Resource::Request)
            }
            (None, _) => return Ok(None),
        };
        if entered.is_none() {
            worker.tally(|tally| tally.requests_refused += 1);
        }
        entered.map(Some).ok_or(Failure::TooManyInFlight(limits.client_in_flight))
    }

    /// Waits for the next request. It holds no workspace before the first byte.
    pub(crate) async fn next(
        &mut self,
        space: &mut Option<Box<Workspace>>,
        worker: &Worker,
    ) -> NextRequest {
        let begun = space.as_ref().is_some_and(|space| !space.input.is_empty());
        let mut reading = Reading::new(begun);
        std::future::poll_fn(|cx| self.poll_next(cx, &mut reading, space, worker)).await
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        reading: &mut Reading,
        space: &mut Option<Box<Workspace>>,
        worker: &Worker,
    ) -> Poll<NextRequest> {
        loop {
            if let Some(space) = space
                && let Some(arrival) = reading.look(&mut space.input, &worker.shared.config.limits)
            {
                return Poll::Ready(arrival);
            }
            let Poll::Ready(filled) = self.poll_fill(cx, space) else { break };
            if !matches!(filled, Ok(1..)) {
                return Poll::Ready(NextRequest::Nothing);
            }
            if !reading.begun {
                (reading.begun, reading.deadline) = (true, None);
            }
        }
        if !reading.begun
            && let Some(space) = space.take()
        {
            space.give_back();
        }
        if reading.begun && reading.deadline.is_none() {
            self.stream.acknowledge();
        }
        let timeouts = &worker.shared.config.timeouts;
        let limit = if reading.begun { timeouts.header } else { timeouts.idle };
        let answered = self.answered.take();
        let mut deadline =
            *reading.deadline.get_or_insert_with(|| answered.unwrap_or_else(Instant::now) + limit);
        if !reading.begun && worker.shared.stopping.load(Ordering::Relaxed) {
            deadline = deadline.min(worker.shared.shutdown_deadlines().idle);
        }
        ready!(self.timer.poll(cx, deadline));
        if !reading.begun && self.stream.has_unseen() {
            // The request was in time, and the event loop is about to report it.
            return Poll::Pending;
        }
        Poll::Ready(match reading.begun {
            true => NextRequest::Failed(Failure::HeaderTimeout(limit)),
            false => NextRequest::Nothing,
        })
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        space: &mut Option<Box<Workspace>>,
    ) -> Poll<io::Result<usize>> {
        let space = self.workspace(space);
        space.input.poll_fill(cx, &mut self.stream)
    }

    /// The workspace. It comes from the stock if there is none yet.
    pub(crate) fn workspace<'s>(&self, space: &'s mut Option<Box<Workspace>>) -> &'s mut Workspace {
        space.get_or_insert_with(|| {
            Workspace::take(match self.stream {
                ClientStream::Http2(_) => Size::Small,
                _ => Size::Large,
            })
        })
    }

    /// Sends an answer of the balancer.
    pub(crate) async fn send(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        let deadline = Instant::now() + limit;
        let mut sent = 0;
        std::future::poll_fn(|cx| {
            let mut stream = Pin::new(&mut self.stream);
            while sent < bytes.len() {
                match stream.as_mut().poll_write(cx, &bytes[sent..]) {
                    Poll::Ready(Ok(count)) if count > 0 => sent += count,
                    Poll::Ready(_) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Pending => break,
                }
            }
            if sent == bytes.len()
                && let Poll::Ready(flushed) = stream.poll_flush(cx)
            {
                return Poll::Ready(flushed);
            }
            ready!(self.timer.poll(cx, deadline));
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        })
        .await
    }

    /// Closes after an answer while the client may still be sending. Closing at once would reset the
    /// connection, and the reset would overtake the answer (RFC 9112 9.6).
    pub(crate) async fn linger(&mut self, input: &mut Buffer) {
        let deadline = Instant::now() + LINGER_TIME;
        let mut discarded = 0;
        let mut ended = false;
        std::future::poll_fn(|cx| {
            if !ended {
                match Pin::new(&mut self.stream).poll_shutdown(cx) {
                    Poll::Ready(Ok(())) => ended = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    // TLS still has to send its close_notify.
                    Poll::Pending => return self.timer.poll(cx, deadline),
                }
            }
            while discarded < LINGER_BYTES {
                input.clear();
                match input.poll_fill(cx, &mut self.stream) {
                    Poll::Ready(Ok(count)) if count > 0 => discarded += count,
                    Poll::Ready(_) => break,
                    Poll::Pending => return self.timer.poll(cx, deadline),
                }
            }
            Poll::Ready(())
        })
        .await;
    }
}

impl Reading {
    fn new(begun: bool) -> Self {
        Reading { scanner: Scanner::default(), deadline: None, begun, may_skip: true }
    }

    /// The next request, if the input is enough to decide.
    fn look(&mut self, input: &mut Buffer, limits: &Limits) -> Option<NextRequest> {
        if self.may_skip {
            match input.filled() {
                // The scanner must not see bytes that are skipped.
                [] | [b'\r'] => return None,
                [b'\r', b'\n', ..] => input.consume(2),
                _ => {}
            }
            self.may_skip = false;
            if input.is_empty() {
                // An empty line does not begin a request.
                (self.begun, self.deadline) = (false, None);
            }
        }
        let bytes = input.filled();
        if self.scanner.is_new() && is_whole(bytes) && bytes.len() <= limits.header_bytes {
            return Some(NextRequest::Request(bytes.len()));
        }
        let reject =
            |flaw: Flaw| Some(NextRequest::Failed(Failure::Rejected { status: 400, flaw }));
        match self.scanner.scan(bytes) {
            Scan::Complete(2) => reject("the request line is empty"),
            Scan::Complete(len) if len <= limits.header_bytes => Some(NextRequest::Request(len)),
            Scan::Partial if bytes.len() <= limits.header_bytes => None,
            Scan::Complete(_) | Scan::Partial => {
                let line = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
                Some(NextRequest::Failed(
                    match line > limits.target_bytes + REQUEST_LINE_EXTRA_BYTES {
                        true => Failure::TargetTooLong(limits.target_bytes),
                        false => Failure::HeaderTooLarge(limits.header_bytes),
                    },
                ))
            }
            Scan::Flawed(flaw) => reject(flaw),
        }
    }
}

/// A quick check whether the bytes end with the end of a header. Most reads return exactly one header.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\r\n\r\n") && !bytes.starts_with(b"\r\n")
}

impl ResetWatch {
    pub(crate) fn new() -> Self {
        ResetWatch { over: false }
    }

    /// Ready when the client has reset the connection. A client that has only finished sending still
    /// reads. It takes no system call while nothing arrives. Anything else ends the watch, such as a
    /// pipelined request.
    pub(crate) fn poll_reset(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut ClientStream,
    ) -> Poll<()> {
        if let ClientStream::Http2(stream) = stream {
            return stream.poll_gone(cx);
        }
        while !self.over {
            if ready!(stream.poll_read_ready(cx)).is_err() {
                return Poll::Ready(());
            }
            match stream.peek() {
                Peeked::Nothing => {}
                Peeked::Something => self.over = true,
                Peeked::Reset => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::socket::pair;
    use tokio::io::AsyncWriteExt;

    /// What is found when these pieces arrive one by one.
    async fn arrival(pieces: &[&[u8]]) -> (Option<NextRequest>, Reading) {
        let (mut sender, receiver) = pair().await;
        let mut receiver = ClientStream::Tcp(receiver);
        let (mut input, mut reading) = (Buffer::default(), Reading::new(true));
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            sender.write_all(piece).await.unwrap();
            std::future::poll_fn(|cx| input.poll_fill(cx, &mut receiver)).await.unwrap();
            let found = reading.look(&mut input, &Limits::default());
            if found.is_some() {
                return (found, reading);
            }
        }
        (None, reading)
    }

    #[tokio::test]
    async fn rfc9112_2_2_one_empty_line_is_skipped_however_it_arrives() {
        let bytes = b"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n";
        for at in 0..bytes.len() {
            let (found, _) = arrival(&[&bytes[..at], &bytes[at..]]).await;
            assert!(matches!(found, Some(NextRequest::Request(27))), "split at {at}");
        }
        let each: Vec<_> = bytes.chunks(1).collect();
        assert!(matches!(arrival(&each).await.0, Some(NextRequest::Request(27))));
        let twice = arrival(&[b"\r", b"\n", b"\r", b"\n"]).await.0;
        assert!(matches!(twice, Some(NextRequest::Failed(_))));
    }

    #[tokio::test]
    async fn an_empty_line_alone_begins_no_request() {
        for pieces in [&[&b"\r\n"[..]][..], &[b"\r", b"\n"]] {
            let (found, reading) = arrival(pieces).await;
            assert!(found.is_none() && !reading.begun);
        }
        assert!(arrival(&[b"\r"]).await.1.begun);
    }
}
