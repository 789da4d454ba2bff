//! A client's connection, and what the threads that serve connections share.

pub(crate) mod buffer;
pub(crate) mod client;
pub(crate) mod client_limits;
pub(crate) mod client_stream;
pub(crate) mod connection_setup;
pub(crate) mod counters;
pub(crate) mod failure;
pub(crate) mod worker;
pub(crate) mod workspace;
pub(crate) mod write_buffer;
