//! A TCP or Unix connection, with the few socket options that depend on its kind.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt::set_tcp_quickack;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::config::address::Address;
use crate::net::congestion_control::plain_congestion_control;

/// A connection over TCP or a Unix socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A byte stream that a buffer can be filled from and written to.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin {
    /// Ready when a read will most likely return bytes, the end or an error. A buffer takes memory only
    /// then.
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The wait before the next attempt if a backend's accept queue is full.
const FULL_BACKLOG_RETRY: Duration = Duration::from_millis(2);

impl Socket {
    /// Connects, and waits as long as the backend does not accept. The caller sets the deadline.
    pub(crate) async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let socket = match address {
                    SocketAddr::V4(_) => TcpSocket::new_v4()?,
                    SocketAddr::V6(_) => TcpSocket::new_v6()?,
                };
                plain_congestion_control(&socket, *address);
                let stream = socket.connect(*address).await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Address::Unix(path) => loop {
                match UnixStream::connect(path).await {
                    // The backend's accept queue is full, and no event tells when that ends.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::time::sleep(FULL_BACKLOG_RETRY).await;
                    }
                    connected => return connected.map(Socket::Unix),
                }
            },
        }
    }
}

/// Sends outstanding acknowledgements at once. Linux delays them by 40 ms. A peer that writes header and
/// body separately waits for them before the body (Nagle's algorithm, RFC 896).
pub(crate) fn acknowledge(stream: &TcpStream) {
    // On an error, the acknowledgement is only late.
    let _ = set_tcp_quickack(stream, true);
}

/// Copies what a read would return.
pub(crate) fn peek(stream: impl AsFd, room: &mut [u8]) -> io::Result<usize> {
    Ok(recv(stream, room, RecvFlags::PEEK | RecvFlags::DONTWAIT)?.1)
}

pub(crate) fn would_block(read: &io::Result<usize>) -> bool {
    matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Implements reading and writing by passing calls on to the variants.
macro_rules! pass_on {
    ($stream:ident, $($variant:ident),+) => {
        impl AsyncRead for $stream {
            #[inline]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                room: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $($stream::$variant(stream) => Pin::new(stream).poll_read(cx, room),)+
                }
            }
        }

        impl AsyncWrite for $stream {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $($stream::$variant(stream) => Pin::new(stream).poll_write(cx, bytes),)+
                }
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                parts: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $($stream::$variant(stream) => Pin::new(stream).poll_write_vectored(cx, parts),)+
                }
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $($stream::$variant(stream) => Pin::new(stream).poll_flush(cx),)+
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $($stream::$variant(stream) => Pin::new(stream).poll_shutdown(cx),)+
                }
            }
        }
    };
}

pub(crate) use pass_on;

pass_on!(Socket, Tcp, Unix);

/// Two ends of one loopback connection.
#[cfg(test)]
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}
