//! N instances of concurrency k on C shared cores.
//!
//! One instance is a flow-equivalent server (Chandy, Herzog and Woo, IBM Journal 19, 1975). Its measured
//! throughput at each concurrency stands for all that goes on inside it.
//!
//! N instances behind one queue complete N times as much, less what they take from each other. They share
//! the cores, a processor-sharing station that the balancer and the load generator use too. They may share
//! something else ([`crate::model::sharing`]). A request that waits for a slot is in neither, which is
//! Lazowska's model of a memory constraint ("Quantitative System Performance", 1984, ch. 9).

use std::cell::OnceCell;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::calibration::{
    CACHE_MISS_EXPONENT, CACHE_MISS_EXPONENTS, CORE_TRIAL_SHARE, DEMAND_BESIDE_OTHERS_ERROR,
    DEMAND_NOISE, JOINT_LIMIT, MIN_UTILISATION, MODEL_DRAWS, RELAY_THREAD_FULL,
    UNKNOWN_SHARED_DEMAND,
};
use crate::limit_kind::Kind;
use crate::model::ladder::Ladder;
use crate::model::latency_correction::LatencyCorrection;
use crate::model::quota::{Quota, Throttled};
use crate::model::saturation::{Filling, Saturation};
use crate::model::sharing::{Alone, Sharing, Shortfall};
use crate::queueing::birth_death;
use crate::queueing::laws;
use crate::queueing::service_shape::ServiceShape;
use crate::stats::interval::Interval;
use crate::stats::resampling::{self, Side};

/// The fitted model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// One instance by concurrency.
    pub ladder: Ladder,
    /// Useful requests in flight at one instance.
    pub slots: usize,
    /// Cores of the machine.
    pub cores: f64,
    /// Cores that the load could keep busy when the CPU was the limit, with the counts that were measured.
    /// One instance alone may have kept more busy ([`Model::usable_with`]).
    pub usable_cores: f64,
    /// CPU seconds of the app in one request, with one instance.
    pub app_demand: f64,
    /// CPU seconds of these that one instance alone spends on cache misses, as far as measurements with
    /// other instances show it.
    pub miss_demand: f64,
    /// With an Nth of the caches for each, N instances miss more often by this power of N.
    pub miss_exponent: f64,
    /// CPU seconds in one request of other programs that work for the app.
    pub dependency_demand: f64,
    /// CPU seconds of the balancer and the generator in one request.
    pub relay_demand: f64,
    /// CPU seconds in one request of the busiest thread of balancer or generator.
    pub relay_thread: f64,
    /// The limit when that thread is full: the balancer or the generator, whose thread it is.
    pub relay_kind: Kind,
    /// What instances do to each other beside the cores.
    pub sharing: Sharing,
    /// How one instance's service time varies.
    pub shape: ServiceShape,
    /// What stops each instance before anything else does.
    pub quota: Option<Quota>,
    /// A trial that shows whether the cores limit when they are neither clearly full nor clearly idle.
    core_trial: Option<CoreTrial>,
    /// How much longer requests took than the model says.
    latency_corrections: Vec<LatencyCorrection>,
    /// Seconds for which a request is not at the cores, by requests in flight at one instance.
    away: Vec<(f64, f64)>,
    #[serde(skip)]
    measured: Measurements,
    #[serde(skip)]
    draws: OnceCell<Vec<Model>>,
}

/// What the model was fitted to.
#[derive(Clone, Debug, PartialEq)]
struct Measurements {
    one: Saturation,
    several: Vec<Saturation>,
}

/// What two saturated instances did on a core less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreTrial {
    /// Cores that they, balancer and generator had kept busy before.
    pub own_cores: f64,
    /// The limit that it shows: the CPU, or something that they share.
    pub shows: Kind,
}

const SEED: u64 = 5;
/// More requests than any workload here has in flight.
const UNLIMITED: usize = 1 << 24;

