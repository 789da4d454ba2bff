//! A client's connection, as the relay sees it: bytes, and a few questions about the socket. The
//! transport is a variant, so a plain TCP connection costs only a predictable branch.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use h2::Reason;
use rustix::net::{SendFlags, send};
use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::h1::request::Carrier;
use crate::http2;
use crate::http2::server_stream::ServerStream;
use crate::net::acceptor;
use crate::net::peer::Transport;
use crate::net::socket::{ByteStream, Socket, acknowledge, pass_on, peek};

/// A connection that a client opened.
#[derive(Debug)]
pub(crate) enum ClientStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Boxed, so that plain and idle connections do not pay for its size.
    Tls(Box<TlsStream>),
    /// The streams of an HTTP/2 connection, one after the other.
    Http2(ServerStream),
}

/// Writes the last bytes before the end of a connection. TCP keeps them back and sends them in one
/// packet with the end, so that the client wakes once.
pub(crate) struct FinalWrite<'s>(pub(crate) &'s mut ClientStream);

/// TLS over TCP.
pub(crate) type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// What has arrived and was not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peeked {
    Nothing,
    /// Bytes, or the end of the stream.
    Something,
    /// The connection was reset.
    Reset,
}

impl From<Socket> for ClientStream {
    fn from(socket: Socket) -> Self {
        match socket {
            Socket::Tcp(stream) => ClientStream::Tcp(stream),
            Socket::Unix(stream) => ClientStream::Unix(stream),
        }
    }
}

