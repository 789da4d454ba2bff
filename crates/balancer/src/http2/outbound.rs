//! HTTP/1.1 text from the relay, as what an HTTP/2 stream sends.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::SendStream;

use crate::h1::body::Framing;
use crate::http2::head::read_trailers;
use crate::http2::inbound::broken;
use crate::net::memory::HeldBytes;

/// Content that the library holds until it is sent.
#[derive(Debug)]
pub(crate) struct Piece {
    content: Bytes,
    _held: HeldBytes,
}

/// The body of a message that is sent. The relay frames it and writes whole pieces. Only content may be
/// cut anywhere.
#[derive(Debug)]
pub(crate) struct Outbound {
    stream: SendStream<Piece>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Bytes left.
    Length(u64),
    Size,
    /// Bytes left of a chunk.
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Done,
}

/// The end of a chunk and of the body, without trailers.
const LAST: &[u8] = b"\r\n0\r\n\r\n";

/// Whether `text` has a whole chunked body that is empty, including its trailers.
pub(crate) fn is_empty_body(text: &[u8]) -> bool {
    text == &LAST[2..]
}

impl Piece {
    fn copy(content: &[u8]) -> Self {
        Piece { content: Bytes::copy_from_slice(content), _held: HeldBytes::new(content.len()) }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.content.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.content.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.content.advance(count);
    }
}

impl Outbound {
    pub(crate) fn new(stream: SendStream<Piece>, framing: Framing) -> Self {
        let state = match framing {
            Framing::Empty => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked | Framing::UntilClose => State::Size,
        };
        Outbound { stream, state }
    }

    /// A body that needs nothing more.
    pub(crate) fn finished(stream: SendStream<Piece>) -> Self {
        Outbound { stream, state: State::Done }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub(crate) fn stream(&mut self) -> &mut SendStream<Piece> {
        &mut self.stream
    }

    /// Sends what the receiver has room for. Returns the bytes of text that are used up.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        text: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut at = 0;
        while at < text.len() {
            match self.poll_step(cx, &text[at..]) {
                Poll::Ready(Ok(count)) => at += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if at > 0 => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(at))
    }

    /// Like `poll_write`, for text of which `at` bytes are already used up. They are counted in any
    /// case.
    pub(crate) fn poll_write_after(
        &mut self,
        cx: &mut Context<'_>,
        text: &[u8],
        at: usize,
    ) -> Poll<io::Result<usize>> {
        match self.poll_write(cx, &text[at..]) {
            Poll::Ready(Ok(count)) => Poll::Ready(Ok(at + count)),
            Poll::Pending if at > 0 => Poll::Ready(Ok(at)),
            other => other,
        }
    }

    fn poll_step(&mut self, cx: &mut Context<'_>, text: &[u8]) -> Poll<io::Result<usize>> {
        match self.state {
            State::Length(left) => {
                let content = &text[..text.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
                let room = ready!(self.poll_room(cx, content.len()))?;
                let left = left - room as u64;
                self.state = if left == 0 { State::Done } else { State::Length(left) };
                self.send(&content[..room], left == 0)?;
                Poll::Ready(Ok(room))
            }
            State::Chunk(left) => {
                let (content, after) =
                    text.split_at(text.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
                let room = ready!(self.poll_room(cx, content.len()))?;
                let left = left - room as u64;
                let last = left == 0 && after == LAST;
                self.send(&content[..room], last)?;
                self.state = match left {
                    0 if last => State::Done,
                    0 => State::ChunkEnd,
                    left => State::Chunk(left),
                };
                Poll::Ready(Ok(if last { room + LAST.len() } else { room }))
            }
            State::Size => {
                let (size, count) = read_size(text)?;
                self.state = if size == 0 { State::Trailers } else { State::Chunk(size) };
                Poll::Ready(Ok(count))
            }
            State::ChunkEnd if text.starts_with(b"\r\n") => {
                self.state = State::Size;
                Poll::Ready(Ok(2))
            }
            State::Trailers => {
                let (trailers, count) = read_trailers(text)?;
                self.state = State::Done;
                if trailers.is_empty() {
                    self.send(&[], true)?;
                } else {
                    self.stream.send_trailers(trailers).map_err(broken)?;
                }
                Poll::Ready(Ok(count))
            }
            State::ChunkEnd | State::Done => Poll::Ready(Err(misframed())),
        }
    }

    /// How much of `wanted` may be sent now, at least 1.
    fn poll_room(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<io::Result<usize>> {
        self.stream.reserve_capacity(wanted);
        loop {
            match self.stream.capacity().min(wanted) {
                0 => match ready!(self.stream.poll_capacity(cx)) {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                    None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                },
                room => return Poll::Ready(Ok(room)),
            }
        }
    }

    fn send(&mut self, content: &[u8], end: bool) -> io::Result<()> {
        self.stream.send_data(Piece::copy(content), end).map_err(broken)
    }
}

/// The size of a chunk, and the bytes of its line.
fn read_size(text: &[u8]) -> io::Result<(u64, usize)> {
    match httparse::parse_chunk_size(text) {
        Ok(httparse::Status::Complete((count, size))) => Ok((size, count)),
        _ => Err(misframed()),
    }
}

fn misframed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the relay wrote a body that is not framed")
}
