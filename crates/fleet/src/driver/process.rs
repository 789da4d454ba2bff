//! The driver that runs instances as processes of this machine.
//!
//! - `command`: what is executed, and why it could not be.
//! - `pre_exec`: what an instance does before its program begins: it binds its life to Tenfold's, and
//!   joins the control group of its limits.
//! - `group`: a process and all that it started, from fork to the last of them.
//! - `ports`: which ports are free.
//! - `sockets`: who listens where.
//! - `probe`: readiness by TCP and HTTP.
//! - `wrong_address`: an instance that listens elsewhere.
//! - [`companion`]: a program beside the instances, such as another balancer.
//! - `output`: what instances write: the last lines, and rotated files.

pub(super) mod command;
pub mod companion;
pub(crate) mod group;
pub mod leftovers;
pub(crate) mod output;
pub(super) mod ports;
mod pre_exec;
pub(crate) mod probe;
pub(super) mod sockets;
#[cfg(test)]
mod tests;
pub(super) mod wrong_address;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use crate::app::{App, Readiness};
use crate::cgroup::{self, Cgroup};
use crate::driver::{Driver, Extent, Identity, Instance, Notice};
use crate::error::{Output, QUOTED_LINES, StartError};
use crate::exit::Exit;
use crate::guard::Guard;
use crate::program::{Logs, Ports, Program};
use group::ProcessGroup;
use output::{Capture, LogFile};
use ports::{Lease, PortPool};
use probe::Answer;
pub(crate) use sockets::{aside, listener};

/// An idle instance that listens elsewhere is waited for this part of the time that it has.
pub(super) const WRONG_ADDRESS_PART: u32 = 6;

/// How long the kernel may take to end a killed process before it is called stuck.
const KILL_TIME: Duration = Duration::from_secs(5);

/// Runs instances as processes of this machine, each the leader of its own process group.
///
/// They die with Tenfold, whatever ends it. Out of reach is only what leaves its process group on
/// purpose, such as a daemon.
pub struct ProcessDriver {
    program: Program,
    host: Arc<ProcessHost>,
}

/// What the process drivers of all apps share.
pub struct ProcessHost {
    guard: Option<Arc<Guard>>,
    ports: PortPool,
    /// By path: a successor writes into the same file as the instance that it replaces.
    logs: Mutex<HashMap<PathBuf, Weak<Mutex<LogFile>>>>,
}

/// How waiting for an instance ended.
enum Waited {
    Ready(SocketAddr),
    Late,
    Exited(Exit),
}

struct ProcessInstance {
    name: String,
    handle: String,
    group: ProcessGroup,
    output: Capture,
    lease: Lease,
    address: SocketAddr,
}

// === impl ProcessHost ===

impl ProcessHost {
    /// Ends what killed Tenfolds left behind, and starts a guard: a command that ends up in
    /// [`run_guard`](crate::run_guard). Without one, what an instance has started survives when Tenfold is
    /// killed by SIGKILL, until the next Tenfold.
    ///
    /// # Errors
    /// When the guard cannot be started.
    pub fn new(guard: Option<Vec<String>>) -> Result<ProcessHost, StartError> {
        leftovers::clear();
        let guard = guard.map(Guard::start).transpose();
        let guard = guard.map_err(|error| StartError::System {
            name: "the guard process".into(),
            reason: error.to_string(),
        })?;
        Ok(ProcessHost {
            guard: guard.map(Arc::new),
            ports: PortPool::default(),
            logs: Mutex::default(),
        })
    }

    /// What ends, when Tenfold has, what is still listed there.
    pub(crate) fn guard(&self) -> Option<&Arc<Guard>> {
        self.guard.as_ref()
    }

    /// A port for an instance.
    pub(super) fn lease(&self, ports: &Ports, preferred: Option<u16>) -> Result<Lease, StartError> {
        self.ports.lease(ports, preferred)
    }

    /// The port of an instance that listens there already.
    pub(super) fn lease_taken(&self, port: u16) -> Lease {
        self.ports.lease_taken(port)
    }

    fn log(&self, logs: &Logs, name: &str) -> Arc<Mutex<LogFile>> {
        let path = logs.directory.join(format!("{name}.log"));
        let mut open = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, log| log.strong_count() > 0);
        if let Some(log) = open.get(&path).and_then(Weak::upgrade) {
            return log;
        }
        let log = LogFile::new(path.clone(), logs.max_bytes, logs.keep);
        let log = Arc::new(Mutex::new(log));
        open.insert(path, Arc::downgrade(&log));
        log
    }
}

// === impl ProcessDriver ===

impl ProcessDriver {
    /// A driver for one app.
    pub fn new(program: Program, host: Arc<ProcessHost>) -> ProcessDriver {
        ProcessDriver { program, host }
    }
}

