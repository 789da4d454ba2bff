//! N instances of concurrency k on C shared cores.
//!
//! One instance is a flow-equivalent server (Chandy, Herzog and Woo, 1975): its measured throughput
//! at each concurrency stands for all that goes on inside it. N of them behind one queue complete N
//! times as much, until one of two things bends the line: the cores, which the balancer and the load
//! generator use too, or something that all instances share, which costs each of them a share that
//! grows with their number (Amdahl's law; the contention term of Gunther's Universal Scalability Law).

use serde::Serialize;

use crate::ladder::Ladder;
use crate::laws;

/// A measurement with every slot of `instances` busy all the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saturation {
    /// Running instances.
    pub instances: usize,
    /// Completed requests a second.
    pub throughput: f64,
    /// Half-width of the interval of the throughput, as a share of it.
    pub error: f64,
    /// CPU seconds of the app in one request.
    pub app_demand: f64,
    /// CPU seconds of the balancer and the load generator in one request.
    pub relay_demand: f64,
    /// CPU seconds in one request of the busier one of the balancer's and the generator's threads.
    pub relay_thread: f64,
    /// Of the cores that may be used, those that were busy, with this and whatever else.
    pub busy_cores: f64,
}

impl Saturation {
    /// Cores of the app, the balancer and the generator.
    pub fn own_cores(&self) -> f64 {
        laws::utilisation(self.throughput, self.app_demand + self.relay_demand)
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
        own >= CPU_FULL * (cores - self.background()) && own >= LOADED * cores
    }
}

/// How the service time of a request alone in an instance varies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceShape {
    /// Squared coefficient of variation: 0 for a constant, 1 for an exponential time.
    pub scv: f64,
    /// Values as multiples of the mean, each with its weight; the weights sum to 1. Never empty.
    pub points: Vec<(f64, f64)>,
}

impl ServiceShape {
    /// A time that never varies.
    pub fn constant() -> ServiceShape {
        ServiceShape { scv: 0.0, points: vec![(1.0, 1.0)] }
    }
}

/// The fitted model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// One instance by concurrency.
    pub ladder: Ladder,
    /// Useful requests in flight at one instance.
    pub slots: usize,
    /// Cores of the machine.
    pub cores: f64,
    /// Cores that the load could really keep busy when the CPU was the limit.
    pub usable_cores: f64,
    /// CPU seconds of the app in one request, with one instance.
    pub app_demand: f64,
    /// What further instances add to it: caches and context switches.
    pub demand_growth: f64,
    /// CPU seconds of the balancer and the generator in one request.
    pub relay_demand: f64,
    /// Share of its own peak that an instance does behind the balancer, where a slot rests between an
    /// answer and the next request.
    pub duty: f64,
    /// Share of its throughput that an instance loses to each further one; 0 without anything shared.
    pub contention: f64,
    /// CPU seconds in one request of the busiest thread of balancer or generator.
    pub relay_thread: f64,
    /// How one instance's service time varies.
    pub shape: ServiceShape,
    /// Whether one instance alone fills the cores.
    fills_cores: bool,
    single_error: f64,
    contention_error: f64,
}

/// The CPU is the limit when so much of it is busy. The rest is lost where app, balancer and generator
/// hand requests to each other; one busy core of two is far below, so that nothing lies between.
pub const CPU_FULL: f64 = 0.80;
/// A load that uses less than this share of the cores is not what fills them.
const LOADED: f64 = 0.4;
/// A thread that was busy for less of its time tells nothing of its limit: what it spends on a request
/// at a low rate is mostly waking up, and shrinks with the rate.
const TELLING: f64 = 0.3;
/// Growth of the CPU demand below this share is noise of the clock ticks.
const DEMAND_NOISE: f64 = 0.05;
/// A shortfall of two instances up to this share is their slots' rest, not something shared.
const REST: f64 = 0.06;
/// More than any workload here has in flight.
const UNLIMITED: usize = 1 << 24;
/// No interval is narrower: the machine differs from itself by about this from minute to minute.
const FLOOR: f64 = 0.01;

impl Model {
    /// The model from one instance alone: no contention is known yet, and its error says so.
    pub fn new(ladder: Ladder, one: Saturation, shape: ServiceShape, cores: f64) -> Model {
        let is_telling = laws::utilisation(one.throughput, one.relay_thread) >= TELLING;
        let mut model = Model {
            slots: ladder.slots(),
            ladder,
            cores,
            usable_cores: cores,
            app_demand: one.app_demand,
            demand_growth: 0.0,
            relay_demand: one.relay_demand,
            relay_thread: if is_telling { one.relay_thread } else { 0.0 },
            fills_cores: one.is_cpu_full(cores),
            duty: 1.0,
            contention: 0.0,
            shape,
            single_error: one.error.max(FLOOR),
            contention_error: 0.10,
        };
        if one.is_cpu_full(cores) {
            model.usable_cores = one.own_cores();
        }
        model
    }

