//! Why a balancer did not start.

use std::io;

use crate::config::address::Address;

/// Why a balancer did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program listens there.
    #[error("address {address} is already in use; stop what listens there or choose another one")]
    AddressInUse {
        /// The configured address.
        address: Address,
    },
    /// The port is usually below 1024, or the directory belongs to somebody else.
    #[error(
        "listening on {address} is not permitted; use a port of 1024 or above or a directory that you may write, or grant CAP_NET_BIND_SERVICE"
    )]
    NotPermitted {
        /// The configured address.
        address: Address,
    },
    /// Any other failure to listen.
    #[error(
        "cannot listen on {address}: {cause}; use an address of this machine, or a path in a directory that exists"
    )]
    Bind {
        /// The configured address.
        address: Address,
        /// The system's error.
        cause: io::Error,
    },
    /// A value is impossible.
    #[error("the balancer's configuration is wrong: {0}")]
    Config(String),
    /// A certificate or its key cannot be used.
    #[error("{0}")]
    Certificate(String),
    /// The access log cannot be written.
    #[error(
        "cannot open the access log {log}: {cause}; make its directory, or choose a file that may be written"
    )]
    AccessLog {
        /// The target.
        log: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The process may not open enough files.
    #[error(
        "{allowed} open files are allowed, and {needed} are needed with {threads} threads: raise the limit (ulimit -n \
         {needed}, LimitNOFILE= of systemd), or use fewer threads"
    )]
    TooFewFiles {
        /// The limit of the system.
        allowed: u64,
        /// What a few clients at once need.
        needed: u64,
        /// The data-plane threads.
        threads: usize,
    },
    /// The system gave no thread or no event loop.
    #[error("cannot start a data-plane thread: {0}; raise the limits of processes and open files")]
    Thread(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        StartError::Thread(error)
    }
}