impl Model {
    /// The model from one instance alone.
    pub fn new(ladder: Ladder, one: Saturation, shape: ServiceShape, cores: f64) -> Model {
        let is_telling = laws::utilisation(one.throughput, one.relay_thread) >= MIN_UTILISATION;
        let usable_cores = if one.is_cpu_full(cores) { one.own_cores() } else { cores };
        let mut model = Model {
            slots: ladder.slots(),
            ladder,
            cores,
            usable_cores,
            app_demand: one.app_demand,
            miss_demand: 0.0,
            miss_exponent: CACHE_MISS_EXPONENT,
            dependency_demand: one.dependency_demand,
            relay_demand: one.relay_demand,
            relay_thread: if is_telling { one.relay_thread } else { 0.0 },
            relay_kind: if one.generator_thread < one.relay_thread {
                Kind::BalancerBound
            } else {
                Kind::GeneratorBound
            },
            sharing: Sharing::Nothing,
            shape,
            quota: None,
            core_trial: None,
            latency_corrections: Vec::new(),
            away: Vec::new(),
            measured: Measurements { one, several: Vec::new() },
            draws: OnceCell::new(),
        };
        model.fit_off_core_time();
        model
    }

    /// The model under a quota; `shape` is then that of requests that were not stopped.
    pub fn under(mut self, quota: Option<Quota>) -> Model {
        self.quota = quota;
        self
    }

    /// The model with the result of a trial on one core less.
    pub fn knowing(mut self, trial: Option<CoreTrial>) -> Model {
        self.core_trial = trial;
        self
    }

    /// Whether the cores are what limited a measurement.
    fn is_at_cores(&self, s: &Saturation) -> bool {
        let is_full = s.is_cpu_full(self.cores);
        match self.core_trial {
            Some(CoreTrial { own_cores, shows: Kind::CpuBound }) => {
                is_full || s.own_cores() >= CORE_TRIAL_SHARE * own_cores
            }
            Some(CoreTrial { own_cores, .. }) => {
                is_full && s.own_cores() * CORE_TRIAL_SHARE > own_cores
            }
            None => is_full,
        }
    }

