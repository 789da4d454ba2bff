//! What a data-plane thread works with: sockets, timers, clocks and its share of the memory.

pub(crate) mod acceptor;
pub(crate) mod client_network;
pub(crate) mod clock;
pub(crate) mod congestion_control;
pub(crate) mod event_loop;
pub(crate) mod fd_limit;
pub(crate) mod inherited;
pub(crate) mod listener;
pub(crate) mod memory;
pub(crate) mod min_rate;
pub(crate) mod peer;
pub(crate) mod socket;
pub(crate) mod spool_file;
pub(crate) mod timer;
