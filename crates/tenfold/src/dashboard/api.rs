//! The routes of the page and of other programs. Who may ask is decided before (see `service::access`), and every
//! refusal gets its one shape after.
//!
//! - [`shell`]: the page itself.
//! - [`live`]: state, history and the stream of events.
//! - [`instances`]: scale, reload, restart, drain, output.
//! - [`load`]: starts and steers a load; [`download`]: its files.
//! - [`measurement`]: starts and stops a plan or a cost.
//! - [`runs`]: the history.
//! - [`locust`]: Locust's own routes, in its shapes.
//! - [`input`]: what a request brings.
//! - [`description`]: all of it as OpenAPI.

mod description;
mod download;
mod input;
mod instances;
mod live;
mod load;
mod locust;
mod measurement;
mod runs;
mod shell;

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::live_state::Dashboard;

/// What handlers work on.
type Shared = State<Arc<Dashboard>>;

/// All routes.
pub fn routes(dashboard: &Arc<Dashboard>) -> Router {
    let all = described().merge(locust::routes());
    let (routes, description) = all.with_state(Arc::clone(dashboard)).split_for_parts();
    let description = description::completed(description);
    let description = get(async move || Json(description.clone()));
    routes.route("/api/openapi.json", description).merge(shell::routes())
}

/// Those that the description lists.
fn described() -> OpenApiRouter<Arc<Dashboard>> {
    OpenApiRouter::with_openapi(description::head())
        .routes(routes!(live::state))
        .routes(routes!(live::history))
        .routes(routes!(live::instance_history))
        .routes(routes!(live::events))
        .routes(routes!(instances::scale))
        .routes(routes!(instances::reload))
        .routes(routes!(instances::restart))
        .routes(routes!(instances::drain))
        .routes(routes!(instances::resume))
        .routes(routes!(instances::output))
        .routes(routes!(load::start))
        .routes(routes!(load::repeat))
        .routes(routes!(load::edit))
        .routes(routes!(load::stop))
        .routes(routes!(load::reset))
        .routes(routes!(load::statistics))
        .routes(routes!(load::document))
        .routes(routes!(measurement::plan))
        .routes(routes!(measurement::cost))
        .routes(routes!(measurement::stop))
        .routes(routes!(download::of_load))
        .routes(routes!(download::of_run))
        .routes(routes!(runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::trend))
        .routes(routes!(runs::compare))
}
