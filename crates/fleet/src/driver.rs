//! What starts instances, and who learns which of them may get requests.
//!
//! - [`compose`]: the driver that runs instances of a service of Docker Compose, beside its stack.
//! - [`docker`]: the driver that runs instances as containers of Docker or Podman.
//! - [`process`]: the driver that runs instances as processes of this machine.
//! - [`systemd`]: the driver that runs instances as services of systemd.
//! - [`fake`]: a driver and a membership in virtual time, for tests.
//! - [`watched`]: what the user says that instances depend on.
//! - [`undo`]: what the guard does when Tenfold is killed.
//!
//! To add a driver, write a file beside `process.rs` that implements [`Driver`] and [`Instance`]. The fleet's tests
//! show what it expects of them. What the guard must undo when Tenfold is killed goes into [`undo::carry_out`].
//! CONTRIBUTING says where the program chooses the driver.

pub mod compose;
pub mod docker;
pub mod fake;
pub mod process;
pub mod systemd;
pub mod undo;
pub mod watched;

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
    /// See [`Instance::own_name`].
    pub own_name: Option<String>,
    /// Where it takes requests.
    pub address: SocketAddr,
    /// See [`Instance::port_inside`].
    #[serde(default)]
    pub port_inside: Option<u16>,
    /// What its driver calls it: a process id, or the name of a unit or a container.
    pub handle: String,
    /// Which processes it is.
    pub extent: Extent,
}

/// Which processes are an instance, or something that instances depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// The process group of this leader.
    ProcessGroup(u32),
    /// The control group of this process, with all groups below it.
    ControlGroup(u32),
    /// This process with all that it has started.
    ProcessTree(u32),
    /// None that can be seen from here.
    Elsewhere,
}

/// Something that instances depend on, such as a database: watched, and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// As the user calls it.
    pub name: String,
    /// Which processes it is.
    pub extent: Extent,
}

/// Who starts an instance again that has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restarts {
    /// The fleet, after a wait that grows.
    Ours,
    /// What runs it: the driver takes over what has come back.
    Engine,
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

/// What an instance had to do when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Requests, which may be what ended it.
    Requests,
    /// Nothing, as far as is known.
    Idle,
}

/// Is told which instances may get requests; a balancer.
#[async_trait]
pub trait Membership: Send + Sync + 'static {
    /// The instance is ready. Returns when it gets requests.
    ///
    /// # Errors
    /// When it cannot be given any; it is stopped then.
    async fn join(&self, member: &Member) -> Result<(), StartError>;

    /// The instance died: in service, or while it was drained.
    fn lost(&self, member: &Member) -> Load;

    /// Takes the instance out of service. Returns when no request is in flight there or `deadline`
    /// has passed, whichever is first; from the call on it gets no new request.
    async fn drain(&self, member: &Member, deadline: Duration);
}

/// Starts instances of one app.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Whether instances can be run and held to the app's limits here; tries it.
    ///
    /// # Errors
    /// When what runs them is absent, too old or unwilling, or this user's rights do not allow it.
    async fn check(&self, app: &App) -> Result<(), StartError>;

    /// The highest number of an instance that a Tenfold before this one has left running for the next one. The
    /// starts of their numbers take them over.
    ///
    /// # Errors
    /// When what runs them does not answer.
    async fn found(&self, _: &App) -> Result<usize, StartError> {
        Ok(0)
    }

    /// Starts an instance without waiting until it is ready, or takes over one that was left running
    /// for this index. When the future is dropped, nothing that it started remains.
    ///
    /// # Errors
    /// When the instance could not be started, or is not held to its limits.
    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError>;

    /// What the instances depend on.
    ///
    /// # Errors
    /// When one of them does not run, so that nothing could be measured.
    async fn dependencies(&self, _: &App) -> Result<Vec<Dependency>, StartError> {
        Ok(Vec::new())
    }

    /// Undoes what outlives instances. May be called again.
    ///
    /// # Errors
    /// When something stays as it was changed.
    async fn restore(&self, _: &App) -> Result<(), StartError> {
        Ok(())
    }

    /// Who starts an instance again that has died.
    fn restarts(&self) -> Restarts {
        Restarts::Ours
    }
}

/// A started instance. Dropping it kills it and all that it started, without grace.
#[async_trait]
pub trait Instance: Send {
    /// Where it takes requests; final once [`ready`](Instance::ready) has returned.
    fn address(&self) -> SocketAddr;

    /// What its driver calls it.
    fn handle(&self) -> &str;

    /// What its user calls it, where it was named by somebody else than Tenfold: `fibscale@2`.
    fn own_name(&self) -> Option<&str> {
        None
    }

    /// The port at which it listens inside its container. A published one has another outside.
    fn port_inside(&self) -> Option<u16> {
        None
    }

    /// Which processes it is.
    fn extent(&self) -> Extent;

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
    async fn last_lines(&self, n: usize) -> Vec<String>;

    /// A problem that did not stop the instance.
    fn notice(&self) -> Notice;

    /// Leaves it running for the next Tenfold. One that lives only with this Tenfold is killed.
    fn release(self: Box<Self>) {}
}

impl Member {
    /// Its name in messages: what its user calls it, else [`Member::name`].
    pub fn display_name(&self) -> &str {
        self.own_name.as_deref().unwrap_or(&self.name)
    }
}

impl Extent {
    /// A process of it.
    pub fn pid(self) -> Option<u32> {
        match self {
            Extent::ProcessGroup(pid) | Extent::ControlGroup(pid) | Extent::ProcessTree(pid) => {
                Some(pid)
            }
            Extent::Elsewhere => None,
        }
    }
}
