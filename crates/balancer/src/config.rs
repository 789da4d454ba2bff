//! What a balancer is told before it starts: addresses, policy, and every limit with its default.

use std::net::SocketAddr;
use std::time::Duration;

use crate::acme::Acme;
use crate::address::Address;
use crate::forwarding::Forwarding;
use crate::h1::MAX_FIELDS;
use crate::health::Health;
use crate::log::AccessLog;
use crate::policy::Policy;
use crate::proxy_protocol::ProxyProtocol;
use crate::route::{Redirect, Route};
use crate::tls::Tls;

/// Everything that [`Balancer::start`](crate::Balancer::start) needs. Plain data.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect. At least one.
    pub listeners: Vec<Listener>,
    /// Data-plane threads, each with its own listener and event loop. At least 1.
    pub threads: usize,
    /// What requests are balanced for, each with its own backends and queue. At least one; without
    /// routes all requests are for the first one.
    pub apps: Vec<AppConfig>,
    /// Which app each request is for. A request that fits none of them is answered 421 if no route
    /// is for its host, else 404.
    pub routes: Vec<Route>,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How large each thing may be.
    pub limits: Limits,
    /// What is told about requests beyond their own words.
    pub forwarding: Forwarding,
    /// Certificates from an authority, for listeners with TLS.
    pub acme: Option<Acme>,
    /// Told, in a sentence, what an operator should know and no request shows: a certificate that
    /// was replaced, or could not be. Called from threads of the balancer; may not block for long.
    pub notice: fn(&str),
    /// A line for each request. Off by default: it costs 3,000 (combined) to 4,000 (JSON) instructions
    /// a request, a fifth of what the balancer itself takes, and a disk.
    pub access_log: Option<AccessLog>,
}

/// An address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Port 0 picks a free one.
    pub address: Address,
    /// Where all requests that come here are sent instead of being served: http to https, as a rule.
    pub redirect: Option<Redirect>,
    /// Whether proxies in front say whom they speak for.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Whether clients speak TLS; not over a Unix socket.
    pub tls: Option<Tls>,
    /// What clients may speak there without TLS.
    pub cleartext: Cleartext,
}

/// The protocols of a listener without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cleartext {
    /// HTTP/1.1 alone: browsers speak HTTP/2 over TLS only.
    #[default]
    Http1,
    /// HTTP/2 too, from clients that begin with it (prior knowledge, RFC 9113 3.3), as gRPC does.
    Http1AndH2c,
    /// HTTP/2 alone.
    H2c,
}

/// One app: how requests for it are spread over its backends.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// For people and metrics; unique.
    pub name: String,
    /// How a backend is picked.
    pub policy: Policy,
    /// How many requests may wait for a slot, and for how long.
    pub queue: QueueLimits,
    /// Backends that one request may try when connecting fails, 1 to [`AppConfig::MAX_ATTEMPTS`].
    pub attempts: usize,
    /// How many requests may be sent to another backend.
    pub retries: RetryLimits,
    /// How its backends are judged.
    pub health: Health,
    /// What its backends speak.
    pub protocol: Protocol,
}

/// What backends speak; without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1, a connection for each request in flight: what all app servers speak.
    #[default]
    Http1,
    /// HTTP/2 with prior knowledge (RFC 9113 3.3), as gRPC needs: a connection for each thread, and
    /// a stream for each request in flight.
    H2c,
}

/// Names an app of one balancer: its place in [`Config::apps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(u16);

/// Bounds of the waiting requests of an app, over all its backends.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Requests that may wait; the next one is answered 503.
    pub length: usize,
    /// The longest wait before 503; above 0 and at most [`Timeouts::MAX`].
    pub wait: Duration,
}

/// How many requests of an app may be sent to another backend after one failed them: a share of
/// the requests of the last ten seconds, and a few more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Percent of the requests.
    pub percent: u32,
    /// A second, beyond the share.
    pub per_second: u32,
}

