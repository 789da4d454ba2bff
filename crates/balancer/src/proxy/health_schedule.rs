//! Checks every backend of every app when it is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use crate::backends::backend_id::BackendId;
use crate::config::health::ActiveHealth;
use crate::connection::worker::Worker;
use crate::proxy::health_check::{self, Finding};
use crate::queue::TICK;
use crate::queue::app::App;
use crate::queue::dispatch::member::Standing;

/// When a backend is to be checked again. None while a check runs.
type Schedule = HashMap<BackendId, Option<Instant>>;

/// Runs checks as long as the balancer runs.
pub(crate) async fn run(worker: Arc<Worker>) {
    if worker.shared.apps.iter().all(|app| app.config.health.active.is_none()) {
        return;
    }
    let (mut schedule, mut checks) = (Schedule::new(), JoinSet::new());
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        while let Some(done) = checks.try_join_next() {
            let Ok((id, next)) = done else { continue };
            schedule.insert(id, Some(next));
        }
        let due = due(&worker.shared.apps, &mut schedule, Instant::now());
        for id in due {
            checks.spawn(check(Arc::clone(&worker), id));
        }
    }
}

/// The backends that are due. They are marked as being checked, and removed backends are forgotten.
fn due(apps: &[App], schedule: &mut Schedule, now: Instant) -> Vec<BackendId> {
    let (mut due, mut seen) = (Vec::new(), Schedule::new());
    for app in apps.iter().filter(|app| app.config.health.active.is_some()) {
        for standing in app.queue.statuses() {
            if standing.standing == Standing::Draining || standing.slots == 0 {
                continue;
            }
            let id = standing.id;
            let next = schedule.get(&id).copied().unwrap_or(Some(now));
            let asks = next.is_some_and(|next| next <= now);
            seen.insert(id, if asks { None } else { next });
            if asks {
                due.push(id);
            }
        }
    }
    *schedule = seen;
    due
}

async fn check(worker: Arc<Worker>, id: BackendId) -> (BackendId, Instant) {
    let app = worker.shared.app(id.app());
    let rules = app.config.health.active.as_ref();
    if let Some(rules) = rules {
        ask(&worker, app, id, rules).await;
    }
    let interval = rules.map_or(TICK, |rules| rules.interval);
    (id, Instant::now() + interval)
}

/// The wait for a slot does not count against the backend. Neither does a late answer while more slots are
/// tried.
async fn ask(worker: &Worker, app: &App, id: BackendId, rules: &ActiveHealth) {
    let Some(slot) = app.queue.slot_of(id).await else { return };
    let tries_more = app.queue.tries_more_slots(id);
    let connect = worker.shared.config.timeouts.connect;
    let backend = Arc::clone(&slot.backend);
    let result = match health_check::check(slot, worker.index, rules, connect).await {
        Finding::Fit => Ok(()),
        Finding::Untried => return,
        Finding::Late(_) if tries_more => return app.queue.end_trial(id, Instant::now()),
        Finding::Late(reason) | Finding::Unfit(reason) => Err(reason),
    };
    backend.tally(worker.index, |tally| {
        tally.counts.checks += 1;
        tally.counts.failed_checks += u64::from(result.is_err());
    });
    app.queue.on_check(id, rules, result);
}
