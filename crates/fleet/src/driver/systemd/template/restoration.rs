//! What a unit was before Tenfold used it, and how it becomes that again: at the end, or by the guard.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zbus::Variant;

use super::super::bus::{CallError, Manager, Property, Scope, ServiceState};
use super::super::leftovers;
use super::super::unit_state;
use crate::error::StartError;

/// The first word of what is listed with the guard.
pub(crate) const WORD: &str = "systemd-unit";

/// Properties that limits and observation change, and that are numbers.
const NUMBERS: [&str; 4] =
    ["CPUQuotaPerSecUSec", "CPUQuotaPeriodUSec", "MemoryMax", "MemorySwapMax"];
/// Those that are switches.
const SWITCHES: [&str; 2] = ["CPUAccounting", "MemoryAccounting"];

/// How long a unit may take to start or to stop when it is restored.
const SETTLE_TIME: Duration = Duration::from_secs(15);

/// How long a stopping unit may take before it is killed, as systemd's own default.
const STOP_TIME: Duration = Duration::from_secs(10);

/// A unit as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitBefore {
    pub(super) unit: String,
    pub(super) activity: Activity,
    numbers: [u64; NUMBERS.len()],
    switches: [bool; SWITCHES.len()],
    /// The files with settings of this unit alone.
    drop_ins: BTreeSet<String>,
}

/// Whether it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Running,
    Stopped,
}

impl UnitBefore {
    pub(super) async fn read(
        manager: &Manager,
        unit: &str,
        activity: Activity,
    ) -> Result<UnitBefore, CallError> {
        let mut numbers = [0; NUMBERS.len()];
        for (value, name) in numbers.iter_mut().zip(NUMBERS) {
            *value = manager.service_property(unit, name).await?;
        }
        let mut switches = [false; SWITCHES.len()];
        for (value, name) in switches.iter_mut().zip(SWITCHES) {
            *value = manager.service_property(unit, name).await?;
        }
        let drop_ins = drop_ins(manager, unit).await?;
        Ok(UnitBefore { unit: unit.to_owned(), activity, numbers, switches, drop_ins })
    }

    /// What must be on, so that the unit has a control group of its own.
    pub(super) fn missing_accounting(&self) -> Vec<Property<'static>> {
        let off = SWITCHES.into_iter().zip(self.switches).filter(|(_, is_on)| !is_on);
        off.map(|(name, _)| (name, true.into())).collect()
    }

    /// Those that are not now what they were.
    fn changed(&self, now: &UnitBefore) -> Vec<Property<'static>> {
        let numbers = NUMBERS.into_iter().zip(self.numbers.into_iter().zip(now.numbers));
        let numbers = numbers.filter(|(_, (before, now))| before != now);
        let switches = SWITCHES.into_iter().zip(self.switches.into_iter().zip(now.switches));
        let switches = switches.filter(|(_, (before, now))| before != now);
        numbers
            .map(|(name, (before, _))| (name, Variant::U64(before)))
            .chain(switches.map(|(name, (before, _))| (name, before.into())))
            .collect()
    }

    /// Makes it what it was: its limits, its files, and whether it runs.
    pub(super) async fn restore(&self, manager: &Manager) -> Result<(), StartError> {
        let unit = &self.unit;
        let explain = |error: CallError| {
            error.explain(&format!("give {unit} back its limits"), manager.scope)
        };
        let now = UnitBefore::read(manager, unit, self.activity).await.map_err(explain)?;
        let changed = self.changed(&now);
        if !changed.is_empty() {
            manager.set_properties(unit, &changed).await.map_err(explain)?;
        }
        // Their values hold, but they would win over what the user writes into the unit later.
        let made: Vec<String> = drop_ins(manager, unit)
            .await
            .map_err(explain)?
            .difference(&self.drop_ins)
            .filter(|path| path.contains(".control/"))
            .cloned()
            .collect();
        for path in &made {
            remove(Path::new(path)).map_err(|error| StartError::Engine {
                reason: format!("{path} stays, which Tenfold had systemd write ({error})"),
                remedy: "remove it as root, and run `systemctl daemon-reload`".into(),
            })?;
        }
        if !made.is_empty() {
            manager.reload().await.map_err(explain)?;
        }
        let settled = match self.activity {
            Activity::Running => run(manager, unit).await,
            Activity::Stopped => stop(manager, unit, STOP_TIME).await,
        };
        let explain = |error: CallError| {
            let what = match self.activity {
                Activity::Running => format!("start {unit} again, which ran before"),
                Activity::Stopped => format!("stop {unit}, which Tenfold has started"),
            };
            error.explain(&what, manager.scope)
        };
        settled.map_err(explain)
    }

    /// As a line for the guard, without line breaks.
    pub(super) fn listed(&self, scope: Scope) -> String {
        let mut line = format!("{WORD} {} {} {}", scope.name(), self.activity.name(), self.unit);
        for number in self.numbers {
            let _ = write!(line, " {number}");
        }
        for switch in self.switches {
            let _ = write!(line, " {switch}");
        }
        for path in &self.drop_ins {
            let _ = write!(line, " {}", path.replace(' ', "\\x20"));
        }
        line
    }

    /// Of such a line without its first two words.
    fn parse(line: &str) -> Option<UnitBefore> {
        let mut words = line.split(' ');
        let activity = Activity::named(words.next()?)?;
        let unit = words.next()?.to_owned();
        let mut numbers = [0; NUMBERS.len()];
        for number in &mut numbers {
            *number = words.next()?.parse().ok()?;
        }
        let mut switches = [false; SWITCHES.len()];
        for switch in &mut switches {
            *switch = words.next()?.parse().ok()?;
        }
        let drop_ins = words.map(|path| path.replace("\\x20", " ")).collect();
        Some(UnitBefore { unit, activity, numbers, switches, drop_ins })
    }
}

