//! What starts instances, and who learns which of them may get requests.
//!
//! - [`process`]: the driver that runs instances as processes of this machine.
//! - [`fake`]: a driver and a membership in virtual time, for tests.
//!
//! To add a driver, write a file beside `process.rs` that implements [`Driver`] and [`Instance`], and
//! pass it to [`Fleet::new`](crate::Fleet::new). The fleet's tests show what it expects of them.

pub mod fake;
pub mod process;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::app::{App, Readiness};
use crate::error::StartError;
use crate::exit::Exit;

/// A running instance, as the rest of the program sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Unique over the life of the fleet and never reused: a restarted instance gets a new one.
    pub id: u64,
    /// `{i}`, from 1; survives restart and reload.
    pub index: usize,
    /// `{name}`, such as `app-1`; survives restart and reload.
    pub name: String,
    /// Where it takes requests.
    pub address: SocketAddr,
    /// The leader of its process group.
    pub pid: u32,
}

/// The identity that an instance will have.
#[derive(Debug, Clone)]
pub struct Identity {
    /// See [`Member::id`].
    pub id: u64,
    /// See [`Member::index`].
    pub index: usize,
    /// See [`Member::name`].
    pub name: String,
    /// The port of the instance that died before it, to be taken again if it is free.
    pub port: Option<u16>,
}

/// Something that went wrong beside an instance without stopping it, such as a log that cannot be
/// written. Set at most once, in one sentence.
pub type Notice = Arc<OnceLock<String>>;

/// Is told which instances may get requests; a balancer.
#[async_trait]
pub trait Membership: Send + Sync + 'static {
    /// The instance is ready.
    fn join(&self, member: &Member);

    /// The instance died by itself: in service, or while it was drained.
    fn lost(&self, member: &Member);

    /// Takes the instance out of service. Returns when no request is in flight there or `deadline`
    /// has passed, whichever is first; from the call on it gets no new request.
    async fn drain(&self, member: &Member, deadline: Duration);
}

/// Starts instances.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Starts an instance without waiting until it is ready. When the future is dropped, nothing
    /// that it started remains.
    ///
    /// # Errors
    /// When the instance could not be started.
    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError>;
}

/// A started instance. Dropping it kills it and all that it started, without grace.
#[async_trait]
pub trait Instance: Send {
    /// Where it takes requests; final once [`ready`](Instance::ready) has returned.
    fn address(&self) -> SocketAddr;

    /// The leader of its process group.
    fn pid(&self) -> u32;

    /// Returns when the instance can take requests.
    ///
    /// # Errors
    /// When it died first, or the deadline passed.
    async fn ready(&mut self, readiness: &Readiness) -> Result<(), StartError>;

    /// Returns as soon as it can take no request any more because its leader has ended, at once when
    /// it has already. What it has started, and its output, may end later. May be dropped and called
    /// again.
    async fn died(&mut self) {
        self.exited().await;
    }

    /// Returns when all of it has ended, at once when it has already. May be dropped and called again.
    async fn exited(&mut self) -> Exit;

    /// Asks it to end, and kills it and all that it started after `grace`.
    async fn stop(&mut self, grace: Duration) -> Exit;

    /// At most `n` of the last lines that it wrote, oldest first, printable.
    fn last_lines(&self, n: usize) -> Vec<String>;

    /// A problem that did not stop the instance.
    fn notice(&self) -> Notice;
}
