//! Services that a Tenfold before this one has left running for the next one of the same app.

use std::collections::BTreeMap;

use zbus::Variant;

use super::bus::{CallError, Manager, Property, Start};
use super::claim::Claim;
use super::marks::{FleetName, Marks};
use super::transient::{self, Execution};
use super::unit_state;
use crate::limits::Limits;

/// A service that runs, and that no other Tenfold uses.
#[derive(Debug)]
pub(super) struct KeptUnit {
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) claim: Claim,
}

/// The services of this fleet that run and that nobody uses, by the instance's number.
pub(super) async fn found(
    manager: &Manager,
    fleet: &FleetName,
) -> Result<BTreeMap<usize, KeptUnit>, CallError> {
    let mut found = BTreeMap::new();
    for name in manager.list_in(&["active"], &fleet.pattern()).await? {
        let environment: Vec<String> = manager.service_property(&name, "Environment").await?;
        let is_kept =
            Marks::read(&environment).is_some_and(|marks| marks.is_kept && marks.fleet == *fleet);
        let number = |variable: &str| {
            let mut values = environment.iter().filter_map(|line| line.split_once('='));
            values.find(|(named, _)| *named == variable)?.1.parse::<u16>().ok()
        };
        let (Some(index), Some(port)) = (number("TENFOLD_INSTANCE"), number("PORT")) else {
            continue;
        };
        if !is_kept || found.contains_key(&usize::from(index)) {
            continue;
        }
        if let Some(claim) = Claim::of(&name) {
            found.insert(usize::from(index), KeptUnit { name, port, claim });
        }
    }
    Ok(found)
}

/// Holds a service that runs to these limits, unless it is already.
pub(super) async fn limit(manager: &Manager, unit: &str, limits: &Limits) -> Result<(), CallError> {
    let wanted: BTreeMap<&str, Variant<'_>> = transient::limits(limits).into_iter().collect();
    let mut changed: Vec<Property<'_>> = Vec::new();
    for name in ["CPUQuotaPerSecUSec", "MemoryMax"] {
        let value = wanted.get(name).cloned().unwrap_or(Variant::U64(u64::MAX));
        let now: u64 = manager.service_property(unit, name).await?;
        if Variant::U64(now) != value {
            changed.push((name, value));
        }
    }
    match changed.is_empty() {
        true => Ok(()),
        false => manager.set_properties(unit, &changed).await,
    }
}

/// Whether the service runs what it would if it was started now, but for its variables.
pub(super) async fn is_same(
    manager: &Manager,
    unit: &str,
    execution: &Execution,
) -> Result<bool, CallError> {
    let starts: Vec<Start> = manager.service_property(unit, "ExecStart").await?;
    let directory: String = manager.service_property(unit, "WorkingDirectory").await?;
    Ok(execution.is_same(starts.first().map_or(&[], |start| &start.1), &directory))
}

/// Its main process, if it runs.
pub(super) async fn main_process(manager: &Manager, unit: &str) -> Result<Option<u32>, CallError> {
    let state = manager.service(unit).await?;
    Ok((!state.has_ended() && state.code == 0 && state.last_pid != 0).then_some(state.last_pid))
}

/// The invocation that runs, after this Tenfold has asked to be told of its end.
pub(super) async fn take_over(manager: &Manager, unit: &str) -> Result<String, CallError> {
    manager.reference(unit).await?;
    Ok(unit_state::invocation(manager, unit).await)
}
