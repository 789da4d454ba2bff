//! HTTP/2 at the edges (RFC 9113), by the h2 library. Inside, everything is HTTP/1.1.
//!
//! A client's stream looks like an HTTP/1.1 connection that carries a request. A backend's stream looks
//! like one that takes it. So the relay and its rules are the same for both protocols. The translation
//! keeps what only HTTP/2 has: flow control, resets, GOAWAY, and trailers with or without a body.
//!
//! - `server_stream`: the streams of a client's connection.
//! - `upstream_pool`, `upstream_connection`, `upstream_stream`: the connections to a backend, and their
//!   streams.
//! - `head`, `inbound`, `outbound`: headers and bodies as HTTP/1.1 text, both ways.
//! - `frame_headers`: the frames of a connection.
//! - `flood`: frames that cause work without a request.
//! - `trailer_check`: pseudo-header fields in trailers.
//! - `keepalive`: connections that are idle or dead.

pub(crate) mod flood;
pub(crate) mod frame_headers;
pub(crate) mod head;
pub(crate) mod inbound;
pub(crate) mod keepalive;
pub(crate) mod outbound;
pub(crate) mod server_stream;
mod trailer_check;
pub(crate) mod upstream_connection;
pub(crate) mod upstream_pool;
pub(crate) mod upstream_stream;

/// The protocol's name in a TLS handshake (RFC 9113 3.2).
pub(crate) const ALPN: &[u8] = b"h2";

/// The part of the client's preface (RFC 9113 3.4) that looks like an HTTP/1.1 request.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// The flow-control window of a stream.
pub(crate) const STREAM_BYTES: u32 = 64 * 1024;

/// The largest flow-control window (RFC 9113 6.9.1).
pub(crate) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// What a stream buffers of a body that its receiver does not take. The relay's buffer comes on top, and
/// pieces that are only partly sent at most double it.
pub(crate) const SEND_BYTES: usize = 32 * 1024;
