//! The routes of Locust's own page, in its shapes, for scripts and clients that were written for it.
//!
//! Where Tenfold measures more exactly, it says so: times have microseconds, and Locust's are rounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Shared;
use super::download::{Part, made};
use crate::config::quantity;
use crate::dashboard::live_state::Dashboard;
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::load::{Current, LoadEdit, LoadStart, LoadStatistics, Phase};
use crate::document::load::Failure;
use crate::document::times::times;
use crate::report::page::summary::Statistics;
use crate::service::access::require_no_page;
use crate::words;

/// Locust changes something by GET, which no page of a browser may do here.
pub fn routes() -> OpenApiRouter<Arc<Dashboard>> {
    let changing = OpenApiRouter::new()
        .routes(routes!(stop))
        .routes(routes!(reset))
        .layer(from_fn(require_no_page));
    OpenApiRouter::new()
        .routes(routes!(swarm))
        .routes(routes!(requests))
        .routes(routes!(requests_csv))
        .routes(routes!(failures_csv))
        .routes(routes!(history_csv))
        .routes(routes!(report))
        .routes(routes!(exceptions))
        .routes(routes!(exceptions_csv))
        .routes(routes!(tasks))
        .merge(changing)
}

/// Body of `POST /swarm`, as a form. Other fields of Locust's are ignored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the form, which is read by hand")]
struct SwarmForm {
    /// Needed to start a load.
    #[schema(minimum = 1)]
    user_count: Option<u32>,
    spawn_rate: Option<f64>,
    /// The target of this page, and no other.
    host: Option<String>,
    /// As in `1m30s`.
    run_time: Option<String>,
}

/// A row of `/stats/requests`. Times are in milliseconds.
#[derive(Debug, Serialize)]
struct Row {
    method: String,
    name: String,
    safe_name: String,
    num_requests: u64,
    num_failures: u64,
    avg_response_time: f64,
    min_response_time: f64,
    max_response_time: f64,
    median_response_time: f64,
    current_rps: f64,
    current_fail_per_sec: f64,
    total_rps: f64,
    total_fail_per_sec: f64,
    avg_content_length: f64,
    #[serde(rename = "response_time_percentile_0.95")]
    p95: f64,
    #[serde(rename = "response_time_percentile_0.99")]
    p99: f64,
}

/// `/swarm`'s answer.
#[derive(Debug, Serialize, ToSchema)]
struct Swarmed {
    success: bool,
    message: String,
    host: String,
}

/// As Locust: starts a load, or changes the users of the one that runs.
#[utoipa::path(
    post,
    operation_id = "locust_swarm",
    path = "/swarm",
    request_body(content = SwarmForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = Swarmed))
)]
async fn swarm(State(dashboard): Shared, form: String) -> Json<Swarmed> {
    let host = dashboard.target().unwrap_or_default().to_owned();
    let (success, message) = match swarmed(&dashboard, &host, &form).await {
        Ok(message) => (true, message.to_owned()),
        Err((_, sentence)) => (false, sentence),
    };
    Json(Swarmed { success, message, host })
}

async fn swarmed(
    dashboard: &Arc<Dashboard>,
    host: &str,
    form: &str,
) -> Result<&'static str, Refusal> {
    let fields: BTreeMap<String, String> = form_urlencoded::parse(form.as_bytes())
        .into_owned()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let number = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number > 0.0 => Ok(Some(number)),
            _ => Err(wrong(format!("`{name}` must be a number above 0: correct it"))),
        },
    };
    let users = number("user_count")?;
    let ramp = number("spawn_rate")?;
    let users = users.map(|users| users.round().min(f64::from(u32::MAX)) as u32);
    if users.is_none() && (ramp.is_none() || dashboard.load().is_none()) {
        return Err(wrong(
            "`user_count` is missing: send a form, as in user_count=10&spawn_rate=1".to_owned(),
        ));
    }
    if dashboard.load().is_some() {
        dashboard.edit_load(&LoadEdit { users, ramp: ramp.map(Some), rate: None })?;
        return Ok("Swarming started");
    }
    if let Some(asked) = fields.get("host")
        && asked.trim_end_matches('/') != host
    {
        return Err(wrong(format!(
            "this page puts load on {host} alone: leave `host` out, or run `tenfold load` for another target"
        )));
    }
    let run_time = fields.get("run_time").map(|text| quantity::positive_seconds(text));
    let run_time = run_time.transpose().map_err(wrong)?;
    let start = LoadStart {
        users,
        ramp: Some(ramp.unwrap_or(1.0)),
        run_time_s: run_time.map(|time| time.as_secs_f64()),
        ..LoadStart::default()
    };
    dashboard.start_load(start).await?;
    Ok("Swarming started")
}

