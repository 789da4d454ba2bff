//! A run as one HTML file that needs nothing else.
//!
//! - [`summary`]: what the report says in words, a file for each kind of document.
//! - [`html`]: the file itself; [`assets`]: the script and style that are made of `web/`.
//! - [`windows`]: puts neighbouring windows of a long load together.

mod assets;
mod html;
pub mod summary;
mod windows;

use serde::Serialize;
use serde_json::Value;

use self::summary::Summary;
use crate::cost::Sizing;
use crate::document::comparison::{Comparison, Named};
use crate::document::load::Document;
use crate::document::plan::Plan;
use crate::store::report_file;

/// How much of a load's windows a report keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// As many as keep the file small.
    Compact,
    /// All of them.
    Full,
}

/// A plan as a file.
pub fn plan(plan: &Plan) -> anyhow::Result<String> {
    written(plan, &summary::plan::of(plan))
}

/// A run that was kept, as a file. Of a comparison the runs themselves are not in it.
pub fn saved(kind: &str, document: &str, detail: Detail) -> anyhow::Result<String> {
    match kind {
        "plan" => plan(&serde_json::from_str(document)?),
        "cost" => cost(&serde_json::from_str(document)?),
        "compare" => comparison(&serde_json::from_str(document)?, &[], &[]),
        _ => load(&serde_json::from_str(document)?, detail),
    }
}

/// What the file of a run that was kept holds.
pub fn contents(kind: &str, document: &str) -> anyhow::Result<(Value, Summary)> {
    let summary = match kind {
        "plan" => summary::plan::of(&serde_json::from_str(document)?),
        "cost" => summary::cost::of(&serde_json::from_str(document)?),
        "compare" => summary::compare::of(&serde_json::from_str(document)?, &[], &[]),
        _ => return load_contents(&serde_json::from_str(document)?),
    };
    Ok((serde_json::from_str(document)?, summary))
}

/// What the file of a load holds.
pub fn load_contents(document: &Document) -> anyhow::Result<(Value, Summary)> {
    let compact = serde_json::to_value(windows::compact(document)?)?;
    Ok((compact, summary::load::of(document)))
}

/// A load as a file.
pub fn load(document: &Document, detail: Detail) -> anyhow::Result<String> {
    let summary = summary::load::of(document);
    match detail {
        Detail::Compact => written(&windows::compact(document)?, &summary),
        Detail::Full => written(document, &summary),
    }
}

/// Bigger or more, as a file.
pub fn cost(sizing: &Sizing) -> anyhow::Result<String> {
    written(sizing, &summary::cost::of(sizing))
}

/// A comparison as a file. The runs of both sides say how their response times are distributed.
pub fn comparison(comparison: &Comparison, a: &[Named], b: &[Named]) -> anyhow::Result<String> {
    written(comparison, &summary::compare::of(comparison, a, b))
}

fn written(document: &impl Serialize, summary: &Summary) -> anyhow::Result<String> {
    Ok(html::page(&report_file::json(document)?, &report_file::json(summary)?, summary))
}