    /// The instances under their quota. `None` if it is not known, if something is shared, or if the cores
    /// do not hold them all.
    pub(crate) fn throttled(&self, instances: usize) -> Option<Throttled<'_>> {
        let quota = self.quota?;
        let fits = instances as f64 * quota.cores <= self.usable_with(instances);
        let is_known = self.ladder.is_saturated() && quota.demand.mean > 0.0;
        let is_known = is_known && fits && !self.sharing.is_shared();
        is_known.then_some(Throttled { quota, instances, slots: self.slots, shape: &self.shape })
    }

    /// Refits CPU demand and sharing to measurements of two or more instances.
    ///
    /// If the CPU is full, a shortfall is due to the CPU. If a thread of balancer or generator is full, it
    /// is due to that thread. Otherwise something is shared.
    pub fn fit(&mut self, measured: &[Saturation]) {
        let several = measured.iter().filter(|s| s.instances > 1 && s.throughput > 0.0);
        self.measured.several = several.copied().collect();
        self.draws = OnceCell::new();
        self.fit_cores();
        let shortfalls = self.shortfalls();
        self.sharing = Sharing::fit(self.alone(), &shortfalls);
    }

    /// Corrects predicted response times; to be called once, after everything is fitted.
    pub(super) fn set_latency_corrections(&mut self, corrections: Vec<LatencyCorrection>) {
        self.latency_corrections = corrections;
        self.draws = OnceCell::new();
    }

    /// Measured response times over predicted ones.
    pub(super) fn latency_corrections(&self) -> &[LatencyCorrection] {
        &self.latency_corrections
    }

    /// Fits one of the explanations that remain; `chance` in 0..1 draws it.
    pub(crate) fn fit_by_chance(&mut self, chance: f64) {
        let (low, high) = CACHE_MISS_EXPONENTS;
        self.miss_exponent = low + chance * (high - low);
        self.fit_cores();
        let shortfalls = self.shortfalls();
        self.sharing = Sharing::draw(self.alone(), &shortfalls, chance);
    }

    /// Fits the cores to all measurements with full cores. A surer measurement weighs more.
    fn fit_cores(&mut self) {
        let is_full = |s: &&Saturation| s.filling == Filling::Full && self.is_at_cores(s);
        let full: Vec<_> = self.measured.several.iter().filter(is_full).copied().collect();
        if full.is_empty() {
            return;
        }
        let mean = |of: &dyn Fn(&Saturation) -> f64| {
            let sum = |value: &dyn Fn(&Saturation) -> f64| full.iter().map(value).sum::<f64>();
            sum(&|s| s.weight() * of(s)) / sum(&Saturation::weight)
        };
        // Least squares of the growth by the law of the caches.
        let misses = |s: &Saturation| self.further_misses(s.instances);
        let growth =
            mean(&|s| misses(s) * (s.app_demand - self.app_demand)) / mean(&|s| misses(s).powi(2));
        let most = full.iter().map(misses).fold(0.0, f64::max);
        // Only an app that fills the cores alone pays more when others share the caches.
        let counts = self.measured.one.is_cpu_full(self.cores)
            && growth * most > DEMAND_NOISE * self.app_demand;
        self.miss_demand = if counts { growth } else { 0.0 };
        self.relay_demand = mean(&|s| s.relay_demand);
        let used = |s: &Saturation| s.throughput * self.total_demand(s.instances);
        let (low, high) = full
            .iter()
            .map(used)
            .fold((f64::INFINITY, self.cores), |ends, used| (ends.0.min(used), ends.1.max(used)));
        self.usable_cores = mean(&used);
        self.fit_off_core_time();
        // The curve bends before it ends. So as many cores are usable as complete what was measured.
        let (mut low, mut high) = (low, high);
        for _ in 0..20 {
            self.usable_cores = f64::midpoint(low, high);
            let excess =
                |s: &Saturation| s.weight() * (self.own_capacity(s.instances) / s.throughput).ln();
            if full.iter().map(excess).sum::<f64>() < 0.0 {
                low = self.usable_cores;
            } else {
                high = self.usable_cores;
            }
        }
    }

    /// Seconds away from the cores at every rung that counts.
    fn fit_off_core_time(&mut self) {
        self.away.clear();
        if self.local_demand(1) <= 0.0 {
            return;
        }
        let slots = if self.ladder.is_saturated() { self.slots } else { usize::MAX };
        let below = self.ladder.rungs().iter().map(|r| r.concurrency).filter(|c| *c < slots);
        let counts = below.chain((slots < usize::MAX).then_some(slots)).map(|c| c as f64);
        self.away = counts
            .map(|jobs| {
                (jobs, birth_death::away(jobs, self.ladder.throughput(jobs), self.core_rate(1)))
            })
            .collect();
    }

    /// Measurements without the CPU's part in them, if nothing known explains them.
    fn shortfalls(&self) -> Vec<Shortfall> {
        let peak = self.ladder.peak();
        let shortfall = |s: &Saturation| {
            // A quota grants CPU, not requests. If requests are fewer because they cost more CPU, nothing
            // is shared.
            let dearer = self.quota.map_or(1.0, |_| s.app_demand / self.app_demand);
            let (left, varies) = self.left_beside_cores(s.instances, s.throughput * dearer);
            let deviation = resampling::deviation(s.error)
                .hypot(resampling::deviation(self.measured.one.error));
            Shortfall {
                instances: s.instances,
                throughput: s.instances as f64 * peak * left,
                error: varies * deviation,
                is_bound: s.filling == Filling::Partial,
            }
        };
        let is_known = |s: &Saturation| self.is_at_cores(s) || s.is_relay_full();
        self.measured.several.iter().filter(|s| !is_known(s)).map(shortfall).collect()
    }

    fn alone(&self) -> Alone {
        let ladder = &self.ladder;
        Alone { throughput: ladder.peak(), slots: self.slots as f64, rest: ladder.rest() }
    }

    /// CPU seconds of the app in one request with `instances` running.
    pub fn demand(&self, instances: usize) -> f64 {
        self.app_demand + self.miss_demand * self.further_misses(instances)
    }

    /// The share by which caches miss more often than with one instance.
    fn further_misses(&self, instances: usize) -> f64 {
        (instances as f64).powf(self.miss_exponent) - 1.0
    }

    /// CPU seconds in one request while it holds a slot.
    pub(super) fn local_demand(&self, instances: usize) -> f64 {
        self.demand(instances) + self.dependency_demand
    }

    /// CPU seconds in one request of all that it needs.
    fn total_demand(&self, instances: usize) -> f64 {
        self.local_demand(instances) + self.relay_demand
    }

    /// Completion rate of the cores, by requests at them. Balancer and generator take their share, which
    /// grows with the throughput.
    pub(crate) fn core_rate(&self, instances: usize) -> impl Fn(usize) -> f64 {
        let (demand, limit) = (self.local_demand(instances), self.cpu_limit(instances));
        move |jobs| (jobs as f64 / demand).min(limit)
    }

    /// Throughput at which `instances`, balancer and generator have used all cores up.
    pub fn cpu_limit(&self, instances: usize) -> f64 {
        let demand = self.total_demand(instances);
        if demand > 0.0 { self.usable_with(instances) / demand } else { f64::INFINITY }
    }

    /// Cores that so many instances can keep busy. One instance alone does not lose what several lose to
    /// each other.
    fn usable_with(&self, instances: usize) -> f64 {
        let one = &self.measured.one;
        let is_seen = instances == 1 && one.is_cpu_full(self.cores);
        if is_seen {
            self.usable_cores.max(one.throughput * self.total_demand(1))
        } else {
            self.usable_cores
        }
    }

    /// Throughput at which one thread of balancer or generator is full.
    pub fn relay_limit(&self) -> f64 {
        if self.relay_thread > 0.0 { RELAY_THREAD_FULL / self.relay_thread } else { f64::INFINITY }
    }

    /// Throughput at which the cores or a thread of balancer or generator are full. If one instance
    /// completed more than that thread's limit, the limit is at least as high.
    pub(super) fn shared_limit(&self, instances: usize) -> f64 {
        self.cpu_limit(instances).min(self.relay_limit().max(self.ladder.peak()))
    }

    /// Throughput that the instances would reach with unlimited cores. It is infinite if the ladder showed
    /// no end of growth.
    pub fn own_limit(&self, instances: usize) -> f64 {
        if !self.ladder.is_saturated() {
            return f64::INFINITY;
        }
        let (n, alone) = (instances as f64, self.alone());
        n * alone.throughput * self.sharing.left(n, alone.slots, alone.throughput)
    }

    /// Saturated throughput of `instances`.
    pub fn capacity(&self, instances: usize) -> f64 {
        if !self.ladder.is_saturated() {
            return self.shared_limit(instances);
        }
        if let Some(throttled) = self.throttled(instances) {
            return throttled.capacity();
        }
        self.rate(instances, (instances * self.slots) as f64)
    }

    /// Whether the cores, not the instances, limit this count. Within 5 % both are the limit, and
    /// then a further instance is the wrong remedy.
    pub fn is_cpu_limited(&self, instances: usize) -> bool {
        self.own_limit(instances) * JOINT_LIMIT >= self.cpu_limit(instances)
    }

    /// Seconds away from the cores with `jobs` in one instance, between the rungs.
    pub(crate) fn away_with(&self, jobs: f64) -> Option<f64> {
        let after = self.away.iter().position(|(upto, _)| jobs <= *upto);
        let Some(after) = after else { return self.away.last().map(|last| last.1) };
        let (upto, high) = self.away[after];
        let Some((from, low)) = after.checked_sub(1).map(|i| self.away[i]) else {
            return Some(high);
        };
        Some(low + (high - low) * (jobs - from) / (upto - from))
    }

    /// Requests that may be in service in all instances. They are unlimited if the ladder showed no end of
    /// growth.
    pub fn total_slots(&self, instances: usize) -> usize {
        if self.ladder.is_saturated() { instances * self.slots } else { UNLIMITED }
    }

    /// Half-width of the interval of the capacity at `instances`, as a share of it.
    pub fn error(&self, instances: usize) -> f64 {
        let (low, high) = self.interval(|model| model.capacity(instances));
        (high - low) / (2.0 * self.capacity(instances))
    }

    /// The model at an end of the interval of the capacity of `instances`.
    pub fn bound(&self, instances: usize, side: Side) -> &Model {
        resampling::at_bound(self.draws(), side, |model| model.capacity(instances))
    }

    /// The model at the end of the interval at which `instances` do most beside `others`.
    pub(crate) fn draw_in_favour(&self, instances: usize, others: usize) -> &Model {
        let advantage = |model: &Model| model.capacity(instances) / model.capacity(others);
        resampling::at_bound(self.draws(), Side::High, advantage)
    }

    /// The interval of any figure.
    pub(crate) fn interval(&self, figure: impl Fn(&Model) -> f64) -> (f64, f64) {
        resampling::interval(self.draws(), figure)
    }

    fn draws(&self) -> &[Model] {
        self.draws.get_or_init(|| self.resampled())
    }

    /// Models of the same probes, measured again with the errors that the bootstrap over their windows gave them.
    ///
    /// An explanation of a shortfall is drawn by its weight. So the interval also holds what is unknown of
    /// the model's form (Burnham and Anderson, "Model Selection and Multimodel Inference", 2002, ch. 4).
    fn resampled(&self) -> Vec<Model> {
        let mut random = StdRng::seed_from_u64(SEED);
        let normal = Normal::standard();
        let draw = |_| {
            let mut deviate = || normal.inverse_cdf(random.random_range(1e-6..1.0 - 1e-6));
            let mut again =
                self.measured_again(|error| (resampling::deviation(error) * deviate()).exp());
            if self.knows_several() {
                again.fit_by_chance(random.random_range(0.0..1.0));
            } else {
                let demand = UNKNOWN_SHARED_DEMAND * deviate().abs() / self.measured.one.throughput;
                again.sharing = Sharing::Queue { demand };
            }
            again
        };
        (0..MODEL_DRAWS).map(draw).collect()
    }

    /// The model that another run of the same probes might have given. `vary` draws a factor around 1
    /// from a relative half-width.
    pub(crate) fn measured_again(&self, mut vary: impl FnMut(f64) -> f64) -> Model {
        let mut one = self.measured.one;
        let level = vary(one.error);
        one.throughput *= level;
        // CPU time is counted, not sampled. It varies only as the machine does.
        one.app_demand *= vary(0.0);
        let mut again = Model::new(self.ladder.scaled(level), one, self.shape.clone(), self.cores)
            .under(self.quota)
            .knowing(self.core_trial);
        if let Some(Quota { demand, .. }) = &mut again.quota {
            // This draw has one value. The other draws have the others.
            *demand = Interval { mean: demand.mean * vary(demand.relative()), half_width: 0.0 };
        }
        again.latency_corrections = self.latency_corrections.clone();
        again.measured.several = self.measured.several.clone();
        for s in &mut again.measured.several {
            s.throughput *= vary(s.error);
            // What a request costs more beside others is a small difference of two demands.
            if one.is_cpu_full(self.cores) && self.is_at_cores(s) {
                s.app_demand *= vary(DEMAND_BESIDE_OTHERS_ERROR);
            }
        }
        again
    }

    /// Whether it is known what more than one instance can do.
    pub(crate) fn knows_several(&self) -> bool {
        self.measured.several.iter().any(|s| s.filling == Filling::Full)
    }
}

#[cfg(test)]
mod tests;
