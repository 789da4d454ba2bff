//! What was before a page came: ticks of the last hour, rows of the last minutes, and earlier runs.

use serde::Serialize;
use utoipa::ToSchema;

use super::event::{Mark, Report};
use super::state::Series;

/// Answer of `GET /api/history`: the last hour, coarse where it is old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LiveHistory"))]
#[schema(as = LiveHistory)]
pub struct History {
    pub boot: String,
    /// Id of the newest event that is in it.
    pub sequence: u64,
    pub series: Vec<Series>,
    /// Ten seconds each, before those of `recent`.
    pub old: Tier,
    /// Single ticks of the last ten minutes.
    pub recent: Tier,
    pub marks: Vec<Mark>,
}

/// Ticks in columns, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tier {
    /// Milliseconds since 1970, the end of each.
    pub time_ms: Vec<u64>,
    /// A column for each series: the value, or the mean where a point stands for several ticks.
    pub mean: Vec<Vec<Option<i64>>>,
    /// The least values. It is empty where each point is one tick.
    pub min: Vec<Vec<Option<i64>>>,
    /// The greatest values. It is empty where each point is one tick.
    pub max: Vec<Vec<Option<i64>>>,
}

/// Answer of `GET /api/history/instances?ids=1,2`: the last five minutes of some instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InstanceHistory {
    pub instances: Vec<InstanceColumns>,
}

/// What one instance did, oldest first, in the units of [`super::event::Rows`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InstanceColumns {
    pub id: u64,
    pub time_ms: Vec<u64>,
    pub in_flight: Vec<Option<u32>>,
    pub requests: Vec<Option<u32>>,
    pub service_mean: Vec<Option<u32>>,
    pub cpu: Vec<Option<u32>>,
    pub memory: Vec<Option<u32>>,
}

/// Answer of `GET /api/instances/{name}/output`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InstanceOutput {
    pub name: String,
    /// The last 200 lines, oldest first, without control characters.
    pub lines: Vec<String>,
}

/// A run of the history, as `tenfold runs` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunEntry {
    pub id: i64,
    /// `plan`, `load` or `cost`.
    pub kind: String,
    /// RFC 3339.
    pub started_at: String,
    pub command: String,
    /// The answer in a sentence.
    pub summary: String,
}

/// Answer of `GET /api/runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<RunEntry>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Answer of `GET /api/runs/{id}`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunDocument {
    pub id: i64,
    pub kind: String,
    pub report: Report,
}

/// Answer of `GET /api/runs/{id}/trend`: what runs of the same command found, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Trend {
    pub kind: String,
    pub command: String,
    pub points: Vec<TrendPoint>,
}

/// A run in a trend.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TrendPoint {
    pub id: i64,
    pub started_at: String,
    /// Of a load what was completed, and of a plan what one instance completed at most, a second.
    pub throughput: Option<f64>,
    /// Milliseconds. Of a plan it is that of the recommended count.
    pub p95_ms: Option<f64>,
    /// Share of requests that failed.
    pub error_ratio: Option<f64>,
    /// The recommended count of a plan.
    pub instances: Option<u32>,
    pub verdict: crate::document::verdict::Verdict,
}
