//! The HTTP data plane: takes requests from clients and has identical backends answer them.
//!
//! The relay is our own, on Tokio: a thread a core, each with its own event loop and listener, and
//! a request stays on the thread that accepted it. What the threads share is who may have a slot of
//! which backend, and idle connections. Bodies are streamed; nothing waits without a limit; framing
//! that RFC 9112 leaves ambiguous is refused.
//!
//! - `config`: what a balancer is told before it starts.
//! - `limits`: how large things may be and how long they may take, with the defaults.
//! - `address`: of a backend or a listener.
//! - `balancer`: starting, stopping, and the [`Handle`] that changes and observes a running one.
//! - `policy`: the rules that pick a backend, by name, and what they look at in a request.
//! - `dispatch`: the queue, the slots and the policies, as pure data.
//! - `dispatcher`: the same, shared by threads; slots that give themselves back.
//! - `app`: an app at run time, with its dispatcher and its counts.
//! - `backend`: a backend's address, idle connections and counts.
//! - `health`: which backends are fit to serve, by what they did and by asking them.
//! - `lease`: a slot together with a connection.
//! - `h1`: HTTP/1.1 as pure functions over bytes.
//! - `http2`: HTTP/2 on either side, as HTTP/1.1 to everything else.
//! - `stream`, `peer`: what carries a connection's bytes, and who is at its other end.
//! - `files`: how many connections there may be.
//! - `listener`, `listening`, `worker`, `event_loop`: sockets that are bound, what accepts from them,
//!   and the threads that serve them.
//! - `loopback`: what is different about connections within one machine.
//! - `inherited`: sockets of a process that listened there before.
//! - `acme`: certificates from an authority.
//! - `entrance`, `proxy_protocol`, `tls`: what comes before a connection's first request.
//! - `census`: how many connections each client has.
//! - `connection`, `client`: a client's connection from its first request to its last.
//! - `route`, `router`: which app a request is for, by host and path.
//! - `redirect_loop`: redirects that never arrive.
//! - `intake`, `pace`: what a client sends before it gets a slot, and how slow it may be.
//! - `exchange`, `relay`, `tunnel`: one request, its bytes both ways, and what follows a 101.
//! - `answer`: the answers that the balancer gives itself, each with a reason.
//! - `forwarding`, `forwarded`, `request_id`: what is told about a request beyond its own words.
//! - `memory`: how much clients make us hold.
//! - `buffer`, `outgoing`, `timer`: memory, writes and deadlines that cost nothing per request.
//! - `log`: the access log.
//! - `clock`: the time of day in words.
//! - `counters`, `snapshot`: what is counted, and how it is read.

mod acme;
mod address;
mod answer;
mod app;
mod backend;
mod balancer;
mod buffer;
mod census;
mod client;
mod clock;
mod config;
mod connection;
mod counters;
mod dispatch;
mod dispatcher;
mod entrance;
mod event_loop;
mod exchange;
mod files;
mod forwarded;
mod forwarding;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod h1;
mod health;
mod http2;
mod inherited;
mod intake;
mod lease;
mod limits;
mod listener;
mod listening;
mod log;
mod loopback;
mod memory;
mod outgoing;
mod pace;
mod peer;
mod policy;
mod proxy_protocol;
mod redirect_loop;
mod relay;
mod request_id;
mod route;
mod router;
mod snapshot;
mod stream;
mod timer;
mod tls;
mod tunnel;
mod worker;

pub use acme::{Acme, ExternalAccount};
pub use address::{Address, UnknownAddress};
pub use backend::{Backend, Cpu, Role, Slots, UnknownSlots};
pub use balancer::{Balancer, Drained, Handle, StartError};
pub use config::{AppConfig, AppId, Cleartext, Config, Listener, Protocol, Reuse};
pub use counters::{BackendCounts, EntranceCounts, Shed};
pub use dispatch::{BackendId, RetryCounts};
pub use forwarding::{Forwarding, Network, Switch, UnknownNetwork, XForwarded};
pub use health::{
    ActiveHealth, BackendHealth, Health, HealthEvent, HealthEvents, PassiveHealth, ServerErrors,
};
pub use inherited::Inherited;
pub use limits::{Limits, QueueLimits, RetryLimits, Timeouts};
pub use log::{AccessLog, LogFormat, LogTarget};
pub use policy::{Key, Policy, UnknownPolicy};
pub use proxy_protocol::ProxyProtocol;
pub use redirect_loop::Redirecting;
pub use route::{
    BadRoute, Destination, HostPattern, PathPrefix, Prefix, Redirect, RedirectStatus, Route,
};
pub use snapshot::{
    AppSnapshot, BackendPhase, BackendSnapshot, ClientsSnapshot, QueueSnapshot, Snapshot,
};
pub use tls::{Certificate, CertificateSnapshot, Tls, TlsVersion};
