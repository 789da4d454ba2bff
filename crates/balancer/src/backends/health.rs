//! Whether a backend is fit to serve: judged by how its requests end, and by asking it.
//!
//! Passive: so many failures in a row take a backend out for a rest, longer each time; then it gets
//! one request at a time until one succeeds. Active: a request of our own every so often, which
//! takes a slot like any other but goes first. What was asked is believed over what was seen: with
//! active checks, only they bring a backend back.
//!
//! Where every backend is out, requests wait for one to come back, but not for long; see
//! [`Health::all_down_wait`]. Failures other than to connect never take out the last backend that
//! serves: they say more about the requests, or about something that all backends share.

use serde::Serialize;
use tokio::sync::broadcast;

use crate::backends::backend_id::BackendId;

/// What a backend is thought to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendHealth {
    /// Fit to serve, or never asked: without checks, a backend is fit until requests fail.
    #[default]
    Up,
    /// It is asked, and no check has succeeded yet. It gets requests like one that is up.
    Unconfirmed,
    /// It was down, and gets one request at a time.
    Trial,
    /// It gets no requests.
    Down,
}

/// A backend's health has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    /// Which one.
    pub backend: BackendId,
    /// Its name.
    pub name: String,
    /// What it is now.
    pub health: BackendHealth,
    /// Why, in a few words.
    pub reason: String,
}

/// Changes of health from now on. Those that nobody has taken for long are dropped, the oldest first.
pub struct HealthEvents(broadcast::Receiver<HealthEvent>);

/// Events that are kept for one who is slow to take them.
const EVENT_CAPACITY: usize = 1024;

impl HealthEvents {
    pub(crate) fn channel() -> broadcast::Sender<HealthEvent> {
        broadcast::Sender::new(EVENT_CAPACITY)
    }

    pub(crate) fn of(sender: &broadcast::Sender<HealthEvent>) -> Self {
        HealthEvents(sender.subscribe())
    }

    /// The next one; none when the balancer is gone.
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
