//! The bytes between the h2 crate and the driver that owns the socket.
//!
//! The library reads and writes as if on a socket, but its bytes are in memory. So it runs without a runtime, on
//! every driver, and in tests without a socket.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Both ends of one connection's bytes. Clones are the same pipe.
#[derive(Debug, Clone, Default)]
pub(crate) struct BytePipe {
    buffers: Rc<RefCell<Buffers>>,
}

#[derive(Debug, Default)]
struct Buffers {
    /// Bytes that have arrived, and how many of them the library has taken.
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
}

impl BytePipe {
    /// These bytes have arrived.
    pub(crate) fn feed(&self, bytes: &[u8]) {
        self.buffers.borrow_mut().input.extend_from_slice(bytes);
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.buffers.borrow().output.is_empty()
    }

    /// Exchanges the outgoing bytes for an empty buffer.
    pub(crate) fn swap_output(&self, empty: &mut Vec<u8>) {
        std::mem::swap(&mut self.buffers.borrow_mut().output, empty);
    }
}

impl AsyncRead for BytePipe {
    /// Nobody has to be woken, because the library is polled after the pipe was fed.
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut buffers = self.buffers.borrow_mut();
        let rest = &buffers.input[buffers.taken..];
        if rest.is_empty() {
            return Poll::Pending;
        }
        let count = rest.len().min(into.remaining());
        into.put_slice(&rest[..count]);
        buffers.taken += count;
        if buffers.taken == buffers.input.len() {
            buffers.input.clear();
            buffers.taken = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BytePipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.buffers.borrow_mut().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
