//! What is needed of a program that balances.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fleet::{Companion, CompanionSignal};

use super::access_log::Logged;

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
    /// It gets no new request.
    pub draining: bool,
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

/// Seconds as the log of nginx has them, from `0.012`.
pub fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}