/// How long each phase of a connection may take. All are above 0 and at most [`Timeouts::MAX`].
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request to the end of its header, in total; then 408.
    pub header: Duration,
    /// Of TLS, from its first byte to its last, in total.
    pub handshake: Duration,
    /// A client connection without a request.
    pub idle: Duration,
    /// Between two pieces of a request body; then 408.
    pub body: Duration,
    /// From the end of a request's header to the end of its body, in total, as far as only the
    /// client is waited for; then 408.
    pub upload: Duration,
    /// How long a client that holds a slot may be waited for in all, for its body or to take its
    /// answer, beyond what its bytes have earned at [`Limits::client_rate`]; then 408, or the
    /// connection is aborted. What was earned counts up to `stall`.
    pub client_grace: Duration,
    /// Establishing a connection to a backend.
    pub connect: Duration,
    /// From the end of the request to the end of the answer's header; then 504.
    pub response: Duration,
    /// Between two pieces of an answer, whichever side stalls; then the connection is aborted.
    pub stall: Duration,
    /// An upgraded connection without a byte in either direction.
    pub tunnel: Duration,
    /// An unused connection to a backend; it is closed at most a quarter later.
    pub backend_idle: Duration,
}

/// How large each thing may be. All are finite.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's or an answer's header, up to [`Limits::MAX_HEADER_BYTES`].
    pub header_bytes: usize,
    /// Bytes of a request's target, up to `header_bytes`; then 414.
    pub target_bytes: usize,
    /// Header fields of a request or an answer, up to [`Limits::MAX_HEADERS`].
    pub headers: usize,
    /// Bytes of a request body; then 413. Bodies are streamed, so this does not cost memory.
    pub body_bytes: u64,
    /// Open client connections; more wait in the kernel's accept queue. Threads that accept at the
    /// same moment may exceed it by one each.
    pub connections: usize,
    /// Open connections of one client: an IPv4 address, or a /64 network of IPv6. The next one is
    /// closed as it is accepted. Trusted proxies have as many as they like.
    pub client_connections: usize,
    /// Requests over one connection; the last one's answer closes it.
    pub requests: u64,
    /// Bytes a second that a client moves on average while it is waited for, see
    /// [`Timeouts::client_grace`]; 0 for no such limit.
    pub client_rate: u64,
    /// Streams that a client may have open at once on one HTTP/2 connection, 1 to
    /// [`Limits::MAX_STREAMS`]. Each may hold 64 KiB of a request and of an answer.
    pub streams: u32,
}

impl Config {
    /// The most that [`Config::apps`] can have.
    pub const MAX_APPS: usize = 1024;

    /// Says what is wrong with the values, in one sentence with a remedy.
    pub fn check(&self) -> Result<(), String> {
        let Limits { header_bytes, target_bytes, headers, .. } = self.limits;
        if self.listeners.is_empty() {
            return Err("there is no address to listen on; give at least one".into());
        }
        for listener in &self.listeners {
            listener.check()?;
        }
        if let Some(acme) = &self.acme {
            acme.check()?;
            if self.listeners.iter().all(|listener| listener.tls.is_some()) {
                return Err("ACME needs a listener without TLS; give one on port 80".into());
            }
            if self.listeners.iter().all(|listener| listener.tls.is_none()) {
                return Err("ACME without a listener for TLS; give one on port 443".into());
            }
        }
        if self.threads == 0 || self.threads > 1024 {
            return Err(format!("{} threads are impossible; use 1 to 1024", self.threads));
        }
        if !(1024..=Limits::MAX_HEADER_BYTES).contains(&header_bytes) {
            let most = Limits::MAX_HEADER_BYTES;
            return Err(format!(
                "a header limit of {header_bytes} bytes is impossible; use 1024 to {most}"
            ));
        }
        if !(1..=header_bytes).contains(&target_bytes) {
            return Err(format!(
                "a target limit of {target_bytes} bytes is impossible; use 1 to {header_bytes}, the header limit"
            ));
        }
        if headers == 0 || headers > Limits::MAX_HEADERS {
            let most = Limits::MAX_HEADERS;
            return Err(format!(
                "a limit of {headers} header fields is impossible; use 1 to {most}"
            ));
        }
        let Limits { connections, client_connections, requests, .. } = self.limits;
        if connections == 0 || client_connections == 0 || requests == 0 {
            return Err("a limit of 0 connections or requests serves nobody; use at least 1".into());
        }
        if !(1..=Limits::MAX_STREAMS).contains(&self.limits.streams) {
            let (streams, most) = (self.limits.streams, Limits::MAX_STREAMS);
            return Err(format!("a limit of {streams} streams is impossible; use 1 to {most}"));
        }
        self.check_durations()?;
        self.check_apps()?;
        Route::check_all(&self.routes, self.apps.len())
    }

