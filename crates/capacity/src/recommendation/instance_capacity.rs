//! What one instance and two carry, where no workload says how many are needed.

use crate::calibration::{MIN_GAIN, SLOWER_GAIN};
use crate::finding::evidence::Failing;
use crate::finding::uneven::Unevenness;
use crate::goal::Goal;
use crate::limit_kind::Kind;
use crate::model::network::Model;
use crate::queueing::workload::Workload;
use crate::recommendation::reason::{BusyPart, LimitDetails};
use crate::recommendation::search::{Bounds, Search};

/// The answer where no workload was given. Rates in requests per second.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceCapacity {
    /// The most that one instance completed.
    pub one: f64,
    /// What two completed together, where they were measured.
    pub two: Option<f64>,
    /// Whether a second instance completes more, where that is known.
    pub second_helps: Option<bool>,
    /// What limits one instance.
    pub limited_by: Kind,
    /// Why.
    pub reason: CapacityReason,
    /// The instance that is unlike its peer.
    pub uneven: Option<Unevenness>,
}

/// What is known of one instance and of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityReason {
    /// The app fails without any overload.
    Failing(Failing),
    /// What one carries.
    Carries {
        /// What limits it, if that was reached.
        limit: Option<LimitDetails>,
        /// What two carry.
        second: Second,
    },
}

/// What two instances carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Second {
    /// More than one was not allowed.
    NotAllowed,
    /// No more than one fits into the memory.
    NoRoom,
    /// It was not measured.
    NotMeasured,
    /// The limit of one is not known, so two say nothing.
    Unknown {
        /// What they carried.
        carried: f64,
    },
    /// A second makes it slower.
    Slower {
        /// What they carry.
        carried: f64,
    },
    /// A second does not help.
    NoHelp {
        /// What they carry.
        carried: f64,
        /// What is busy, if that is known.
        why: Option<BusyPart>,
    },
    /// A second helps.
    Helps {
        /// What they carry.
        carried: f64,
    },
}

/// The answer from the model, and from what `two` instances completed (1/s).
pub fn instance_capacity(model: &Model, bounds: &Bounds, two: Option<f64>) -> InstanceCapacity {
    // A single user asks for less than was measured anyway.
    let workload = Workload::Closed { users: 1, think: 0.0 };
    let goal = Goal { workload, p95: None, p99: None, max_errors: 0.0 };
    Search::new(model, &goal, bounds, &[]).instance_capacity(two)
}

impl Search<'_> {
    fn instance_capacity(&self, two: Option<f64>) -> InstanceCapacity {
        let one = self.model.ladder.peak();
        let limited_by = self.limit(1, false);
        let is_reached = self.model.ladder.is_saturated();
        let reason = match self.bounds.failing {
            Some(failing) => CapacityReason::Failing(failing),
            None => CapacityReason::Carries {
                limit: is_reached.then(|| self.limit_details(limited_by, 1, None)),
                second: self.second(two),
            },
        };
        let second_helps = self.second_gain(two).map(|gain| gain >= MIN_GAIN);
        InstanceCapacity { one, two, second_helps, limited_by, reason, uneven: None }
    }

    /// By which factor a second instance changes what is completed. Where no end of one was seen, two say nothing.
    fn second_gain(&self, two: Option<f64>) -> Option<f64> {
        let two = two.filter(|_| self.model.ladder.is_saturated())?;
        Some(two / self.model.ladder.peak())
    }

    fn second(&self, two: Option<f64>) -> Second {
        let Some(carried) = two else {
            return match self.bounds {
                Bounds { max_instances: 1, .. } => Second::NotAllowed,
                Bounds { memory: Some(1), .. } => Second::NoRoom,
                _ => Second::NotMeasured,
            };
        };
        match self.second_gain(two) {
            None => Second::Unknown { carried },
            Some(gain) if gain < SLOWER_GAIN => Second::Slower { carried },
            Some(gain) if gain < MIN_GAIN => {
                let why = match self.model.is_cpu_limited(2) {
                    true => Some(BusyPart::Cores),
                    false => self.is_shared(1).then_some(BusyPart::Shared),
                };
                Second::NoHelp { carried, why }
            }
            Some(_) => Second::Helps { carried },
        }
    }
}
