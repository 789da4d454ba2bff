//! What a request costs, and whether that is what it costs an app that is warm.

use capacity::calibration::DEMAND_NOISE;
use capacity::model::core_speed::slowdown;

use super::Knowledge;
use crate::document::plan::Purpose;
use crate::experiment::calibration::{
    COLD_START_EXTRA_CPU, MAX_EFFECT_OF_CORE_SPEED, MAX_UTILISATION_OF_IDLE_APP,
    MIN_UTILISATION_OF_BUSY_CORES,
};
use crate::experiment::observation::Observation;

impl Knowledge<'_> {
    /// The share of a request's CPU that it would not cost in one instance, if new instances may be the reason.
    /// It is 0 within the noise, and where the cores are not busy enough for it to matter.
    pub fn dearer(&self, o: &Observation) -> f64 {
        let alone = self.peak_rung().map_or(f64::INFINITY, Observation::app_demand);
        let times = o.app_demand() / alone;
        // An instance with every slot busy does what the one did.
        let matters = match o.probe.purpose {
            Purpose::Goal => o.app_cores >= MIN_UTILISATION_OF_BUSY_CORES * self.cores(),
            Purpose::Ladder | Purpose::Saturation => self.uses_cpu(o),
        };
        if matters && times > 1.0 + DEMAND_NOISE { 1.0 - 1.0 / times } else { 0.0 }
    }

    /// Whether what a request costs says something of the instances.
    pub fn uses_cpu(&self, o: &Observation) -> bool {
        o.app_cores >= MAX_UTILISATION_OF_IDLE_APP * self.cores()
    }

    /// How many times longer the same work took on the cores at one time than at another, if that decides how fast
    /// requests were.
    pub fn core_slowdown(&self) -> Option<f64> {
        let times: Vec<f64> = self.all().filter_map(|o| o.time_of_work).collect();
        let slowdown = slowdown(&times);
        (self.effect_of_cores(slowdown) > MAX_EFFECT_OF_CORE_SPEED).then_some(slowdown)
    }

    /// How many times longer a request may have taken than on the cores at their fastest.
    pub fn slowdown_by_cores(&self) -> f64 {
        1.0 + self.core_slowdown().map_or(0.0, |slowdown| self.effect_of_cores(slowdown))
    }

    /// The share by which a request takes longer on cores that are so many times slower.
    fn effect_of_cores(&self, slowdown: f64) -> f64 {
        self.cpu_share() * (slowdown - 1.0)
    }

    /// The share of a request's time that it computes. Where the cores are busy, it waits for them otherwise.
    fn cpu_share(&self) -> f64 {
        let mut several = self.facts.second.iter().chain(&self.facts.confirmed);
        let busy = |o: &Observation| self.saturation(o).own_cores();
        if several.any(|o| busy(o) >= MIN_UTILISATION_OF_BUSY_CORES * self.cores()) {
            return 1.0;
        }
        let alone = self.facts.rungs.first();
        alone.map_or(0.0, |alone| (alone.app_demand() * self.light_rate()).min(1.0))
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
