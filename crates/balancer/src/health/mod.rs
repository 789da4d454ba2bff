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

mod condition;
mod probe;
mod prober;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast;

use crate::dispatch::BackendId;
use crate::limits::Timeouts;
pub(crate) use condition::{Condition, Turn};
pub(crate) use prober::run;

/// How an app's backends are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// By how requests end.
    pub passive: PassiveHealth,
    /// By asking; not at all by default.
    pub active: Option<ActiveHealth>,
    /// The longest that a request waits which comes when every backend is out, and as long as that is
    /// so, up to the queue's own wait; then, or at once where this is 0, it is answered 503 with the
    /// reason.
    pub all_down_wait: Duration,
}

/// Judging by how requests end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassiveHealth {
    /// Failures in a row that take a backend out; 0 for never. A failure is a connection that was
    /// not established or ended before an answer, an answer that did not come in time, ended early
    /// or is not HTTP.
    pub failures: u32,
    /// Whether a 5xx is a failure.
    pub server_errors: ServerErrors,
    /// How long a backend is out before it is tried again; twice as long after each time that this
    /// fails, up to eight times.
    pub rest: Duration,
}

/// What an answer of 5xx says about a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerErrors {
    /// Nothing: that request cannot be served, here or elsewhere.
    #[default]
    Ignored,
    /// That it is not fit to serve.
    Counted,
}

/// Judging by asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveHealth {
    /// What a GET asks for; begins with a slash.
    pub path: String,
    /// The `Host` that it names; the backend's address by default.
    pub host: Option<String>,
    /// Statuses of a fit backend.
    pub status: RangeInclusive<u16>,
    /// What the first 64 KiB of the body must have in them, if anything.
    pub body: Option<String>,
    /// From the end of one check to the next one.
    pub interval: Duration,
    /// From a slot to the answer.
    pub timeout: Duration,
    /// Successes in a row that bring a backend back.
    pub rise: u32,
    /// Failures in a row that take it out.
    pub fall: u32,
}

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
const EVENTS: usize = 1024;

impl Health {
    pub(crate) fn check(&self) -> Result<(), String> {
        let rest = ("health rest", self.passive.rest);
        let active = self.active.iter().flat_map(|active| {
            [("health interval", active.interval), ("health timeout", active.timeout)]
        });
        for (name, time) in active.chain([rest]) {
            if time.is_zero() || time > Timeouts::MAX {
                return Err(format!(
                    "a {name} of {time:?} is impossible; use more than 0 and at most a day"
                ));
            }
        }
        self.active.as_ref().map_or(Ok(()), ActiveHealth::check)
    }
}

impl ActiveHealth {
    /// Checks of this path, everything else as by default.
    pub fn of(path: impl Into<String>) -> Self {
        ActiveHealth {
            path: path.into(),
            host: None,
            // Redirects included: a login page is alive.
            status: 200..=399,
            body: None,
            // Frequent enough that clients meet few dead backends, rare enough to cost nothing.
            interval: Duration::from_secs(2),
            // A health page that takes longer is not healthy.
            timeout: Duration::from_secs(1),
            // One answer may be luck, and three in a row are no slip.
            rise: 2,
            fall: 3,
        }
    }

    fn check(&self) -> Result<(), String> {
        let ActiveHealth { path, host, status, rise, fall, .. } = self;
        let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !path.starts_with('/') || !graphic(path) {
            return Err(format!(
                "health path {path:?} is no path; begin with a slash and use no blanks"
            ));
        }
        if let Some(host) = host.as_ref().filter(|host| host.is_empty() || !graphic(host)) {
            return Err(format!("health host {host:?} is no host; use a name without blanks"));
        }
        if status.is_empty() || *status.start() < 200 || *status.end() > 599 {
            return Err("the statuses of a healthy backend are impossible; use 200 to 599".into());
        }
        if *rise == 0 || *fall == 0 {
            return Err(
                "0 checks in a row never happen; use a rise and a fall of at least 1".into()
            );
        }
        Ok(())
    }
}

impl HealthEvents {
    pub(crate) fn channel() -> broadcast::Sender<HealthEvent> {
        broadcast::Sender::new(EVENTS)
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

impl Default for Health {
    fn default() -> Self {
        Health {
            passive: PassiveHealth::default(),
            active: None,
            // An instance that died is back within seconds, or not soon.
            all_down_wait: Duration::from_secs(10),
        }
    }
}

impl Default for PassiveHealth {
    fn default() -> Self {
        PassiveHealth {
            // One may be chance; three in a row with no success between them hardly are.
            failures: 3,
            server_errors: ServerErrors::default(),
            // A restart takes about as long.
            rest: Duration::from_secs(1),
        }
    }
}
