//! A stream of an HTTP/2 connection to a backend, as an HTTP/1.1 connection that carries one
//! request and its answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use http::{Method, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::h1::body::Framing;
use crate::http2::head::{read_request, write_response};
use crate::http2::inbound::{Inbound, broken};
use crate::http2::outbound::{Outbound, Piece, is_empty_body};
use crate::http2::upstream_connection::UpstreamConnection;

/// A stream that carries one request. If it is dropped before the answer is whole, it is reset.
#[derive(Debug)]
pub(crate) struct UpstreamStream {
    send: SendRequest<Piece>,
    connection: Arc<UpstreamConnection>,
    state: State,
    outbound: Option<Outbound>,
    inbound: Inbound,
}

#[derive(Debug)]
enum State {
    Idle,
    /// Until the answer's header.
    Asked {
        answer: ResponseFuture,
        is_head: bool,
    },
    Answering,
    Failed(Failed),
}

/// What a failed stream says about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    /// The backend did not process it: REFUSED_STREAM, a GOAWAY that leaves it out (RFC 9113 8.7), or it
    /// was never sent.
    Untouched,
    /// Likewise, and the backend ends its connection without an error.
    Left,
    Perhaps,
}

impl UpstreamStream {
    /// A stream of this connection, if there is room for one.
    pub(crate) fn open(connection: &Arc<UpstreamConnection>) -> Option<Self> {
        let (send, connection) = (connection.enter()?, Arc::clone(connection));
        let inbound = Inbound::of_backend(Arc::clone(&connection.frame_counts));
        let state = State::Idle;
        Some(UpstreamStream { send, connection, state, outbound: None, inbound })
    }

    /// Whether the request may be sent again, even if it is not idempotent.
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self.state, State::Failed(Failed::Untouched | Failed::Left))
    }

    /// Whether the backend ended its connection without an error.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.state, State::Failed(Failed::Left))
    }

    /// Ready when there is something to read, or the end.
    pub(crate) fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = match &mut self.state {
            State::Idle => return Poll::Pending,
            State::Failed(_) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            State::Asked { .. } => ready!(self.poll_answer(cx)),
            State::Answering => ready!(self.inbound.poll_ready(cx)),
        };
        Poll::Ready(ready.map_err(|error| self.fail(error)))
    }

    /// Waits for the next header, of an interim or the final answer.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        let State::Asked { answer, is_head } = &mut self.state else { return Poll::Ready(Ok(())) };
        if self.inbound.has_text() {
            return Poll::Ready(Ok(()));
        }
        if let Some(interim) = ready!(answer.poll_informational(cx)) {
            write_response(&interim?, true, true, self.inbound.text());
            return Poll::Ready(Ok(()));
        }
        let (head, body) = ready!(Pin::new(answer).poll(cx))?.into_parts();
        let silent = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
        let (bodiless, head) = (*is_head || silent, Response::from_parts(head, ()));
        let framing = write_response(&head, body.is_end_stream(), bodiless, self.inbound.text());
        self.inbound.begin(framing, body);
        self.state = State::Answering;
        Poll::Ready(Ok(()))
    }

    /// Sends the request's header. Returns the bytes of text that are used up.
    fn ask(&mut self, text: &[u8]) -> io::Result<usize> {
        let parsed = read_request(text, &self.connection.address)?;
        let is_head = parsed.head.method() == Method::HEAD;
        let chunked = parsed.framing == Framing::Chunked;
        let empty = chunked && is_empty_body(&text[parsed.len..]);
        let ended = empty || parsed.framing == Framing::Empty;
        let (answer, stream) = self.send.send_request(parsed.head, ended).map_err(broken)?;
        self.state = State::Asked { answer, is_head };
        self.outbound = (!ended).then(|| Outbound::new(stream, parsed.framing));
        Ok(if empty { text.len() } else { parsed.len })
    }

    fn fail(&mut self, error: h2::Error) -> io::Error {
        let failed = match error.reason() {
            _ if !error.is_remote() => Failed::Perhaps,
            Some(Reason::NO_ERROR) if error.is_go_away() => Failed::Left,
            _ if error.is_go_away() => Failed::Untouched,
            Some(Reason::REFUSED_STREAM) if error.is_reset() => Failed::Untouched,
            _ => Failed::Perhaps,
        };
        self.state = State::Failed(failed);
        broken(error)
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        ready!(stream.poll_read_ready(cx))?;
        stream.inbound.poll_read(cx, room).map_err(|error| stream.fail(error))
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        text: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        let mut at = 0;
        if matches!(stream.state, State::Idle) {
            at = stream
                .ask(text)
                .inspect_err(|_| stream.state = State::Failed(Failed::Untouched))?;
        }
        match &mut stream.outbound {
            Some(outbound) if at < text.len() => outbound.poll_write_after(cx, text, at),
            _ if at > 0 => Poll::Ready(Ok(at)),
            _ => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The connection sends for all its streams when it is polled next.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for UpstreamStream {
    fn drop(&mut self) {
        self.connection.leave();
    }
}
