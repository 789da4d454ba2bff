//! Stories over real sockets: exactly which bytes a backend saw and a client got.

mod exchanges;
mod faults;
mod membership;
mod queueing;
mod routing;
mod script;
mod stage;
mod streaming;
mod takeover;
mod telling;
mod timeouts;
mod unix;
mod upgrades;
mod vectors;
