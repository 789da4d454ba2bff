//! What a request costs, and whether that is what it costs an app that is warm.

use capacity::calibration::DEMAND_NOISE;

use super::Evidence;
use crate::document::plan::Purpose;
use crate::experiment::calibration::{
    COLD_START_EXTRA_CPU, MAX_UTILISATION_OF_IDLE_APP, MIN_UTILISATION_OF_BUSY_CORES,
};
use crate::experiment::observation::Observation;

impl Evidence<'_> {
    /// The share by which a request costs more than in one instance, if new instances may be the reason. It
    /// is 0 within the noise, and where the cores are not busy enough for it to matter.
    pub fn dearer(&self, o: &Observation) -> f64 {
        let alone = self.peak_rung().map_or(f64::INFINITY, Observation::app_demand);
        let share = o.app_demand() / alone - 1.0;
        // An instance with every slot busy does what the one did.
        let matters = match o.probe.purpose {
            Purpose::Goal => o.app_cores >= MIN_UTILISATION_OF_BUSY_CORES * self.cores(),
            Purpose::Ladder | Purpose::Saturation => self.uses_cpu(o),
        };
        if matters && share > DEMAND_NOISE { share } else { 0.0 }
    }

    /// Whether what a request costs says something of the instances.
    pub fn uses_cpu(&self, o: &Observation) -> bool {
        o.app_cores >= MAX_UTILISATION_OF_IDLE_APP * self.cores()
    }

    /// A rung to measure once more, because it may have been cold. That is the last but one, if a request
    /// costs less CPU at the last one. Or it is the first, if it cost much more than the last, because it
    /// alone shows a light load.
    pub fn doubtful_rung(&self) -> Option<usize> {
        let [first, .., last] = self.facts.rungs.as_slice() else { return None };
        let before = &self.facts.rungs[self.facts.rungs.len() - 2];
        let is_dearer = |o: &Observation, by: f64| o.app_demand() > (1.0 + by) * last.app_demand();
        if !self.uses_cpu(last) {
            None
        } else if is_dearer(before, DEMAND_NOISE) {
            Some(self.facts.rungs.len() - 2)
        } else {
            is_dearer(first, COLD_START_EXTRA_CPU).then_some(0)
        }
    }
}
