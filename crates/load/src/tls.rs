//! TLS without I/O, and why a handshake failed.

pub(crate) mod client;
pub(crate) mod handshake_error;
