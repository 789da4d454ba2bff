//! The drivers that run instances as services of systemd: transient ones of Tenfold's own, and units of a template
//! of the user's.
//!
//! - `unit`: a unit as an instance, from its start to its end.
//! - `unit_state`: how far a unit is.
//! - `main_process`: that its main process has ended.
//! - `journal`: its last lines.
//! - `template`: the driver of templates.
//! - `transient`: the properties of a unit.
//! - `kept_services`: services that have outlived the Tenfold that has started them.
//! - `claim`: what only one Tenfold can hold at a time.
//! - `leftovers`: what is undone when Tenfold is killed.
//! - `marks`: by what Tenfold knows its own units again.
//! - `bus`: the calls to the manager.
//!
//! Tested with systemd 252.

mod bus;
mod claim;
mod journal;
mod kept_services;
pub(super) mod leftovers;
mod main_process;
mod marks;
pub(super) mod template;
mod transient;
mod unit;
mod unit_state;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use super::process::ProcessHost;
use super::process::leftovers::Owner;
use crate::app::{App, Custody};
use crate::cgroup::readback;
use crate::driver::{Driver, Identity, Instance};
use crate::error::StartError;
use crate::guard::Key;
use crate::limits::Limits;
use crate::program::Program;
use bus::{CallError, Manager, Scope};
use claim::Claim;
use kept_services::KeptUnit;
use leftovers::SliceEnd;
use main_process::MainProcess;
use marks::{FleetName, Marks};
pub use template::TemplateDriver;
use transient::Execution;
use unit::{OwnedUnit, UnitInstance};

/// How long a manager may take to start a unit. It gives up after 90 s by itself.
const START_TIME: Duration = Duration::from_secs(100);

/// How long systemd may take until new limits are in the control group.
const LIMIT_TIME: Duration = Duration::from_secs(2);
const LIMIT_PAUSE: Duration = Duration::from_millis(10);

/// Older ones lack properties that units get here.
const OLDEST: u32 = 245;

/// What the systemd drivers of all apps share.
pub struct SystemdHost {
    processes: Arc<ProcessHost>,
    manager: OnceCell<Arc<Manager>>,
}

/// Runs instances as transient services, in a slice of the app.
///
/// They die with Tenfold, whatever ends it, unless the app's custody says otherwise.
pub struct SystemdDriver {
    program: Program,
    host: Arc<SystemdHost>,
    fleet: FleetName,
    /// The guard's entry for the fleet.
    guarded: Mutex<Option<Key>>,
    /// Left running by an earlier Tenfold and not taken over yet, by the instance's number.
    kept: Mutex<BTreeMap<usize, KeptUnit>>,
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

/// Expects the limits in the control group. What has ended already is told of by its exit.
fn check_limits(app: &App, process: &MainProcess, scope: Scope) -> Result<(), StartError> {
    let held = verify(&app.limits, process.pid, scope);
    if process.has_ended() { Ok(()) } else { held }
}

/// Returns when the control group has the limits.
async fn limited(app: &App, process: &MainProcess, scope: Scope) -> Result<(), StartError> {
    let deadline = Instant::now() + LIMIT_TIME;
    loop {
        let held = check_limits(app, process, scope);
        if held.is_ok() || Instant::now() >= deadline {
            return held;
        }
        sleep(LIMIT_PAUSE).await;
    }
}

// === impl SystemdDriver ===

impl SystemdDriver {
    /// A driver for this app.
    pub fn new(app: &App, program: Program, host: Arc<SystemdHost>) -> SystemdDriver {
        let fleet = match app.custody {
            Custody::WithUs => FleetName::new(&app.name),
            Custody::Beyond => {
                let folder = program.directory.as_deref().unwrap_or(Path::new("."));
                FleetName::lasting(&app.name, folder)
            }
        };
        let (guarded, kept) = (Mutex::default(), Mutex::default());
        SystemdDriver { program, host, fleet, guarded, kept }
    }

