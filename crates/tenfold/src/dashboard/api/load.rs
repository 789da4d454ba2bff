//! Starts and steers a load.

use axum::Json;
use axum::extract::State;

use super::Shared;
use super::input::Body;
use super::instances::Nothing;
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::event::Report;
use crate::dashboard::model::load::{Load, LoadEdit, LoadStart, LoadStatistics};

/// Starts a load on the balancer of `up`.
#[utoipa::path(post, path = "/api/load/start", request_body = LoadStart, responses((status = 200, body = Load)))]
pub async fn start(
    State(dashboard): Shared,
    Body(start): Body<LoadStart>,
) -> Result<Json<Load>, Refusal> {
    dashboard.start_load(start).await.map(Json)
}

/// Starts the last load again, as it was asked for.
#[utoipa::path(post, path = "/api/load/again", request_body = Nothing, responses((status = 200, body = Load)))]
pub async fn repeat(
    State(dashboard): Shared,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Load>, Refusal> {
    dashboard.repeat_load().await.map(Json)
}

/// Changes the users, the ramp or the rate of the load that runs.
#[utoipa::path(post, path = "/api/load/edit", request_body = LoadEdit, responses((status = 200, body = Load)))]
pub async fn edit(
    State(dashboard): Shared,
    Body(edit): Body<LoadEdit>,
) -> Result<Json<Load>, Refusal> {
    dashboard.edit_load(&edit).map(Json)
}

/// Ends the load that runs, and keeps it in the history.
#[utoipa::path(post, path = "/api/load/stop", request_body = Nothing, responses((status = 200, body = Load)))]
pub async fn stop(
    State(dashboard): Shared,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Load>, Refusal> {
    dashboard.stop_load().await.map(Json)
}

/// Begins the statistics of the load that runs anew.
#[utoipa::path(post, path = "/api/load/reset", request_body = Nothing, responses((status = 200, body = Load)))]
pub async fn reset(
    State(dashboard): Shared,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Load>, Refusal> {
    dashboard.reset_load().map(Json)
}

/// The figures of each kind of request of the load that runs, or ran last.
#[utoipa::path(get, path = "/api/load/statistics", responses((status = 200, body = LoadStatistics)))]
pub async fn statistics(State(dashboard): Shared) -> Result<Json<LoadStatistics>, Refusal> {
    dashboard.load_statistics().await.map(Json)
}

/// The load that runs, as far as it is, or ran last: its document, and what a report says of it.
#[utoipa::path(get, path = "/api/load/document", responses((status = 200, body = Report)))]
pub async fn document(State(dashboard): Shared) -> Result<Json<Report>, Refusal> {
    let document = dashboard.load_document(true).await?;
    super::runs::aside(move || Report::of_load(&document)).await.map(Json)
}
