//! Why a run did not start: one sentence, with the remedy.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    #[error("'{0}' is not a name or address that a certificate can have; check the URL")]
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
    /// The system has no trusted certificates.
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
    Rate(f64),
    /// A rate that the generator's threads cannot even count.
    #[error(
        "a rate of {rate} requests per second is more than {threads} generator {} can send; give at most {most}, or more threads",
        if *threads == 1 { "thread" } else { "threads" }
    )]
    TooFast {
        /// The highest that is asked for.
        rate: f64,
        /// Threads of the generator.
        threads: usize,
        /// The highest that is allowed.
        most: f64,
    },
    /// A ramp that no schedule can be made of.
    #[error(
        "a ramp of {0} users per second cannot be scheduled; give a number from 0.0001 to 1000000000, or no ramp to start all users at once"
    )]
    Ramp(f64),
    /// Thinking that is shortest when it is longest.
    #[error("thinking from {least:?} to {most:?} is not a range; give the shorter time first")]
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
    #[error("the script's 'before' failed: {error}; make it pass alone, or remove it")]
    Before {
        /// The name of the error.
        error: String,
    },
    /// A script and HTTP/2.
    #[error("scripts speak HTTP/1.1; leave HTTP/2 out, or put a URL under load")]
    ScriptInHttp2,
    /// A request that HTTP/2 has no words for.
    #[error(
        "HTTP/2 cannot carry this request: give a path that begins with / and a host, or use HTTP/1.1"
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
