//! The routes: status and metrics for all; scale, reload, stop and servers for the owner of the socket.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use axum::Json;
use axum::Router;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use balancer::{Address, AppSnapshot, BackendHealth, BackendPhase, BackendSnapshot};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use super::handover::{self, Handover};
use super::reload;
use super::servers::{self, Pool};
use super::takeover::{self, Sockets};
use super::{Controlled, metrics};
use crate::plan::Limited;
use crate::rig::{Rig, RunningApp};

/// What the routes work on.
#[derive(Clone)]
pub struct State {
    pub listen: Vec<Address>,
    pub urls: Vec<String>,
    /// The path of the control socket.
    pub socket: Arc<Path>,
    pub controlled: Controlled,
    /// Apps whose servers something else runs.
    pub pools: Arc<[Pool]>,
    /// Notified when a stop is asked for.
    pub stop: Arc<Notify>,
    /// True once everything has ended, or another Tenfold answers.
    pub closed: watch::Sender<bool>,
    pub handover: Arc<Handover>,
    /// Duplicates of what is listened on here, until another Tenfold answers.
    pub listening: Arc<Mutex<Sockets>>,
}

/// Body of `POST /scale`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Scale {
    /// Instances by app; no name is needed where there is one.
    pub wanted: Vec<(Option<String>, usize)>,
}

/// Body of `POST /reload`: instances of `up` are replaced, `balance` reads its file again.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reload {
    /// None means all.
    pub apps: Vec<String>,
}

/// Answer of all routes but `/metrics` and `/servers/remove`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    pub listen: Vec<Address>,
    /// The same with their schemes, for people.
    #[serde(default)]
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
    pub address: Address,
    pub state: String,
    pub pid: Option<u32>,
    pub restarts: Option<u32>,
    /// Seconds until it is started again, where it waits for that.
    #[serde(default)]
    pub next_start_s: Option<f64>,
    /// Crashes in a row, where it dies again and again.
    #[serde(default)]
    pub crash_loop: Option<u32>,
    /// How it ended last, and the last lines that it wrote.
    #[serde(default)]
    pub last_crash: Option<String>,
    #[serde(default)]
    pub last_output: Vec<String>,
    pub slots: Option<usize>,
    pub in_flight: Option<usize>,
    pub requests: Option<u64>,
    /// CPU in cores, over the last second.
    pub cpu_cores: Option<f64>,
    pub rss_bytes: Option<u64>,
    /// What holds it, and how that was over the last second.
    pub limited: Option<Limited>,
    /// How often the kernel killed it at its memory limit.
    pub memory_kills: Option<u32>,
    pub warning: Option<String>,
}

impl State {
    pub fn listening(&self) -> MutexGuard<'_, Sockets> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that a successor goes on with.
    pub fn sockets(&self) -> io::Result<Sockets> {
        let listening = self.listening();
        let duplicate = |s: &Option<OwnedFd>| s.as_ref().map(OwnedFd::try_clone).transpose();
        Ok(Sockets {
            clients: self.controlled.handle().listening_sockets()?,
            control: duplicate(&listening.control)?,
            public: duplicate(&listening.public)?,
        })
    }
}

/// A refusal: status and sentence. What is asked for wrongly is a bad request, what cannot be done a conflict.
pub type Refusal = (StatusCode, String);

/// For everybody who can reach the address.
pub fn public(state: State) -> Router {
    Router::new()
        .route("/metrics", get(render_metrics))
        .route("/status", get(status))
        .with_state(state)
}

/// For the owner of the socket.
pub fn control(state: State) -> Router {
    let verbs = Router::new()
        .route("/scale", post(scale))
        .route("/reload", post(reload))
        .route("/stop", post(stop))
        .route(takeover::PATH, post(handover::take_over))
        .merge(servers::routes())
        .with_state(state.clone());
    public(state).merge(verbs)
}

async fn render_metrics(Extract(state): Extract<State>) -> impl IntoResponse {
    let text = metrics::render(&state.controlled);
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}

async fn status(Extract(state): Extract<State>) -> Json<Status> {
    Json(read(&state))
}

async fn scale(
    Extract(state): Extract<State>,
    Json(Scale { wanted }): Json<Scale>,
) -> Result<Json<Status>, Refusal> {
    let rig = rig_of(&state)?;
    // All names are looked up before anything changes.
    let found = wanted.iter().map(|(name, n)| Ok((app_of(rig, name.as_deref())?, *n)));
    for (app, instances) in found.collect::<Result<Vec<_>, Refusal>>()? {
        app.fleet.scale(instances).await.map_err(|e| refuse(&e))?;
    }
    Ok(Json(read(&state)))
}

