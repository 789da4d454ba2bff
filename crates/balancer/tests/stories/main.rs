//! Stories over real sockets: exactly which bytes a backend saw and a client got.

mod acme;
mod attacks;
mod exchanges;
mod faults;
mod h2c;
mod health;
mod http2;
mod limits;
mod logging;
mod membership;
mod proxied;
mod queueing;
mod routing;
mod script;
mod secured;
mod single;
mod stage;
mod streaming;
mod takeover;
mod telling;
mod timeouts;
mod tls;
mod unix;
mod upgrades;
mod vectors;
mod websocket;
