//! Loads and runs as files.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::Shared;
use super::input::PathParts;
use super::runs::aside;
use crate::dashboard::loading::Refusal;
use crate::document::load::Document;
use crate::report::load::{CsvHistory, locust};
use crate::report::page::{self, Detail};
use crate::store::history::History;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Json,
    Html,
}

/// A file of a run in a path.
#[derive(Debug, Deserialize)]
pub struct RunFile {
    id: i64,
    name: String,
}

/// A file of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its place among Locust's files.
    Csv(usize),
    Json,
    Report,
}

impl Part {
    pub const REQUESTS: Part = Part::Csv(0);
    pub const HISTORY: Part = Part::Csv(1);
    pub const FAILURES: Part = Part::Csv(2);
    pub const EXCEPTIONS: Part = Part::Csv(3);

    fn format(self) -> Format {
        match self {
            Part::Csv(_) => Format::Csv,
            Part::Json => Format::Json,
            Part::Report => Format::Html,
        }
    }

    /// The text of it.
    pub fn text(self, document: &Document) -> anyhow::Result<String> {
        match self {
            Part::Csv(index) => {
                let [stats, history, failures, exceptions] = locust(document, CsvHistory::Full)?;
                Ok(match index {
                    0 => stats,
                    1 => history,
                    2 => failures,
                    _ => exceptions,
                })
            }
            Part::Json => Ok(serde_json::to_string_pretty(document)?),
            Part::Report => page::load(document, Detail::Compact),
        }
    }
}

/// A file of the load that runs or ran last: `requests.csv`, `failures.csv` and `history.csv` with Locust's heads,
/// `load.json` or `report.html`.
#[utoipa::path(
    get,
    path = "/api/load/files/{name}",
    params(("name" = String, Path, description = "The file's name")),
    responses((status = 200, body = String, content_type = "application/octet-stream"))
)]
pub async fn of_load(
    State(dashboard): Shared,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let part = match name.as_str() {
        "requests.csv" => Part::REQUESTS,
        "history.csv" => Part::HISTORY,
        "failures.csv" => Part::FAILURES,
        "exceptions.csv" => Part::EXCEPTIONS,
        "load.json" => Part::Json,
        "report.html" => Part::Report,
        _ => return no_file(),
    };
    let document = dashboard.load_document(true).await?;
    made(document, part, &format!("tenfold-{name}")).await
}

/// A run as a file: `document.json` or `report.html`.
#[utoipa::path(
    get,
    path = "/api/runs/{id}/files/{name}",
    params(("id" = i64, Path, description = "Its number"), ("name" = String, Path, description = "The file's name")),
    responses((status = 200, body = String, content_type = "application/octet-stream"))
)]
pub async fn of_run(
    State(_): Shared,
    PathParts(RunFile { id, name }): PathParts<RunFile>,
) -> Result<Response, Refusal> {
    let format = match name.as_str() {
        "document.json" => Format::Json,
        "report.html" => Format::Html,
        _ => return no_file(),
    };
    let text = aside(move || {
        let (kind, document) = History::read()?.document(id)?;
        match format {
            Format::Html => page::saved(&kind, &document, Detail::Compact),
            Format::Csv | Format::Json => Ok(document),
        }
    });
    Ok(attached(text.await?, format, &format!("tenfold-run-{id}-{name}")))
}

/// A file of a document.
pub async fn made(document: Arc<Document>, part: Part, name: &str) -> Result<Response, Refusal> {
    let text = aside(move || part.text(&document)).await?;
    Ok(attached(text, part.format(), name))
}

/// `name` is one of ours, so it needs no escapes. A report says itself what it may load.
fn attached(text: String, format: Format, name: &str) -> Response {
    let kind = match format {
        Format::Csv => "text/csv; charset=utf-8",
        Format::Json => "application/json",
        Format::Html => "text/html; charset=utf-8",
    };
    let disposition = format!("attachment; filename=\"{name}\"");
    let policy = "sandbox; default-src 'none'";
    let fields = [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, policy)];
    (fields, [(CONTENT_DISPOSITION, disposition)], text).into_response()
}

fn no_file<T>() -> Result<T, Refusal> {
    let sentence = "there is no such file: `/api/openapi.json` lists them";
    Err((StatusCode::NOT_FOUND, sentence.to_owned()))
}
