//! The driver that runs instances as units of a template that the user has written.
//!
//! - `naming`: what instances are called.
//! - `units`: which unit is which instance.
//! - `instance`: a unit as an instance, from its start to its end.
//! - `restoration`: what a unit was before, and how it becomes that again.
//!
//! Units that run already are taken as they are, and never stopped.

mod instance;
mod naming;
pub(crate) mod restoration;
mod units;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::bus::{CallError, Manager, Property, Scope, ServiceState, Start};
use super::claim::Claim;
use super::main_process::MainProcess;
use super::{START_TIME, check_version, limited, transient, unit_state};
use crate::app::{App, Custody};
use crate::driver::process::ProcessHost;
use crate::driver::{Driver, Identity, Instance, Restarts};
use crate::error::StartError;
use crate::limits::Limits;
use crate::program::Ports;
use crate::template::Template;
use instance::TemplateInstance;
use naming::{Naming, TRIAL};
use restoration::{Activity, UnitBefore};
use units::{UnitUse, Units};

/// States of units that are taken over.
const RUNNING: [&str; 3] = ["active", "activating", "reloading"];

/// Runs instances as units of a template of the user's.
///
/// What it has started is stopped at the end, whatever ends Tenfold, and limits are what they were.
pub struct TemplateDriver {
    template: Template,
    host: Arc<ProcessHost>,
    engine: OnceCell<Engine>,
    units: Arc<Mutex<Units>>,
    /// Held as long as this Tenfold uses the template.
    lock: Mutex<Option<Claim>>,
}

/// What runs the units, and how.
struct Engine {
    manager: Arc<Manager>,
    naming: Naming,
    restarts: Restarts,
}

// === impl TemplateDriver ===

impl TemplateDriver {
    /// Asks no manager yet.
    pub fn new(template: Template, host: Arc<ProcessHost>) -> TemplateDriver {
        let units = Arc::new(Mutex::new(Units::default()));
        TemplateDriver { template, host, engine: OnceCell::new(), units, lock: Mutex::default() }
    }

    async fn engine(&self) -> Result<&Engine, StartError> {
        self.engine.get_or_try_init(async || self.open().await).await
    }

    /// Finds the manager that has the template, and reads what it says.
    async fn open(&self) -> Result<Engine, StartError> {
        let manager = self.manager().await?;
        check_version(&manager).await?;
        let trial = self.template.name.unit(TRIAL);
        let explain = |error: CallError| error.explain(&format!("tell of {trial}"), manager.scope);
        let text: String = manager.service_property(&trial, "Restart").await.map_err(explain)?;
        let restarts = if text == "no" { Restarts::Ours } else { Restarts::Engine };
        let environment: Vec<String> =
            manager.service_property(&trial, "Environment").await.map_err(explain)?;
        let starts: Vec<Start> =
            manager.service_property(&trial, "ExecStart").await.map_err(explain)?;
        let words: Vec<String> = starts.into_iter().flat_map(|start| start.1).collect();
        let pattern = self.template.name.unit("*");
        let running = manager.list_in(&RUNNING, &pattern).await.map_err(explain)?;
        let running = running.iter().filter_map(|unit| self.template.name.instance(unit));
        let mut running: Vec<String> = running.map(str::to_owned).collect();
        running.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
        let has_range = matches!(self.template.ports, Ports::Range(_));
        let naming = Naming::of(&environment, &words, &running, has_range);
        units::lock(&self.units).found(running);
        Ok(Engine { manager: Arc::new(manager), naming, restarts })
    }

    /// The manager that has the template: of root, the machine's first.
    async fn manager(&self) -> Result<Manager, StartError> {
        let (name, trial) = (&self.template.name, self.template.name.unit(TRIAL));
        let mut answers = false;
        for scope in Scope::preferred() {
            let Some(manager) = Manager::open(scope).await else { continue };
            answers = true;
            let state: Result<String, _> = manager.unit_property(&trial, "LoadState").await;
            let state = state.map_err(|error| error.explain(&format!("load {trial}"), scope))?;
            match state.as_str() {
                "loaded" => return Ok(manager),
                "not-found" => {}
                _ => {
                    return Err(StartError::Engine {
                        reason: format!("systemd cannot use the template {name}, which is {state}"),
                        remedy: format!(
                            "look at `systemctl {}status {trial}`, and mend it",
                            scope.option()
                        ),
                    });
                }
            }
        }
        if !answers {
            return Err(Manager::none());
        }
        Err(StartError::Engine {
            reason: format!("systemd has no unit {name}.service"),
            remedy: "write it and run `systemctl daemon-reload`, or name one of those that `systemctl list-unit-files \
                     '*@.service'` lists"
                .into(),
        })
    }

