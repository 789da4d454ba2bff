//! The routes: status and metrics for all; scale, reload, stop and servers for the owner of the socket.

use axum::Json;
use axum::Router;
use axum::extract::{Request, State as Extract};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use super::handover::Phase;
use super::state::{Controlled, Refusal, State};
use super::status::{Status, read};
use super::takeover::PROTOCOL;
use super::{metrics, reload, servers, takeover};
use crate::service::deployment::{Deployment, RunningApp};
use crate::terminal::output;

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
        .route(takeover::PATH, post(take_over))
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
    let deployment = deployment_of(&state)?;
    // All names are looked up before anything changes.
    let found = wanted.iter().map(|(name, n)| Ok((app_of(deployment, name.as_deref())?, *n)));
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
    let deployment = deployment_of(&state)?;
    let named: Vec<_> =
        apps.iter().map(|name| app_of(deployment, Some(name))).collect::<Result<_, Refusal>>()?;
    let all = deployment.apps.iter().filter(|_| named.is_empty());
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

fn deployment_of(state: &State) -> Result<&Deployment, Refusal> {
    match &state.controlled {
        Controlled::Fleets(deployment) => Ok(deployment),
        Controlled::Balancer { .. } => Err((
            StatusCode::BAD_REQUEST,
            "this is `tenfold balance`, which runs no instances: scale belongs to `tenfold up`"
                .to_owned(),
        )),
    }
}

/// The app of this name, or the only one.
pub fn app_of<'r>(
    deployment: &'r Deployment,
    name: Option<&str>,
) -> Result<&'r RunningApp, Refusal> {
    let names: Vec<&str> = deployment.apps.iter().map(|app| app.name.as_str()).collect();
    let found = match (name, deployment.apps.as_slice()) {
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

/// `POST /takeover`.
async fn take_over(Extract(state): Extract<State>, request: Request) -> Response {
    let asked = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    if asked != Some(PROTOCOL) {
        let reason = format!("it hands over by {PROTOCOL} only: stop it, then start the new one");
        return (StatusCode::UPGRADE_REQUIRED, [(UPGRADE, PROTOCOL)], reason).into_response();
    }
    let refuse = |reason: String| (StatusCode::CONFLICT, reason).into_response();
    let sockets = match state.sockets() {
        Ok(sockets) => sockets,
        Err(error) => return refuse(format!("it has no file descriptors left: {error}")),
    };
    if sockets.clients.is_empty() {
        return refuse("it is about to end: start without --takeover when it has".to_owned());
    }
    match state.handover.begin().await {
        Ok(()) => {}
        Err(Phase::Shared(pid)) => {
            return refuse(format!("process {pid} is taking over already: wait for it, or end it"));
        }
        Err(_) => return refuse("another one is taking over already: wait for it".to_owned()),
    }
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        if let Err(error) = state.handover.converse(upgrade, sockets).await {
            output::tell(format_args!("tenfold: nobody took over, this one goes on: {error:#}"));
            state.handover.give_up();
        }
    });
    let headers = [(CONNECTION, "upgrade"), (UPGRADE, PROTOCOL)];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
