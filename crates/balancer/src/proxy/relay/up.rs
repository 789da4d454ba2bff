//! The request on its way to the backend.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use crate::connection::failure::Failure;
use crate::connection::workspace::Workspace;
use crate::h1::body::{Decoder, Framing};
use crate::proxy::relay::state::{Body, Outcome, Relay, Upload};

/// HTTP/2 forbids some characters that HTTP/1.1 allows.
const NOT_SAYABLE_IN_HTTP2: Failure = Failure::Rejected {
    status: 400,
    flaw: "the request target or Host has characters that an HTTP/2 backend cannot be told; encode those of the target with %",
};

impl<'w> Relay<'_, 'w> {
    /// Ready with an outcome if the exchange cannot go on, otherwise when everything is sent.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Outcome<'w>>> {
        loop {
            let Some(connection) = self.connection.as_mut() else { return Poll::Ready(Ok(())) };
            match &mut self.upload {
                Upload::Done { .. } | Upload::Failed { .. } => return Poll::Ready(Ok(())),
                Upload::Head { sent, body } => {
                    let unsent = &self.space.request[*sent..];
                    match ready!(Pin::new(connection.stream()).poll_write(cx, unsent)) {
                        Ok(count) => {
                            *sent += count;
                            self.moved.to_backend += count as u64;
                            if count == unsent.len() {
                                self.upload = Upload::after_head(*body);
                            }
                        }
                        // Every backend would refuse it, so it is no fault of this one.
                        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                            return Poll::Ready(Err(self.refuse(NOT_SAYABLE_IN_HTTP2)));
                        }
                        Err(_) => self.upload = Upload::Failed { body_taken: false },
                    }
                }
                Upload::Body(body) => {
                    let (stream, sent) = (connection.stream(), &mut self.moved.to_backend);
                    if ready!(self.space.to_backend.poll_flush(
                        cx,
                        stream,
                        self.space.input.block(),
                        sent
                    ))
                    .is_err()
                    {
                        self.upload = Upload::Failed { body_taken: body.taken };
                        continue;
                    }
                    self.space.input.consume(std::mem::take(&mut body.used));
                    if body.end {
                        self.upload = Upload::Done { body_taken: body.taken };
                        continue;
                    }
                    if self.space.input.is_empty() {
                        match ready!(self.space.input.poll_fill(cx, &mut self.client.stream)) {
                            Ok(count) if count > 0 => self.moved.from_client += count as u64,
                            _ => return Poll::Ready(Err(Outcome::ClientGone)),
                        }
                    }
                    let limit = self.worker.shared.config.limits.body_bytes;
                    if let Err(failure) = body.take(self.space, limit) {
                        return Poll::Ready(Err(self.refuse(failure)));
                    }
                }
            }
        }
    }
}

impl Upload {
    fn after_head(framing: Framing) -> Self {
        match framing {
            Framing::Empty => Upload::Done { body_taken: false },
            framing => Upload::Body(Body {
                framing,
                decoder: Decoder::new(framing),
                content: 0,
                used: 0,
                taken: false,
                end: false,
            }),
        }
    }

    /// Whether nothing more can be sent before the client sends more.
    pub(crate) fn waits_for_client(&self, space: &Workspace) -> bool {
        matches!(self, Upload::Body(_)) && space.to_backend.is_empty()
    }

    /// Whether nothing more is read before the backend takes more.
    pub(crate) fn waits_for_backend(&self, space: &Workspace) -> bool {
        matches!(self, Upload::Body(_)) && !space.to_backend.is_empty()
    }

    /// Whether bytes of the body have left the input. The request cannot be sent again then.
    pub(crate) fn has_taken_body(&self) -> bool {
        match self {
            Upload::Head { .. } => false,
            Upload::Body(body) => body.taken,
            Upload::Done { body_taken } | Upload::Failed { body_taken } => *body_taken,
        }
    }
}

impl Body {
    /// Puts the arrived part of the body on its way.
    fn take(&mut self, space: &mut Workspace, limit: u64) -> Result<(), Failure> {
        let start = space.input.start();
        let decoded =
            self.decoder.decode(space.input.filled_mut()).map_err(Failure::BodyMalformed)?;
        self.content += decoded.content as u64;
        if self.content > limit {
            return Err(Failure::BodyTooLarge(limit));
        }
        let trailers = decoded.end.then(|| self.decoder.trailers());
        let content = start..start + decoded.content;
        space.to_backend.add(self.framing, space.input.block(), content, trailers);
        (self.used, self.taken, self.end) = (decoded.consumed, true, decoded.end);
        Ok(())
    }
}
