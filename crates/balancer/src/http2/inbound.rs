//! What an HTTP/2 stream receives, as HTTP/1.1 text.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream};
use tokio::io::ReadBuf;

use crate::h1::body::Framing;
use crate::http2::STREAM_BYTES;
use crate::http2::flood::FrameCounts;
use crate::http2::head::write_trailers;
use crate::net::memory::HeldBytes;

/// An arriving message: headers and framing as text, then content.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// Headers, chunk sizes and trailers that wait to be read. The memory is kept between messages.
    text: Vec<u8>,
    read: usize,
    /// Content that waits to be read, after the text.
    data: Bytes,
    body: Option<RecvStream>,
    framing: Option<Framing>,
    /// Knows the malformed trailers of a backend's streams.
    backend: Option<Arc<FrameCounts>>,
    /// The memory for what the sender may send unasked.
    held: HeldBytes,
}

impl Inbound {
    /// The answers of a backend.
    pub(crate) fn of_backend(frame_counts: Arc<FrameCounts>) -> Self {
        Inbound { backend: Some(frame_counts), ..Inbound::default() }
    }

    /// Where the next header is written.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        if self.read == self.text.len() {
            self.text.clear();
            self.read = 0;
        }
        &mut self.text
    }

    /// Begins the body of the last header.
    pub(crate) fn begin(&mut self, framing: Framing, body: RecvStream) {
        (self.framing, self.body) = (Some(framing), Some(body));
        if framing == Framing::Chunked && self.has_ended() {
            self.end(None);
        } else if framing == Framing::Empty {
            self.body = None;
        } else {
            self.held.set(STREAM_BYTES as usize);
        }
    }

    /// Begins an empty body that has not ended, as the last header announced. Nothing is read before its
    /// end, because content would make the message malformed (RFC 9113 8.1.1).
    pub(crate) fn begin_held(&mut self, body: RecvStream) {
        (self.framing, self.body) = (Some(Framing::Empty), Some(body));
        self.held.set(STREAM_BYTES as usize);
    }

    fn is_held(&self) -> bool {
        self.framing == Some(Framing::Empty) && self.body.is_some()
    }

    /// Forgets the message and refuses its rest.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.read = 0;
        (self.data, self.body, self.framing) = (Bytes::new(), None, None);
        self.held.set(0);
    }

    /// Whether a header waits to be read.
    pub(crate) fn has_text(&self) -> bool {
        self.read < self.text.len()
    }

    /// Ready when there is something to read, or the end.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        while self.is_held() || !self.has_text() && self.data.is_empty() && self.body.is_some() {
            ready!(self.poll_body(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what there is. Nothing means the end of the message.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), h2::Error>> {
        let before = room.filled().len();
        loop {
            self.copy(room)?;
            let read = room.filled().len() > before;
            if self.body.is_none() || room.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match self.poll_body(cx) {
                Poll::Ready(received) => received?,
                Poll::Pending if read => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Receives the next piece of the body.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        match ready!(body.poll_data(cx)) {
            // An empty chunk would end the body.
            Some(data) if data.as_ref().is_ok_and(Bytes::is_empty) => {}
            Some(data) => {
                self.data = data?;
                if self.framing == Some(Framing::Chunked) {
                    let size = self.data.len();
                    let written = write!(self.text(), "{size:x}\r\n");
                    debug_assert!(written.is_ok(), "writing to memory succeeds");
                }
            }
            None => {
                let trailers = ready!(body.poll_trailers(cx))?;
                let stream = body.stream_id().as_u32();
                if trailers.is_some()
                    && self.backend.as_ref().is_some_and(|backend| backend.has_pseudo_end(stream))
                {
                    return Poll::Ready(Err(Reason::PROTOCOL_ERROR.into()));
                }
                self.end(trailers.as_ref());
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, trailers: Option<&http::HeaderMap>) {
        self.body = None;
        self.held.set(0);
        // HTTP/1.1 has no place for trailers after a body with a length.
        if self.framing == Some(Framing::Chunked) {
            let text = self.text();
            text.extend_from_slice(b"0\r\n");
            if let Some(trailers) = trailers {
                write_trailers(trailers, text);
            }
            text.extend_from_slice(b"\r\n");
        }
    }

    /// Moves available content to `room`. The sender may send as much again.
    fn copy(&mut self, room: &mut ReadBuf<'_>) -> Result<(), h2::Error> {
        let text = &self.text[self.read..];
        let count = text.len().min(room.remaining());
        room.put_slice(&text[..count]);
        self.read += count;
        let count = self.data.len().min(room.remaining());
        if count == 0 {
            return Ok(());
        }
        room.put_slice(&self.data[..count]);
        self.data.advance(count);
        if self.data.is_empty() {
            // The piece would keep the whole block alive that the connection read.
            self.data = Bytes::new();
        }
        if self.data.is_empty() && self.framing == Some(Framing::Chunked) {
            self.text().extend_from_slice(b"\r\n");
        }
        if let Some(body) = &mut self.body {
            body.flow_control().release_capacity(count)?;
            if self.data.is_empty() && self.has_ended() {
                self.end(None);
            }
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.body.as_ref().is_some_and(RecvStream::is_end_stream)
    }
}

/// The I/O error for an HTTP/2 error.
pub(crate) fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        error.into_io().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into())
    } else {
        io::Error::new(io::ErrorKind::ConnectionReset, error)
    }
}
