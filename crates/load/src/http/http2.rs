//! HTTP/2: many requests at once on a connection (RFC 9113). The h2 crate speaks the protocol, without a
//! runtime.

pub(crate) mod byte_pipe;
pub(crate) mod connection;
pub(crate) mod message;
