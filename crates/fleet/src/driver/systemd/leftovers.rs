//! What is undone when Tenfold is killed: by the guard, or by the next Tenfold where the guard was killed
//! as well.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::bus::{CallError, Manager, Scope};
use super::marks::{FleetName, Marks};
use super::unit;
use crate::driver::process::leftovers::Owner;

/// How long undoing may take.
const UNDO_TIME: Duration = Duration::from_secs(20);

/// How long killed units may take to go, and how often it is looked whether they are gone.
const END_TIME: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// The first word of what is listed with the guard.
pub(crate) const WORD: &str = "systemd";

/// What the guard is told, so that it ends the units of a fleet.
pub(super) fn listed(scope: Scope, fleet: &FleetName) -> String {
    format!("{WORD} {} {}", scope.name(), fleet.as_str())
}

/// Ends the fleet that was listed with the guard, without the first word. Called once Tenfold is gone, on
/// any thread.
pub(crate) fn undo(line: &str) {
    let Some((scope, fleet)) = line.split_once(' ') else { return };
    let (Some(scope), fleet) = (Scope::named(scope), FleetName::read(fleet)) else { return };
    carry_out(async move { end_listed(scope, &fleet).await });
}

/// Does what the guard has to, for at most some time.
pub(super) fn carry_out(undoing: impl Future<Output = ()> + Send + 'static) {
    // A runtime of its own, for the guard's thread is in another.
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let _ = timeout(UNDO_TIME, undoing).await;
        });
    };
    if let Ok(thread) = std::thread::Builder::new().spawn(work) {
        let _ = thread.join();
    }
}

async fn end_listed(scope: Scope, fleet: &FleetName) {
    let Some(manager) = Manager::open(scope).await else { return };
    for (unit, marks) in units(&manager, &fleet.pattern()).await {
        if marks.fleet == *fleet {
            let _ = unit::end(&manager, &unit).await;
        }
    }
    let _ = end_slice(&manager, fleet).await;
}

/// Ends what Tenfolds that were killed, with their guards, have left behind.
pub(super) async fn clear(manager: &Manager) {
    let Some(own) = Owner::own() else { return };
    let mut fleets: Vec<FleetName> = Vec::new();
    for (unit, marks) in units(manager, &FleetName::any_pattern()).await {
        if !marks.is_kept && marks.owner.is_dead_beside(own) {
            let _ = unit::end(manager, &unit).await;
            if !fleets.contains(&marks.fleet) {
                fleets.push(marks.fleet);
            }
        }
    }
    for fleet in fleets {
        let _ = end_slice(manager, &fleet).await;
    }
}

/// What has become of the slice of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceEnd {
    Stopped,
    /// There are units in it, which are the guard's to end.
    Occupied,
}

/// Stops the slice of a fleet once nothing runs in it.
pub(super) async fn end_slice(manager: &Manager, fleet: &FleetName) -> Result<SliceEnd, CallError> {
    let is_empty = async {
        while !manager.list(&fleet.pattern()).await?.is_empty() {
            sleep(PAUSE).await;
        }
        Ok(())
    };
    match timeout(END_TIME, is_empty).await {
        Ok(is_empty) => is_empty?,
        Err(_) => return Ok(SliceEnd::Occupied),
    }
    manager.stop(&fleet.slice()).await?;
    Ok(SliceEnd::Stopped)
}

/// Tenfold's own units among those that fit.
async fn units(manager: &Manager, pattern: &str) -> Vec<(String, Marks)> {
    let mut units = Vec::new();
    for name in manager.list(pattern).await.unwrap_or_default() {
        let environment: Result<Vec<String>, _> =
            manager.service_property(&name, "Environment").await;
        if let Some(marks) = environment.ok().and_then(|lines| Marks::read(&lines)) {
            units.push((name, marks));
        }
    }
    units
}
