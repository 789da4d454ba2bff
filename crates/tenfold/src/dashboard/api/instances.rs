//! Changes of instances, and what they wrote.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fleet::{FleetError, Member, MemberStatus, StartError, State as Phase};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Shared;
use super::input::Body;
use crate::dashboard::live_state::Dashboard;
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::event::MarkKind;
use crate::dashboard::model::history::InstanceOutput;
use crate::service::admin::app_of;
use crate::service::deployment::{Deployment, RunningApp};
use crate::words::escaped_text::visible;

/// Body of `POST /api/scale`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    #[schema(minimum = 1, maximum = 10_000)]
    instances: usize,
    /// No name is needed where there is one app.
    #[serde(default)]
    app: Option<String>,
}

/// Body of `POST /api/reload`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReloadRequest {
    /// All apps without it.
    #[serde(default)]
    app: Option<String>,
}

/// A body without content.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
pub struct Done {
    /// What was done, in a sentence.
    pub message: String,
}

const MOST_INSTANCES: usize = 10_000;
const LINES: usize = 200;
const LONGEST_LINE: usize = 4096;
/// An instance that does not serve yet has nobody to ask.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for requests in flight at an instance that is drained.
const DRAIN: Duration = Duration::from_secs(30);

/// Changes the number of instances. It answers when they are ready.
#[utoipa::path(post, path = "/api/scale", request_body = ScaleRequest, responses((status = 200, body = Done)))]
pub async fn scale(
    State(dashboard): Shared,
    Body(ScaleRequest { instances, app }): Body<ScaleRequest>,
) -> Result<Json<Done>, Refusal> {
    if !(1..=MOST_INSTANCES).contains(&instances) {
        let sentence = format!("`instances` must be 1 to {MOST_INSTANCES}: change it");
        return Err((StatusCode::BAD_REQUEST, sentence));
    }
    let deployment = deployment(&dashboard)?;
    let app = app_of(&deployment, app.as_deref())?;
    let before = app.fleet.members().len();
    app.fleet.scale(instances).await.map_err(|error| refuse(&error))?;
    let text = format!("{} has {} now, it had {before}", app.name, counted(instances));
    dashboard.mark(MarkKind::Scaling, text.clone());
    Ok(Json(Done { message: text }))
}

/// Replaces the instances one by one. It answers when all are replaced.
#[utoipa::path(post, path = "/api/reload", request_body = ReloadRequest, responses((status = 200, body = Done)))]
pub async fn reload(
    State(dashboard): Shared,
    Body(ReloadRequest { app }): Body<ReloadRequest>,
) -> Result<Json<Done>, Refusal> {
    let deployment = deployment(&dashboard)?;
    let named = app.map(|name| app_of(&deployment, Some(&name))).transpose()?;
    let all = deployment.apps.iter().filter(|_| named.is_none());
    for app in named.into_iter().chain(all) {
        app.fleet.reload().await.map_err(|error| refuse(&error))?;
    }
    Ok(Json(Done { message: "all instances were replaced".to_owned() }))
}

