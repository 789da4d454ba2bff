//! One connection of HTTP/2 without I/O: bytes in, bytes out, and what became of its streams.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};

use super::byte_pipe::BytePipe;
use super::message::Message;
use crate::clock::time::Nanos;
use crate::error::kind::ErrorKind;

/// The flow control window. Everything is read at once, so that a large window only saves updates.
const WINDOW: u32 = 1 << 30;
/// The largest head of an answer, as in HTTP/1.1.
const MAX_HEAD: u32 = 32 * 1024;
/// The largest body. An endless answer ends here, if not at its timeout.
const MAX_BODY: u64 = 1 << 30;

#[derive(Debug)]
pub(crate) struct Http2Connection {
    sender: SendRequest<Bytes>,
    connection: Connection<BytePipe, Bytes>,
    pipe: BytePipe,
    places: Vec<Place>,
    woken: Arc<Woken>,
    live: usize,
    capacity: Capacity,
    /// Answers that it has carried.
    pub(crate) answers: u64,
    /// When bytes arrived last.
    pub(crate) heard: Nanos,
}

/// Whether new streams may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capacity {
    Open,
    /// The server allows no further stream at a time.
    Full,
    /// No more streams: the server is about to close the connection, or is silent.
    Shut,
}

/// What has become of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEvent {
    /// The head of its answer has arrived.
    Head,
    /// This many bytes of its answer's body have arrived.
    Body(u64),
    Answered {
        status: u16,
    },
    Failed(ErrorKind),
    /// The server says that it has not processed it. It may be sent again.
    Unprocessed,
}

/// Whether the connection can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    GoesOn,
    Over,
}

/// A place for one stream after the other.
#[derive(Debug)]
struct Place {
    stream: Stream,
    waker: Waker,
}

#[derive(Debug)]
enum Stream {
    None,
    /// The request is out, or on its way.
    Asked(ResponseFuture),
    Answering {
        status: u16,
        body: RecvStream,
        read: u64,
    },
}

/// The places whose streams have events.
#[derive(Debug, Default)]
struct Woken(Mutex<Vec<u32>>);

/// Adds its place to the woken ones.
#[derive(Debug)]
struct Bell {
    place: u32,
    woken: Arc<Woken>,
}

impl Http2Connection {
    /// Begins the protocol on a connection that has just been opened.
    pub(crate) fn begin(streams: u32, now: Nanos) -> Option<Http2Connection> {
        let pipe = BytePipe::default();
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            // Until the server has said how many it allows, it might refuse more.
            .initial_max_send_streams(1)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(MAX_HEAD);
        let mut context = Context::from_waker(Waker::noop());
        // The handshake only writes, and the pipe always has room.
        let shaken = pin!(builder.handshake(pipe.clone())).poll(&mut context);
        let Poll::Ready(Ok((sender, connection))) = shaken else {
            return None;
        };
        let woken = Arc::new(Woken::default());
        let places = (0..streams).map(|place| Place::new(place, &woken)).collect();
        Some(Http2Connection {
            sender,
            connection,
            pipe,
            places,
            woken,
            live: 0,
            capacity: Capacity::Open,
            answers: 0,
            heard: now,
        })
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn is_live(&self, place: u32) -> bool {
        !matches!(self.places[place as usize].stream, Stream::None)
    }

    /// Takes no more streams. Those under way may end.
    pub(crate) fn shut(&mut self) {
        self.capacity = Capacity::Shut;
    }

    pub(crate) fn capacity(&mut self) -> Capacity {
        if self.capacity == Capacity::Shut {
            return Capacity::Shut;
        }
        if self.live >= self.sender.current_max_send_streams() {
            return Capacity::Full;
        }
        match self.sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Capacity::Open,
            Poll::Pending => Capacity::Full,
            Poll::Ready(Err(_)) => {
                self.shut();
                Capacity::Shut
            }
        }
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.capacity == Capacity::Shut
    }

    /// Sends a request. Its bytes go out after [`Http2Connection::advance`].
    pub(crate) fn send(&mut self, place: u32, message: &Message) -> Result<(), StreamEvent> {
        let ends = message.body.is_empty();
        let sent = self.sender.send_request(message.head.clone(), ends);
        let (answer, mut body) = sent.map_err(|error| self.refused(&error))?;
        if !ends {
            let sent = body.send_data(message.body.clone(), true);
            sent.map_err(|error| self.refused(&error))?;
        }
        self.places[place as usize].stream = Stream::Asked(answer);
        self.live += 1;
        self.woken.push(place);
        Ok(())
    }

    /// Resets a stream.
    pub(crate) fn abandon(&mut self, place: u32) {
        let stream = &mut self.places[place as usize].stream;
        if !matches!(std::mem::replace(stream, Stream::None), Stream::None) {
            self.live -= 1;
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], now: Nanos) {
        self.heard = now;
        self.pipe.feed(bytes);
    }

