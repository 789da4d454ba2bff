//! What is needed of a program that balances.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fleet::{Companion, CompanionSignal};

use super::access_log::Logged;
use crate::document::idle_connections::IdleConnections;

/// How long a program may take to start, or to do what it was told.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked at meanwhile.
pub const LOOK: Duration = Duration::from_millis(10);

/// An instance behind the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The member's.
    pub id: u64,
    pub name: String,
    pub address: SocketAddr,
    /// Requests at once in it, where the program has a queue.
    pub slots: usize,
    /// What idle connections to it do. Not known counts as harmless.
    pub idle_connections: Option<IdleConnections>,
    /// It gets no new request.
    pub draining: bool,
}

/// What becomes of connections to servers after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpstreamConnections {
    /// They are kept for the next request.
    Kept,
    Closed,
}

impl UpstreamConnections {
    /// As an instance needs it. What is not known is taken for harmless.
    pub fn of(found: Option<IdleConnections>) -> UpstreamConnections {
        match found.is_none_or(IdleConnections::may_be_kept) {
            true => UpstreamConnections::Kept,
            false => UpstreamConnections::Closed,
        }
    }
}

/// A program that balances. Errors are a sentence.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Writes the files with which it starts.
    async fn write(&self, servers: &[Server]) -> Result<(), String>;

    /// How it is started, and the descriptors that it needs.
    fn command(&self) -> (Command, Vec<Arc<OwnedFd>>);

    /// Whether it serves as its files say.
    async fn serves(&self) -> bool;

    /// Changes the servers of the running program. Returns when no new request goes to others.
    async fn change(&self, servers: &[Server], process: &Companion) -> Result<(), String>;

    /// Whether no request is in flight at a server that is drained.
    async fn is_idle(&self, server: &Server) -> bool;

    /// What the log calls a server.
    fn key(&self, server: &Server) -> String;

    /// Reads a line of the log.
    fn parse(&self, line: &str) -> Option<Logged<String>>;

    /// The least time between two changes.
    fn pace(&self) -> Duration;

    /// The signal that ends it after the requests in flight.
    fn stop_signal(&self) -> CompanionSignal;
}

/// Whether connections to servers may be kept for the next request.
pub fn upstream_connections(servers: &[Server]) -> UpstreamConnections {
    let each = servers.iter().map(|server| UpstreamConnections::of(server.idle_connections));
    each.max().unwrap_or(UpstreamConnections::Kept)
}

/// Seconds as the log of nginx has them, from `0.012`.
pub fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}
