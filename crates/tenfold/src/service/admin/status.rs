//! The state of apps, instances and servers, as `tenfold status` shows it.

use std::time::SystemTime;

use balancer::{Address, AppSnapshot, BackendHealth, BackendPhase, BackendSnapshot};
use serde::{Deserialize, Serialize};

use super::state::{Controlled, State};
use crate::config::BalancerProgram;
use crate::document::resources::Limited;
use crate::service::deployment::{Deployment, RunningApp};

/// Answer of all routes but `/metrics` and `/servers/remove`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    pub listen: Vec<Address>,
    /// The addresses with their schemes, for people.
    pub urls: Vec<String>,
    pub apps: Vec<StatusApp>,
    pub instances: Vec<StatusInstance>,
}

/// An app.
#[derive(Debug, Serialize, Deserialize)]
pub struct StatusApp {
    pub name: String,
    pub policy: String,
    /// Requests that wait, and that may.
    pub queued: usize,
    pub queue_length: usize,
    /// Requests that were answered 503: no slot was free in time, or every backend was out.
    pub shed: u64,
}

/// One instance or server.
#[derive(Debug, Serialize, Deserialize)]
pub struct StatusInstance {
    pub app: String,
    pub name: String,
    /// What its user calls it, where that is another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    pub address: Address,
    pub state: String,
    pub pid: Option<u32>,
    pub restarts: Option<u32>,
    /// Seconds until it is started again, where it waits for that.
    pub next_start_s: Option<f64>,
    /// Crashes in a row, where it dies again and again.
    pub crash_loop: Option<u32>,
    /// How it ended last, and the last lines that it wrote.
    pub last_crash: Option<String>,
    pub last_output: Vec<String>,
    pub slots: Option<usize>,
    pub in_flight: Option<usize>,
    pub requests: Option<u64>,
    /// CPU in cores, over the last second.
    pub cpu_cores: Option<f64>,
    pub rss_bytes: Option<u64>,
    /// Its limits, and their effect over the last second.
    pub limited: Option<Limited>,
    /// How often the kernel killed it at its memory limit.
    pub memory_kills: Option<u32>,
    pub warning: Option<String>,
}

pub fn read(state: &State) -> Status {
    let snapshot = state.controlled.handle().snapshot();
    let mut instances = Vec::new();
    for app in &snapshot.apps {
        let running = match &state.controlled {
            Controlled::Fleets(deployment) => {
                deployment.apps.iter().find(|r| r.id == app.id).map(|r| (deployment, r))
            }
            Controlled::Balancer { .. } => None,
        };
        match running {
            Some((deployment, running)) => instances.extend(members(deployment, running, app)),
            None => instances.extend(app.backends.iter().map(|backend| server(&app.name, backend))),
        }
    }
    let mut apps: Vec<StatusApp> = snapshot.apps.iter().map(StatusApp::of).collect();
    if let Controlled::Fleets(deployment) = &state.controlled
        && let Some(external) = deployment.external()
    {
        let has_queue = external.program() == BalancerProgram::Haproxy;
        for app in &mut apps {
            app.policy = format!("least_conn of {}", external.name());
            app.queue_length *= usize::from(has_queue);
        }
        // It tells of requests when they have ended.
        for instance in &mut instances {
            instance.in_flight = None;
            instance.slots = instance.slots.filter(|_| has_queue);
        }
    }
    Status { listen: state.listen.clone(), urls: state.urls.clone(), apps, instances }
}

impl StatusApp {
    fn of(app: &AppSnapshot) -> StatusApp {
        let shed = app.queue.shed;
        StatusApp {
            name: app.name.clone(),
            policy: app.policy.to_string(),
            queued: app.queue.depth,
            queue_length: app.queue.length,
            shed: shed.full + shed.too_late + shed.timeout + shed.all_down,
        }
    }
}

fn members(
    deployment: &Deployment,
    running: &RunningApp,
    app: &AppSnapshot,
) -> Vec<StatusInstance> {
    let usage = deployment.recorder.latest().map(|record| record.usage);
    let rows =
        running.fleet.members().into_iter().map(|status| {
            let member = &status.member;
            let address = Address::Tcp(member.address);
            let backend = app.backends.iter().find(|b| b.address == address);
            let used = usage.as_ref().and_then(|u| u.targets.get(&member.name));
            StatusInstance {
                app: app.name.clone(),
                name: member.name.clone(),
                display_name: member.own_name.clone(),
                address,
                state: word(&status.state),
                pid: member.extent.pid(),
                restarts: Some(status.past.restarts),
                next_start_s: status.next_start.map(seconds_until),
                crash_loop: status.past.crash_loop,
                last_crash: status.past.last_crash.clone(),
                last_output: status.past.last_output.0.clone(),
                cpu_cores: used.map(|u| u.cpu_cores),
                rss_bytes: used.and_then(|u| u.rss_bytes),
                limited: usage.as_ref().and_then(|u| Limited::of_one(u, &member.name)),
                memory_kills: Some(status.past.memory_kills),
                warning: status.warning.clone().or_else(|| backend.and_then(unfit)).or_else(|| {
                    status.past.last_crash.as_ref().map(|how| format!("it died: {how}"))
                }),
                slots: backend.map(|b| b.slots),
                in_flight: backend.map(|b| b.in_flight),
                requests: backend.map(|b| b.counts.requests),
            }
        });
    rows.collect()
}

fn server(app: &str, backend: &BackendSnapshot) -> StatusInstance {
    StatusInstance {
        app: app.to_owned(),
        name: backend.name.clone(),
        display_name: None,
        address: backend.address.clone(),
        state: match (backend.state, backend.health) {
            (BackendPhase::Serving, BackendHealth::Up) | (BackendPhase::Draining, _) => {
                word(&backend.state)
            }
            (BackendPhase::Serving, health) => word(&health),
        },
        pid: None,
        restarts: None,
        next_start_s: None,
        crash_loop: None,
        last_crash: None,
        last_output: Vec::new(),
        slots: Some(backend.slots),
        in_flight: Some(backend.in_flight),
        requests: Some(backend.counts.requests),
        cpu_cores: None,
        rss_bytes: None,
        limited: None,
        memory_kills: None,
        warning: unfit(backend),
    }
}

/// Why a backend gets no requests, or only one at a time, to see whether it is fit again.
fn unfit(backend: &BackendSnapshot) -> Option<String> {
    let reason = backend.health_reason.as_ref()?;
    Some(format!("taken out after {reason}"))
}

/// In tenths; 0 for what is over.
fn seconds_until(time: SystemTime) -> f64 {
    let left = time.duration_since(SystemTime::now()).unwrap_or_default();
    (left.as_secs_f64() * 10.0).round() / 10.0
}

/// An enum's name as it is in JSON.
fn word(state: &impl Serialize) -> String {
    let value = serde_json::to_value(state).unwrap_or_default();
    value.as_str().unwrap_or("unknown").to_owned()
}
