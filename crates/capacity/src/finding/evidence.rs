//! What was observed of the saturated instances, and the yes-or-no questions that it answers.

use super::dependency_use::DependencyUse;
use super::in_flight_limit::Shortage;
use super::trial::{Change, Trial};
use super::uneven::Unevenness;
use crate::calibration::{
    FULL_GAIN, HEADROOM_UTILISATION, INTERPRETER_LOCK_CORES, MOSTLY_BUSY_CORES, QUOTA_FULL_PERIODS,
    THREAD_FULL, TRIAL_CONFIDENCE, WAITING_CPU_SHARE,
};
use crate::limit_kind::Kind;
use crate::model::network::Model;
use crate::model::outcome::Outcome;
use crate::model::saturation::Saturation;

/// What was seen. Shares are 0 to 1; `None` where the source is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// One saturated instance.
    pub one: Saturation,
    /// Two of them, if there were two.
    pub two: Option<Saturation>,
    /// Cores that the busiest thread of the one used.
    pub busiest_thread: Option<f64>,
    /// Run-queue wait in one request with one instance, and with two (s).
    pub run_wait: Option<(f64, f64)>,
    /// Share of failed requests, worst of the valid probes, with the most frequent error in words.
    pub errors: Option<(f64, String)>,
    /// Share of failed requests that may be.
    pub error_limit: f64,
    /// An instance that died.
    pub crashes: Option<Crashes>,
    /// A failure that no count of instances cures.
    pub failing: Option<Failing>,
    /// Share of a core that the busiest generator thread used, worst probe.
    pub generator_thread: f64,
    /// The instance that is unlike its peers.
    pub uneven: Option<Unevenness>,
    /// What is missing to send the workload as asked for.
    pub shortage: Option<Shortage>,
    /// Share of a core that the busiest balancer thread used, worst probe.
    pub balancer_thread: f64,
    /// Share of CPU quota periods in which an instance was stopped.
    pub throttled: Option<f64>,
    /// What was seen of the memory.
    pub memory: Memory,
    /// The workload beside what the recommended count can complete, if it holds the goal.
    pub load: Option<Load>,
    /// Connections to the app that were refused or dropped.
    pub connect_failures: u64,
    /// Open files and their limit, of the instance nearest to its limit.
    pub open_files: Option<(u64, u64)>,
    /// What became of the requests that were in flight at the top of the ladder.
    pub admission: Option<Admission>,
    /// What was tried.
    pub trials: Vec<Trial>,
    /// Use of what the saturated instances depend on.
    pub dependencies: Vec<DependencyUse>,
}

/// How the app fails although it is not overloaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failing {
    /// This share of the requests, which is more than the goal allows.
    Requests(f64),
    /// An instance died so often while it was measured.
    Deaths(u32),
}

/// Deaths of an instance while it was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crashes {
    /// The instance.
    pub name: String,
    /// How often it died.
    pub times: u32,
    /// How it died last, as its driver says.
    pub cause: Option<String>,
}

/// What was seen of the memory; worst probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Share of time in which something waited for memory.
    pub stalled: Option<f64>,
    /// Share of the machine's memory that was left.
    pub left: Option<f64>,
    /// Memory that is used, and its limit (bytes).
    pub limited: Option<(u64, u64)>,
    /// Page faults of one instance that waited for a disk, per request.
    pub faults: f64,
    /// Processes that were killed at a memory limit.
    pub kills: u64,
    /// What the requests of each probe left behind, in the order of the probes.
    pub retained: Vec<RetainedMemory>,
    /// Bytes that an instance could still take.
    pub room: Option<u64>,
}

/// Memory that grew while requests were served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetainedMemory {
    /// Bytes by which all instances grew.
    pub bytes: f64,
    /// Bytes that were newly allocated; a heap that is filled for the first time was allocated before.
    pub allocated: f64,
    /// Requests that were served meanwhile.
    pub requests: f64,
}

/// A workload beside a capacity, as it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The workload as a share of the capacity.
    pub share: f64,
    /// Running instances.
    pub instances: usize,
    /// What became of it.
    pub outcome: Outcome,
}

impl Load {
    /// Whether the instances could carry much more. If they completed less than predicted, they are at a
    /// limit, whatever the predicted capacity.
    pub(super) fn leaves_room(&self) -> bool {
        self.share < HEADROOM_UTILISATION && !self.outcome.falls_short()
    }
}

/// What became of requests in flight at one saturated instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Requests in flight.
    pub offered: usize,
    /// Those that the instance had not read: they wait in front of it.
    pub unread: usize,
    /// The connections that it had to what it uses most.
    pub pool: Option<Pool>,
}

/// Connections of an instance to one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Where they lead.
    pub to: String,
    /// How many.
    pub connections: usize,
}

impl Admission {
    /// Requests that the instance had read.
    pub fn inside(&self) -> usize {
        self.offered.saturating_sub(self.unread)
    }
}

