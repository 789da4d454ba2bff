//! Plays sessions without I/O: one session, and one thread's sessions with the connections that they hold.

pub(crate) mod branch;
pub(crate) mod connection_pool;
pub(crate) mod loops;
pub(crate) mod request_writer;
pub(crate) mod scenario_set;
pub(crate) mod session;
pub(crate) mod session_pool;
