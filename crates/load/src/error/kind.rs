//! The ways in which a request can fail, each counted apart.

use std::fmt;
use std::io;

use serde::Serialize;

/// Why a request failed. The text form is stable and the same in every output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection was refused or the address could not be reached.
    Connect,
    /// The connection was not established within the connect timeout.
    ConnectTimeout,
    /// This machine had no file descriptor or memory left: a limit of the generator.
    Resources,
    /// Every local port was in use or had been a moment ago: a limit of the generator.
    Ports,
    /// The TLS handshake failed, or what came after it did not decipher.
    Tls,
    /// The server speaks TLS, but agrees to no HTTP/2 in it (ALPN).
    NoHttp2,
    /// The answer was not complete within the response timeout.
    Timeout,
    /// The connection was reset before the answer was complete.
    Reset,
    /// The server closed the connection before the answer was complete.
    ClosedEarly,
    /// The answer is not HTTP/1.1, or its framing contradicts itself.
    Malformed,
    /// The head or the body of the answer is larger than the generator accepts.
    TooLarge,
    /// The server gave up the connection of HTTP/2 with an error (GOAWAY).
    GoAway,
    /// The server gave up the stream (RST_STREAM).
    StreamReset,
    /// The server refused the stream before it looked at the request (REFUSED_STREAM).
    RefusedStream,
    /// A complete answer with a status from 400 to 499.
    #[serde(rename = "status_4xx")]
    ClientError,
    /// A complete answer with a status from 500 on. Codes from 600 on are invalid, and count as these (RFC 9110, 15).
    #[serde(rename = "status_5xx")]
    ServerError,
}

/// How a request failed: the kind, and the status if there was a whole answer. The text form names the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Failed {
    /// The kind.
    pub kind: ErrorKind,
    /// The status of the answer.
    pub status: Option<u16>,
}

impl ErrorKind {
    /// Every kind, in declaration order.
    pub const ALL: [ErrorKind; 16] = [
        ErrorKind::Connect,
        ErrorKind::ConnectTimeout,
        ErrorKind::Resources,
        ErrorKind::Ports,
        ErrorKind::Tls,
        ErrorKind::NoHttp2,
        ErrorKind::Timeout,
        ErrorKind::Reset,
        ErrorKind::ClosedEarly,
        ErrorKind::Malformed,
        ErrorKind::TooLarge,
        ErrorKind::GoAway,
        ErrorKind::StreamReset,
        ErrorKind::RefusedStream,
        ErrorKind::ClientError,
        ErrorKind::ServerError,
    ];

    /// The stable name, as in JSON: `connect`, `status_5xx`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::ConnectTimeout => "connect_timeout",
            ErrorKind::Resources => "resources",
            ErrorKind::Ports => "ports",
            ErrorKind::Tls => "tls",
            ErrorKind::NoHttp2 => "no_http2",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Reset => "reset",
            ErrorKind::ClosedEarly => "closed_early",
            ErrorKind::Malformed => "malformed",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::GoAway => "go_away",
            ErrorKind::StreamReset => "stream_reset",
            ErrorKind::RefusedStream => "refused_stream",
            ErrorKind::ClientError => "status_4xx",
            ErrorKind::ServerError => "status_5xx",
        }
    }

    /// The kind that a complete answer with this status counts as, if any.
    pub fn of_status(status: u16) -> Option<ErrorKind> {
        match status {
            400..=499 => Some(ErrorKind::ClientError),
            500.. => Some(ErrorKind::ServerError),
            _ => None,
        }
    }

    /// The kind of a failed attempt to connect.
    pub(crate) fn of_connect(error: &io::Error) -> ErrorKind {
        use rustix::io::Errno;
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                ErrorKind::Resources
            }
            // ADDRINUSE comes from bind, the others from connect.
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE | Errno::AGAIN) => ErrorKind::Ports,
            Some(Errno::TIMEDOUT) => ErrorKind::ConnectTimeout,
            _ => ErrorKind::Connect,
        }
    }

    /// Nobody waits any longer for an answer.
    pub(crate) fn is_timeout(self) -> bool {
        matches!(self, ErrorKind::Timeout | ErrorKind::ConnectTimeout)
    }

    /// There was no connection.
    pub(crate) fn is_connect_failure(self) -> bool {
        matches!(
            self,
            ErrorKind::Connect
                | ErrorKind::ConnectTimeout
                | ErrorKind::Resources
                | ErrorKind::Ports
                | ErrorKind::Tls
                | ErrorKind::NoHttp2
        )
    }

    /// The server ended the connection, or made it useless, instead of answering.
    pub(crate) fn is_broken_connection(self) -> bool {
        matches!(
            self,
            ErrorKind::Reset | ErrorKind::ClosedEarly | ErrorKind::Malformed | ErrorKind::GoAway
        )
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "status {status}"),
            None => self.kind.fmt(f),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
