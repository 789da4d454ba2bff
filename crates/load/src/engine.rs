//! One thread's load: a generator without I/O, and the drivers that own its sockets.

pub(crate) mod actions;
pub(crate) mod driver;
pub(crate) mod generator;
pub(crate) mod multiplexer;
pub(crate) mod protocol;
pub(crate) mod request_source;
pub(crate) mod worker;
