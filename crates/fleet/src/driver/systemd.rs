//! The drivers that run instances as services of systemd: transient ones of Tenfold's own, and units of a template
//! of the user's.
//!
//! - `unit`: a unit as an instance, from its start to its end.
//! - `unit_state`: how far a unit is.
//! - `main_process`: that its main process has ended.
//! - `journal`: its last lines.
//! - `template`: the driver of templates.
//! - `transient`: the properties of a unit.
//! - `leftovers`: what is undone when Tenfold is killed.
//! - `marks`: by what Tenfold knows its own units again.
//! - `bus`: the calls to the manager.
//!
//! Tested with systemd 252.

mod bus;
mod journal;
pub(super) mod leftovers;
mod main_process;
mod marks;
pub(super) mod template;
mod transient;
mod unit;
mod unit_state;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::process::ProcessHost;
use super::process::leftovers::Owner;
use crate::app::App;
use crate::cgroup::readback;
use crate::driver::{Driver, Identity, Instance};
use crate::error::StartError;
use crate::guard::Key;
use crate::limits::Limits;
use crate::program::Program;
use bus::{CallError, Manager, Scope};
use main_process::MainProcess;
use marks::{FleetName, Marks};
pub use template::TemplateDriver;
use transient::Execution;
use unit::{OwnedUnit, UnitInstance};

/// How long a manager may take to start a unit. It gives up after 90 s by itself.
const START_TIME: Duration = Duration::from_secs(100);

/// Older ones lack properties that units get here.
const OLDEST: u32 = 245;

/// What the systemd drivers of all apps share.
pub struct SystemdHost {
    processes: Arc<ProcessHost>,
    manager: OnceCell<Arc<Manager>>,
}

/// Runs instances as transient services, in a slice of the app.
///
/// They die with Tenfold, whatever ends it.
pub struct SystemdDriver {
    program: Program,
    host: Arc<SystemdHost>,
    fleet: FleetName,
    /// The guard's entry for the fleet.
    guarded: Mutex<Option<Key>>,
}

// === impl SystemdHost ===

impl SystemdHost {
    /// Asks no manager yet.
    pub fn new(processes: Arc<ProcessHost>) -> SystemdHost {
        SystemdHost { processes, manager: OnceCell::new() }
    }

    /// The manager for this user. What killed Tenfolds have left with it is ended first.
    async fn manager(&self) -> Result<&Arc<Manager>, StartError> {
        let open = async || {
            let manager = Arc::new(Manager::any().await?);
            leftovers::clear(&manager).await;
            Ok(manager)
        };
        self.manager.get_or_try_init(open).await
    }
}

async fn check_version(manager: &Manager) -> Result<(), StartError> {
    let version = manager.version().await;
    let version = version.map_err(|error| error.explain("tell its version", manager.scope))?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    match digits.parse::<u32>() {
        Ok(number) if number < OLDEST => Err(StartError::Engine {
            reason: format!("systemd {version} is too old to run instances"),
            remedy: format!("use {OLDEST} or newer, or run the app without --driver systemd"),
        }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Reads the limits of a started unit in its control group.
fn verify(limits: &Limits, pid: u32, scope: Scope) -> Result<(), StartError> {
    readback::held_to(pid, limits).map_err(|reason| StartError::Unlimited {
        limits: limits.to_string(),
        reason: format!("systemd has ignored that, for {reason}"),
        remedy: match scope {
            Scope::User => {
                "run it as root, or without --driver systemd, since a user's systemd has the controllers only \
                 with control groups of version 2, and by Delegate=cpu memory in a drop-in of user@.service"
                    .into()
            }
            Scope::System => {
                "let systemd have the cpu and memory controllers, or leave --cpus and --memory out".into()
            }
        },
    })
}

// === impl SystemdDriver ===

impl SystemdDriver {
    /// A driver for the app of this name.
    pub fn new(app: &str, program: Program, host: Arc<SystemdHost>) -> SystemdDriver {
        SystemdDriver { program, host, fleet: FleetName::new(app), guarded: Mutex::default() }
    }

    fn guarded(&self) -> std::sync::MutexGuard<'_, Option<Key>> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the guard end the fleet when Tenfold is killed.
    fn list_with_guard(&self, scope: Scope) {
        if let Some(guard) = self.host.processes.guard() {
            let undo = leftovers::listed(scope, &self.fleet);
            self.guarded().get_or_insert_with(|| guard.list_undo(&undo));
        }
    }
}

#[async_trait]
impl Driver for SystemdDriver {
    async fn check(&self, _: &App) -> Result<(), StartError> {
        if let Some(name) = transient::unusable_name(&self.program) {
            return Err(StartError::Engine {
                reason: format!("systemd would leave the variable {name} out"),
                remedy: "name it with letters, digits and _ only".into(),
            });
        }
        let manager = self.host.manager().await?;
        check_version(manager).await?;
        self.list_with_guard(manager.scope);
        // Tries the right to start units.
        let started = manager.start_transient(&self.fleet.slice(), &[]).await;
        started.map_err(|error| error.explain("start units", manager.scope))
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        let manager = Arc::clone(self.host.manager().await?);
        let scope = manager.scope;
        self.list_with_guard(scope);
        let lease = self.host.processes.lease(&self.program.ports, identity.port)?;
        let execution = Execution::prepare(&self.program, identity, lease.port())?;
        let owner = Owner::own().ok_or_else(|| StartError::System {
            name: identity.name.clone(),
            reason: "/proc does not tell of Tenfold itself".into(),
        })?;
        let marks = Marks { fleet: self.fleet.clone(), owner };
        let unit = OwnedUnit::new(manager, self.fleet.unit(identity.index));
        let properties = execution.properties(app, identity, &marks, scope);
        let what = format!("start {}", identity.name);
        let explain = |error: CallError| error.explain(&what, scope);
        unit.manager.start_transient(&unit.name, &properties).await.map_err(explain)?;
        let state = unit.started(START_TIME).await.map_err(explain)?;
        if state.last_pid == 0 {
            return Err(StartError::Engine {
                reason: format!(
                    "systemd did not start {}: its result is {}",
                    unit.name, state.result
                ),
                remedy: format!("look at `journalctl {}-n 50`", scope.option()),
            });
        }
        if state.active_state == "failed"
            && let Some(error) = execution.explain(state.status, &self.program, &identity.name)
        {
            return Err(error);
        }
        let process = MainProcess::watch(state.last_pid, app.limits.memory);
        // What has ended already is told of by its exit.
        if let Err(error) = verify(&app.limits, process.pid, scope)
            && !process.has_ended()
        {
            return Err(error);
        }
        Ok(Box::new(UnitInstance {
            name: identity.name.clone(),
            process,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, lease.port())),
            lease,
            output: execution.output.clone(),
            invocation: unit_state::invocation(&unit.manager, &unit.name).await,
            unit,
            exit: None,
        }))
    }

    async fn restore(&self, _: &App) -> Result<(), StartError> {
        let manager = self.host.manager().await?;
        let ended = leftovers::end_slice(manager, &self.fleet).await;
        ended.map_err(|error| error.explain("stop the instances' slice", manager.scope))?;
        let key = self.guarded().take();
        if let (Some(guard), Some(key)) = (self.host.processes.guard(), key) {
            guard.remove(key);
        }
        Ok(())
    }
}
