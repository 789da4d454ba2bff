//! One thing was changed and the throughput measured again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::words::rate;

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// One instance more.
    SecondInstance,
    /// One core less for all instances, by affinity.
    OneCoreLess,
    /// Half of the load from each of two generator threads.
    SecondGenerator,
    /// The load straight at the instance.
    NoBalancer,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Change::SecondInstance => "a second instance",
            Change::OneCoreLess => "a core less",
            Change::SecondGenerator => "a second generator thread",
            Change::NoBalancer => "the load past the balancer",
        })
    }
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
    /// What it speaks for.
    pub shows: Kind,
    /// All of it in a sentence.
    pub text: String,
}

impl Trial {
    /// Whether it says what limits the app; the others say whether anything but the app does.
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
        let what = match change {
            Change::SecondInstance => "A second instance",
            Change::OneCoreLess => "One core less for the instances",
            Change::SecondGenerator => "Half of the load from each of two generator threads",
            Change::NoBalancer => "The load straight at the instance, past the balancer",
        };
        let text = format!(
            "{what}: {} requests/s where there had been {}, which speaks for {shows}",
            rate(after),
            rate(before)
        );
        Trial { change, instances, before, after, shows, text }
    }
}
