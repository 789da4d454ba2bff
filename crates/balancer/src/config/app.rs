//! One app: how requests for it are spread over its backends.

use serde::{Deserialize, Serialize};

use crate::config::health::Health;
use crate::config::limits::{QueueLimits, RetryLimits, check_duration};
use crate::config::policy::Policy;

/// One app: how requests for it are spread over its backends.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// For people and metrics; unique.
    pub name: String,
    /// How a backend is picked.
    pub policy: Policy,
    /// How many requests may wait for a slot, and for how long.
    pub queue: QueueLimits,
    /// Backends that one request may try when connecting fails, 1 to [`AppConfig::MAX_ATTEMPTS`].
    pub attempts: usize,
    /// How many requests may be sent to another backend.
    pub retries: RetryLimits,
    /// How its backends are judged.
    pub health: Health,
    /// What its backends speak.
    pub protocol: Protocol,
    /// Which connections to its backends carry further requests.
    pub reuse: Reuse,
}

/// What backends speak; without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1, a connection for each request in flight: what all app servers speak.
    #[default]
    Http1,
    /// HTTP/2 with prior knowledge (RFC 9113 3.3), as gRPC needs: a connection for each thread, and
    /// a stream for each request in flight.
    H2c,
}

/// Which connections of HTTP/1.1 to a backend are kept for the next request, of whichever client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// All that may be by the protocol.
    #[default]
    Always,
    /// None that has carried a request with a body: a backend that ignores bodies would take it for the
    /// next request, maybe of another client.
    Safe,
}

/// Names an app of one balancer: its place in [`Config::apps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(u16);

impl AppConfig {
    /// Most backends that one request may try.
    pub const MAX_ATTEMPTS: usize = 4;

    /// An app of this name, everything else as by default.
    pub fn named(name: impl Into<String>) -> Self {
        AppConfig { name: name.into(), ..AppConfig::default() }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let most = Self::MAX_ATTEMPTS;
        if !(1..=most).contains(&self.attempts) {
            return Err(format!("{} attempts are impossible; use 1 to {most}", self.attempts));
        }
        self.health.check()?;
        check_duration("queue wait", self.queue.wait)
    }
}

impl AppId {
    /// The app that a balancer always has.
    pub const FIRST: AppId = AppId(0);

    /// The app at this place of [`Config::apps`].
    pub fn nth(index: usize) -> AppId {
        AppId(u16::try_from(index).expect("there are at most Config::MAX_APPS apps"))
    }

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

impl Default for AppConfig {
    fn default() -> Self {
        AppConfig {
            name: "app".into(),
            policy: Policy::default(),
            queue: QueueLimits::default(),
            // A third dead backend in a row means that the fleet is down, not one instance.
            attempts: 3,
            retries: RetryLimits::default(),
            health: Health::default(),
            protocol: Protocol::default(),
            reuse: Reuse::default(),
        }
    }
}
