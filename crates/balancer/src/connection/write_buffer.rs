//! Bytes on their way to a socket: a head, a range of a buffer and a tail. Small pieces are copied
//! together, and large ones are sent from where they are, in one system call.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use crate::h1::body::Framing;

/// Below this size, a copy costs less than one more vector element.
const MAX_COPIED_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    /// Sent first. Headers are written here.
    pub(crate) lead: Vec<u8>,
    lead_sent: usize,
    /// A range of the block that is passed to [`WriteBuffer::poll_flush`].
    data: Range<usize>,
    tail: Vec<u8>,
    tail_sent: usize,
    /// The stream may still hold bytes that it took, as TLS does while the socket is full.
    held: bool,
}

impl WriteBuffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.is_taken() && !self.held
    }

    /// Bytes that are not sent yet.
    pub(crate) fn len(&self) -> usize {
        self.lead.len() - self.lead_sent + self.data.len() + self.tail.len() - self.tail_sent
    }

    pub(crate) fn clear(&mut self) {
        self.lead.clear();
        self.tail.clear();
        (self.lead_sent, self.tail_sent, self.data) = (0, 0, 0..0);
        self.held = false;
    }

    /// Adds content of a body, framed for the receiver. `end` has the trailers if the body is now
    /// complete.
    pub(crate) fn add(
        &mut self,
        framing: Framing,
        block: &[u8],
        content: Range<usize>,
        end: Option<&[u8]>,
    ) {
        debug_assert!(self.data.is_empty() && self.tail.is_empty());
        let chunked = framing == Framing::Chunked;
        let some = !content.is_empty();
        if chunked && some {
            write_chunk_size(&mut self.lead, content.len());
        }
        let after = if content.len() <= MAX_COPIED_BYTES {
            self.lead.extend_from_slice(&block[content]);
            &mut self.lead
        } else {
            self.data = content;
            &mut self.tail
        };
        if chunked && some {
            after.extend_from_slice(b"\r\n");
        }
        if let (true, Some(trailers)) = (chunked, end) {
            after.extend_from_slice(b"0\r\n");
            after.extend_from_slice(trailers);
            after.extend_from_slice(b"\r\n");
        }
    }

    /// Sends until everything is sent. `sent` counts the bytes, even if the stream is not ready for
    /// more.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncWrite + Unpin),
        block: &[u8],
        sent: &mut u64,
    ) -> Poll<io::Result<()>> {
        while !self.is_taken() {
            let (lead, stream) = (&self.lead[self.lead_sent..], Pin::new(&mut *stream));
            let count = if self.data.is_empty() && self.tail.is_empty() {
                ready!(stream.poll_write(cx, lead))?
            } else {
                let data = &block[self.data.clone()];
                let parts = [lead, data, &self.tail[self.tail_sent..]].map(IoSlice::new);
                ready!(stream.poll_write_vectored(cx, &parts))?
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *sent += count as u64;
            self.advance(count);
            self.held = true;
        }
        if self.held {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.held = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Moves the content that is not sent yet out of `block` and to the start of `to`, which is passed to
    /// [`WriteBuffer::poll_flush`] from now on. What goes beyond `most` bytes is not sent but returned,
    /// if the framing allows that.
    pub(crate) fn move_content<'b>(
        &mut self,
        block: &'b [u8],
        to: &mut Vec<u8>,
        most: usize,
    ) -> &'b [u8] {
        let content = &block[self.data.clone()];
        let kept = if self.tail.is_empty() { content.len().min(most) } else { content.len() };
        let (kept, rest) = content.split_at(kept);
        to.extend_from_slice(kept);
        self.data = 0..kept.len();
        rest
    }

    /// Whether the stream has taken everything.
    fn is_taken(&self) -> bool {
        self.lead.is_empty() && self.data.is_empty() && self.tail.is_empty()
    }

    fn advance(&mut self, mut count: usize) {
        let lead = count.min(self.lead.len() - self.lead_sent);
        self.lead_sent += lead;
        count -= lead;
        let data = count.min(self.data.len());
        self.data.start += data;
        self.tail_sent += count - data;
        if self.lead_sent == self.lead.len()
            && self.data.is_empty()
            && self.tail_sent == self.tail.len()
        {
            self.clear();
        }
    }
}

/// Writes the size line of a chunk.
pub(crate) fn write_chunk_size(out: &mut Vec<u8>, size: usize) {
    write_hexadecimal(out, size);
    out.extend_from_slice(b"\r\n");
}

fn write_hexadecimal(out: &mut Vec<u8>, number: usize) {
    let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
    out.extend((0..digits).rev().map(|place| b"0123456789abcdef"[number >> (4 * place) & 15]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_hexadecimal() {
        let text = |number| {
            let mut out = Vec::new();
            write_hexadecimal(&mut out, number);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([0, 9, 16, 255, 65536].map(text), ["0", "9", "10", "ff", "10000"]);
    }
}