async fn reload(
    Extract(state): Extract<State>,
    Json(Reload { apps }): Json<Reload>,
) -> Result<Json<Status>, Refusal> {
    if let Controlled::Balancer { read_again, .. } = &state.controlled {
        if !apps.is_empty() {
            let sentence =
                "this is `tenfold balance`, which reads its whole file again: name no app";
            return Err((StatusCode::BAD_REQUEST, sentence.to_owned()));
        }
        reload::replace_process(&state, read_again).await?;
        return Ok(Json(read(&state)));
    }
    let rig = rig_of(&state)?;
    let named: Vec<_> =
        apps.iter().map(|name| app_of(rig, Some(name))).collect::<Result<_, Refusal>>()?;
    let all = rig.apps.iter().filter(|_| named.is_empty());
    for app in named.iter().copied().chain(all) {
        app.fleet.reload().await.map_err(|e| refuse(&e))?;
    }
    Ok(Json(read(&state)))
}

/// Answers when everything has ended.
async fn stop(Extract(state): Extract<State>) -> Json<Status> {
    let last = read(&state);
    state.stop.notify_one();
    let mut closed = state.closed.subscribe();
    let _ = closed.wait_for(|closed| *closed).await;
    Json(last)
}

fn rig_of(state: &State) -> Result<&Rig, Refusal> {
    match &state.controlled {
        Controlled::Fleets(rig) => Ok(rig),
        Controlled::Balancer { .. } => Err((
            StatusCode::BAD_REQUEST,
            "this is `tenfold balance`, which runs no instances: scale belongs to `tenfold up`"
                .to_owned(),
        )),
    }
}

/// The app of this name, or the only one.
fn app_of<'r>(rig: &'r Rig, name: Option<&str>) -> Result<&'r RunningApp, Refusal> {
    let names: Vec<&str> = rig.apps.iter().map(|app| app.name.as_str()).collect();
    let found = match (name, rig.apps.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), apps) => apps.iter().find(|app| app.name == name),
    };
    found.ok_or_else(|| {
        let sentence = match (name, names.as_slice()) {
            (_, []) => {
                "all servers here are run by something else: there is nothing to scale or reload"
                    .to_owned()
            }
            (Some(name), _) => {
                format!("no app {name} is run here: write one of {}", names.join(", "))
            }
            (None, [first, ..]) => format!(
                "several apps run here ({}): say which, as in `tenfold scale {first}=3`",
                names.join(", ")
            ),
        };
        (StatusCode::BAD_REQUEST, sentence)
    })
}

fn refuse(error: &fleet::FleetError) -> Refusal {
    (StatusCode::CONFLICT, error.to_string())
}

pub fn read(state: &State) -> Status {
    let snapshot = state.controlled.handle().snapshot();
    let mut instances = Vec::new();
    for app in &snapshot.apps {
        let running = match &state.controlled {
            Controlled::Fleets(rig) => rig.apps.iter().find(|r| r.id == app.id).map(|r| (rig, r)),
            Controlled::Balancer { .. } => None,
        };
        match running {
            Some((rig, running)) => instances.extend(members(rig, running, app)),
            None => instances.extend(app.backends.iter().map(|backend| server(&app.name, backend))),
        }
    }
    Status {
        listen: state.listen.clone(),
        urls: state.urls.clone(),
        apps: snapshot.apps.iter().map(StatusApp::of).collect(),
        instances,
    }
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

fn members(rig: &Rig, running: &RunningApp, app: &AppSnapshot) -> Vec<StatusInstance> {
    let usage = rig.recorder.latest().map(|record| record.usage);
    let seconds = usage.as_ref().map_or(1.0, |usage| usage.seconds);
    let rows =
        running.fleet.members().into_iter().map(|status| {
            let member = &status.member;
            let address = Address::Tcp(member.address);
            let backend = app.backends.iter().find(|b| b.address == address);
            let used = usage.as_ref().and_then(|u| u.targets.get(&member.name));
            StatusInstance {
                app: app.name.clone(),
                name: member.name.clone(),
                address,
                state: word(&status.state),
                pid: Some(member.pid),
                restarts: Some(status.past.restarts),
                next_start_s: status.next_start.map(seconds_until),
                crash_loop: status.past.crash_loop,
                last_crash: status.past.last_crash.clone(),
                last_output: status.past.last_output.0.clone(),
                cpu_cores: used.map(|u| u.cpu_cores),
                rss_bytes: used.and_then(|u| u.rss_bytes),
                limited: used.and_then(|u| Limited::of(u, seconds)),
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
