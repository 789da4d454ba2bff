//! Everything at a moment.

use serde::Serialize;
use utoipa::ToSchema;

use super::event::{End, Mark, PlanProgress, Rows, Tick};
use super::inventory::{Action, App, Instance, InstanceState};
use super::load::Load;
use super::measurement::Measurement;
use crate::document::resources::Machine;

/// What a page needs when it opens. The events after `sequence` go on from here.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LiveState"))]
pub struct State {
    /// `tenfold/live/1`.
    pub schema: String,
    pub kind: Kind,
    /// Of the program.
    pub version: String,
    /// Another one after every start: what was known before is void then.
    pub boot: String,
    /// Milliseconds since 1970, now.
    pub time_ms: u64,
    /// RFC 3339.
    pub started_at: String,
    /// Id of the newest event.
    pub sequence: u64,
    /// Milliseconds from one tick to the next. It is 5000 while a plan measures, and 1000 otherwise.
    pub tick_ms: u32,
    /// What runs, in a few words: the apps or the target.
    pub name: String,
    /// Where requests go.
    pub target: Option<String>,
    /// The command that started it, without secrets.
    pub command: Vec<String>,
    /// The goal in a sentence, if there is one.
    pub goal: Option<String>,
    pub machine: Machine,
    /// What can be asked for now.
    pub actions: Vec<Action>,
    pub apps: Vec<App>,
    pub instances: Vec<Instance>,
    /// What the values of a tick are, in their order.
    pub series: Vec<Series>,
    /// What the numbers in `rows.state` are, in their order.
    pub states: Vec<InstanceState>,
    pub tick: Option<Tick>,
    /// Of every instance.
    pub rows: Option<Rows>,
    /// The load that runs, or ran last.
    pub load: Option<Load>,
    pub plan: Option<PlanProgress>,
    /// The plan or cost that a page started, and that runs or ran last.
    pub measurement: Option<Measurement>,
    /// The latest, oldest first.
    pub marks: Vec<Mark>,
    /// There once everything is over.
    pub end: Option<End>,
}

/// The command that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LiveKind"))]
#[serde(rename_all = "snake_case")]
#[schema(as = LiveKind)]
pub enum Kind {
    Up,
    Plan,
    Load,
    Balance,
}

/// What one value of a tick is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Series {
    pub name: SeriesName,
    /// Of `core`: which one.
    pub index: Option<u32>,
    pub unit: Unit,
    /// The value in `unit` is the integer divided by this.
    pub per: u32,
}

/// The unit of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    PerSecond,
    Milliseconds,
    Cores,
    Count,
}

/// What is measured of the last second, or of the time since the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SeriesName {
    /// Requests that ended, those that failed included.
    Requests,
    Failures,
    /// Requests that the load asked for.
    Offered,
    /// Response times as the load's users see them. Without a load it is as the balancer sees them.
    P50,
    P75,
    P90,
    P95,
    P99,
    Max,
    /// Users who are there.
    Users,
    /// Requests in flight at instances or, where there is no balancer here, at the target.
    InFlight,
    /// Requests that wait for a slot.
    Queued,
    /// What requests waited for a slot.
    QueueP50,
    QueueP95,
    /// Requests that the balancer turned away.
    Shed,
    /// Instances that are there, and those that are ready.
    Instances,
    Ready,
    /// CPU of all instances, and of what they depend on as far as it is watched.
    CpuApp,
    CpuDependencies,
    CpuBalancer,
    CpuGenerator,
    /// CPU of other programs.
    CpuOther,
    /// CPU that a virtual machine's host gave to others.
    CpuSteal,
    /// How busy a core is: 1 at most.
    Core,
}
