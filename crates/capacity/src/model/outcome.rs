//! Compares a measurement of the goal's workload with the model.

use crate::calibration::MODEL_AGREEMENT;
use crate::goal::{Goal, Measured};
use crate::model::network::Model;
use crate::model::prediction::expect;
use crate::queueing::workload::Workload;

/// Requests a second of the goal's workload, measured and predicted for the same instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// As they were measured.
    pub measured: f64,
    /// As they were predicted for what was really sent.
    pub predicted: f64,
    /// By how much the measurement may be off by chance.
    chance: f64,
    /// Whether all that was sent should have been completed, and was, except at the edges of the probe.
    is_carried: bool,
}

impl Goal {
    /// Compares a measurement with the model.
    pub fn outcome(&self, model: &Model, m: &Measured) -> Outcome {
        let (predicted, is_carried) = match self.workload {
            // By chance more or fewer are sent than the rate says.
            Workload::Open { .. } => {
                let most = model.capacity(m.instances);
                (m.offered.min(most), m.offered <= most && self.is_carried_in(m))
            }
            Workload::Closed { .. } => {
                (expect(model, &self.workload, m.instances).throughput, false)
            }
        };
        Outcome { measured: m.throughput, predicted, chance: m.chance(), is_carried }
    }
}

impl Outcome {
    /// An outcome without chance.
    #[cfg(test)]
    pub(crate) fn of(measured: f64, predicted: f64) -> Outcome {
        Outcome { measured, predicted, chance: 0.0, is_carried: false }
    }

    /// Whether the model was right.
    pub fn agrees(&self) -> bool {
        self.is_carried || (self.measured / self.predicted - 1.0).abs() <= MODEL_AGREEMENT
    }

    /// Whether the instances did less than the model says, and not by chance. Then something limits them
    /// that the model does not know.
    pub fn falls_short(&self) -> bool {
        self.measured + self.chance < (1.0 - MODEL_AGREEMENT) * self.predicted
    }
}
