//! What is there: apps, their instances, and what can be asked for.

use serde::Serialize;
use utoipa::ToSchema;

/// An app behind the balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct App {
    pub name: String,
    /// How the balancer picks an instance.
    pub policy: String,
    /// Requests that may wait.
    pub queue_length: u64,
}

/// An instance, or a server of `balance`. What changes every second is in [`Rows`](super::event::Rows).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Instance {
    /// A restarted instance keeps its name and gets another id.
    pub id: u64,
    pub app: String,
    pub name: String,
    /// What its user calls it, where that is another name: the unit of a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub display_name: Option<String>,
    pub address: String,
    pub pid: Option<u32>,
    /// Milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// How it died last, or why it gets no requests, in a sentence.
    pub warning: Option<String>,
}

impl Instance {
    /// Its name in messages.
    pub fn display_name(&self) -> &str {
        self.display_name.as_ref().unwrap_or(&self.name)
    }
}

/// What an instance does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// Started, and not ready yet.
    Starting,
    Ready,
    /// It finishes its requests and gets no new ones.
    Draining,
    /// It runs, and gets no requests: it was drained.
    Drained,
    Stopping,
    /// It died, and is started again after a wait.
    Backoff,
    /// A check failed or requests did, and it gets no requests until it is fit again.
    Down,
    /// It gets one request at a time, to see whether it is fit again.
    Probing,
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// `POST /api/scale`
    Scale,
    /// `POST /api/reload`
    Reload,
    /// `POST /api/instances/{name}/restart`
    Restart,
    /// `POST /api/instances/{name}/drain`
    Drain,
    /// `POST /api/instances/{name}/resume`
    Resume,
    /// `GET /api/instances/{name}/output`
    Output,
    /// `POST /api/load/start`
    StartLoad,
    /// `POST /api/load/again`
    RepeatLoad,
    /// `POST /api/load/edit`
    EditLoad,
    /// `POST /api/load/stop`
    StopLoad,
    /// `POST /api/load/reset`
    ResetLoad,
    /// `POST /api/measurement/plan` or `/api/measurement/cost`
    StartMeasurement,
    /// `POST /api/measurement/stop`
    StopMeasurement,
}
