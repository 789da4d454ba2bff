//! Whether connections to an app may be kept for the next request.

use serde::{Deserialize, Serialize};

/// What an idle connection to an instance does to the requests on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum IdleConnections {
    /// They are answered meanwhile, so that a balancer may keep connections.
    Harmless,
    /// They wait until it is closed, so that a balancer must close each connection after its answer.
    Blocking,
    /// There is none: the app closes each connection after its answer.
    Closed,
}

impl IdleConnections {
    /// Whether a balancer may keep connections to the instances.
    pub fn may_be_kept(self) -> bool {
        self != IdleConnections::Blocking
    }

    /// What that means for a balancer, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            IdleConnections::Harmless => {
                "An instance answers others while connections to it are idle, so they are kept."
            }
            IdleConnections::Blocking => {
                "An idle connection to an instance makes others wait, so each is closed after its answer."
            }
            IdleConnections::Closed => "The app closes each connection after its answer.",
        }
    }
}
