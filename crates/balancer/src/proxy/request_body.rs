//! The part of a request body that is read before a slot is asked for: all of it, or as much as a buffer
//! holds. A slow client then delays only itself.

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Instant;

use crate::connection::client::Client;
use crate::connection::failure::Failure;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::connection::write_buffer::write_chunk_size;
use crate::h1::Flaw;
use crate::h1::body::{Decoder, Framing};
use crate::net::min_rate::MinRate;

/// Why a body did not arrive.
pub(crate) enum BodyError {
    Failed(Failure),
    ClientGone,
}

/// Finds the end of a body, and keeps a small one.
enum BodyReader {
    Length(u64),
    Chunked {
        decoder: Decoder,
        /// Bytes of the input that the decoder has taken.
        seen: usize,
        /// Whether the content so far is behind the request's header.
        kept: bool,
    },
}

/// A body up to this size is sent along with its header and can be sent again. Copying more would cost
/// more than a system call.
const MAX_RESENDABLE_BODY_BYTES: usize = 16 * 1024;

/// Reads until the input has the whole body or is full. Puts a small body behind the header. Returns
/// what is yet to be sent of it.
pub(crate) async fn gather(
    client: &mut Client,
    space: &mut Workspace,
    body: Framing,
    worker: &Worker,
) -> Result<Framing, BodyError> {
    let timeouts = &worker.shared.config.timeouts;
    let rate = worker.shared.config.limits.client_rate;
    let mut min_rate = MinRate::new(timeouts.body, timeouts.body, rate);
    let most = worker.shared.config.limits.body_bytes;
    let mut reader = BodyReader::new(body);
    let (mut silence, mut moved, mut acknowledged) = (None, 0, false);
    poll_fn(|cx| {
        loop {
            match reader.has_whole(space) {
                Err(flaw) => {
                    return Poll::Ready(Err(BodyError::Failed(Failure::BodyMalformed(flaw))));
                }
                Ok(true) => return Poll::Ready(Ok(reader.attach(space, body, most))),
                Ok(false) if space.input.is_full() => {
                    space.request.truncate(space.head);
                    return Poll::Ready(Ok(body));
                }
                Ok(false) => {}
            }
            match space.input.poll_fill(cx, &mut client.stream) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    (silence, moved) = (None, moved + count as u64);
                }
                Poll::Ready(_) => return Poll::Ready(Err(BodyError::ClientGone)),
                Poll::Pending => break,
            }
        }
        if !std::mem::replace(&mut acknowledged, true) {
            client.stream.acknowledge();
        }
        if let Some(end) = worker.cut_off()
            && client.timer.poll(cx, end).is_ready()
        {
            return Poll::Ready(Err(BodyError::ClientGone));
        }
        let silence = *silence.get_or_insert_with(|| Instant::now() + timeouts.body);
        let limit = client.upload.map_or(silence, |upload| upload.min(silence));
        let failure = match min_rate.deadline(true, moved) {
            Some(slow) if slow < limit => {
                ready!(client.timer.poll(cx, slow));
                Failure::BodyTooSlow(rate)
            }
            _ => {
                ready!(client.timer.poll(cx, limit));
                match limit < silence {
                    true => Failure::UploadTimeout(timeouts.upload),
                    false => Failure::BodyTimeout(timeouts.body),
                }
            }
        };
        Poll::Ready(Err(BodyError::Failed(failure)))
    })
    .await
}

/// Puts a small body that has arrived whole behind its header. Returns what is yet to be sent of it.
pub(crate) fn attach(space: &mut Workspace, body: Framing) -> Framing {
    match body {
        Framing::Length(length)
            if length <= MAX_RESENDABLE_BODY_BYTES.min(space.input.len()) as u64 =>
        {
            let length = length as usize;
            space.request.extend_from_slice(&space.input.filled()[..length]);
            space.input.consume(length);
            Framing::Empty
        }
        body => body,
    }
}

impl BodyReader {
    fn new(body: Framing) -> Self {
        match body {
            Framing::Length(length) => BodyReader::Length(length),
            body => BodyReader::Chunked { decoder: Decoder::new(body), seen: 0, kept: true },
        }
    }

    fn has_whole(&mut self, space: &mut Workspace) -> Result<bool, Flaw> {
        let Workspace { input, request, head, .. } = space;
        match self {
            BodyReader::Length(length) => Ok(input.len() as u64 >= *length),
            BodyReader::Chunked { decoder, seen, kept } => {
                let (fresh, before) = (&input.filled()[*seen..], request.len());
                *kept &= before - *head + fresh.len() <= MAX_RESENDABLE_BODY_BYTES;
                let decoded = if *kept {
                    request.extend_from_slice(fresh);
                    let decoded = decoder.decode(&mut request[before..])?;
                    request.truncate(before + decoded.content);
                    decoded
                } else {
                    // The relay decodes in place, once the request can no longer be sent again.
                    request.truncate(*head);
                    decoder.decode(&mut fresh.to_vec())?
                };
                *seen += decoded.consumed;
                Ok(decoded.end)
            }
        }
    }

    /// Call it once the body is whole. A body beyond `most` bytes is left for the relay to refuse.
    fn attach(&self, space: &mut Workspace, body: Framing, most: u64) -> Framing {
        let content = space.request.len() - space.head;
        match self {
            BodyReader::Length(_) => attach(space, body),
            BodyReader::Chunked { decoder, seen, kept: true } if content as u64 <= most => {
                let request = &mut space.request;
                if content > 0 {
                    write_chunk_size(request, content);
                    request[space.head..].rotate_left(content);
                    request.extend_from_slice(b"\r\n");
                }
                request.extend_from_slice(b"0\r\n");
                request.extend_from_slice(decoder.trailers());
                request.extend_from_slice(b"\r\n");
                space.input.consume(*seen);
                Framing::Empty
            }
            BodyReader::Chunked { .. } => {
                space.request.truncate(space.head);
                body
            }
        }
    }
}
