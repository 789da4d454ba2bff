//! A run as one HTML file that needs nothing else.
//!
//! - [`summary`]: what the report says in words, a file for each kind of document.
//! - [`html`]: the file itself; [`assets`]: the script and style that are made of `web/`.
//! - [`windows`]: puts neighbouring windows of a long load together.

mod assets;
#[cfg(test)]
mod bindings;
mod html;
mod summary;
mod windows;

use serde::Serialize;

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
