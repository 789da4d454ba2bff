//! A unit as an instance, from its start to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::bus::{CallError, Manager, ServiceState};
use super::claim::Claim;
use super::journal;
use super::main_process::MainProcess;
use super::transient::Output;
use super::unit_state;
use crate::app::Readiness;
use crate::driver::process::ports::Lease;
use crate::driver::process::probe::{self, Answer};
use crate::driver::process::{self, WRONG_ADDRESS_PART, wrong_address};
use crate::driver::{Extent, Instance, Notice};
use crate::error::{Output as Quotation, QUOTED_LINES, StartError};
use crate::exit::Exit;

/// How long a manager may take to see the end of a process, or to end a killed one.
pub(super) const END_TIME: Duration = Duration::from_secs(5);

/// A unit of Tenfold's, which is ended when this is dropped.
pub(super) struct OwnedUnit {
    pub(super) manager: Arc<Manager>,
    pub(super) name: String,
    /// Nothing of it is left, or it runs on without this Tenfold.
    has_ended: bool,
    /// Held where it may run on, so that no other Tenfold takes it over meanwhile.
    claim: Option<Claim>,
}

pub(super) struct UnitInstance {
    pub(super) unit: OwnedUnit,
    /// The instance's.
    pub(super) name: String,
    pub(super) process: MainProcess,
    /// Final once it is ready.
    pub(super) address: SocketAddr,
    pub(super) lease: Lease,
    pub(super) output: Output,
    /// In hexadecimal digits.
    pub(super) invocation: String,
    pub(super) exit: Option<Exit>,
}

/// How waiting for an instance ended.
enum Waited {
    Ready(SocketAddr),
    Late,
    Exited,
}

// === impl OwnedUnit ===

impl OwnedUnit {
    pub(super) fn new(manager: Arc<Manager>, name: String, claim: Option<Claim>) -> OwnedUnit {
        OwnedUnit { manager, name, has_ended: false, claim }
    }

    /// Waits until no start or stop is under way.
    pub(super) async fn started(&self, limit: Duration) -> Result<ServiceState, CallError> {
        unit_state::when(&self.manager, &self.name, limit, ServiceState::is_settled).await
    }

    async fn end(&mut self) {
        self.has_ended |= end(&self.manager, &self.name).await.is_ok();
    }
}

impl Drop for OwnedUnit {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let (manager, name) = (Arc::clone(&self.manager), self.name.clone());
        // Without a runtime, or without the time, the guard does it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = end(&manager, &name).await;
            });
        }
    }
}

/// Kills all of a unit, and lets its manager forget it, even one that has failed: a manager that has executed
/// itself anew since would keep that.
pub(super) async fn end(manager: &Manager, name: &str) -> Result<(), CallError> {
    manager.kill(name).await?;
    manager.stop(name).await?;
    // What was killed just now fails only when its manager has seen the end of it.
    unit_state::when(manager, name, END_TIME, ServiceState::has_ended).await?;
    manager.reset_failed(name).await?;
    manager.release(name).await
}

// === impl UnitInstance ===

impl UnitInstance {
    async fn quote(&self) -> Quotation {
        Quotation(self.last_lines(QUOTED_LINES).await)
    }

    /// Waits for the manager to see the end of all of it.
    async fn read_exit(&self, limit: Duration) -> Option<Exit> {
        let OwnedUnit { manager, name, .. } = &self.unit;
        let state = unit_state::when(manager, name, limit, ServiceState::has_ended).await.ok()?;
        state.has_ended().then(|| self.process.exit_of(&state))
    }
}

#[async_trait]
impl Instance for UnitInstance {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn handle(&self) -> &str {
        &self.unit.name
    }

    fn extent(&self) -> Extent {
        Extent::ControlGroup(self.process.pid)
    }

    async fn ready(&mut self, readiness: &Readiness) -> Result<(), StartError> {
        let mut last = Answer::Refused;
        let patience = readiness.deadline / WRONG_ADDRESS_PART;
        // Each service is a session of its own, and so a process group.
        let (group, port) = (self.process.pid, self.lease.port());
        let probing = probe::until_ready(&readiness.probe, port, &mut last);
        let waited = tokio::select! {
            biased;
            () = self.process.ended() => Waited::Exited,
            address = timeout(readiness.deadline, probing) => {
                address.map_or(Waited::Late, Waited::Ready)
            }
            _ = wrong_address::settled(group, port, patience) => Waited::Late,
        };
        match waited {
            Waited::Ready(address) => {
                process::confirm(&self.name, group, port).await?;
                self.address = address;
                Ok(())
            }
            Waited::Late => {
                let quotation = self.quote().await;
                Err(process::late(&self.name, group, port, readiness, &last, quotation).await)
            }
            Waited::Exited => {
                let exit = self.exited().await;
                let output = self.quote().await;
                Err(StartError::Exited { name: self.name.clone(), exit, output })
            }
        }
    }

    async fn died(&mut self) {
        self.process.ended().await;
    }

    async fn exited(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        self.process.ended().await;
        // What it has left behind must not go on without it.
        let _ = self.unit.manager.kill(&self.unit.name).await;
        let exit = self.read_exit(END_TIME).await.unwrap_or(Exit::Unknown);
        self.unit.end().await;
        self.exit = Some(exit);
        exit
    }

    async fn stop(&mut self, grace: Duration) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let _ = self.unit.manager.stop(&self.unit.name).await;
        let mut exit = self.read_exit(grace).await;
        if exit.is_none() {
            let _ = self.unit.manager.kill(&self.unit.name).await;
            exit = self.read_exit(END_TIME).await;
        }
        self.unit.end().await;
        let exit = exit.unwrap_or(Exit::Unknown);
        self.exit = Some(exit);
        exit
    }

    async fn last_lines(&self, n: usize) -> Vec<String> {
        journal::last_lines(&self.output, &self.invocation, n).await
    }

    fn notice(&self) -> Notice {
        Notice::default()
    }

    fn release(mut self: Box<Self>) {
        self.unit.has_ended |= self.unit.claim.is_some();
    }
}