/// Puts a successor in an instance's place. It answers when the successor serves and the instance is gone.
#[utoipa::path(
    post,
    path = "/api/instances/{name}/restart",
    params(("name" = String, Path, description = "The instance's name")),
    request_body = Nothing,
    responses((status = 200, body = Done))
)]
pub async fn restart(
    State(dashboard): Shared,
    Path(name): Path<String>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Done>, Refusal> {
    let deployment = deployment(&dashboard)?;
    let (app, status) = found(&deployment, &name)?;
    app.fleet.replace(status.member.index).await.map_err(|error| refuse(&error))?;
    let name = status.member.display_name();
    Ok(Json(Done { message: format!("{name} was replaced") }))
}

/// Gives an instance no new requests. It answers when none is in flight there. `resume` or a restart brings it back.
#[utoipa::path(
    post,
    path = "/api/instances/{name}/drain",
    params(("name" = String, Path, description = "The instance's name")),
    request_body = Nothing,
    responses((status = 200, body = Done))
)]
pub async fn drain(
    State(dashboard): Shared,
    Path(name): Path<String>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Done>, Refusal> {
    let deployment = deployment(&dashboard)?;
    let (app, status) = found(&deployment, &name)?;
    let name = status.member.display_name();
    if status.state != Phase::Ready || !app.serves(status.member.id) {
        return conflict(format!("{name} gets no requests anyway: put it back first"));
    }
    if app.serving() < 2 {
        return conflict(format!("{name} is the last that serves: start another one first"));
    }
    app.drain(status.member.id, DRAIN).await;
    Ok(Json(Done {
        message: format!("{name} gets no more requests: put it back when it shall serve again"),
    }))
}

/// Gives a drained instance requests again.
#[utoipa::path(
    post,
    path = "/api/instances/{name}/resume",
    params(("name" = String, Path, description = "The instance's name")),
    request_body = Nothing,
    responses((status = 200, body = Done))
)]
pub async fn resume(
    State(dashboard): Shared,
    Path(name): Path<String>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Done>, Refusal> {
    let deployment = deployment(&dashboard)?;
    let (app, status) = found(&deployment, &name)?;
    let name = status.member.display_name();
    if status.state != Phase::Ready {
        return conflict(format!("{name} is not ready: restart it to bring it back"));
    }
    if app.serves(status.member.id) {
        return conflict(format!("{name} gets requests already: drain it first"));
    }
    if app.drains(status.member.id) {
        return conflict(format!("{name} still has requests in flight: try again after them"));
    }
    let refused = |error: StartError| (StatusCode::CONFLICT, error.to_string());
    app.resume(&status.member).await.map_err(refused)?;
    Ok(Json(Done { message: format!("{name} gets requests again") }))
}

/// The last 200 lines that an instance wrote.
#[utoipa::path(
    get,
    path = "/api/instances/{name}/output",
    params(("name" = String, Path, description = "The instance's name")),
    responses((status = 200, body = InstanceOutput))
)]
pub async fn output(
    State(dashboard): Shared,
    Path(name): Path<String>,
) -> Result<Json<InstanceOutput>, Refusal> {
    let deployment = deployment(&dashboard)?;
    let (app, status) = found(&deployment, &name)?;
    let asked = app.fleet.last_lines(status.member.index, LINES);
    let lines = tokio::time::timeout(OUTPUT_TIMEOUT, asked).await.ok().flatten();
    let lines = lines.unwrap_or(status.past.last_output.0);
    let lines = lines.iter().map(|line| visible(bounded(line))).collect();
    Ok(Json(InstanceOutput { name, lines }))
}

fn deployment(dashboard: &Dashboard) -> Result<Arc<Deployment>, Refusal> {
    let none = || {
        let sentence = "no instances can be changed here: `tenfold up` runs such";
        (StatusCode::CONFLICT, sentence.to_owned())
    };
    dashboard.deployment().ok_or_else(none)
}

/// The newest of this name, or the one that its user calls so. While one is replaced, two have one name.
fn found<'d>(
    deployment: &'d Deployment,
    name: &str,
) -> Result<(&'d RunningApp, MemberStatus), Refusal> {
    let of_app = |app: &'d RunningApp| {
        let mut members = app.fleet.members().into_iter();
        let is_meant = |member: &Member| member.name == name || member.display_name() == name;
        Some((app, members.rfind(|status| is_meant(&status.member))?))
    };
    deployment.apps.iter().find_map(of_app).ok_or_else(|| {
        let sentence =
            format!("no instance {} is here: `tenfold status` lists them", visible(name));
        (StatusCode::NOT_FOUND, sentence)
    })
}

fn bounded(line: &str) -> &str {
    let mut end = line.len().min(LONGEST_LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

fn counted(instances: usize) -> String {
    if instances == 1 { "1 instance".to_owned() } else { format!("{instances} instances") }
}

fn refuse(error: &FleetError) -> Refusal {
    (StatusCode::CONFLICT, error.to_string())
}

fn conflict<T>(sentence: String) -> Result<T, Refusal> {
    Err((StatusCode::CONFLICT, sentence))
}