    /// Reads what has been fed, and makes ready what is to go out.
    pub(crate) fn advance(&mut self) -> Liveness {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.connection).poll(&mut context) {
            Poll::Pending => Liveness::GoesOn,
            Poll::Ready(_) => Liveness::Over,
        }
    }

    pub(crate) fn has_output(&self) -> bool {
        self.pipe.has_output()
    }

    pub(crate) fn swap_output(&mut self, empty: &mut Vec<u8>) {
        self.pipe.swap_output(empty);
    }

    /// The next event, and its place.
    pub(crate) fn event(&mut self) -> Option<(u32, StreamEvent)> {
        while let Some(place) = self.woken.pop() {
            let Some(event) = self.places[place as usize].poll() else {
                continue;
            };
            if event.is_last() {
                self.abandon(place);
            } else {
                self.woken.push(place);
            }
            self.answers += u64::from(matches!(event, StreamEvent::Answered { .. }));
            return Some((place, self.judged(event)));
        }
        None
    }

    /// A stream could not begin, because the connection is used up or broken.
    fn refused(&mut self, error: &h2::Error) -> StreamEvent {
        self.shut();
        match error.is_remote() {
            true => self.judged(StreamEvent::of(error)),
            false => self.judged(StreamEvent::Unprocessed),
        }
    }

    /// A server that accepts connections only to close them must not be tried for ever.
    fn judged(&self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::Unprocessed if self.answers == 0 => StreamEvent::Failed(ErrorKind::GoAway),
            event => event,
        }
    }

    /// What the server said before it closed the connection, if anything.
    pub(crate) fn closing_event(&mut self) -> Option<StreamEvent> {
        match self.sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) if error.is_remote() => Some(StreamEvent::of(&error)),
            _ => None,
        }
    }

    /// The places whose streams have not ended.
    pub(crate) fn live_places(&self) -> impl Iterator<Item = u32> {
        (0..self.places.len() as u32).filter(|place| self.is_live(*place))
    }
}

impl Place {
    fn new(place: u32, woken: &Arc<Woken>) -> Place {
        let bell = Bell { place, woken: Arc::clone(woken) };
        Place { stream: Stream::None, waker: Waker::from(Arc::new(bell)) }
    }

    /// The next event; `None` if there is none until the waker is called.
    fn poll(&mut self) -> Option<StreamEvent> {
        let mut context = Context::from_waker(&self.waker);
        match &mut self.stream {
            Stream::None => None,
            Stream::Asked(answer) => match Pin::new(answer).poll(&mut context) {
                Poll::Pending => None,
                Poll::Ready(Err(error)) => Some(StreamEvent::of(&error)),
                Poll::Ready(Ok(answer)) => {
                    let status = answer.status().as_u16();
                    let body = answer.into_body();
                    self.stream = Stream::Answering { status, body, read: 0 };
                    Some(StreamEvent::Head)
                }
            },
            Stream::Answering { status, body, read } => {
                if body.is_end_stream() {
                    return Some(StreamEvent::Answered { status: *status });
                }
                match body.poll_data(&mut context) {
                    Poll::Pending => None,
                    Poll::Ready(Some(Err(error))) => Some(StreamEvent::of(&error)),
                    Poll::Ready(Some(Ok(data))) => {
                        *read += data.len() as u64;
                        if *read > MAX_BODY {
                            return Some(StreamEvent::Failed(ErrorKind::TooLarge));
                        }
                        // It fails for a stream that has ended, whose window no longer matters.
                        let _ = body.flow_control().release_capacity(data.len());
                        Some(StreamEvent::Body(data.len() as u64))
                    }
                    Poll::Ready(None) => match body.poll_trailers(&mut context) {
                        Poll::Pending => None,
                        Poll::Ready(Ok(_)) => Some(StreamEvent::Answered { status: *status }),
                        Poll::Ready(Err(error)) => Some(StreamEvent::of(&error)),
                    },
                }
            }
        }
    }
}

impl StreamEvent {
    fn of(error: &h2::Error) -> StreamEvent {
        let reason = error.reason().unwrap_or(Reason::PROTOCOL_ERROR);
        let kind = match (error.is_remote(), error.is_go_away(), error.is_reset()) {
            (true, true, _) if reason == Reason::NO_ERROR => return StreamEvent::Unprocessed,
            (true, true, _) => ErrorKind::GoAway,
            (true, _, true) if reason == Reason::REFUSED_STREAM => ErrorKind::RefusedStream,
            (true, _, true) => ErrorKind::StreamReset,
            // The server violated the protocol.
            _ => ErrorKind::Malformed,
        };
        StreamEvent::Failed(kind)
    }

    fn is_last(self) -> bool {
        !matches!(self, StreamEvent::Head | StreamEvent::Body(_))
    }
}

impl Woken {
    fn push(&self, place: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(place);
    }

    fn pop(&self) -> Option<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.push(self.place);
    }
}