impl ClientStream {
    /// The protocols for the access log.
    pub(crate) fn transport(&self) -> Transport {
        match self {
            ClientStream::Tcp(_) | ClientStream::Unix(_) => Transport::default(),
            ClientStream::Tls(stream) => {
                let tls = match stream.get_ref().1.protocol_version() {
                    Some(ProtocolVersion::TLSv1_2) => Some("TLSv1.2"),
                    Some(ProtocolVersion::TLSv1_3) => Some("TLSv1.3"),
                    _ => None,
                };
                Transport { tls, http: None }
            }
            ClientStream::Http2(stream) => stream.transport(),
        }
    }

    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            ClientStream::Http2(_) => Carrier::Http2,
            _ => Carrier::Http1,
        }
    }

    /// The bytes that a client could receive as it connected, if that is known.
    pub(crate) fn offered_window(&self) -> Option<u32> {
        match self {
            ClientStream::Tcp(stream) => acceptor::offered_window(stream),
            ClientStream::Tls(stream) => acceptor::offered_window(stream.get_ref().0),
            ClientStream::Unix(_) | ClientStream::Http2(_) => None,
        }
    }

    /// Looks at the socket without reading. The event loop still reports what comes later.
    pub(crate) fn peek(&self) -> Peeked {
        if let ClientStream::Tls(stream) = self
            && has_decrypted(stream)
        {
            return Peeked::Something;
        }
        match self.look_ahead(&mut [0]) {
            Ok(_) => Peeked::Something,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Peeked::Nothing,
            Err(_) => Peeked::Reset,
        }
    }

    /// Copies arrived bytes into `room` without taking them. Over TLS they are encrypted.
    pub(crate) fn look_ahead(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientStream::Tcp(stream) => stream.try_io(Interest::READABLE, || peek(stream, room)),
            ClientStream::Unix(stream) => stream.try_io(Interest::READABLE, || peek(stream, room)),
            ClientStream::Tls(stream) => {
                let stream = stream.get_ref().0;
                stream.try_io(Interest::READABLE, || peek(stream, room))
            }
            // The HTTP/2 connection reports resets.
            ClientStream::Http2(_) => Ok(0),
        }
    }

    /// Like `look_ahead`, but waits for bytes or the end, which is 0.
    pub(crate) async fn wait_ahead(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            poll_fn(|cx| self.poll_read_ready(cx)).await?;
            match self.look_ahead(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                looked => return looked,
            }
        }
    }

    /// Sends outstanding acknowledgements at once, see [`acknowledge`].
    pub(crate) fn acknowledge(&self) {
        match self {
            ClientStream::Tcp(stream) => acknowledge(stream),
            ClientStream::Tls(stream) => acknowledge(stream.get_ref().0),
            ClientStream::Unix(_) | ClientStream::Http2(_) => {}
        }
    }

    /// Whether bytes have arrived that the event loop has not reported yet.
    pub(crate) fn has_unseen(&self) -> bool {
        let arrived = match self {
            ClientStream::Tcp(stream) => peek(stream, &mut [0]),
            ClientStream::Unix(stream) => peek(stream, &mut [0]),
            ClientStream::Tls(stream) => peek(stream.get_ref().0, &mut [0]),
            // The HTTP/2 connection reads for the stream.
            ClientStream::Http2(_) => Ok(0),
        };
        matches!(arrived, Ok(1..))
    }

    /// Whether the connection was reset, whatever has arrived before.
    pub(crate) fn has_failed(&self) -> bool {
        let error = match self {
            ClientStream::Tcp(stream) => stream.take_error(),
            ClientStream::Unix(stream) => stream.take_error(),
            ClientStream::Tls(stream) => stream.get_ref().0.take_error(),
            // The HTTP/2 connection reports resets.
            ClientStream::Http2(_) => Ok(None),
        };
        !matches!(error, Ok(None))
    }

    /// Whether the client chose HTTP/2 in its TLS handshake (ALPN, RFC 7301).
    pub(crate) fn has_chosen_http2(&self) -> bool {
        matches!(self, ClientStream::Tls(stream)
            if stream.get_ref().1.alpn_protocol() == Some(http2::ALPN))
    }

    /// Resolves when the client has closed or reset the connection, whatever it has sent before. A
    /// half-close looks the same. Before a request was served, both count as leaving.
    pub(crate) async fn closed(&mut self) {
        // The end of the stream satisfies this interest, but bytes do not. The kernel is not asked for
        // urgent data.
        match self {
            ClientStream::Tcp(stream) => drop(stream.ready(Interest::PRIORITY).await),
            ClientStream::Unix(stream) => drop(stream.ready(Interest::PRIORITY).await),
            ClientStream::Tls(stream) => drop(stream.get_ref().0.ready(Interest::PRIORITY).await),
            ClientStream::Http2(stream) => poll_fn(|cx| stream.poll_gone(cx)).await,
        }
    }

    /// Makes the close a reset, so that the client does not take a part for the whole answer.
    pub(crate) fn abort(&mut self) {
        // An incomplete message says the same, except for bodies that end at the close.
        match self {
            ClientStream::Tcp(stream) => drop(stream.set_zero_linger()),
            ClientStream::Tls(stream) => drop(stream.get_ref().0.set_zero_linger()),
            // A Unix socket is reset only by closing it with unread bytes.
            ClientStream::Unix(_) => {}
            ClientStream::Http2(stream) => stream.abort(Reason::INTERNAL_ERROR),
        }
    }

    /// Like `abort`, but says that the request was not processed, if the protocol can (RFC 9113 8.7).
    pub(crate) fn refuse(&mut self) {
        match self {
            ClientStream::Http2(stream) => stream.abort(Reason::REFUSED_STREAM),
            stream => stream.abort(),
        }
    }

    /// Ends the stream on purpose, with close_notify over TLS (RFC 8446 6.1), as far as the system takes
    /// it at once. A mere close would be a reset if the client has sent more. It would also lose what
    /// [`FinalWrite`] kept back.
    pub(crate) fn send_close_notify(&mut self) {
        let mut nobody = Context::from_waker(Waker::noop());
        let _ = Pin::new(self).poll_shutdown(&mut nobody);
    }
}

/// Whether decrypted bytes, or their end, wait to be read.
fn has_decrypted(stream: &TlsStream) -> bool {
    !stream.get_ref().1.wants_read()
}

pass_on!(ClientStream, Tcp, Unix, Tls, Http2);

impl AsyncWrite for FinalWrite<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = match &mut *self.get_mut().0 {
            ClientStream::Tcp(stream) => stream,
            stream => return Pin::new(stream).poll_write(cx, bytes),
        };
        loop {
            ready!(stream.poll_write_ready(cx))?;
            let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
            match stream.try_io(Interest::WRITABLE, || Ok(send(&*stream, bytes, flags)?)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    /// Large writes fill packets anyway.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.get_mut().0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().0).poll_shutdown(cx)
    }
}

impl ByteStream for ClientStream {
    #[inline]
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ClientStream::Tcp(stream) => TcpStream::poll_read_ready(stream, cx),
            ClientStream::Unix(stream) => UnixStream::poll_read_ready(stream, cx),
            // The socket does not show bytes that are already decrypted.
            ClientStream::Tls(stream) if has_decrypted(stream) => Poll::Ready(Ok(())),
            ClientStream::Tls(stream) => stream.get_ref().0.poll_read_ready(cx),
            ClientStream::Http2(stream) => stream.poll_read_ready(cx),
        }
    }
}
