//! The balancer as a whole: starting, accepting, serving connections, stopping and counting.

pub(crate) mod balancer;
pub(crate) mod handshake;
pub(crate) mod http1_session;
pub(crate) mod http2_session;
pub(crate) mod proxy_protocol;
pub(crate) mod relayed_elsewhere;
pub(crate) mod session;
pub(crate) mod snapshot;
pub(crate) mod worker_thread;