#[async_trait]
impl Driver for ProcessDriver {
    async fn check(&self, app: &App) -> Result<(), StartError> {
        let limits = &app.limits;
        if limits.is_empty() { Ok(()) } else { cgroup::check(limits, self.host.guard.as_ref()) }
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        let (host, program) = (&self.host, &self.program);
        let lease = host.lease(&program.ports, identity.port)?;
        let name = identity.name.clone();
        let system = |error: std::io::Error| StartError::System {
            name: name.clone(),
            reason: error.to_string(),
        };
        let (reader, writer) = std::io::pipe().map_err(system)?;
        let command = command::build(program, identity, lease.port(), writer).map_err(system)?;
        let Some(command) = command else {
            return Err(StartError::NoCommand);
        };
        let executed = command.get_program().to_string_lossy().into_owned();
        let limited = !app.limits.is_empty();
        let cgroup = limited.then(|| Cgroup::make(&app.limits, host.guard.as_ref())).transpose()?;
        let group = ProcessGroup::spawn(&name, command, host.guard.clone(), cgroup, Vec::new())
            .await
            .map_err(|error| command::explain(&error, &executed, program, &app.limits, &name))?;
        let log = host.log(&program.logs, &name);
        let output = Capture::start(&name, reader, log).map_err(system)?;
        Ok(Box::new(ProcessInstance {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, lease.port())),
            handle: group.id().to_string(),
            name,
            group,
            output,
            lease,
        }))
    }
}

// === impl ProcessInstance ===

impl ProcessInstance {
    fn quote(&self) -> Output {
        Output(self.output.last_lines(QUOTED_LINES))
    }

    async fn late(&self, readiness: &Readiness, answer: &Answer) -> StartError {
        let (group, port) = (self.group.id(), self.lease.port());
        late(&self.name, group, port, readiness, answer, self.quote()).await
    }
}

#[async_trait]
impl Instance for ProcessInstance {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn handle(&self) -> &str {
        &self.handle
    }

    fn extent(&self) -> Extent {
        Extent::ProcessGroup(self.group.id())
    }

    async fn ready(&mut self, readiness: &Readiness) -> Result<(), StartError> {
        let mut last = Answer::Refused;
        let probing = probe::until_ready(&readiness.probe, self.lease.port(), &mut last);
        let (group, port) = (self.group.id(), self.lease.port());
        let patience = readiness.deadline / WRONG_ADDRESS_PART;
        let waited = tokio::select! {
            biased;
            exit = self.group.exited() => Waited::Exited(exit),
            address = timeout(readiness.deadline, probing) => {
                address.map_or(Waited::Late, Waited::Ready)
            }
            _ = wrong_address::settled(group, port, patience) => Waited::Late,
        };
        match waited {
            Waited::Ready(address) => {
                confirm(&self.name, group, port).await?;
                self.address = address;
                Ok(())
            }
            Waited::Late => Err(self.late(readiness, &last).await),
            Waited::Exited(exit) => {
                self.output.finished().await;
                Err(StartError::Exited { name: self.name.clone(), exit, output: self.quote() })
            }
        }
    }

    async fn died(&mut self) {
        self.group.leader_exited().await;
    }

    async fn exited(&mut self) -> Exit {
        let exit = self.group.exited().await;
        self.output.finished().await;
        exit
    }

    async fn stop(&mut self, grace: Duration) -> Exit {
        self.group.terminate();
        if let Ok(exit) = timeout(grace, self.exited()).await {
            return exit;
        }
        self.group.kill();
        timeout(KILL_TIME, self.exited()).await.unwrap_or(Exit::Unknown)
    }

    async fn last_lines(&self, n: usize) -> Vec<String> {
        self.output.last_lines(n)
    }

    fn notice(&self) -> Notice {
        self.output.notice()
    }
}

/// The port answers; the instance may take requests unless somebody else gives the answer.
pub(super) async fn confirm(name: &str, group: u32, port: u16) -> Result<(), StartError> {
    let stranger = sockets::aside(move || sockets::stranger(port, group)).await;
    match stranger.flatten() {
        Some(holder) => Err(StartError::PortTaken { name: name.to_owned(), port, holder }),
        None => Ok(()),
    }
}

/// The error of an instance that was not ready in time.
pub(super) async fn late(
    name: &str,
    group: u32,
    port: u16,
    readiness: &Readiness,
    answer: &Answer,
    output: Output,
) -> StartError {
    let at = wrong_address::listening(group).await;
    let is_refused = *answer == Answer::Refused;
    let wrong_address = wrong_address::error(name, port, &at, output.clone());
    wrong_address.filter(|_| is_refused).unwrap_or_else(|| StartError::NotReady {
        name: name.to_owned(),
        deadline: readiness.deadline,
        answer: answer.describe(&readiness.probe, port),
        remedy: answer.remedy(&readiness.probe, if_refused(at.ports.contains(&port))),
        output,
    })
}

/// What to do about an instance whose port refuses connections.
fn if_refused(listens_elsewhere: bool) -> &'static str {
    match listens_elsewhere {
        true => "it listens there on another address: let it bind 127.0.0.1 or 0.0.0.0",
        false => "raise --ready-timeout if it starts slowly, or check that it serves at all",
    }
}
