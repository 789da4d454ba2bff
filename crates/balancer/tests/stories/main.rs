//! Stories over real sockets: exactly which bytes a backend saw and a client got.

mod acme;
mod attacks;
mod exchanges;
mod fairness;
mod faults;
mod forwarded_headers;
mod h2c;
mod health;
mod http2;
mod http2_abuse;
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

mod timeouts;
mod tls;
mod unix;
mod upgrades;
mod vectors;
mod websocket;