    /// Refits contention and CPU demand to saturated measurements of two or more instances.
    ///
    /// A shortfall with the CPU full is the CPU's; one with idle cores is something shared.
    pub fn fit(&mut self, measured: &[Saturation]) {
        let several = |s: &&Saturation| s.instances > 1 && s.throughput > 0.0;
        let full = measured.iter().filter(several).filter(|s| s.is_cpu_full(self.cores));
        if let Some(s) = full.max_by_key(|s| s.instances) {
            let growth = s.app_demand / self.app_demand - 1.0;
            // Only an app that fills the cores alone pays for company with switches and caches. The
            // growth holds for the count that was measured; beyond it nothing is known.
            let counts = self.fills_cores && growth > DEMAND_NOISE;
            self.demand_growth = if counts { s.app_demand - self.app_demand } else { 0.0 };
            self.usable_cores = s.throughput * (self.demand(s.instances) + s.relay_demand);
            self.relay_demand = s.relay_demand;
        }
        let idle: Vec<_> =
            measured.iter().filter(several).filter(|s| !s.is_cpu_full(self.cores)).collect();
        self.fit_contention(&idle);
    }

    /// Least squares through the origin of the shortfall `N x1 / X - 1` over `N - 1`.
    fn fit_contention(&mut self, measured: &[&Saturation]) {
        let shortfall =
            |s: &Saturation| s.instances as f64 * self.ladder.peak() / s.throughput - 1.0;
        let (mut xy, mut xx, mut noise) = (0.0, 0.0, 0.0);
        for s in measured {
            let others = (s.instances - 1) as f64;
            xy += others * shortfall(s);
            xx += others * others;
            noise += (others * s.error.max(FLOOR).hypot(self.single_error)).powi(2);
        }
        if measured.is_empty() {
            if self.usable_cores < self.cores || self.demand_growth > 0.0 {
                // Only the CPU bent the line: nothing speaks for a shared station.
                self.contention_error = 0.0;
            }
            return;
        }
        self.contention_error = noise.sqrt() / xx;
        let worst = measured.iter().map(|s| shortfall(s)).fold(f64::NEG_INFINITY, f64::max);
        if worst <= REST {
            let rest = measured.iter().map(|s| shortfall(s)).sum::<f64>() / measured.len() as f64;
            self.duty = 1.0 / (1.0 + rest.max(0.0));
            self.contention = 0.0;
        } else {
            self.contention = xy / xx;
        }
    }

    /// CPU seconds of the app in one request with `instances` running.
    pub fn demand(&self, instances: usize) -> f64 {
        if instances > 1 { self.app_demand + self.demand_growth } else { self.app_demand }
    }

    /// Throughput at which `instances`, balancer and generator have used all cores up.
    pub fn cpu_limit(&self, instances: usize) -> f64 {
        let demand = self.demand(instances) + self.relay_demand;
        if demand > 0.0 { self.usable_cores / demand } else { f64::INFINITY }
    }

    /// Throughput at which one thread of balancer or generator is full.
    pub fn relay_limit(&self) -> f64 {
        if self.relay_thread > 0.0 { CPU_FULL / self.relay_thread } else { f64::INFINITY }
    }

    /// Throughput that the instances would reach if the cores had no end; without one where none was
    /// seen in one instance.
    pub fn own_limit(&self, instances: usize) -> f64 {
        if !self.ladder.is_saturated() {
            return f64::INFINITY;
        }
        instances as f64 * self.ladder.peak() * self.efficiency(instances)
    }

    /// Saturated throughput of `instances`.
    pub fn capacity(&self, instances: usize) -> f64 {
        self.own_limit(instances)
            .min(self.cpu_limit(instances))
            .min(self.relay_limit().max(self.ladder.peak()))
    }

    /// Whether the cores, not the instances, limit this count. Within 5 % both are the limit, and
    /// then a further instance is the wrong remedy.
    pub fn is_cpu_limited(&self, instances: usize) -> bool {
        self.own_limit(instances) * 1.05 >= self.cpu_limit(instances)
    }

    /// Completion rate with `held` requests in the slots of `instances`.
    pub fn rate(&self, instances: usize, held: f64) -> f64 {
        let n = instances as f64;
        let held = held.min(self.total_slots(instances) as f64);
        let own = n * self.ladder.throughput(held / n) * self.efficiency(instances);
        own.min(self.capacity(instances))
    }