    fn check_apps(&self) -> Result<(), String> {
        let (count, most) = (self.apps.len(), Self::MAX_APPS);
        if !(1..=most).contains(&count) {
            return Err(format!("{count} apps are impossible; use 1 to {most}"));
        }
        for (index, app) in self.apps.iter().enumerate() {
            if self.apps[..index].iter().any(|other| other.name == app.name) {
                return Err(format!("two apps are named {}; rename one", app.name));
            }
            app.check().map_err(|wrong| format!("of app {}, {wrong}", app.name))?;
        }
        Ok(())
    }

    fn check_durations(&self) -> Result<(), String> {
        let Timeouts {
            header,
            handshake,
            idle,
            body,
            upload,
            client_grace,
            connect,
            response,
            stall,
            tunnel,
            backend_idle,
        } = self.timeouts;
        let durations = [
            ("header", header),
            ("handshake", handshake),
            ("idle", idle),
            ("body", body),
            ("upload", upload),
            ("client grace", client_grace),
            ("connect", connect),
            ("response", response),
            ("stall", stall),
            ("tunnel", tunnel),
            ("backend idle", backend_idle),
        ];
        durations.into_iter().try_for_each(|(name, duration)| check_duration(name, duration))
    }
}

impl Listener {
    /// A listener on `address`, everything else as by default.
    pub fn new(address: impl Into<Address>) -> Self {
        Listener {
            address: address.into(),
            redirect: None,
            proxy_protocol: None,
            tls: None,
            cleartext: Cleartext::default(),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.address.check()?;
        match (&self.address, &self.tls) {
            (Address::Unix(_), Some(_)) => Err(format!(
                "TLS on {} is impossible; use it on an address of TCP, or none here",
                self.address
            )),
            _ => Ok(()),
        }
    }
}

impl AppConfig {
    /// Most backends that one request may try.
    pub const MAX_ATTEMPTS: usize = 4;

    /// An app of this name, everything else as by default.
    pub fn named(name: impl Into<String>) -> Self {
        AppConfig { name: name.into(), ..AppConfig::default() }
    }

    fn check(&self) -> Result<(), String> {
        let most = Self::MAX_ATTEMPTS;
        if !(1..=most).contains(&self.attempts) {
            return Err(format!("{} attempts are impossible; use 1 to {most}", self.attempts));
        }
        self.health.check()?;
        check_duration("queue wait", self.queue.wait)
    }
}

impl AppId {
    /// The app that a balancer always has.
    pub const FIRST: AppId = AppId(0);

