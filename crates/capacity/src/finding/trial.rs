//! One thing was changed and the throughput measured again.

use serde::{Deserialize, Serialize};

use crate::limit_kind::Kind;

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// One instance more.
    SecondInstance,
    /// One core less for all instances, by affinity.
    OneCoreLess,
    /// Half of the load from each of two generator threads.
    SecondGenerator,
    /// The load goes straight to the instance.
    NoBalancer,
}

/// A change and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was changed.
    pub change: Change,
    /// Instances that ran.
    pub instances: usize,
    /// Requests a second before.
    pub before: f64,
    /// And after.
    pub after: f64,
    /// The limit that it shows.
    pub shows: Kind,
}

impl Trial {
    /// Whether it shows what limits the app. The other trials show whether something else limits.
    pub(crate) fn is_of_the_app(&self) -> bool {
        matches!(self.change, Change::SecondInstance | Change::OneCoreLess)
    }

    pub(super) fn new(
        change: Change,
        instances: usize,
        before: f64,
        after: f64,
        shows: Kind,
    ) -> Trial {
        Trial { change, instances, before, after, shows }
    }
}
