//! A connection to a backend, as the relay sees it: bytes, and a few questions about the socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::config::address::Address;
use crate::http2::upstream_stream::UpstreamStream;
use crate::net::socket::{ByteStream, Socket, acknowledge, pass_on, peek, would_block};

/// A connection that we opened to a backend.
#[derive(Debug)]
pub(crate) enum BackendStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// One stream of an HTTP/2 connection, for one request. It is boxed because it is large and rare.
    Http2(Box<UpstreamStream>),
}

/// How closely an idle connection is examined before it is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Ask the event loop only, which takes no system call. For requests that may be sent again.
    EventLoop,
    /// Ask the kernel.
    Kernel,
}

impl BackendStream {
    /// Connects, and waits as long as the backend does not accept. The caller sets the deadline.
    pub(crate) async fn connect(address: &Address) -> io::Result<Self> {
        Ok(match Socket::connect(address).await? {
            Socket::Tcp(stream) => BackendStream::Tcp(stream),
            Socket::Unix(stream) => BackendStream::Unix(stream),
        })
    }

    /// Whether an idle connection is still open and has received nothing.
    pub(crate) fn is_silent(&self, check: Check) -> bool {
        would_block(&match (self, check) {
            (BackendStream::Tcp(stream), Check::EventLoop) => stream.try_read(&mut [0]),
            (BackendStream::Tcp(stream), Check::Kernel) => peek(stream, &mut [0]),
            (BackendStream::Unix(stream), Check::EventLoop) => stream.try_read(&mut [0]),
            (BackendStream::Unix(stream), Check::Kernel) => peek(stream, &mut [0]),
            // HTTP/2 streams are never idle.
            (BackendStream::Http2(_), _) => return false,
        })
    }

    /// Sends outstanding acknowledgements at once, see [`acknowledge`].
    pub(crate) fn acknowledge(&self) {
        if let BackendStream::Tcp(stream) = self {
            acknowledge(stream);
        }
    }

    /// The backend said that it did not process the request.
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self, BackendStream::Http2(branch) if branch.is_untouched())
    }

    /// The backend closed the HTTP/2 connection of the request without an error, as it may at any time.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self, BackendStream::Http2(branch) if branch.has_left())
    }

    /// Whether it can carry another request.
    pub(crate) fn is_reusable(&self) -> bool {
        !matches!(self, BackendStream::Http2(_))
    }

    /// Moves an idle connection from another thread's event loop to this one. Returns none if it is no
    /// longer usable.
    pub(crate) fn adopt(self) -> Option<Self> {
        match self {
            BackendStream::Tcp(stream) => {
                let stream = stream.into_std().ok()?;
                would_block(&peek(&stream, &mut [0])).then_some(())?;
                TcpStream::from_std(stream).ok().map(BackendStream::Tcp)
            }
            BackendStream::Unix(stream) => {
                let stream = stream.into_std().ok()?;
                would_block(&peek(&stream, &mut [0])).then_some(())?;
                UnixStream::from_std(stream).ok().map(BackendStream::Unix)
            }
            BackendStream::Http2(_) => None,
        }
    }
}

pass_on!(BackendStream, Tcp, Unix, Http2);

impl ByteStream for BackendStream {
    #[inline]
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            BackendStream::Tcp(stream) => TcpStream::poll_read_ready(stream, cx),
            BackendStream::Unix(stream) => UnixStream::poll_read_ready(stream, cx),
            BackendStream::Http2(branch) => branch.poll_read_ready(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_congestion;

    #[tokio::test]
    async fn a_backend_on_loopback_is_not_paced() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let BackendStream::Tcp(stream) = BackendStream::connect(&address).await.unwrap() else {
            panic!("no TCP")
        };
        assert_eq!(tcp_congestion(stream).unwrap(), "reno");
    }
}