    /// Requests that may be in service in all instances; as many as there are where no end was seen.
    pub fn total_slots(&self, instances: usize) -> usize {
        if self.ladder.is_saturated() { instances * self.slots } else { UNLIMITED }
    }

    fn efficiency(&self, instances: usize) -> f64 {
        self.duty / (1.0 + self.contention * (instances.max(1) - 1) as f64)
    }

    /// Half-width of the interval of the throughput at `instances`, as a share of it.
    pub fn error(&self, instances: usize) -> f64 {
        if self.is_cpu_limited(instances) {
            return self.single_error;
        }
        let others = (instances - 1) as f64 * self.efficiency(instances);
        self.single_error.hypot(self.contention_error * others)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ladder::Rung;

    /// An instance of `slots` serial workers of `service` seconds, of which `cpu` are CPU.
    pub(crate) fn model(slots: usize, service: f64, cpu: f64, cores: f64) -> Model {
        let rung = |c: usize| Rung { concurrency: c, throughput: c.min(slots) as f64 / service };
        let ladder = Ladder::new((0..8).map(|i| rung(1 << i)).collect()).unwrap();
        let one = saturation(1, slots as f64 / service, cpu, 0.1);
        Model::new(ladder, one, ServiceShape::constant(), cores)
    }

    pub(crate) fn saturation(instances: usize, throughput: f64, cpu: f64, busy: f64) -> Saturation {
        let (app_demand, busy_cores) = (cpu, busy.max(throughput * (cpu + 1e-4)));
        let relay_thread = 5e-5;
        Saturation {
            instances,
            throughput,
            error: 0.01,
            app_demand,
            relay_demand: 1e-4,
            relay_thread,
            busy_cores,
        }
    }

    #[test]
    fn serial_waiting_instances_add_up() {
        let mut m = model(1, 1.0, 0.005, 2.0);
        m.fit(&[saturation(2, 2.0, 0.005, 0.1)]);
        assert_eq!(m.contention, 0.0);
        assert!((m.capacity(10) - 10.0).abs() < 1e-9);
        assert!(!m.is_cpu_limited(10));
        assert!(m.is_cpu_limited(400), "2 cores / 5.1 ms");
    }

    #[test]
    fn the_cores_end_the_line() {
        let mut m = model(1, 0.030, 0.030, 2.0);
        m.fit(&[saturation(2, 63.0, 0.030, 1.95)]);
        assert_eq!(m.contention, 0.0, "a full CPU is no shared dependency");
        assert!((m.capacity(2) - 63.0).abs() < 0.1);
        assert!((m.capacity(3) - 63.0).abs() < 0.1);
        assert!(m.is_cpu_limited(2) && !m.is_cpu_limited(1));
    }

    #[test]
    fn idle_cores_and_a_shortfall_are_contention() {
        let mut m = model(1, 0.1, 0.001, 2.0);
        m.fit(&[saturation(2, 16.0, 0.001, 0.2)]);
        assert!((m.contention - 0.25).abs() < 1e-9);
        assert!((m.capacity(2) - 16.0).abs() < 1e-9);
        assert!(m.capacity(100) < 40.0, "Amdahl: at most 10 / 0.25");
    }

    #[test]
    fn demand_that_grows_makes_more_worse() {
        let mut m = model(2, 0.002, 0.0018, 2.0);
        m.fit(&[saturation(2, 800.0, 0.0023, 2.0)]);
        assert!(m.capacity(2) < m.capacity(1));
        assert_eq!(m.capacity(4), m.capacity(2), "nothing is known beyond what was measured");
    }

    #[test]
    fn a_single_thread_in_between_is_a_limit() {
        let m = model(16, 0.001, 0.00001, 64.0);
        assert_eq!(m.capacity(1), 16_000.0);
        assert_eq!(m.capacity(10), m.relay_limit());
    }

    #[test]
    fn what_others_do_to_the_cores_is_not_the_load() {
        let idle = Saturation { busy_cores: 2.0, ..saturation(2, 98.0, 0.0005, 0.0) };
        assert!(!idle.is_cpu_full(2.0), "0.06 cores of its own");
        let beside = Saturation { busy_cores: 2.0, ..saturation(2, 50.0, 0.03, 0.0) };
        assert!(beside.is_cpu_full(2.0), "1.5 cores, all that others left");
    }

    #[test]
    fn the_rest_of_a_slot_is_not_contention() {
        let mut m = model(1, 0.1, 0.001, 2.0);
        m.fit(&[saturation(2, 19.4, 0.001, 0.2)]);
        assert_eq!(m.contention, 0.0);
        assert!((m.capacity(10) - 97.0).abs() < 1e-6, "each does half of what two did");
        assert!(m.error(10) > m.error(2));
    }
}
