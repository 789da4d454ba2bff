//! One app: how its requests are spread over its backends.

use serde::{Deserialize, Serialize};

use crate::config::health::Health;
use crate::config::limits::{QueueLimits, RetryLimits, check_duration};
use crate::config::policy::Policy;

/// One app: how its requests are spread over its backends.
#[derive(Clone, Debug)]
pub struct AppConfig {
    /// The unique name, for people and metrics.
    pub name: String,
    /// How a backend is picked.
    pub policy: Policy,
    /// How many requests may wait for a slot, and for how long.
    pub queue: QueueLimits,
    /// How many backends one request may try, 1 to [`AppConfig::MAX_ATTEMPTS`].
    pub attempts: usize,
    /// How many requests may be retried on another backend.
    pub retries: RetryLimits,
    /// How the health of the backends is judged.
    pub health: Health,
    /// The protocol of the backends.
    pub protocol: Protocol,
    /// Which connections to the backends are reused.
    pub reuse: Reuse,
}

/// The protocol of backends, always without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1, with one connection for each request in flight. All app servers speak it.
    #[default]
    Http1,
    /// HTTP/2 with prior knowledge (RFC 9113 3.3), as gRPC needs. Each thread has one connection, and
    /// each request in flight has a stream.
    H2c,
}

/// Which HTTP/1.1 connections to a backend are kept for the next request of any client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// All connections that the protocol allows to keep.
    #[default]
    Always,
    /// Only connections that carried no request body. A backend that ignores bodies would read the body
    /// as the next request, maybe for another client.
    Safe,
}

/// Names an app of one balancer by its index in [`Config::apps`](crate::Config::apps).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(u16);

impl AppConfig {
    /// The largest number of backends that one request may try.
    pub const MAX_ATTEMPTS: usize = 4;

    /// An app of this name, with default settings.
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
    /// The app that every balancer has.
    pub const FIRST: AppId = AppId(0);

    /// The app with this index in [`Config::apps`](crate::Config::apps).
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
            // If a third backend in a row is dead, the fleet is down and not one instance.
            attempts: 3,
            retries: RetryLimits::default(),
            health: Health::default(),
            protocol: Protocol::default(),
            reuse: Reuse::default(),
        }
    }
}
