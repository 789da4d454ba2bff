//! Starts a plan or a cost of the app that runs here, and stops it.

use axum::Json;
use axum::extract::State;

use super::Shared;
use super::instances::Nothing;
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::measurement::{CostStart, Measurement, PlanStart};

/// Starts a plan of the app, as a process of its own with instances of its own.
#[utoipa::path(post, path = "/api/measurement/plan", request_body = PlanStart, responses((status = 200, body = Measurement)))]
pub async fn plan(
    State(dashboard): Shared,
    Json(start): Json<PlanStart>,
) -> Result<Json<Measurement>, Refusal> {
    dashboard.start_plan(&start).map(Json)
}

/// Starts a comparison of sizes of the app, as a process of its own with instances of its own.
#[utoipa::path(post, path = "/api/measurement/cost", request_body = CostStart, responses((status = 200, body = Measurement)))]
pub async fn cost(
    State(dashboard): Shared,
    Json(start): Json<CostStart>,
) -> Result<Json<Measurement>, Refusal> {
    dashboard.start_cost(&start).map(Json)
}

/// Stops the plan or cost that runs. What was measured by then is kept, if that says something.
#[utoipa::path(post, path = "/api/measurement/stop", request_body = Nothing, responses((status = 200, body = Measurement)))]
pub async fn stop(
    State(dashboard): Shared,
    Json(Nothing {}): Json<Nothing>,
) -> Result<Json<Measurement>, Refusal> {
    dashboard.stop_measurement().map(Json)
}