    /// Has the template for this Tenfold alone, until it ends or restores the units.
    fn lock(&self, scope: Scope) -> Result<(), StartError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Ok(());
        }
        let user = match scope {
            Scope::System => String::new(),
            Scope::User => rustix::process::geteuid().as_raw().to_string(),
        };
        let claim = Claim::of(&format!("{}{user}/{}", scope.name(), self.template.name));
        *lock = Some(claim.ok_or_else(|| StartError::Engine {
            reason: format!("another Tenfold uses the units of {} already", self.template.name),
            remedy: "let it end first (`tenfold stop` ends an `up`)".into(),
        })?);
        Ok(())
    }

    /// What the unit was before Tenfold came, which the guard is told as well.
    async fn before(
        &self,
        app: &App,
        manager: &Manager,
        unit: &str,
    ) -> Result<UnitBefore, CallError> {
        if let Some(before) = units::lock(&self.units).before(unit) {
            return Ok(before);
        }
        let state = manager.service(unit).await?;
        let was_found = units::lock(&self.units).was_found(&self.template.name, unit);
        let activity = match was_found || !state.has_ended() {
            true => Activity::Running,
            false => Activity::Stopped,
        };
        let before = UnitBefore::read(manager, unit, activity).await?;
        let guard = self.host.guard().filter(|_| app.custody == Custody::WithUs);
        let key = guard.map(|guard| guard.list_undo(&before.listed(manager.scope)));
        units::lock(&self.units).remember(before.clone(), key);
        Ok(before)
    }

    /// Starts the unit unless it runs or is about to, and waits until its process is there.
    async fn run(&self, manager: &Manager, unit: &str) -> Result<ServiceState, StartError> {
        let explain = |error: CallError| error.explain(&format!("start {unit}"), manager.scope);
        let state = manager.service(unit).await.map_err(explain)?;
        if !state.has_ended() {
            let state = unit_state::when(manager, unit, START_TIME, ServiceState::is_settled).await;
            return in_start_limit(state.map_err(explain)?, unit, manager.scope);
        }
        let state = in_start_limit(state, unit, manager.scope)?;
        if state.active_state == "failed" {
            manager.reset_failed(unit).await.map_err(explain)?;
        }
        manager.start(unit).await.map_err(explain)?;
        // One that ended at once may be about to be started again, which is not waited for.
        let is_there = |state: &ServiceState| state.is_settled() || state.has_run();
        let state = unit_state::when(manager, unit, START_TIME, is_there).await;
        in_start_limit(state.map_err(explain)?, unit, manager.scope)
    }
}

/// systemd starts a unit that was started too often no more.
fn in_start_limit(
    state: ServiceState,
    unit: &str,
    scope: Scope,
) -> Result<ServiceState, StartError> {
    if !state.is_given_up() {
        return Ok(state);
    }
    Err(StartError::Engine {
        reason: format!(
            "systemd starts {unit} no more, for it was started too often in a short time (start-limit-hit)"
        ),
        remedy: format!(
            "see why it ends in `journalctl {0}-u {unit}`, and run `systemctl {0}reset-failed {unit}`",
            scope.option()
        ),
    })
}

/// What holds a unit to its limits and lets it be observed.
fn settings(before: &UnitBefore, limits: &Limits) -> Vec<Property<'static>> {
    before.missing_accounting().into_iter().chain(transient::limits(limits)).collect()
}

#[async_trait]
impl Driver for TemplateDriver {
    async fn check(&self, _: &App) -> Result<(), StartError> {
        let manager = &self.engine().await?.manager;
        self.lock(manager.scope)?;
        let tried = manager.set_properties(&self.template.name.unit(TRIAL), &[]).await;
        let what = format!("start and limit units of {}", self.template.name);
        tried.map_err(|error| error.explain(&what, manager.scope))
    }

    async fn found(&self, _: &App) -> Result<usize, StartError> {
        self.engine().await?;
        Ok(units::lock(&self.units).found_count())
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        let Engine { manager, naming, .. } = self.engine().await?;
        let lease = || self.host.lease(&self.template.ports, None);
        let picked = units::pick(&self.units, identity.index, *naming, lease)?;
        let unit = self.template.name.unit(&picked);
        let explain = |error: CallError| error.explain(&format!("tell of {unit}"), manager.scope);
        let mut unit_use = UnitUse::new(Arc::clone(manager), unit.clone(), picked, &self.units);
        let before = self.before(app, manager, &unit).await.map_err(explain)?;
        unit_use.activity = before.activity;
        let settings = settings(&before, &app.limits);
        if !settings.is_empty() {
            let what = format!("limit {unit} to {}", app.limits);
            let set = manager.set_properties(&unit, &settings).await;
            set.map_err(|error| error.explain(&what, manager.scope))?;
        }
        let state = self.run(manager, &unit).await?;
        if state.last_pid == 0 {
            return Err(StartError::Engine {
                reason: format!("systemd did not start {unit}: its result is {}", state.result),
                remedy: format!("look at `journalctl {}-u {unit} -n 50`", manager.scope.option()),
            });
        }
        let process = MainProcess::watch(state.last_pid, app.limits.memory);
        limited(app, &process, manager.scope).await?;
        let invocation = unit_state::invocation(manager, &unit).await;
        let ports = self.template.ports.clone();
        Ok(Box::new(TemplateInstance::new(unit_use, process, ports, invocation)))
    }

    async fn restore(&self, app: &App) -> Result<(), StartError> {
        // Units that nobody has asked for are as they were.
        let Some(Engine { manager, .. }) = self.engine.get() else { return Ok(()) };
        let mut first = None;
        let remembered = units::lock(&self.units).remembered();
        for (before, key) in remembered {
            if app.custody == Custody::Beyond {
                units::lock(&self.units).forget(&before.unit);
                continue;
            }
            match before.restore(manager).await {
                Ok(()) => {
                    units::lock(&self.units).forget(&before.unit);
                    if let (Some(guard), Some(key)) = (self.host.guard(), key) {
                        guard.remove(key);
                    }
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map_or(Ok(()), Err)
    }

    fn restarts(&self) -> Restarts {
        self.engine.get().map_or(Restarts::Ours, |engine| engine.restarts)
    }
}
