//! Whether a backend is fit to serve.
//!
//! Passive health: consecutive failed requests take a backend out for a rest. Each further rest is
//! longer. Afterwards the backend gets one request at a time until one succeeds.
//!
//! Active health: the balancer sends checks, which take a slot like requests but go first. Where there
//! are checks, only they bring a backend back.
//!
//! If every backend is out, requests wait for a short time, see
//! [`Health::all_down_wait`](crate::Health::all_down_wait). Only failed connections take out the last
//! backend that serves. Other failures may come from the requests or from something that all backends
//! share.

use serde::Serialize;
use tokio::sync::broadcast;

use crate::backends::backend_id::BackendId;

/// The health of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendHealth {
    /// Fit to serve. Without checks, a backend is up until requests fail.
    #[default]
    Up,
    /// No check has succeeded yet. It gets requests like a backend that is up.
    Unconfirmed,
    /// It was down and gets one request at a time.
    Trial,
    /// It gets no requests.
    Down,
}

/// A change of a backend's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    /// The backend.
    pub backend: BackendId,
    /// Its name.
    pub name: String,
    /// Its new health.
    pub health: BackendHealth,
    /// The reason, in a few words.
    pub reason: String,
}

/// Changes of health from now on. Old events are dropped if nobody takes them.
pub struct HealthEvents(broadcast::Receiver<HealthEvent>);

/// Events that are kept for a slow receiver.
const EVENT_CAPACITY: usize = 1024;

impl HealthEvents {
    pub(crate) fn channel() -> broadcast::Sender<HealthEvent> {
        broadcast::Sender::new(EVENT_CAPACITY)
    }

    pub(crate) fn of(sender: &broadcast::Sender<HealthEvent>) -> Self {
        HealthEvents(sender.subscribe())
    }

    /// The next event. None once the balancer is gone.
    pub async fn next(&mut self) -> Option<HealthEvent> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