    fn guarded(&self) -> std::sync::MutexGuard<'_, Option<Key>> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, KeptUnit>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a service that was left running an instance again. Nothing if it has ended meanwhile, or
    /// is stopped here because it runs another command.
    async fn take_over(
        &self,
        app: &App,
        identity: &Identity,
        kept: KeptUnit,
    ) -> Result<Option<UnitInstance>, StartError> {
        let KeptUnit { name, port, claim } = kept;
        let manager = Arc::clone(self.host.manager().await?);
        let what = format!("tell of {name}");
        let explain = |error: CallError| error.explain(&what, manager.scope);
        let Some(pid) = kept_services::main_process(&manager, &name).await.map_err(explain)? else {
            return Ok(None);
        };
        let invocation = kept_services::take_over(&manager, &name).await.map_err(explain)?;
        let lease = self.host.processes.lease_taken(port);
        let execution = Execution::prepare(&self.program, identity, port)?;
        let is_same = kept_services::is_same(&manager, &name, &execution).await.map_err(explain)?;
        let mut instance = UnitInstance {
            name: identity.name.clone(),
            process: MainProcess::watch(pid, app.limits.memory),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            lease,
            output: execution.output.clone(),
            invocation,
            unit: OwnedUnit::new(Arc::clone(&manager), name.clone(), Some(claim)),
            exit: None,
        };
        if !is_same {
            instance.stop(app.grace).await;
            return Ok(None);
        }
        kept_services::limit(&manager, &name, &app.limits).await.map_err(explain)?;
        limited(app, &instance.process, manager.scope).await?;
        Ok(Some(instance))
    }

    /// Lets the guard end the fleet when Tenfold is killed.
    fn list_with_guard(&self, app: &App, scope: Scope) {
        if app.custody == Custody::Beyond {
            return;
        }
        if let Some(guard) = self.host.processes.guard() {
            let undo = leftovers::listed(scope, &self.fleet);
            self.guarded().get_or_insert_with(|| guard.list_undo(&undo));
        }
    }
}

#[async_trait]
impl Driver for SystemdDriver {
    async fn check(&self, app: &App) -> Result<(), StartError> {
        if let Some(name) = transient::unusable_name(&self.program) {
            return Err(StartError::Engine {
                reason: format!("systemd would leave the variable {name} out"),
                remedy: "name it with letters, digits and _ only".into(),
            });
        }
        let manager = self.host.manager().await?;
        check_version(manager).await?;
        self.list_with_guard(app, manager.scope);
        // Tries the right to start units.
        let started = manager.start_transient(&self.fleet.slice(), &[]).await;
        started.map_err(|error| error.explain("start units", manager.scope))
    }

    async fn found(&self, app: &App) -> Result<usize, StartError> {
        if app.custody == Custody::WithUs {
            return Ok(0);
        }
        let manager = self.host.manager().await?;
        let found = kept_services::found(manager, &self.fleet).await;
        let what = "tell of the services that run on";
        let found = found.map_err(|error| error.explain(what, manager.scope))?;
        let highest = found.keys().max().copied().unwrap_or(0);
        *self.kept() = found;
        Ok(highest)
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        let kept = self.kept().remove(&identity.index);
        if let Some(kept) = kept
            && let Some(instance) = self.take_over(app, identity, kept).await?
        {
            return Ok(Box::new(instance));
        }
        let manager = Arc::clone(self.host.manager().await?);
        let scope = manager.scope;
        self.list_with_guard(app, scope);
        let lease = self.host.processes.lease(&self.program.ports, identity.port)?;
        let execution = Execution::prepare(&self.program, identity, lease.port())?;
        let owner = Owner::own().ok_or_else(|| StartError::System {
            name: identity.name.clone(),
            reason: "/proc does not tell of Tenfold itself".into(),
        })?;
        let is_kept = app.custody == Custody::Beyond;
        let marks = Marks { fleet: self.fleet.clone(), owner, is_kept };
        let name = self.fleet.unit(identity.index);
        let claim = if is_kept { Claim::of(&name) } else { None };
        let unit = OwnedUnit::new(manager, name, claim);
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
        check_limits(app, &process, scope)?;
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

    async fn restore(&self, app: &App) -> Result<(), StartError> {
        let manager = self.host.manager().await?;
        if app.custody == Custody::Beyond
            && manager.list(&self.fleet.pattern()).await.is_ok_and(|units| !units.is_empty())
        {
            return Ok(());
        }
        let ended = leftovers::end_slice(manager, &self.fleet).await;
        let ended =
            ended.map_err(|error| error.explain("stop the instances' slice", manager.scope))?;
        if ended == SliceEnd::Occupied {
            let (slice, option) = (self.fleet.slice(), manager.scope.option());
            return Err(StartError::Engine {
                reason: format!("units of {slice} have not ended, and Tenfold's guard kills them"),
                remedy: format!("if they stay, see `systemctl {option}status {slice}`"),
            });
        }
        let key = self.guarded().take();
        if let (Some(guard), Some(key)) = (self.host.processes.guard(), key) {
            guard.remove(key);
        }
        Ok(())
    }
}
