//! HTTP/2 at the edges (RFC 9113), by a library; inside, everything is HTTP/1.1.
//!
//! A client's stream presents itself as an HTTP/1.1 connection that carries a request, a backend's
//! as one that takes it; so the relay and its rules are the same for all. What only HTTP/2 has
//! (flow control, resets, GOAWAY, trailers with or without a body) is kept across the translation.
//!
//! - `session`, `lane`: a client's connection, and its streams as connections.
//! - `trunk`, `branch`: connections to a backend, and their streams as connections.
//! - `head`, `inbound`, `outbound`: headers, and bodies of streams as text, both ways.
//! - `flood`: frames that ask for work and bring no request.
//! - `keepalive`: connections that are idle or dead.

pub(crate) mod flood;
pub(crate) mod head;
pub(crate) mod inbound;
pub(crate) mod keepalive;
pub(crate) mod outbound;
pub(crate) mod server_stream;
pub(crate) mod upstream_connection;
pub(crate) mod upstream_pool;
pub(crate) mod upstream_stream;

/// What a client asks for in a TLS handshake (RFC 9113 3.2).
pub(crate) const ALPN: &[u8] = b"h2";

/// What a client sends first (RFC 9113 3.4), as far as it looks like an HTTP/1.1 request.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// What a stream may send before the other side has taken it.
pub(crate) const STREAM_BYTES: u32 = 64 * 1024;

/// What a connection may send (RFC 9113 6.9.1).
pub(crate) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// What a stream holds of a body that its receiver does not take, beside a buffer of the relay's and what
/// has gone of a piece that is not yet gone as a whole: as much again at most.
pub(crate) const SEND_BYTES: usize = 32 * 1024;