impl Activity {
    fn name(self) -> &'static str {
        match self {
            Activity::Running => "running",
            Activity::Stopped => "stopped",
        }
    }

    fn named(name: &str) -> Option<Activity> {
        [Activity::Running, Activity::Stopped].into_iter().find(|activity| activity.name() == name)
    }
}

/// Restores the unit that was listed with the guard, without the first word. Called once Tenfold is gone.
pub(crate) fn undo(line: &str) {
    let Some((scope, line)) = line.split_once(' ') else { return };
    let (Some(scope), Some(before)) = (Scope::named(scope), UnitBefore::parse(line)) else {
        return;
    };
    leftovers::carry_out(async move {
        if let Some(manager) = Manager::open(scope).await {
            let _ = before.restore(&manager).await;
        }
    });
}

async fn drop_ins(manager: &Manager, unit: &str) -> Result<BTreeSet<String>, CallError> {
    let paths: Vec<String> = manager.unit_property(unit, "DropInPaths").await?;
    Ok(paths.into_iter().collect())
}

/// Removes a file, and its folder if nothing else is there.
fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if let Some(folder) = path.parent().map(PathBuf::from) {
        // It stays where others have files in it.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

async fn run(manager: &Manager, unit: &str) -> Result<(), CallError> {
    if manager.service(unit).await?.has_ended() {
        manager.reset_failed(unit).await?;
        manager.start(unit).await?;
        unit_state::when(manager, unit, SETTLE_TIME, ServiceState::is_settled).await?;
    }
    Ok(())
}

/// Asks a unit to end, kills what is left of it after `grace`, and has its failure forgotten.
pub(super) async fn stop(manager: &Manager, unit: &str, grace: Duration) -> Result<(), CallError> {
    manager.stop(unit).await?;
    let state = unit_state::when(manager, unit, grace, ServiceState::has_ended).await?;
    if !state.has_ended() {
        manager.kill(unit).await?;
        unit_state::when(manager, unit, SETTLE_TIME, ServiceState::has_ended).await?;
    }
    manager.reset_failed(unit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_reads_what_it_was_told() {
        let before = UnitBefore {
            unit: "fibscale@1.service".into(),
            activity: Activity::Running,
            numbers: [u64::MAX, u64::MAX, 5, 0],
            switches: [true, false],
            drop_ins: ["/etc/systemd/system/fibscale@.service.d/my own.conf".to_owned()].into(),
        };
        let line = before.listed(Scope::System);
        let told = line.strip_prefix("systemd-unit system ").unwrap();
        assert_eq!(UnitBefore::parse(told), Some(before));
        assert_eq!(UnitBefore::parse("running fibscale@1.service 1 2"), None);
    }

    #[test]
    fn only_accounting_that_is_off_is_turned_on() {
        let before = UnitBefore {
            unit: "a@1.service".into(),
            activity: Activity::Stopped,
            numbers: [0; 4],
            switches: [true, false],
            drop_ins: BTreeSet::new(),
        };
        assert_eq!(before.missing_accounting(), [("MemoryAccounting", true.into())]);
    }
}
