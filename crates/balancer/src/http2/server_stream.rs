//! The streams of a client's HTTP/2 connection, as HTTP/1.1 connections.
//!
//! A lane is a keep-alive connection to the code that serves clients: it carries one stream's
//! request and answer, then the next one's. So a connection needs as many tasks as it has streams
//! at once, and none is made anew for a stream as a rule.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Method, Request};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::h1::body::Framing;
use crate::http2::flood::Count;
use crate::http2::head::{read_response, write_request};
use crate::http2::inbound::{Inbound, broken};
use crate::http2::outbound::{Outbound, Piece, is_empty_body};
use crate::net::memory::{self, Held};
use crate::net::peer::Transport;

/// A stream that a client opened.
pub(crate) type Incoming = (Request<RecvStream>, SendResponse<Piece>);

/// What a connection and its lanes share.
#[derive(Debug)]
pub(crate) struct Yard {
    transport: Transport,
    count: Arc<Count>,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    by_lane: Vec<Place>,
    /// Lanes that wait for a stream; the last one to come is the first to go, its memory is warm.
    parked: Vec<usize>,
    /// Places of lanes that have ended.
    free: Vec<usize>,
    /// No stream will come any more.
    closed: bool,
}

#[derive(Debug, Default)]
struct Place {
    incoming: Option<Incoming>,
    waker: Option<Waker>,
    lingers: bool,
}

/// Streams that may be open after their answer: the others are for the client's next requests.
const LINGERING: usize = 16;

/// Bytes of a lane without what it carries.
const LANE_BYTES: usize = 8 * 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lane {
    yard: Arc<Yard>,
    place: usize,
    state: State,
    inbound: Inbound,
    /// Its task, its workspace, and what the library knows of its stream.
    _held: Held,
}

#[derive(Debug)]
enum State {
    /// Between two streams.
    Idle,
    /// Until the answer's header.
    Asked {
        respond: SendResponse<Piece>,
        is_head: bool,
    },
    /// Until the end of its body.
    Answering(Outbound),
    /// The stream has its answer, and what the client still sends is read: a reset along with the answer
    /// makes some clients forget it.
    Lingering,
    Closed,
}

impl Yard {
    /// Of a connection over this transport.
    pub(crate) fn new(transport: Transport, count: Arc<Count>) -> Arc<Self> {
        let transport = Transport { http: Some("HTTP/2.0"), ..transport };
        Arc::new(Yard { transport, count, places: Mutex::default() })
    }

    /// Gives a stream to a lane that waits for one, else to a new lane.
    pub(crate) fn assign(self: &Arc<Self>, incoming: Incoming) -> Option<Lane> {
        let mut places = self.places();
        if let Some(parked) = places.parked.pop() {
            let place = &mut places.by_lane[parked];
            place.incoming = Some(incoming);
            let waker = place.waker.take();
            drop(places);
            if let Some(waker) = waker {
                waker.wake();
            }
            return None;
        }
        let place = places.free.pop().unwrap_or_else(|| {
            places.by_lane.push(Place::default());
            places.by_lane.len() - 1
        });
        places.by_lane[place].incoming = Some(incoming);
        drop(places);
        let (yard, inbound) = (Arc::clone(self), Inbound::default());
        Some(Lane { yard, place, state: State::Idle, inbound, _held: Held::new(LANE_BYTES) })
    }

    /// Lanes that carry a stream which is not answered.
    pub(crate) fn busy(&self) -> usize {
        let places = self.places();
        places.by_lane.len() - places.free.len() - places.parked.len() - places.lingering()
    }

    /// Ends the lanes that wait for a stream.
    pub(crate) fn close(&self) {
        let mut places = self.places();
        places.closed = true;
        let wakers: Vec<_> =
            places.by_lane.iter_mut().filter_map(|place| place.waker.take()).collect();
        places.parked.clear();
        drop(places);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the stream of this lane may stay open for the rest of what it is sent.
    fn linger(&self, place: usize) -> bool {
        let mut places = self.places();
        let has_room = places.lingering() < LINGERING;
        places.by_lane[place].lingers = has_room;
        has_room
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn lingering(&self) -> usize {
        self.by_lane.iter().filter(|place| place.lingers).count()
    }
}

impl Lane {
    /// Ready when there is something to read, the end included.
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
        self.yard.transport
    }

    /// Ready when the client has given the stream up.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Asked { respond, .. } => respond.poll_reset(cx).map(drop),
            State::Answering(outbound) if !outbound.is_done() => {
                outbound.stream().poll_reset(cx).map(drop)
            }
            _ => Poll::Pending,
        }
    }

    /// Tells the client that what it has is not a whole answer.
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

    /// Ready when there is a stream whose header may be read, or there will be none.
    fn poll_header(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_next(cx));
        match self.state {
            State::Asked { .. } => self.inbound.poll_ready(cx).map_err(broken),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Takes the next stream. What it asks for in a way that HTTP/1.1 cannot say is reset.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut places = self.yard.places();
            let is_left = places.by_lane[self.place].incoming.is_none() && memory::is_scarce();
            if places.closed || is_left {
                self.state = State::Closed;
                return Poll::Ready(());
            }
            let place = &mut places.by_lane[self.place];
            let Some((request, mut respond)) = place.incoming.take() else {
                match &mut place.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    none => {
                        *none = Some(cx.waker().clone());
                        places.parked.push(self.place);
                    }
                }
                return Poll::Pending;
            };
            drop(places);
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

    /// The stream has its answer. A request that the client still sends is refused.
    fn finish(&mut self) {
        self.inbound.clear();
        self.state = State::Idle;
    }

    /// Sends headers, of an interim answer or the final one. Returns the bytes that are done with.
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
        self.yard.count.answered();
        self.state = State::Answering(match ended {
            true => Outbound::finished(stream),
            false => Outbound::new(stream, parsed.framing),
        });
        Ok(if empty { text.len() } else { parsed.len })
    }
}

impl AsyncRead for Lane {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let lane = self.get_mut();
        ready!(lane.poll_read_ready(cx))?;
        match lane.state {
            State::Closed | State::Idle => Poll::Ready(Ok(())),
            _ => lane.inbound.poll_read(cx, room).map_err(broken),
        }
    }
}

impl AsyncWrite for Lane {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        text: &[u8],
    ) -> Poll<io::Result<usize>> {
        let lane = self.get_mut();
        let mut at = 0;
        while at < text.len() && matches!(lane.state, State::Asked { .. }) {
            at += lane.answer(&text[at..])?;
        }
        match &mut lane.state {
            State::Answering(_) if at == text.len() => Poll::Ready(Ok(at)),
            State::Answering(outbound) => outbound.poll_write_after(cx, text, at),
            _ if at > 0 => Poll::Ready(Ok(at)),
            _ => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The connection sends when it is polled next, for all its streams at once.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let lane = self.get_mut();
        let is_answered = match &lane.state {
            State::Answering(outbound) => outbound.is_done(),
            State::Lingering => return Poll::Ready(Ok(())),
            _ => false,
        };
        if is_answered && lane.yard.linger(lane.place) {
            lane.state = State::Lingering;
        } else {
            lane.inbound.clear();
            lane.state = State::Closed;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut places = self.yard.places();
        let place = std::mem::take(&mut places.by_lane[self.place]);
        if place.waker.is_some() {
            places.parked.retain(|&parked| parked != self.place);
        }
        places.free.push(self.place);
        drop(places);
        // One that came too late is reset as its parts are dropped.
        drop(place);
    }
}
