//! The fields of every answer, and the one shape of refusals.

use axum::Json;
use axum::body::to_bytes;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What every refusal says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ApiError {
    /// As the status line says it.
    pub status: u16,
    /// What happened and what to do, in a sentence.
    pub error: String,
}

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Unless an answer says otherwise. What is not a page may load and frame nothing.
const FIELDS: [(HeaderName, &str); 7] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (RESOURCE_POLICY, "same-origin"),
    (OPENER_POLICY, "same-origin"),
];

/// A refusal's sentence is short, whoever words it.
const LONGEST_SENTENCE: usize = 64 * 1024;

/// A refusal with its sentence.
pub fn refuse(status: StatusCode, sentence: impl Into<String>) -> Response {
    (status, Json(ApiError { status: status.as_u16(), error: sentence.into() })).into_response()
}

/// Adds the fields, and gives a refusal that is no JSON its shape.
pub async fn furnish(answer: Response) -> Response {
    let status = answer.status();
    let is_json = |value: &HeaderValue| value == "application/json";
    let is_shaped = answer.headers().get(CONTENT_TYPE).is_some_and(is_json);
    let is_refusal = status.is_client_error() || status.is_server_error();
    let mut answer = match is_refusal && !is_shaped {
        true => shaped(answer).await,
        false => answer,
    };
    for (name, value) in FIELDS {
        answer.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

async fn shaped(answer: Response) -> Response {
    let (parts, body) = answer.into_parts();
    let body = to_bytes(body, LONGEST_SENTENCE).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&body).trim().to_owned();
    let sentence = match (said.is_empty(), parts.status) {
        (false, _) => said,
        (true, StatusCode::NOT_FOUND) => {
            "nothing is here: `/api/openapi.json` lists what can be asked for".to_owned()
        }
        (true, StatusCode::METHOD_NOT_ALLOWED) => {
            "this method is not for here: `/api/openapi.json` lists which are".to_owned()
        }
        (true, status) => format!("it is refused ({status})"),
    };
    // What is not as it should be is a bad request, whether its JSON or its values are wrong.
    let status = match parts.status {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let mut refusal = refuse(status, sentence);
    for (name, value) in &parts.headers {
        if name != CONTENT_TYPE && name != axum::http::header::CONTENT_LENGTH {
            refusal.headers_mut().append(name, value.clone());
        }
    }
    refusal
}