impl Evidence {
    /// Nothing but one saturated instance.
    pub fn new(one: Saturation) -> Evidence {
        Evidence {
            one,
            two: None,
            busiest_thread: None,
            run_wait: None,
            errors: None,
            error_limit: 0.0,
            crashes: None,
            failing: None,
            generator_thread: 0.0,
            uneven: None,
            shortage: None,
            balancer_thread: 0.0,
            throttled: None,
            memory: Memory::default(),
            load: None,
            connect_failures: 0,
            open_files: None,
            admission: None,
            trials: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    /// Whether an instance died, and each time for lack of memory.
    pub(super) fn dies_of_memory(&self) -> bool {
        self.crashes.as_ref().is_some_and(|crashes| u64::from(crashes.times) <= self.memory.kills)
    }

    /// Throughput of two over that of one.
    pub(super) fn second_gain(&self) -> Option<f64> {
        self.two.map(|two| two.throughput / self.one.throughput)
    }

    /// Whether the second instance gains less than it should, by more than the errors of both measurements.
    pub(super) fn falls_short(&self) -> bool {
        let error = |two: Saturation| self.one.error.hypot(two.error);
        let most = self.second_gain().zip(self.two).map(|(gain, two)| gain * (1.0 + error(two)));
        most.is_some_and(|most| most < FULL_GAIN)
    }

    /// What a change of this sort did, if it was tried.
    pub(super) fn trial(&self, change: Change) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.change == change)
    }

    /// Whether a trial spoke for a kind.
    pub(super) fn is_confirmed(&self, kind: Kind) -> bool {
        self.trials.iter().any(|trial| trial.shows == kind)
    }

    /// The confidence that the signature gives, and what trials add to it.
    pub(super) fn confidence(&self, kind: Kind, signature: f64) -> f64 {
        if self.is_confirmed(kind) { signature.max(TRIAL_CONFIDENCE) } else { signature }
    }

    /// Whether the generator is at a limit before the instance is.
    pub(super) fn is_generator_bound(&self, model: &Model) -> bool {
        let is_short = self.shortage.is_some() && !model.ladder.is_saturated();
        is_short || self.is_generator_full()
    }

    pub(super) fn is_generator_full(&self) -> bool {
        match self.trial(Change::SecondGenerator) {
            Some(trial) => trial.shows == Kind::GeneratorBound,
            None => self.generator_thread >= THREAD_FULL,
        }
    }

    pub(super) fn is_balancer_bound(&self) -> bool {
        match self.trial(Change::NoBalancer) {
            Some(trial) => trial.shows == Kind::BalancerBound,
            None => self.balancer_thread >= THREAD_FULL,
        }
    }

    /// Whether generator or balancer is at its limit. Then nothing is known of the app's own limit.
    pub(super) fn is_relay_bound(&self, model: &Model) -> bool {
        self.is_generator_bound(model) || self.is_balancer_bound()
    }

    pub(super) fn is_quota_full(&self) -> bool {
        self.throttled.is_some_and(|share| share >= QUOTA_FULL_PERIODS)
    }

    pub(super) fn is_cpu_bound(&self, model: &Model) -> bool {
        let cores = self.one.app_cores();
        let one_core = (THREAD_FULL..=INTERPRETER_LOCK_CORES).contains(&cores);
        self.busiest_thread.unwrap_or(0.0) >= THREAD_FULL
            || self.one.is_cpu_full(model.cores)
            || (model.slots == 1 && cores >= THREAD_FULL)
            // Several threads use one core between them, as under an interpreter lock. Not so if requests
            // mostly wait.
            || (one_core && model.ladder.is_saturated() && !self.mostly_waits(model))
    }

    /// The nearest limit if none was reached. It is the cores if a request is mostly CPU and half of them
    /// are busy.
    pub(super) fn nearest(&self, model: &Model) -> Kind {
        let is_cpu =
            !self.mostly_waits(model) && self.one.own_cores() >= MOSTLY_BUSY_CORES * model.cores;
        if is_cpu && model.ladder.is_saturated() { Kind::CpuBound } else { Kind::Waiting }
    }

    /// Whether a request that is alone in the instance waits for most of its time.
    pub(super) fn mostly_waits(&self, model: &Model) -> bool {
        self.cpu_share(model) < WAITING_CPU_SHARE
    }

    /// Share of CPU in the time of a request that is alone in the instance.
    pub(super) fn cpu_share(&self, model: &Model) -> f64 {
        (model.app_demand / model.ladder.light_service()).min(1.0)
    }

    /// Whether more requests are let in than are served at once, so that they wait inside for a pool.
    pub(super) fn is_pooled(&self, model: &Model) -> bool {
        // At the top of the ladder there are about twice as many in flight as are served.
        let is_let_in = |a: &Admission| 2 * a.inside() >= 3 * model.slots;
        model.slots > 1
            && model.ladder.is_saturated()
            && !self.is_relay_bound(model)
            && !self.is_cpu_bound(model)
            && self.mostly_waits(model)
            && self.admission.as_ref().is_some_and(is_let_in)
    }

    /// The connections of the pool that requests share: at most half as many as there are requests inside.
    /// A single connection may carry requests side by side, and says nothing.
    pub(super) fn pool(&self, model: &Model) -> Option<&Pool> {
        let admission = self.admission.as_ref()?;
        let pool = admission.pool.as_ref()?;
        let is_short = (2..=model.slots).contains(&pool.connections)
            && 2 * pool.connections <= admission.inside();
        is_short.then_some(pool)
    }

    /// Whether one instance carries the workload and could carry much more.
    pub(super) fn has_room(&self) -> bool {
        self.load.is_some_and(|load| load.instances == 1 && load.leaves_room())
    }
}

/// Whether one request at a time is all that an instance serves.
pub(super) fn is_serial(model: &Model) -> bool {
    model.slots == 1 && model.ladder.is_saturated()
}
