//! The HTTP data plane: takes requests from clients and has identical backends answer them.
//!
//! The relay is our own, on Tokio. Each core has one thread with its own event loop and listener, and a request
//! stays on the thread that accepted it. The threads share the queue, the slots of the backends and idle
//! connections. Bodies are streamed, every wait has a limit, and framing that RFC 9112 leaves ambiguous is refused.
//!
//! The folders, from the ground up. Each uses only those above it in this list:
//!
//! - `config`: the configuration, as plain data that is checked once.
//! - `net`: sockets, timers, clocks and the memory budget of a thread.
//! - `h1`: HTTP/1.1 parsing and rewriting, as pure functions over bytes.
//! - `http2`: HTTP/2 streams that present themselves as HTTP/1.1 connections.
//! - `tls`: certificates of listeners, and how an authority issues them (ACME).
//! - `backends`: a backend's connections, health and counters.
//! - `queue`: the central queue, the slots and the policies that pick a backend.
//! - `routing`: which app a request is for, by host and path.
//! - `log`: the access log.
//! - `connection`: a client's connection, and what the threads share.
//! - `proxy`: one request from its slot to the last byte of its answer.
//! - `server`: starting, accepting, serving, stopping, and the snapshot of all counters.

mod backends;
mod config;
mod connection;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod h1;
mod http2;
mod log;
mod net;
mod proxy;
mod queue;
mod routing;
mod server;
mod tls;

pub use backends::backend_id::BackendId;
pub use backends::counters::BackendCounts;
pub use backends::health::{BackendHealth, HealthEvent, HealthEvents};
pub use config::Config;
pub use config::access_log::{AccessLog, LogFormat, LogTarget};
pub use config::acme::{Acme, ExternalAccount};
pub use config::address::{Address, UnknownAddress};
pub use config::app::{AppConfig, AppId, Protocol, Reuse};
pub use config::backend::{Backend, Cpu, Role, Slots, UnknownSlots};
pub use config::forwarding::{Forwarding, Network, Switch, UnknownNetwork, XForwarded};
pub use config::health::{ActiveHealth, Health, PassiveHealth, ServerErrors};
pub use config::limits::{Limits, QueueLimits, RetryLimits, Timeouts};
pub use config::listener::{Cleartext, Listener, ProxyProtocol};
pub use config::policy::{Key, Policy, UnknownPolicy};
pub use config::route::{
    BadRoute, Destination, HostPattern, PathPrefix, Prefix, Redirect, RedirectStatus, Route,
};
pub use config::start_error::StartError;
pub use config::tls::{Certificate, Tls, TlsVersion};
pub use connection::counters::EntranceCounts;
pub use log::foreign_link::open_named;
pub use net::inherited::Inherited;
pub use net::listener::listen_tcp;
pub use queue::counters::ShedCounts;
pub use queue::dispatch::retry_budget::RetryCounts;
pub use routing::redirect_loop::Redirecting;
pub use server::balancer::{Balancer, Death, Drained, Handle};
pub use server::relayed_elsewhere::{RelayedElsewhere, Unserved};
pub use server::snapshot::{
    AppSnapshot, BackendPhase, BackendSnapshot, BackendTimes, ClientsSnapshot, QueueSnapshot,
    Snapshot,
};
pub use tls::hosts::CertificateSnapshot;
