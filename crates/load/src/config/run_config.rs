//! The configuration of a run, with its defaults and its checks.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::io_engine::Engine;
use crate::control::interrupt::Interrupt;
use crate::error::start_error::StartError;
use crate::http::request::KeepAlive;
use crate::http::target::Target;
use crate::session::player::Scenarios;
use crate::tls::client::{Tls, TlsClient};
use crate::workload::rate::max_rate;
use crate::workload::spec::Workload;
use crate::workload::thread_share::ThreadShare;

/// The configuration of a run. [`Config::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where requests go and what they say.
    pub target: Target,
    /// When requests are due.
    pub workload: Workload,
    /// When the run ends by itself. Default: never.
    pub end: End,
    /// From the send to the last byte of the answer. Default: 10 s.
    pub timeout: Duration,
    /// From opening a connection to its being established. Default: 5 s.
    pub connect_timeout: Duration,
    /// Whether connections serve more than one request. Default: they do.
    pub keep_alive: KeepAlive,
    /// Addresses of this machine that connections come from, in turn. One address and one target
    /// address have about 28,000 ports between them. Default: the kernel's choice.
    pub local_addresses: Vec<IpAddr>,
    /// How https is spoken, if the target's URL asks for it.
    pub tls: Tls,
    /// What is spoken on connections. Default: HTTP/1.1.
    pub protocol: Protocol,
    /// The most connections of an open workload at once, over all threads. A request that finds all of them busy
    /// waits inside the generator, and the wait counts into its response time. A closed workload ignores this
    /// limit: every user has a connection of its own, or with HTTP/2 a stream. Default: 4096.
    pub max_connections: usize,
    /// Generator threads. Each drives its share of the load. Default: 1.
    pub threads: usize,
    /// The I/O engine. Default: [`Engine::Auto`].
    pub engine: Engine,
    /// What the figures leave out. Default: the warm-up.
    pub trim: Trim,
    /// Share of requests that may fail without a reason in the verdict. Up to 1 % always may. Default: 0.
    pub max_errors: f64,
    /// Length of a measuring window. Default: 1 s.
    pub window: Duration,
    /// Random seed, so that a run can be repeated.
    pub seed: u64,
    /// A script that replaces the target's request. Arrivals are then sessions, and [`End::Requests`] counts
    /// sessions. Default: none.
    pub script: Option<Arc<dyn Scenarios>>,
    /// Ends the sessions that the script plays before and after the load.
    pub interrupt: Interrupt,
}

/// When a run ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// When it is stopped.
    Never,
    /// When it has measured for this long, without pauses. It measures from the start, or from the last
    /// [`crate::Run::mark`].
    Duration(Duration),
    /// When this many requests have been sent and have ended, counted from the start.
    Requests(u64),
}

/// What the figures of a run leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trim {
    /// The beginning, until the run was steady. The run must be meant to be steady, and last for 5 s or
    /// more. It must not be marked or steered, or end at a number of requests.
    #[default]
    WarmUp,
    /// Nothing.
    Nothing,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time.
    #[default]
    Http1,
    /// HTTP/2: negotiated in TLS (ALPN), or with prior knowledge without TLS.
    Http2 {
        /// Requests at once on a connection. This many users, or arrivals, share a connection.
        streams: usize,
    },
}

impl Config {
    /// The defaults that each field names.
    pub fn new(target: Target, workload: Workload) -> Config {
        Config {
            target,
            workload,
            end: End::Never,
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            keep_alive: KeepAlive::Reuse,
            local_addresses: Vec::new(),
            tls: Tls::default(),
            protocol: Protocol::Http1,
            max_connections: 4096,
            threads: 1,
            engine: Engine::Auto,
            trim: Trim::WarmUp,
            max_errors: 0.0,
            window: Duration::from_secs(1),
            seed: 1,
            script: None,
            interrupt: Interrupt::default(),
        }
    }

    /// Whether a run could start, as far as that does not depend on the machine.
    ///
    /// # Errors
    /// What [`Run::start`](crate::Run::start) would refuse.
    pub fn check(&self) -> Result<(), StartError> {
        self.workload.check()?;
        let shortest_window = Duration::from_millis(1);
        if self.timeout.is_zero() {
            return Err(StartError::Zero("the response timeout", "1 ms"));
        }
        if self.connect_timeout.is_zero() {
            return Err(StartError::Zero("the connect timeout", "1 ms"));
        }
        if self.threads == 0 {
            return Err(StartError::Zero("the number of generator threads", "1"));
        }
        let (rate, most) = (self.workload.peak(), max_rate(self.threads));
        if rate > most {
            return Err(StartError::TooFast { rate, threads: self.threads, most });
        }
        if self.max_connections == 0 {
            return Err(StartError::Zero("the limit on connections", "1"));
        }
        if self.script.is_some() && self.protocol != Protocol::Http1 {
            return Err(StartError::ScriptInHttp2);
        }
        if self.protocol == (Protocol::Http2 { streams: 0 }) {
            return Err(StartError::Zero("the number of streams a connection", "1"));
        }
        if self.window < shortest_window {
            return Err(StartError::Zero("the measuring window", "1 ms"));
        }
        match self.end {
            End::Duration(length) if length.is_zero() => {
                Err(StartError::Zero("the duration", "1 ms"))
            }
            End::Requests(0) => Err(StartError::Zero("the number of requests", "1")),
            _ => Ok(()),
        }?;
        self.target.check()?;
        self.tls_client().map(drop)
    }

    /// The TLS side of connections; `None` for plain connections.
    pub(crate) fn tls_client(&self) -> Result<Option<TlsClient>, StartError> {
        let Some(name) = &self.target.tls else {
            return Ok(None);
        };
        let client = TlsClient::new(name, &self.tls)?;
        Ok(Some(match self.protocol {
            Protocol::Http1 => client,
            Protocol::Http2 { .. } => client.for_http2(),
        }))
    }

    /// Connections that the run may hold at once.
    pub(crate) fn connections(&self) -> usize {
        match (&self.workload, &self.script, self.protocol) {
            (Workload::Closed { users, .. }, None, Protocol::Http1) => *users,
            (Workload::Closed { users, .. }, None, Protocol::Http2 { streams }) => {
                let of_thread =
                    |thread| ThreadShare { thread, threads: self.threads }.of(*users as u64);
                let links = |thread| of_thread(thread).div_ceil(streams as u64);
                (0..self.threads).map(links).sum::<u64>() as usize
            }
            // The session of a user may hold several connections.
            (Workload::Closed { users, .. }, Some(_), _) => self.max_connections.max(*users),
            (Workload::Open { .. }, ..) => self.max_connections,
        }
    }
}
