//! The values of `config`, which the rest of the script refers to.

use load::{Phase, Spacing};
use serde_json::Value;

use super::endpoints::{Endpoints, RequestNames};
use crate::response::capture::Strictness;
use crate::scenario::data_rows::DataRows;
use crate::scenario::goal::Goal;
use crate::scenario::script::Settings as Terms;
use crate::scenario::steps::Jitter;
use crate::template::text::Text;

/// The values of `config`.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) target: String,
    pub(super) phases: Vec<Phase>,
    pub(super) spacing: Spacing,
    pub(super) terms: Terms,
    pub(super) defaults: Defaults,
    pub(super) variables: Vec<(u32, Value)>,
    pub(super) choices: Vec<(u32, Vec<Value>)>,
    pub(super) data_rows: Vec<DataRows>,
    pub(super) goals: Vec<Goal>,
    /// The names of endpoints, if requests are counted by their URLs as well.
    pub(super) endpoints: Option<Endpoints>,
}

/// The defaults of requests.
#[derive(Debug)]
pub(super) struct Defaults {
    /// Names are in lower case.
    pub(super) headers: Vec<(String, Text)>,
    pub(super) cookies: Vec<(String, Text)>,
    pub(super) strictness: Strictness,
    pub(super) jitter: Option<Jitter>,
    /// Whether requests without expectations expect status 200.
    pub(super) expects_200: bool,
    pub(super) names: RequestNames,
}
