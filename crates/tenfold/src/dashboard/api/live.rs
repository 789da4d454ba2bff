//! What runs: its state, its past, and the stream of what changes.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream::unfold;
use hyper::body::Bytes;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Shared;
use super::input::Query;
use crate::dashboard::hub::Subscription;
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::history::{History, InstanceHistory};
use crate::dashboard::model::state;
use crate::service::admin::connections::Streaming;

/// A line without meaning, so that neither side takes the other for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const MOST_IDS: usize = 100;

/// All that is known now. Events go on from its `sequence`.
#[utoipa::path(get, path = "/api/state", responses((status = 200, body = state::State)))]
pub async fn state(State(dashboard): Shared) -> Json<state::State> {
    Json(dashboard.state())
}

/// The ticks of the last hour: single ones of ten minutes, and before that tens with their extremes.
#[utoipa::path(get, path = "/api/history", responses((status = 200, body = History)))]
pub async fn history(State(dashboard): Shared) -> Json<History> {
    Json(dashboard.history())
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Ids {
    /// Up to 100 instances' ids, separated by commas.
    #[param(pattern = "^[0-9]{1,15}(,[0-9]{1,15}){0,99}$")]
    ids: String,
}

/// What some instances did in the last five minutes.
#[utoipa::path(get, path = "/api/history/instances", params(Ids), responses((status = 200, body = InstanceHistory)))]
pub async fn instance_history(
    State(dashboard): Shared,
    Query(Ids { ids }): Query<Ids>,
) -> Result<Json<InstanceHistory>, Refusal> {
    let ids: Result<Vec<u64>, _> = ids.split(',').map(str::parse).collect();
    match ids {
        Ok(ids) if ids.len() <= MOST_IDS => {
            Ok(Json(InstanceHistory { instances: dashboard.instance_history(&ids) }))
        }
        _ => Err((
            StatusCode::BAD_REQUEST,
            format!("`ids` are {MOST_IDS} ids of instances at most: write them as in 1,2,3"),
        )),
    }
}

/// A stream of events: `hello`, then what was missed since `last-event-id`, then what changes. An `end` or a `reset` is
/// the last of them.
#[utoipa::path(
    get,
    path = "/api/events",
    params(("last-event-id" = Option<u64>, Header, description = "The newest event that is known")),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
pub async fn events(
    State(dashboard): Shared,
    Extension(streaming): Extension<Streaming>,
    headers: HeaderMap,
) -> Response {
    let seen = headers.get("last-event-id").map(|id| id.to_str().ok()?.parse().ok());
    if let Some(None) = seen {
        let sentence = "`last-event-id` must be the number of an event: ask for /api/state instead";
        return (StatusCode::BAD_REQUEST, sentence).into_response();
    }
    let Ok(subscription) = dashboard.hub.subscribe(seen.flatten(), streaming) else {
        let sentence = "too many pages are open: close some";
        return (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response();
    };
    let body = Body::from_stream(unfold((subscription, Begun::No), next));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Whether the first events were sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    No,
    Yes,
}

type Stream = (Subscription, Begun);

async fn next((mut events, begun): Stream) -> Option<(std::io::Result<Bytes>, Stream)> {
    if begun == Begun::No {
        let first = events.first.clone();
        return Some((Ok(first), (events, Begun::Yes)));
    }
    let event = match tokio::time::timeout(KEEP_ALIVE, events.next()).await {
        Ok(event) => event?,
        Err(_) => Bytes::from_static(b": \n\n"),
    };
    Some((Ok(event), (events, Begun::Yes)))
}