/// As Locust: ends the load, if one runs. No page of a browser may ask.
#[utoipa::path(get, operation_id = "locust_stop", path = "/stop", responses((status = 200, body = Object)))]
async fn stop(State(dashboard): Shared) -> Result<Json<Value>, Refusal> {
    if dashboard.load().is_some() {
        dashboard.stop_load().await?;
    }
    Ok(Json(json!({ "success": true, "message": "Test stopped" })))
}

/// As Locust: begins the statistics anew. No page of a browser may ask.
#[utoipa::path(get, operation_id = "locust_reset", path = "/stats/reset", responses((status = 200, body = String, content_type = "text/plain")))]
async fn reset(State(dashboard): Shared) -> Result<&'static str, Refusal> {
    if dashboard.load().is_some() {
        dashboard.reset_load()?;
    }
    Ok("ok")
}

/// As Locust: the figures of each kind of request, and what users do.
#[utoipa::path(get, operation_id = "locust_requests", path = "/stats/requests", responses((status = 200, body = Object)))]
async fn requests(State(dashboard): Shared) -> Json<Value> {
    let statistics = dashboard.load_statistics().await.ok();
    let recent = dashboard.load().map(|load| load.run.windows()).unwrap_or_default();
    let percentile = |percent: f64| {
        let mut all = load::Histogram::new();
        recent.iter().rev().take(RECENT).for_each(|window| window.response.add_to(&mut all));
        times_of(&all, percent)
    };
    let rows: Vec<Row> = statistics.as_ref().map_or_else(
        || vec![Row::empty()],
        |s| s.statistics.iter().zip(&s.current).map(|(row, now)| Row::of(row, *now)).collect(),
    );
    let errors =
        statistics.as_ref().map_or_else(Vec::new, |s| s.failures.iter().map(error).collect());
    let all = rows.last();
    let load = statistics.as_ref().map(|s| &s.load);
    let (total, failed) = all.map_or((0, 0), |all| (all.num_requests, all.num_failures));
    Json(json!({
        "stats": rows,
        "errors": errors,
        "current_rps": all.map(|all| all.current_rps),
        "current_fail_per_sec": all.map(|all| all.current_fail_per_sec),
        "total_rps": all.map(|all| all.total_rps),
        "total_fail_per_sec": all.map(|all| all.total_fail_per_sec),
        "total_avg_response_time": all.map(|all| all.avg_response_time),
        "fail_ratio": failed as f64 / total.max(1) as f64,
        "current_response_time_percentiles": {
            "response_time_percentile_0.5": percentile(50.0),
            "response_time_percentile_0.95": percentile(95.0),
        },
        "state": word(load.map(|load| load.state)),
        "user_count": load.filter(|load| load.state != Phase::Ended).and_then(|load| load.users).unwrap_or(0),
    }))
}

/// Locust's "current" percentiles are those of ten seconds.
const RECENT: usize = 10;

fn times_of(histogram: &load::Histogram, percent: f64) -> Option<f64> {
    let times = times(histogram.counts());
    if percent > 50.0 { times.p95 } else { times.p50 }
}

/// Locust's word for it.
fn word(phase: Option<Phase>) -> &'static str {
    match phase {
        None => "ready",
        Some(Phase::Ramping) => "spawning",
        Some(Phase::Running | Phase::Paused) => "running",
        Some(Phase::Ending) => "stopping",
        Some(Phase::Ended) => "stopped",
    }
}

/// As Locust: what users do, each kind of request by its share.
#[utoipa::path(get, operation_id = "locust_tasks", path = "/tasks", responses((status = 200, body = Object)))]
async fn tasks(State(dashboard): Shared) -> Json<Value> {
    let statistics = dashboard.load_statistics().await.ok();
    let ratios = statistics.as_ref().map_or_else(BTreeMap::new, ratios);
    let user = json!({ "User": { "ratio": 1.0, "tasks": ratios } });
    Json(json!({ "per_class": user, "total": user }))
}

fn ratios(statistics: &LoadStatistics) -> BTreeMap<String, Value> {
    let rows = statistics.statistics.split_last().map_or(&[][..], |(_, rows)| rows);
    let total: u64 = rows.iter().map(|row| row.requests).sum();
    let ratio = |row: &Statistics| row.requests as f64 / total.max(1) as f64;
    let task =
        |row: &Statistics| (format!("{} {}", row.method, row.name), json!({ "ratio": ratio(row) }));
    rows.iter().map(task).collect()
}

