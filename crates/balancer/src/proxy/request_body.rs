//! The part of a request body that is read before a slot is asked for: all of it, or as much as a buffer
//! holds. A slow client then delays only itself.

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Instant;

use crate::connection::buffer::Buffer;
use crate::connection::client::Client;
use crate::connection::failure::Failure;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::connection::write_buffer::write_chunk_size;
use crate::h1::Flaw;
use crate::h1::body::Framing;
use crate::h1::chunked::Chunked;
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
        chunked: Chunked,
        /// Bytes of the input that were looked at, and those of them that are content.
        seen: usize,
        content: usize,
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
            match reader.has_whole(&space.input) {
                Err(flaw) => {
                    return Poll::Ready(Err(BodyError::Failed(Failure::BodyMalformed(flaw))));
                }
                Ok(true) => return Poll::Ready(Ok(reader.attach(space, body, most))),
                Ok(false) if space.input.is_full() => return Poll::Ready(Ok(body)),
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
            _ => BodyReader::Chunked { chunked: Chunked::default(), seen: 0, content: 0 },
        }
    }

    /// Leaves the input as it is: the relay decodes a body that is not small. A copy of what has come so far
    /// would double what an open upload holds.
    fn has_whole(&mut self, input: &Buffer) -> Result<bool, Flaw> {
        match self {
            BodyReader::Length(length) => Ok(input.len() as u64 >= *length),
            BodyReader::Chunked { chunked, seen, content } => loop {
                match chunked.next_content(input.filled(), seen)? {
                    piece if piece.is_empty() => return Ok(chunked.has_ended()),
                    piece => *content += piece.len(),
                }
            },
        }
    }

    /// Call it once the body is whole. A body beyond `most` bytes is left for the relay to refuse.
    fn attach(&self, space: &mut Workspace, body: Framing, most: u64) -> Framing {
        let (chunked, seen, content) = match self {
            BodyReader::Length(_) => return attach(space, body),
            BodyReader::Chunked { chunked, seen, content } => (chunked, *seen, *content),
        };
        if content > MAX_RESENDABLE_BODY_BYTES || content as u64 > most {
            return body;
        }
        let Workspace { request, input, .. } = space;
        if content > 0 {
            write_chunk_size(request, content);
            let (mut again, mut at) = (Chunked::default(), 0);
            while let Ok(piece) = again.next_content(input.filled(), &mut at)
                && !piece.is_empty()
            {
                request.extend_from_slice(&input.filled()[piece]);
            }
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"0\r\n");
        request.extend_from_slice(chunked.trailers());
        request.extend_from_slice(b"\r\n");
        input.consume(seen);
        Framing::Empty
    }
}
