//! A client's connection: reading its next request, noticing that it left, ending it.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use crate::answer::Failure;
use crate::buffer::{Buffer, Workspace};
use crate::h1::{Flaw, Origin, Scan, Scanner};
use crate::timer::Timer;
use crate::worker::Worker;

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) timer: Timer,
    pub(crate) origin: Origin,
}

/// What came over a connection that waits for a request.
pub(crate) enum Arrival {
    /// A header of this many bytes, at the start of the input.
    Request(usize),
    Failed(Failure),
    /// The client left, was idle for too long, or the balancer stops.
    Nothing,
}

/// Notices that a client left while nothing is read from it.
pub(crate) struct Watch {
    over: bool,
}

/// How far the next request has come.
struct Reading {
    scanner: Scanner,
    /// Of the idle time, then of the header; set at the first wait, which most headers never have.
    deadline: Option<Instant>,
    begun: bool,
    /// RFC 9112 2.2: one empty line before a request line is ignored.
    may_skip: bool,
}

/// How long, and for how many bytes, a closed connection is read so that its answer is not
/// destroyed by a reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

impl Client {
    pub(crate) fn new(stream: TcpStream, peer: IpAddr) -> Self {
        Client { stream, timer: Timer::new(), origin: Origin::new(peer) }
    }

    /// Waits for the next request. Holds no workspace while nothing of it has arrived.
    pub(crate) async fn next(
        &mut self,
        space: &mut Option<Box<Workspace>>,
        worker: &Worker,
    ) -> Arrival {
        let begun = space.as_ref().is_some_and(|space| !space.input.is_empty());
        let mut reading =
            Reading { scanner: Scanner::default(), deadline: None, begun, may_skip: true };
        std::future::poll_fn(|cx| self.poll_next(cx, &mut reading, space, worker)).await
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        reading: &mut Reading,
        space: &mut Option<Box<Workspace>>,
        worker: &Worker,
    ) -> Poll<Arrival> {
        loop {
            if let Some(space) = space
                && let Some(arrival) = reading.look(&mut space.input, worker)
            {
                return Poll::Ready(arrival);
            }
            let Poll::Ready(filled) = self.poll_fill(cx, space) else { break };
            if !matches!(filled, Ok(1..)) {
                return Poll::Ready(Arrival::Nothing);
            }
            if !reading.begun {
                (reading.begun, reading.deadline) = (true, None);
            }
        }
        if !reading.begun {
            if let Some(space) = space.take() {
                space.give_back();
            }
            if worker.shared.stopping.load(Ordering::Relaxed) {
                return Poll::Ready(Arrival::Nothing);
            }
        }
        let timeouts = &worker.shared.config.timeouts;
        let limit = if reading.begun { timeouts.header } else { timeouts.idle };
        let deadline = *reading.deadline.get_or_insert_with(|| Instant::now() + limit);
        ready!(self.timer.poll(cx, deadline));
        Poll::Ready(match reading.begun {
            true => Arrival::Failed(Failure::HeaderTimeout(limit)),
            false => Arrival::Nothing,
        })
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        space: &mut Option<Box<Workspace>>,
    ) -> Poll<io::Result<usize>> {
        let space = match space {
            Some(space) => space,
            None => {
                ready!(self.stream.poll_read_ready(cx))?;
                space.insert(Workspace::take())
            }
        };
        space.input.poll_fill(cx, &mut self.stream)
    }

    /// Sends an answer of our own.
    pub(crate) async fn send(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        let deadline = Instant::now() + limit;
        let mut sent = 0;
        std::future::poll_fn(|cx| {
            while sent < bytes.len() {
                match tokio::io::AsyncWrite::poll_write(
                    Pin::new(&mut self.stream),
                    cx,
                    &bytes[sent..],
                ) {
                    Poll::Ready(Ok(count)) if count > 0 => sent += count,
                    Poll::Ready(_) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Pending => {
                        ready!(self.timer.poll(cx, deadline));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Closes after an answer while the client may still be sending: closing outright would reset
    /// the connection, and the reset would overtake the answer (RFC 9112 9.6).
    pub(crate) async fn linger(&mut self, input: &mut Buffer) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let deadline = Instant::now() + LINGER;
        let mut discarded = 0;
        std::future::poll_fn(|cx| {
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

    /// Resets the connection, so that the client cannot take what it has for a whole answer.
    pub(crate) fn abort(&self) {
        // Closing an incomplete message says the same, but for bodies that end at the close.
        let _ = self.stream.set_zero_linger();
    }
}

impl Reading {
    /// What is in the input, if it is enough to decide.
    fn look(&mut self, input: &mut Buffer, worker: &Worker) -> Option<Arrival> {
        if self.may_skip && input.len() >= 2 {
            self.may_skip = false;
            if input.filled().starts_with(b"\r\n") {
                input.consume(2);
            }
        }
        let limit = worker.shared.config.limits.header_bytes;
        let reject = |flaw: Flaw| Some(Arrival::Failed(Failure::Rejected { status: 400, flaw }));
        match self.scanner.scan(input.filled()) {
            Scan::Complete(2) => reject("the request line is empty"),
            Scan::Complete(len) if len <= limit => Some(Arrival::Request(len)),
            Scan::Partial if input.len() <= limit => None,
            Scan::Complete(_) | Scan::Partial => {
                Some(Arrival::Failed(Failure::HeaderTooLarge(limit)))
            }
            Scan::Flawed(flaw) => reject(flaw),
        }
    }
}

impl Watch {
    pub(crate) fn new() -> Self {
        Watch { over: false }
    }

    /// Ready when the client has reset the connection. A client that has only finished sending
    /// still reads.
    pub(crate) fn poll_reset(&mut self, cx: &mut Context<'_>, stream: &TcpStream) -> Poll<()> {
        self.poll(cx, stream, std::result::Result::is_err)
    }

    /// Ready when the client has closed or reset the connection. Half-closing and closing look the
    /// same; before anything was done for a request, both count as leaving.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>, stream: &TcpStream) -> Poll<()> {
        self.poll(cx, stream, |peeked| !matches!(peeked, Ok(1..)))
    }

    /// Costs no system call while nothing arrives. Ends watching when anything else does: a
    /// pipelined request is read in its turn.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &TcpStream,
        gone: impl Fn(&io::Result<usize>) -> bool,
    ) -> Poll<()> {
        while !self.over {
            if ready!(stream.poll_read_ready(cx)).is_err() {
                return Poll::Ready(());
            }
            let peeked = stream.try_io(Interest::READABLE, || {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                Ok(recv(stream, &mut [0_u8; 1][..], flags)?.1)
            });
            match peeked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                peeked if gone(&peeked) => return Poll::Ready(()),
                _ => self.over = true,
            }
        }
        Poll::Pending
    }
}
