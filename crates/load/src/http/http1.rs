//! HTTP/1.1: one request at a time on a connection (RFC 9112).

pub(crate) mod chunked;
pub(crate) mod connection;
pub(crate) mod head;
pub(crate) mod response;
pub(crate) mod response_sink;
