//! A compiled script: what sessions do, what they know, and what must come of them.

use std::time::Duration;

use load::{Flow, Nanos, Phase, RequestName, Spacing, Target, Workload};
use serde_json::Value;

use super::data_rows::DataRows;
use super::goal::Goal;
use super::steps::{BlockId, Steps};
use crate::http::origin::Origin;
use crate::template::scope::Scope;

/// What users do, step by step. [`crate::artillery`] reads it from a file.
#[derive(Debug)]
pub struct Script {
    pub(crate) steps: Steps,
    pub(crate) scenarios: Vec<Scenario>,
    /// Played once before the load. Every session knows what it captures.
    pub(crate) before: Option<BlockId>,
    /// Played once after the load.
    pub(crate) after: Option<BlockId>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) spacing: Spacing,
    pub(crate) origin: Origin,
    /// The variables that every session has at its beginning.
    pub(crate) scope: Scope,
    /// Variables that get one of several values in each session.
    pub(crate) choices: Vec<(u32, Vec<Value>)>,
    pub(crate) data_rows: Vec<DataRows>,
    /// The variable that gets an identifier of the session, if a step uses it.
    pub(crate) identifier: Option<u32>,
    /// Names of requests. Steps refer to them by number.
    pub(crate) request_names: Vec<RequestName>,
    /// Names of endpoints. Steps refer to them by number.
    pub(crate) endpoints: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) goals: Vec<Goal>,
    pub(crate) target: Target,
}

/// A kind of session.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The share of sessions of this kind, relative to the other weights.
    pub(crate) weight: u32,
    pub(crate) body: BlockId,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) connections: Connections,
    /// Whether a failed expectation ends the session.
    pub(crate) failed_expectations_end_sessions: bool,
    /// Whether any certificate is good enough.
    pub(crate) trusts_anyone: bool,
    /// The response time that satisfies a user, if the Apdex score is counted.
    pub(crate) apdex: Option<Nanos>,
    /// The prefix of the metrics by endpoint.
    pub(crate) endpoints: String,
}

/// Who holds the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connections {
    /// Each session opens its own, at most this many at once.
    Own(usize),
    /// All sessions share this many.
    Shared(usize),
}

impl Script {
    /// The server that the script talks to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The response timeout.
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// The workload that the script asks for. Each arrival is a session.
    pub fn workload(&self) -> Workload {
        Workload::phases(self.phases.clone(), self.spacing)
    }

    /// Whether the script accepts any certificate.
    pub fn trusts_anyone(&self) -> bool {
        self.settings.trusts_anyone
    }

    /// From the first arrival to the end of the last phase.
    pub fn duration(&self) -> Duration {
        self.phases.iter().filter_map(|phase| phase.length).sum()
    }

    /// The numbers of scenarios and of requests in their steps.
    pub fn size(&self) -> (usize, usize) {
        (self.scenarios.len(), self.steps.requests())
    }

    /// The names of the scenarios; of one without a name, its number.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().map(|scenario| scenario.name.as_str())
    }

    /// The load in a few words.
    pub fn described(&self) -> String {
        let expected: f64 = self.phases.iter().map(expected).sum();
        let sessions = if expected.round() == 1.0 { "session" } else { "sessions" };
        format!("{expected:.0} {sessions} in {} s", self.duration().as_secs_f64())
    }
}

/// The expected number of sessions of a phase.
fn expected(phase: &Phase) -> f64 {
    let seconds = phase.length.unwrap_or_default().as_secs_f64();
    match &phase.flow {
        Flow::Constant(rate) => rate * seconds,
        Flow::Ramp { from, to } | Flow::Stairs { from, to } => (from + to) / 2.0 * seconds,
        Flow::Count(count) => *count as f64,
        Flow::Trace(_) => 0.0,
    }
}
