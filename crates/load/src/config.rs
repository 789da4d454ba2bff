//! What a run is made of, its defaults, and everything that can be wrong with it.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::driver::Engine;
use crate::http::Speech;
use crate::http2::Message;
use crate::rehearsal::Interrupt;
use crate::request::PreparedRequest;
use crate::schedule::Share;
use crate::script::Script;
use crate::target::Target;
use crate::tls::{Client, Tls};
use crate::workload::{Rate, Workload, fastest};

/// A run, complete. [`Config::new`] gives the defaults; change what differs.
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
    /// How https is spoken, where the target asks for it.
    pub tls: Tls,
    /// What is spoken on connections. Default: HTTP/1.1.
    pub protocol: Protocol,
    /// Connections that an open workload may hold at once, over all threads. A request that finds
    /// all of them busy waits inside the generator; the wait counts into its response time.
    /// In a closed workload every user has its own connection, or with HTTP/2 its own stream, and
    /// this is not looked at.
    /// Default: 4096.
    pub max_connections: usize,
    /// Generator threads; each drives its share of the load. Default: 1.
    pub threads: usize,
    /// What carries the bytes. Default: [`Engine::Auto`].
    pub engine: Engine,
    /// What the figures leave out. Default: the warm-up.
    pub trim: Trim,
    /// Share of requests that may fail: no more than that, or than 1 %, speaks against nothing.
    /// Default: 0.
    pub max_errors: f64,
    /// Length of a measuring window. Default: 1 s.
    pub window: Duration,
    /// Seed of everything random, so that a run can be repeated.
    pub seed: u64,
    /// What users do instead of sending the one request of the target: arrivals, and what is
    /// counted towards [`End::Requests`], are then sessions. Default: none.
    pub script: Option<Arc<Script>>,
    /// Ends what the script does once before the load, and once after it. Default: asked by nobody.
    pub interrupt: Interrupt,
}

/// When a run ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Only when told.
    Never,
    /// When this much time has been measured, without pauses: since the start or, if there was
    /// one, since the last [`crate::Run::mark`].
    Duration(Duration),
    /// When this many requests, counted from the start, have been sent and have ended.
    Requests(u64),
}

/// What the figures of a run leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trim {
    /// The beginning, until the run was steady: of one that is meant to be steady, that lasts
    /// 5 s or more, that nobody marked or steered, and that does not end at a number of requests.
    #[default]
    WarmUp,
    /// Nothing.
    Nothing,
}

/// Whether a connection serves more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepAlive {
    /// Connections are used again for as long as the server allows.
    #[default]
    Reuse,
    /// Every request asks for its connection to be closed after the answer.
    ClosePerRequest,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time.
    #[default]
    Http1,
    /// HTTP/2: over TLS as it is agreed upon (ALPN), else without asking the server first.
    Http2 {
        /// Requests at once on a connection. As many users, or arrivals, share one.
        streams: usize,
    },
}