    /// The app at this place of [`Config::apps`].
    pub fn nth(index: usize) -> AppId {
        AppId(u16::try_from(index).expect("there are at most Config::MAX_APPS apps"))
    }

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

impl Timeouts {
    /// The most that each of them, and [`QueueLimits::wait`], can be: a day.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);
}

impl Limits {
    /// The most that [`Limits::header_bytes`] can be: half of a connection's read buffer.
    pub const MAX_HEADER_BYTES: usize = 32 * 1024;
    /// The most that [`Limits::headers`] can be.
    pub const MAX_HEADERS: usize = MAX_FIELDS;
    /// The most that [`Limits::streams`] can be.
    pub const MAX_STREAMS: u32 = 1024;
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listeners: vec![Listener::new(SocketAddr::from(([127, 0, 0, 1], 0)))],
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            apps: vec![AppConfig::default()],
            routes: Vec::new(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            forwarding: Forwarding::default(),
            acme: None,
            notice: |text| eprintln!("{text}"),
            access_log: None,
        }
    }
}

impl Default for AppConfig {
    fn default() -> Self {
        AppConfig {
            name: "app".into(),
            policy: Policy::default(),
            queue: QueueLimits::default(),
            // A third dead backend in a row means that the fleet is down, not one instance.
            attempts: 3,
            retries: RetryLimits::default(),
            health: Health::default(),
            protocol: Protocol::default(),
        }
    }
}

impl Default for QueueLimits {
    fn default() -> Self {
        QueueLimits {
            // Deep enough for a burst of users, shallow enough to bound memory (a few KiB each).
            length: 1024,
            // As long as most clients and load balancers in front wait before they give up.
            wait: Duration::from_secs(30),
        }
    }
}

impl Default for RetryLimits {
    fn default() -> Self {
        RetryLimits {
            // The customary share: a failing fleet gets a fifth more load, not several times as much.
            percent: 20,
            // An app with little traffic loses an instance as unnoticed.
            per_second: 10,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            // Ample for a header on the worst mobile link; a slow-loris client holds a socket no longer.
            header: Duration::from_secs(30),
            // Two round trips and some arithmetic, on the worst mobile link.
            handshake: Duration::from_secs(10),
            // About what browsers keep a connection for.
            idle: Duration::from_secs(60),
            // TCP recovers from a lost packet or a handover within this time.
            body: Duration::from_secs(30),
            // The largest body at 300 KB/s.
            upload: Duration::from_secs(3600),
            // A few lost packets; what follows has to keep a pace.
            client_grace: Duration::from_secs(10),
            // Instances are near; three SYN attempts (1 s, 2 s apart) fit.
            connect: Duration::from_secs(3),
            // The customary bound of a web request.
            response: Duration::from_secs(60),
            // Server-sent events usually ping every 15 to 30 s.
            stall: Duration::from_secs(60),
            // WebSocket pings are minutes apart at most; longer silence is a dead peer.
            tunnel: Duration::from_secs(600),
            // Below the shortest keep-alive in common use (gunicorn: 2 s; Node and uvicorn: 5 s), so
            // that as a rule we, not the backend, close an idle connection. Where the backend is
            // first, what may be sent again is, and the rest looks before it goes.
            backend_idle: Duration::from_millis(1500),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // Room for large cookies and tokens; most app servers stop at 8 or 16 KiB.
            header_bytes: 16 * 1024,
            // What RFC 9112 3 asks for at least, and what most servers stop at.
            target_bytes: 8 * 1024,
            // What common servers accept.
            headers: 100,
            // Larger than what a form uploads, small enough to stop an endless body.
            body_bytes: 1 << 30,
            // Below the usual hard limit of open files, with room for backends.
            connections: 50_000,
            // One client leaves three quarters of all connections to others.
            client_connections: 12_500,
            // So seldom that nobody notices, often enough that long-lived clients spread over threads.
            requests: 100_000,
            // Slower than any link in use; a slot is worth more than a slower client.
            client_rate: 1024,
            // What browsers expect, RFC 9113 6.5.2 advises at least 100.
            streams: 128,
        }
    }
}

fn check_duration(name: &str, duration: Duration) -> Result<(), String> {
    if duration.is_zero() || duration > Timeouts::MAX {
        return Err(format!(
            "a {name} time of {duration:?} is impossible; use more than 0 and at most a day"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Destination, Prefix};

    #[test]
    fn impossible_values_are_refused_with_a_remedy() {
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check()
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert!(with(|c| c.threads = 0).unwrap_err().contains("use 1 to"));
        assert!(with(|c| c.listeners.clear()).unwrap_err().contains("at least one"));
        assert!(with(|c| c.limits.headers = 1000).unwrap_err().contains("use 1 to 128"));
        assert!(with(|c| c.limits.header_bytes = 10).unwrap_err().contains("use 1024 to"));
        assert!(with(|c| c.limits.target_bytes = 0).unwrap_err().contains("use 1 to 16384"));
        assert!(with(|c| c.limits.client_connections = 0).unwrap_err().contains("at least 1"));
        assert!(with(|c| c.apps[0].attempts = 9).unwrap_err().contains("use 1 to 4"));
        assert!(
            with(|c| c.timeouts.idle = Duration::ZERO).unwrap_err().contains("idle time of 0ns")
        );
        let endless = with(|c| c.apps[0].queue.wait = Duration::MAX).unwrap_err();
        assert!(endless.contains("queue wait") && endless.contains("at most a day"), "{endless}");
        assert_eq!(with(|c| c.timeouts.tunnel = Timeouts::MAX), Ok(()));
        assert!(with(|c| c.apps.clear()).unwrap_err().contains("use 1 to"));
        let twice = with(|c| c.apps.push(AppConfig::default())).unwrap_err();
        assert!(twice.contains("two apps are named app"), "{twice}");
        let to = Destination::App { app: AppId::nth(1), prefix: Prefix::Keep };
        let route = Route { host: "a.example".parse().unwrap(), path: "/b/".parse().unwrap(), to };
        let mut config = Config { routes: vec![route.clone()], ..Config::default() };
        let nowhere = config.check().unwrap_err();
        assert!(nowhere.contains("a.example/b leads to an app that does not exist"), "{nowhere}");
        config.apps.push(AppConfig::named("other"));
        assert_eq!(config.check(), Ok(()));
        config.routes.push(route);
        assert!(config.check().unwrap_err().contains("two routes for a.example/b"));
    }
}
