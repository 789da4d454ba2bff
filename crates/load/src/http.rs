//! HTTP without I/O: the target, its request, and connections as state machines.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod request;
pub(crate) mod target;
