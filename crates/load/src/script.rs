//! A script, compiled: what sessions do, what they know, and what must come out of it. It knows
//! nothing of the format in which it was written.

pub(crate) mod answer;
pub(crate) mod capture;
pub(crate) mod cast;
pub(crate) mod check;
mod cookie_date;
pub(crate) mod cookies;
pub(crate) mod expression;
pub(crate) mod goal;
mod lines;
pub(crate) mod metrics;
pub(crate) mod outgoing;
pub(crate) mod payload;
pub(crate) mod quantity;
pub(crate) mod query;
mod rounds;
pub(crate) mod session;
pub(crate) mod steps;
pub(crate) mod template;

use std::time::Duration;

use serde_json::Value;

use crate::clock::time::Nanos;
use crate::metrics::session_tally::SessionTally;
use crate::run::report::{Named, Seen};
use goal::Goal;
use outgoing::Origin;
use payload::Payload;
use steps::{BlockId, Steps};

use template::Scope;

use crate::workload::phase::{Flow, Phase, Spacing};
use crate::workload::spec::Workload;

pub use metrics::{Check, Metrics, ScriptReport, Summary};

/// What users do, step by step, as read from a file: see [`crate::artillery`].
#[derive(Debug)]
pub struct Script {
    pub(crate) steps: Steps,
    pub(crate) scenarios: Vec<Scenario>,
    /// Done once before the load; what it captures is known to every session.
    pub(crate) before: Option<BlockId>,
    /// Done once after the load.
    pub(crate) after: Option<BlockId>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) spacing: Spacing,
    pub(crate) origin: Origin,
    /// What every session knows from its beginning.
    pub(crate) scope: Scope,
    /// Variables of which every session gets one of several values.
    pub(crate) choices: Vec<(u32, Vec<Value>)>,
    pub(crate) payloads: Vec<Payload>,
    /// The variable that gets an identifier of the session, if any step looks at it.
    pub(crate) identifier: Option<u32>,
    /// Names of requests, as steps number them.
    pub(crate) request_names: Vec<RequestName>,
    /// Names of endpoints, as steps number them.
    pub(crate) endpoints: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) goals: Vec<Goal>,
    pub(crate) target: crate::Target,
}

/// How requests are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestName {
    pub(crate) method: String,
    pub(crate) name: String,
}

/// A kind of session.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// How many sessions are of this kind, relative to the others.
    pub(crate) weight: u32,
    pub(crate) body: BlockId,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) connections: Connections,
    /// Whether a session fails with an expectation.
    pub(crate) failed_checks_end_sessions: bool,
    /// Whether any certificate is good enough.
    pub(crate) trusts_anyone: bool,
    /// The time that satisfies, where satisfaction is to be counted.
    pub(crate) apdex: Option<Nanos>,
    /// What the names of metrics of endpoints begin with.
    pub(crate) endpoints: String,
}

/// Whose connections are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connections {
    /// Every session opens its own, at most so many at once.
    Own(usize),
    /// All sessions share so many.
    Shared(usize),
}

impl Script {
    /// The server that the script talks to, with a request that is sent only where a script is not.
    pub fn target(&self) -> &crate::Target {
        &self.target
    }

    /// The longest that an answer may take.
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// The load that the script asks for: its arrivals are of sessions.
    pub fn workload(&self) -> Workload {
        Workload::phases(self.phases.clone(), self.spacing)
    }

    /// Whether the script takes any certificate for good enough.
    pub fn trusts_anyone(&self) -> bool {
        self.settings.trusts_anyone
    }

    /// From the first arrival to the end of the last phase.
    pub fn duration(&self) -> Duration {
        self.phases.iter().filter_map(|phase| phase.length).sum()
    }

    /// What the run's counts amount to, and the figures of each name that occurred. `seen` says what the
    /// clock's times were.
    pub(crate) fn outcome(
        &self,
        tally: SessionTally,
        seconds: f64,
        seen: impl Fn((Nanos, Nanos)) -> Seen,
    ) -> (ScriptReport, Vec<Named>) {
        let report = ScriptReport::new(self, &tally, seconds);
        let named = self.request_names.iter().zip(tally.by_name);
        let by_name =
            named.filter(|(_, counted)| counted.requests > 0).map(|(name, counted)| Named {
                name: name.name.clone(),
                method: name.method.clone(),
                body_bytes: counted.body_bytes,
                requests: counted.requests,
                errors: counted.errors(),
                failures: counted
                    .failures
                    .iter()
                    .map(|(kind, met)| (*kind, (met.count, seen((met.first, met.last)))))
                    .collect(),
                response: counted.response.into_histogram(),
                service: counted.service.into_histogram(),
            });
        (report, by_name.collect())
    }

    /// Scenarios, and requests in their steps.
    pub fn size(&self) -> (usize, usize) {
        (self.scenarios.len(), self.steps.requests())
    }

    /// The load in a few words.
    pub fn described(&self) -> String {
        let expected: f64 = self.phases.iter().map(expected).sum();
        let sessions = if expected.round() == 1.0 { "session" } else { "sessions" };
        format!("{expected:.0} {sessions} in {} s", self.duration().as_secs_f64())
    }
}

/// Sessions that a phase brings.
fn expected(phase: &Phase) -> f64 {
    let seconds = phase.length.unwrap_or_default().as_secs_f64();
    match &phase.flow {
        Flow::Constant(rate) => rate * seconds,
        Flow::Ramp { from, to } | Flow::Stairs { from, to } => (from + to) / 2.0 * seconds,
        Flow::Count(count) => *count as f64,
        Flow::Trace(_) => 0.0,
    }
}