/// As Locust: the figures of each kind of request, as CSV.
#[utoipa::path(get, operation_id = "locust_requests_csv", path = "/stats/requests/csv", responses((status = 200, body = String, content_type = "text/csv")))]
async fn requests_csv(State(dashboard): Shared) -> Result<Response, Refusal> {
    file(&dashboard, Part::REQUESTS).await
}

/// As Locust: the failures, as CSV.
#[utoipa::path(get, operation_id = "locust_failures_csv", path = "/stats/failures/csv", responses((status = 200, body = String, content_type = "text/csv")))]
async fn failures_csv(State(dashboard): Shared) -> Result<Response, Refusal> {
    file(&dashboard, Part::FAILURES).await
}

/// As Locust: the figures of each second, as CSV.
#[utoipa::path(get, operation_id = "locust_history_csv", path = "/stats/requests_full_history/csv", responses((status = 200, body = String, content_type = "text/csv")))]
async fn history_csv(State(dashboard): Shared) -> Result<Response, Refusal> {
    file(&dashboard, Part::HISTORY).await
}

/// As Locust: exceptions of users, as CSV.
#[utoipa::path(get, operation_id = "locust_exceptions_csv", path = "/exceptions/csv", responses((status = 200, body = String, content_type = "text/csv")))]
async fn exceptions_csv(State(dashboard): Shared) -> Result<Response, Refusal> {
    file(&dashboard, Part::EXCEPTIONS).await
}

/// As Locust: the report as HTML.
#[utoipa::path(get, operation_id = "locust_report", path = "/stats/report", responses((status = 200, body = String, content_type = "text/html")))]
async fn report(State(dashboard): Shared) -> Result<Response, Refusal> {
    file(&dashboard, Part::Report).await
}

/// As Locust: exceptions of users, of which there are none.
#[utoipa::path(get, operation_id = "locust_exceptions", path = "/exceptions", responses((status = 200, body = Object)))]
async fn exceptions() -> Json<Value> {
    Json(json!({ "exceptions": [] }))
}

async fn file(dashboard: &Dashboard, part: Part) -> Result<Response, Refusal> {
    let name = match part {
        Part::Csv(index) => {
            ["requests.csv", "requests_full_history.csv", "failures.csv", "exceptions.csv"][index]
        }
        Part::Json => "load.json",
        Part::Report => "report.html",
    };
    let document = dashboard.load_document(true).await?;
    made(document, part, name).await
}

fn error(failure: &Failure) -> Value {
    let seconds = |time: &Option<String>| {
        let time = time.as_deref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        time.map(|time| time.as_millisecond() as f64 / 1e3)
    };
    json!({
        "method": failure.method,
        "name": failure.name,
        "error": words::failure::name(failure),
        "occurrences": failure.occurrences,
        "first_seen": seconds(&failure.first_seen),
        "last_seen": seconds(&failure.last_seen),
    })
}

impl Row {
    fn of(row: &Statistics, now: Current) -> Row {
        // Locust writes 0 where there is no answer yet.
        let ms = |time: Option<f64>| time.unwrap_or(0.0);
        Row {
            method: row.method.clone(),
            name: row.name.clone(),
            safe_name: row.name.clone(),
            num_requests: row.requests,
            num_failures: row.failures,
            avg_response_time: ms(row.average),
            min_response_time: ms(row.min),
            max_response_time: ms(row.max),
            median_response_time: ms(row.median),
            current_rps: now.rate,
            current_fail_per_sec: now.failure_rate,
            total_rps: row.rate,
            total_fail_per_sec: row.failure_rate,
            avg_content_length: ms(row.average_size),
            p95: ms(row.p95),
            p99: ms(row.p99),
        }
    }

    /// Before the first load.
    fn empty() -> Row {
        let nothing = Statistics {
            method: String::new(),
            name: "Aggregated".to_owned(),
            requests: 0,
            failures: 0,
            median: None,
            p95: None,
            p99: None,
            average: None,
            min: None,
            max: None,
            average_size: None,
            rate: 0.0,
            failure_rate: 0.0,
        };
        Row::of(&nothing, Current::default())
    }
}

fn wrong(sentence: String) -> Refusal {
    (StatusCode::BAD_REQUEST, sentence)
}
