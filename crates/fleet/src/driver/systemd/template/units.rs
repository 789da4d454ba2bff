//! Which unit is which instance, and what all of them were before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::bus::Manager;
use super::naming::Naming;
use super::restoration::{self, Activity, UnitBefore};
use crate::driver::process::ports::Lease;
use crate::error::StartError;
use crate::guard::Key;
use crate::template::TemplateName;

/// The units of a template, by what stands after the `@`.
#[derive(Default)]
pub(super) struct Units {
    /// Those that ran when Tenfold came.
    found: Vec<String>,
    /// By the instance's index: which one it was last.
    assigned: BTreeMap<usize, String>,
    /// Those that are an instance now.
    in_use: BTreeSet<String>,
    /// Ports that are names.
    leases: BTreeMap<String, Lease>,
    /// By the whole name of the unit, with the guard's entry.
    before: BTreeMap<String, (UnitBefore, Option<Key>)>,
}

/// A unit as an instance. Dropping it stops the unit if Tenfold has started it.
pub(super) struct UnitUse {
    pub(super) manager: Arc<Manager>,
    /// The whole name.
    pub(super) unit: String,
    /// What stands after the `@`.
    pub(super) name: String,
    pub(super) activity: Activity,
    units: Arc<Mutex<Units>>,
    has_ended: bool,
}

pub(super) fn lock(units: &Mutex<Units>) -> MutexGuard<'_, Units> {
    units.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A unit for the instance of this index, which is its own from now on.
///
/// It is the one that it had last, else one that ran before, else a new one.
pub(super) fn pick(
    units: &Mutex<Units>,
    index: usize,
    naming: Naming,
    lease: impl Fn() -> Result<Lease, StartError>,
) -> Result<String, StartError> {
    let mut units = lock(units);
    let own = units.assigned.get(&index).filter(|name| !units.in_use.contains(*name)).cloned();
    let is_free = |name: &&String| {
        !units.in_use.contains(*name) && !units.assigned.values().any(|assigned| assigned == *name)
    };
    let name = match own.or_else(|| units.found.iter().find(is_free).cloned()) {
        Some(name) => name,
        None => match naming {
            Naming::Index => units.first_number(),
            Naming::Port => {
                let lease = lease()?;
                let name = lease.port().to_string();
                units.leases.insert(name.clone(), lease);
                name
            }
        },
    };
    let last = units.assigned.insert(index, name.clone());
    // A successor has another one.
    if let Some(last) = last.filter(|last| *last != name && !units.in_use.contains(last)) {
        units.leases.remove(&last);
    }
    units.in_use.insert(name.clone());
    Ok(name)
}

impl Units {
    pub(super) fn found(&mut self, running: Vec<String>) {
        self.found = running;
    }

    pub(super) fn found_count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn was_found(&self, template: &TemplateName, unit: &str) -> bool {
        self.found.iter().any(|name| template.unit(name) == unit)
    }

    pub(super) fn before(&self, unit: &str) -> Option<UnitBefore> {
        self.before.get(unit).map(|(before, _)| before.clone())
    }

    pub(super) fn remember(&mut self, before: UnitBefore, key: Option<Key>) {
        self.before.insert(before.unit.clone(), (before, key));
    }

    pub(super) fn remembered(&self) -> Vec<(UnitBefore, Option<Key>)> {
        self.before.values().cloned().collect()
    }

    pub(super) fn forget(&mut self, unit: &str) {
        self.before.remove(unit);
    }

    /// It is no instance any more.
    pub(super) fn give_back(&mut self, name: &str) {
        self.in_use.remove(name);
    }

    /// The lowest number that no unit has.
    fn first_number(&self) -> String {
        let taken = |name: &String| {
            self.in_use.contains(name)
                || self.found.contains(name)
                || self.assigned.values().any(|assigned| assigned == name)
        };
        let mut numbers = (1_usize..).map(|number| number.to_string());
        numbers.find(|name| !taken(name)).unwrap_or_default()
    }
}

// === impl UnitUse ===

impl UnitUse {
    /// One that runs until it is known to be otherwise.
    pub(super) fn new(
        manager: Arc<Manager>,
        unit: String,
        name: String,
        units: &Arc<Mutex<Units>>,
    ) -> UnitUse {
        let (activity, units) = (Activity::Running, Arc::clone(units));
        UnitUse { manager, unit, name, activity, units, has_ended: false }
    }

    /// It has ended by itself. Whether it is started again is for others to say.
    pub(super) fn has_ended(&mut self) {
        self.has_ended = true;
    }

    /// Stops it if Tenfold has started it.
    pub(super) async fn end(&mut self, grace: Duration) {
        if self.activity == Activity::Stopped {
            let ended = restoration::stop(&self.manager, &self.unit, grace).await;
            self.has_ended = ended.is_ok();
        }
    }
}

impl Drop for UnitUse {
    fn drop(&mut self) {
        let (units, name) = (Arc::clone(&self.units), self.name.clone());
        let give_back = move || lock(&units).give_back(&name);
        if self.activity == Activity::Running || self.has_ended {
            return give_back();
        }
        let (manager, unit) = (Arc::clone(&self.manager), self.unit.clone());
        // Without a runtime, or without the time, the end of Tenfold does it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = restoration::stop(&manager, &unit, Duration::ZERO).await;
                give_back();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::process::ports::PortPool;
    use crate::program::Ports;

    fn picked(units: &Mutex<Units>, index: usize, naming: Naming) -> String {
        let pool = PortPool::default();
        pick(units, index, naming, || pool.lease(&Ports::Any, None)).unwrap()
    }

    #[test]
    fn units_that_ran_come_first_and_new_ones_get_the_next_numbers() {
        let units = Mutex::default();
        lock(&units).found(vec!["1".into(), "3".into()]);
        let names: Vec<String> =
            (1..=4).map(|index| picked(&units, index, Naming::Index)).collect();
        assert_eq!(names, ["1", "3", "2", "4"]);
    }

    #[test]
    fn an_instance_gets_its_unit_again_and_its_successor_another() {
        let units = Mutex::default();
        assert_eq!(picked(&units, 1, Naming::Index), "1");
        assert_eq!(picked(&units, 1, Naming::Index), "2", "the first one still serves");
        lock(&units).give_back("1");
        lock(&units).give_back("2");
        assert_eq!(picked(&units, 1, Naming::Index), "2", "it was the last");
        let port = picked(&units, 2, Naming::Port);
        assert!(port.parse::<u16>().is_ok_and(|port| port > 1023), "{port}");
    }
}