/// Why a run did not start: one sentence, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The target is not a URL that can be used.
    #[error("'{url}' is not a usable URL: {why}; write it like http://127.0.0.1:8080/path")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The path cannot be that of a Unix socket.
    #[error("cannot connect to the Unix socket '{}': {error}; give a shorter path", path.display())]
    UnixSocket {
        /// As given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Connections cannot come from an address.
    #[error(
        "cannot send from {address}: {error}; give addresses of this machine (ip address shows them)"
    )]
    LocalAddress {
        /// As given.
        address: IpAddr,
        /// What the system said.
        error: io::Error,
    },
    /// No local address is of the target's kind.
    #[error(
        "none of the local addresses can reach the target; give IPv4 ones for an IPv4 target, IPv6 ones for IPv6, none for a Unix socket"
    )]
    NoLocalAddress,
    /// The host cannot be a name that a certificate is for.
    #[error("'{0}' is no name or address that a certificate can be for; check the URL")]
    TlsName(String),
    /// The file of trusted certificates is of no use.
    #[error(
        "cannot take certificates from '{}': {why}; give a PEM file with the authority's certificate",
        path.display()
    )]
    TrustFile {
        /// As given.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system trusts nobody.
    #[error(
        "this system has no trusted certificates; install its package (ca-certificates), name a file with --ca, or use --insecure for a server of your own"
    )]
    NoRoots,
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}; use an http:// URL")]
    TlsSetup(rustls::Error),
    /// The host name has no address.
    #[error("cannot find an address for '{host}': {error}; check the name, or give the IP address")]
    Resolve {
        /// The name that was looked up.
        host: String,
        /// What the resolver said.
        error: io::Error,
    },
    /// The method is not an HTTP token.
    #[error("'{0}' is not an HTTP method; use a word such as GET or POST")]
    Method(String),
    /// The path cannot stand in a request line.
    #[error(
        "'{0}' is not a request path; start it with '/' and percent-encode blanks and other special characters"
    )]
    Path(String),
    /// The Host header cannot be sent.
    #[error("'{0}' is not a host name that can be sent; leave out blanks and control characters")]
    Host(String),
    /// A header has no name that can be sent.
    #[error(
        "the name of a header is not a token; use letters, digits and hyphens, without blanks or colons"
    )]
    HeaderName,
    /// A header cannot be sent.
    #[error("header '{name}' cannot be sent: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong and what to do.
        why: &'static str,
    },
    /// A rate that no schedule can be made of.
    #[error(
        "a rate of {0} requests per second cannot be scheduled; give a number from 0.0001 to 1000000000"
    )]
    Rate(Rate),
    /// A rate that the generator's threads cannot even count.
    #[error(
        "a rate of {rate} requests per second is more than {threads} generator {} can send; give at most {most}, or more threads",
        if *threads == 1 { "thread" } else { "threads" }
    )]
    TooFast {
        /// The highest that is asked for.
        rate: Rate,
        /// Threads of the generator.
        threads: usize,
        /// The highest that is allowed.
        most: Rate,
    },
    /// A ramp that no schedule can be made of.
    #[error(
        "a ramp of {0} users per second cannot be scheduled; give a number from 0.0001 to 1000000000, or no ramp to start all users at once"
    )]
    Ramp(Rate),
    /// Thinking that is shortest when it is longest.
    #[error("thinking from {least:?} to {most:?} is no range; give the shorter time first")]
    Think {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// A phase that needs an end has none.
    #[error("only the last phase of a constant rate may have no end; give every phase a length")]
    EndlessPhase,
    /// A script's `before` did not come to its end.
    #[error(
        "what the script does before the load failed: {error}; make it pass alone, or take it out"
    )]
    Before {
        /// The name of the error.
        error: String,
    },
    /// A script and HTTP/2.
    #[error("scripts speak HTTP/1.1; leave HTTP/2 out, or put a URL under load")]
    ScriptInHttp2,
    /// A request that HTTP/2 has no words for.
    #[error(
        "this request cannot be said in HTTP/2: give a path that begins with / and a host, or speak HTTP/1.1"
    )]
    NotInHttp2,
    /// A closed workload without users.
    #[error("a workload of 0 users sends nothing; give at least 1 user")]
    NoUsers,
    /// More users than can be counted.
    #[error("{0} users are more than one generator can hold; give fewer users")]
    TooManyUsers(usize),
    /// More users than open files are allowed.
    #[error(
        "{connections} connections need {needed} open files but this process may have {limit}; raise the limit (ulimit -n {needed}) or use fewer users"
    )]
    Files {
        /// Connections that the workload needs.
        connections: usize,
        /// Open files that it needs in total.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// A count or a time that must not be zero is.
    #[error("{0} is zero; give at least {1}")]
    Zero(&'static str, &'static str),
    /// io_uring was asked for and is not to be had.
    #[error(
        "io_uring cannot be used here: {0}; use --engine epoll, or allow it (Linux 6.1 or newer, kernel.io_uring_disabled = 0, no seccomp filter in the way)"
    )]
    Uring(io::Error),
    /// The machine refused something that the engine is built on.
    #[error(
        "cannot set up the load engine ({what}): {error}; check the limits on open files and threads"
    )]
    Engine {
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl StartError {
    /// Whether it is what was asked for that cannot be, and not this machine, its network or its
    /// files that stand in the way.
    pub fn is_misuse(&self) -> bool {
        match self {
            StartError::Url { .. }
            | StartError::NoLocalAddress
            | StartError::TlsName(_)
            | StartError::TrustFile { .. }
            | StartError::Method(_)
            | StartError::Path(_)
            | StartError::Host(_)
            | StartError::HeaderName
            | StartError::Header { .. }
            | StartError::Rate(_)
            | StartError::TooFast { .. }
            | StartError::Ramp(_)
            | StartError::Think { .. }
            | StartError::EndlessPhase
            | StartError::ScriptInHttp2
            | StartError::NotInHttp2
            | StartError::NoUsers
            | StartError::TooManyUsers(_)
            | StartError::Zero(..) => true,
            StartError::UnixSocket { .. }
            | StartError::LocalAddress { .. }
            | StartError::NoRoots
            | StartError::TlsSetup(_)
            | StartError::Resolve { .. }
            | StartError::Before { .. }
            | StartError::Files { .. }
            | StartError::Uring(_)
            | StartError::Engine { .. } => false,
        }
    }
}

impl Config {
    /// A run with the defaults named at each field.
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
        let (rate, most) = (self.workload.peak(), fastest(self.threads));
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

    /// What makes the TLS side of connections; `None` for plain ones.
    pub(crate) fn tls_client(&self) -> Result<Option<Client>, StartError> {
        let Some(name) = &self.target.tls else {
            return Ok(None);
        };
        let client = Client::new(name, &self.tls)?;
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
                let of_thread = |thread| Share { thread, threads: self.threads }.of(*users as u64);
                let links = |thread| of_thread(thread).div_ceil(streams as u64);
                (0..self.threads).map(links).sum::<u64>() as usize
            }
            // The session of a user may hold several.
            (Workload::Closed { users, .. }, Some(_), _) => self.max_connections.max(*users),
            (Workload::Open { .. }, ..) => self.max_connections,
        }
    }

    /// How connections are spoken on.
    pub(crate) fn speech(&self, request: &PreparedRequest) -> Result<Speech, StartError> {
        match self.protocol {
            Protocol::Http1 => Ok(Speech::One),
            Protocol::Http2 { streams } => Ok(Speech::Two {
                streams: u32::try_from(streams).unwrap_or(u32::MAX),
                message: Box::new(
                    Message::of(request, self.target.scheme()).ok_or(StartError::NotInHttp2)?,
                ),
            }),
        }
    }
}
