//! Starts a plan or a cost of the app that runs here, and stops it.

use axum::Json;
use axum::extract::State;

use super::Shared;
use super::input::Body;
use super::instances::Nothing;
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::measurement::{CostStart, Measurement, PlanStart};

/// Starts a plan of the app, as a process of its own with instances of its own.
#[utoipa::path(post, operation_id = "measurement_plan", path = "/api/measurement/plan", request_body = PlanStart, responses((status = 200, body = Measurement)))]
pub async fn plan(
    State(dashboard): Shared,
    Body(start): Body<PlanStart>,
) -> Result<Json<Measurement>, Refusal> {
    dashboard.start_plan(&start).map(Json)
}

/// Starts a comparison of sizes of the app, as a process of its own with instances of its own.
#[utoipa::path(post, operation_id = "measurement_cost", path = "/api/measurement/cost", request_body = CostStart, responses((status = 200, body = Measurement)))]
pub async fn cost(
    State(dashboard): Shared,
    Body(start): Body<CostStart>,
) -> Result<Json<Measurement>, Refusal> {
    dashboard.start_cost(&start).map(Json)
}

/// Stops the plan or cost that runs. What was measured by then is kept, if that says something.
#[utoipa::path(post, operation_id = "measurement_stop", path = "/api/measurement/stop", request_body = Nothing, responses((status = 200, body = Measurement)))]
pub async fn stop(
    State(dashboard): Shared,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Measurement>, Refusal> {
    dashboard.stop_measurement().map(Json)
}
