//! HTTP/2: many requests at once on a connection, over the same drivers as HTTP/1.1.
//!
//! The generator's slots become streams. This layer stands between it and the driver: to the generator
//! it is what carries out its actions, to the driver it is what has connections. The protocol itself
//! is the h2 crate's, run without a runtime.
//!
//! * `multiplexer`: which stream goes to which connection; connections come and go.
//! * `session`: one connection's protocol without I/O. * `wire`: its bytes in memory.
//! * `message`: the request.

mod message;
mod multiplexer;
mod session;
mod wire;

pub(crate) use message::Message;
pub(crate) use multiplexer::Multiplexer;
