//! What a number of instances completed, and the CPU that it took.

use serde::{Deserialize, Serialize};

use crate::calibration::{CPU_FULL, MIN_CORE_SHARE, RELAY_THREAD_FULL};
use crate::queueing::laws;
use crate::stats::resampling;

/// A measurement of `instances`, with all or some of their slots busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// Running instances.
    pub instances: usize,
    /// Whether the throughput is the most that they complete.
    pub filling: Filling,
    /// Completed requests a second.
    pub throughput: f64,
    /// Half-width of the interval of the throughput, as a share of it.
    pub error: f64,
    /// CPU seconds of the app in one request.
    pub app_demand: f64,
    /// CPU seconds in one request of other programs that work for the app, as a database does.
    pub dependency_demand: f64,
    /// CPU seconds of the balancer and the load generator in one request.
    pub relay_demand: f64,
    /// CPU seconds in one request of the busier one of the balancer's and the generator's threads.
    pub relay_thread: f64,
    /// CPU seconds in one request of the busiest thread of the generator.
    #[serde(default)]
    pub generator_thread: f64,
    /// Busy cores among those that may be used, whichever program keeps them busy.
    pub busy_cores: f64,
}

/// Whether the instances did all that they can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filling {
    /// All slots were busy: it is all that they can do.
    Full,
    /// Some slots were busy: they can do as much, or more.
    Partial,
}

impl Saturation {
    /// The mean of several measurements of the same count. A surer one weighs more. All other figures are
    /// those of the last one.
    pub(crate) fn mean(all: impl Iterator<Item = Saturation> + Clone) -> Option<Saturation> {
        let weights: f64 = all.clone().map(|s| s.weight()).sum();
        let mean = |of: fn(&Saturation) -> f64| {
            all.clone().map(|s| s.weight() * of(&s)).sum::<f64>() / weights
        };
        let (throughput, app_demand) = (mean(|s| s.throughput), mean(|s| s.app_demand));
        Some(Saturation { throughput, app_demand, ..all.last()? })
    }

    /// What it will be once the instances are warm. A request will then cost less CPU by the share `fall`.
    /// Instances that fill the cores will complete more. The fall is an estimate, so all of it is added to the error.
    pub fn once_warm(self, fall: f64, cores: f64) -> Saturation {
        let app_demand = self.app_demand * (1.0 - fall);
        let saved = self.app_demand - app_demand;
        let now = self.own_cores() / self.throughput;
        let faster = if self.is_cpu_full(cores) { now / (now - saved) } else { 1.0 };
        let (throughput, error) = (self.throughput * faster, self.error.hypot(fall));
        Saturation { throughput, error, app_demand, ..self }
    }

    /// Its weight in a mean: the inverse of its variance.
    pub(crate) fn weight(&self) -> f64 {
        resampling::deviation(self.error).powi(-2)
    }

    /// Cores of the app, what works for it, the balancer and the generator.
    pub fn own_cores(&self) -> f64 {
        let demand = self.app_demand + self.dependency_demand + self.relay_demand;
        laws::utilisation(self.throughput, demand)
    }

    /// Cores of the app.
    pub fn app_cores(&self) -> f64 {
        laws::utilisation(self.throughput, self.app_demand)
    }

    /// Cores that other programs used.
    pub fn background(&self) -> f64 {
        (self.busy_cores - self.own_cores()).max(0.0)
    }

    /// Whether the load had used up what other programs left of `cores`.
    pub fn is_cpu_full(&self, cores: f64) -> bool {
        let own = self.own_cores();
        own >= CPU_FULL * (cores - self.background()) && own >= MIN_CORE_SHARE * cores
    }

    /// Whether the thread of balancer or generator was full, whichever is busier.
    pub fn is_relay_full(&self) -> bool {
        laws::utilisation(self.throughput, self.relay_thread) >= RELAY_THREAD_FULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::saturation;

    // The second JVM of examples/threads on full cores, whose request cost 8 % less from one probe to the next.
    #[test]
    fn what_still_warms_up_will_do_more() {
        let cold = Saturation { error: 0.06, ..saturation(2, 3640.0, 474e-6, 1.96) };
        let warm = cold.once_warm(0.08, 2.0);
        assert!((warm.app_demand / cold.app_demand - 0.92).abs() < 1e-9);
        assert!((warm.own_cores() - cold.own_cores()).abs() < 1e-9, "the cores stay full");
        assert!((warm.throughput - 3897.5).abs() < 1.0, "{}", warm.throughput);
        assert!((warm.error - 0.1).abs() < 1e-9);
        assert_eq!(cold.once_warm(0.08, 8.0).throughput, cold.throughput, "no core is full");
    }

    #[test]
    fn cpu_of_other_programs_is_not_the_load() {
        let idle = Saturation { busy_cores: 2.0, ..saturation(2, 98.0, 0.0005, 0.0) };
        assert!(!idle.is_cpu_full(2.0), "0.06 cores of its own");
        let beside = Saturation { busy_cores: 2.0, ..saturation(2, 50.0, 0.03, 0.0) };
        assert!(beside.is_cpu_full(2.0), "1.5 cores, all that others left");
    }
}
