//! What changes. Each event has a number, by which a page that was away asks for what it missed.

use serde::Serialize;
use utoipa::ToSchema;

use super::inventory::{Action, App, Instance};
use crate::document::plan::{Goal, Plan, Probe};
use crate::report::page::summary::Summary;

/// An event's name, which stands in the field `event` of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum EventName {
    /// [`Hello`]: the first of every stream.
    Hello,
    /// [`Reset`]: something was missed, so the page asks for the state again.
    Reset,
    /// [`Define`]
    Define,
    /// [`Tick`]
    Tick,
    /// [`Rows`]
    Rows,
    /// [`Mark`]
    Mark,
    /// [`super::load::Load`]
    Load,
    /// [`PlanProgress`]
    Plan,
    /// [`super::measurement::Measurement`]
    Measurement,
    /// [`End`]: nothing follows.
    End,
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Hello {
    pub schema: String,
    pub version: String,
    pub boot: String,
    /// Id of the newest event.
    pub sequence: u64,
    pub tick_ms: u32,
}

/// Why the page must ask for the state again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Reset {
    pub reason: ResetReason,
}

/// See [`Reset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    /// The page read too slowly.
    Slow,
    /// The page was away for longer than events are kept.
    Old,
    /// Another process answers now.
    Restarted,
}

/// Apps, instances and actions that are there now or have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Define {
    /// All of them, if they have changed.
    pub apps: Option<Vec<App>>,
    /// All that can be asked for, if that has changed.
    pub actions: Option<Vec<Action>>,
    /// Those that came or have changed.
    pub instances: Vec<Instance>,
    /// Ids of those that went.
    pub gone: Vec<u64>,
}

/// The values of all series at a moment, in the order of their definitions; null is unknown and never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tick {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    pub values: Vec<Option<i64>>,
}

/// The values of instances, a column each. An event has only those that have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Rows {
    pub time_ms: u64,
    pub ids: Vec<u64>,
    /// Index into the snapshot's `states`.
    pub state: Vec<u8>,
    pub slots: Vec<Option<u32>>,
    pub in_flight: Vec<Option<u32>>,
    /// Requests in ten seconds.
    pub requests: Vec<Option<u32>>,
    /// Failures in ten seconds: connections that failed, answers 5xx and what took too long.
    pub failures: Vec<Option<u32>>,
    /// Mean service time of the last second in microseconds.
    pub service_mean: Vec<Option<u32>>,
    /// Its p95, of the last ten seconds if it had too few requests. With more than 100 instances it is null.
    pub service_p95: Vec<Option<u32>>,
    /// Thousandths of a core.
    pub cpu: Vec<Option<u32>>,
    /// MiB.
    pub memory: Vec<Option<u32>>,
    pub restarts: Vec<Option<u32>>,
}

/// Something that happened at a moment. All charts show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Mark {
    pub time_ms: u64,
    pub kind: MarkKind,
    /// A sentence.
    pub text: String,
    /// The instance's name, if it is about one.
    pub instance: Option<String>,
}

/// What a mark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// An instance came or went.
    Membership,
    /// An instance died.
    Crash,
    /// A load began, was changed or ended.
    Load,
    /// A step of a plan, or a phase of a load.
    Phase,
    /// The number of instances was changed, with the reason.
    Scaling,
}

/// How far a plan is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PlanProgress {
    /// What is measured now.
    pub step: String,
    /// Seconds, about.
    pub left_s: Option<u64>,
    #[schema(value_type = Object)]
    pub goal: Goal,
    pub max_instances: u32,
    /// What was measured so far, in order.
    #[schema(value_type = Vec<Object>)]
    pub probes: Vec<Probe>,
    /// The answer, once it is there.
    #[schema(value_type = Option<Object>)]
    pub plan: Option<Box<Plan>>,
}

/// How it ended. The server goes away, and the page stays.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct End {
    pub time_ms: u64,
    /// A sentence.
    pub text: String,
    /// Its number in the history, if it is there.
    pub run: Option<i64>,
    /// What a report of it would hold.
    pub report: Option<Report>,
}

/// What a report holds: the document (a plan, a load, a cost or a comparison), and what it says in words.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LiveReport"))]
#[schema(as = LiveReport)]
pub struct Report {
    #[cfg_attr(test, ts(type = "Plan | Load | Sizing | Comparison"))]
    #[schema(value_type = Object)]
    pub document: serde_json::Value,
    #[schema(value_type = Object)]
    pub summary: Summary,
}
