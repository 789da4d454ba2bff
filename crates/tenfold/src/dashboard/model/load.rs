//! The load that runs, and how it is steered.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::document::load::Failure;
use crate::document::verdict::Verdict;
use crate::report::page::summary::{Statistics, Status};

/// The load that runs, or ran last.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LiveLoad"))]
#[schema(as = LiveLoad)]
pub struct Load {
    /// Another one for each load of this process.
    pub id: u32,
    pub state: Phase,
    pub method: String,
    /// The URL, without credentials.
    pub target: String,
    /// In words, as it was asked for.
    pub workload: String,
    /// RFC 3339.
    pub started_at: String,
    /// Milliseconds, without pauses.
    pub elapsed_ms: u64,
    /// When it ends by itself.
    pub length_ms: Option<u64>,
    /// Users who are there, and who are to be there; null with a rate.
    pub users: Option<u64>,
    pub users_goal: Option<u64>,
    /// Users who come or go a second; null is all at once.
    pub ramp: Option<f64>,
    /// Requests a second that are asked for; null with users.
    pub rate: Option<f64>,
    /// The name of the phase of a script or shape.
    pub phase: Option<String>,
    /// Whether it was changed while it ran.
    pub steered: bool,
    pub requests: u64,
    pub failures: u64,
    /// Requests a second over all of it.
    pub throughput: f64,
    /// Over all of it, in milliseconds.
    pub p95_ms: Option<f64>,
    /// CPU of the generator in cores.
    pub generator_cores: f64,
    /// Of the last ten seconds, a second.
    pub current: Current,
    /// What the numbers are worth so far.
    pub verdict: Judgement,
    /// A sentence each.
    pub verdict_reasons: Vec<String>,
    /// The goal for `p95_ms`, if there is one.
    pub goal_p95_ms: Option<f64>,
    /// Whether the goal is held so far.
    #[schema(value_type = String)]
    pub status: Status,
    /// The same in a sentence.
    pub sentence: String,
    /// Its number in the history, once it has ended.
    pub run: Option<i64>,
}

/// What the numbers of a load are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It has just begun, or its statistics have.
    TooEarly,
    Valid,
    Suspect,
    Invalid,
}

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Judgement {
        match verdict {
            Verdict::Valid => Judgement::Valid,
            Verdict::Suspect => Judgement::Suspect,
            Verdict::Invalid => Judgement::Invalid,
        }
    }
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LoadPhase"))]
#[serde(rename_all = "snake_case")]
#[schema(as = LoadPhase)]
pub enum Phase {
    /// Users come or go.
    Ramping,
    Running,
    Paused,
    /// Its time is over, and what is in flight is waited for.
    Ending,
    Ended,
}

/// Body of `POST /api/load/start`. Give `users`, `rate` or `script`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct LoadStart {
    /// Users who wait for their answers.
    #[cfg_attr(test, ts(optional))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub users: Option<u32>,
    /// Users who come a second; all at once without it.
    #[cfg_attr(test, ts(optional))]
    pub ramp: Option<f64>,
    /// What a user waits between an answer and the next request, in milliseconds; 0 without it.
    #[cfg_attr(test, ts(optional))]
    pub think_ms: Option<f64>,
    /// Requests a second, whether or not earlier ones are answered.
    #[cfg_attr(test, ts(optional))]
    pub rate: Option<f64>,
    /// When it ends by itself, in seconds; never without it.
    #[cfg_attr(test, ts(optional))]
    pub run_time_s: Option<f64>,
    /// An Artillery script as text, in YAML or JSON. Its sessions take the place of `path` and `method`. Its phases say
    /// how many begin, unless `users` or `rate` does. All requests go to what runs here, and files, environment
    /// variables and `log` are refused.
    #[cfg_attr(test, ts(optional))]
    #[schema(max_length = 32_768)]
    pub script: Option<String>,
    /// `/` without it.
    #[cfg_attr(test, ts(optional))]
    #[schema(max_length = 2000)]
    pub path: Option<String>,
    /// GET without it, or POST with a `body`.
    #[cfg_attr(test, ts(optional))]
    #[schema(max_length = 20)]
    pub method: Option<String>,
    /// Headers of each request, each as `Name: value`; 50 at most.
    #[cfg_attr(test, ts(optional))]
    pub headers: Option<Vec<String>>,
    /// Body of each request, as it is.
    #[cfg_attr(test, ts(optional))]
    #[schema(max_length = 32_768)]
    pub body: Option<String>,
    /// The goal: 95 % of the answers come within so many milliseconds.
    #[cfg_attr(test, ts(optional))]
    pub p95_ms: Option<f64>,
}

/// Body of `POST /api/load/edit`. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct LoadEdit {
    #[cfg_attr(test, ts(optional))]
    #[schema(minimum = 1, maximum = 100_000)]
    pub users: Option<u32>,
    /// Users who come or go a second; null is all at once.
    #[cfg_attr(test, ts(optional))]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<f64>)]
    pub ramp: Option<Option<f64>>,
    #[cfg_attr(test, ts(optional))]
    pub rate: Option<f64>,
}

/// The value of a field that is not left out, which may be null.
fn given<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// Answer of `GET /api/load/statistics`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LoadStatistics {
    /// The load at the same moment.
    pub load: Load,
    /// A row for each kind of request, 500 at most; the last is that of all together. As in Locust, the name of a
    /// request to the target is its path.
    #[schema(value_type = Vec<Object>)]
    pub statistics: Vec<Statistics>,
    /// Requests and failures of each row in the last ten seconds, a second.
    pub current: Vec<Current>,
    /// 500 at most.
    #[schema(value_type = Vec<Object>)]
    pub failures: Vec<Failure>,
}

/// The rates of the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Current {
    pub rate: f64,
    pub failure_rate: f64,
}
