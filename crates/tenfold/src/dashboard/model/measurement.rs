//! A plan or a cost that a page has started.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document::plan::Probe;

/// The measurement that runs, or ran last. It is a process of its own, with instances of its own.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Measurement {
    /// Another one for each measurement of this process.
    pub id: u32,
    pub kind: MeasurementKind,
    pub state: MeasurementState,
    /// RFC 3339.
    pub started_at: String,
    /// The command that does the same on a terminal, without secrets.
    pub command: Vec<String>,
    /// What is measured now.
    pub step: String,
    /// Seconds, about.
    pub left_s: Option<u64>,
    /// The goal for the p95 in milliseconds.
    pub goal_p95_ms: Option<f64>,
    /// What a plan has measured so far, in order.
    #[schema(value_type = Vec<Object>)]
    pub probes: Vec<Probe>,
    /// Its number in the history, once it has ended with an answer.
    pub run: Option<i64>,
    /// Why there is no answer, in a sentence.
    pub fault: Option<String>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum MeasurementKind {
    Plan,
    Cost,
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum MeasurementState {
    Running,
    /// It was told to stop, and ends its instances.
    Stopping,
    Ended,
}

/// Body of `POST /api/measurement/plan`. Without `users` and `rate` it measures what one instance carries.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct PlanStart {
    /// Users who wait for their answers.
    #[cfg_attr(test, ts(optional))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub users: Option<u32>,
    /// What a user waits between an answer and the next request, in milliseconds.
    #[cfg_attr(test, ts(optional))]
    pub think_ms: Option<f64>,
    /// Requests a second, whether or not earlier ones are answered.
    #[cfg_attr(test, ts(optional))]
    pub rate: Option<f64>,
    /// The goal: 95 % of the answers come within so many milliseconds.
    #[cfg_attr(test, ts(optional))]
    pub p95_ms: Option<f64>,
    /// The same for 99 %.
    #[cfg_attr(test, ts(optional))]
    pub p99_ms: Option<f64>,
    /// `/` without it.
    #[cfg_attr(test, ts(optional))]
    #[schema(max_length = 2000)]
    pub path: Option<String>,
    /// Most instances that may be recommended.
    #[cfg_attr(test, ts(optional))]
    #[schema(minimum = 1, maximum = 10_000)]
    pub max_instances: Option<u32>,
    /// Time for measuring, in seconds.
    #[cfg_attr(test, ts(optional))]
    pub budget_s: Option<f64>,
}

/// Body of `POST /api/measurement/cost`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct CostStart {
    /// Sizes in cores of one instance, smallest first.
    pub cpus: Vec<f64>,
    /// Memory of each size in MB (10^6 bytes), or one value for all.
    pub memory_mb: Vec<u64>,
    /// Numbers of instances of the smallest size.
    pub instances: Vec<u32>,
    /// Requests of each measurement.
    #[cfg_attr(test, ts(optional))]
    #[schema(minimum = 1)]
    pub requests: Option<u32>,
    /// Requests in flight at once.
    #[cfg_attr(test, ts(optional))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub concurrency: Option<u32>,
    /// The goal: 95 % of the answers come within so many milliseconds.
    #[cfg_attr(test, ts(optional))]
    pub p95_ms: Option<f64>,
    /// `/` without it.
    #[cfg_attr(test, ts(optional))]
    #[schema(max_length = 2000)]
    pub path: Option<String>,
}
