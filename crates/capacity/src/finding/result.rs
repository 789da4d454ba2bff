//! A finding as a value: what it is, the numbers that show it, and what to do about it.

use super::dependency_use::DependencyUse;
use super::evidence::{Crashes, Pool};
use super::in_flight_limit::Shortage;
use super::uneven::Unevenness;
use crate::limit_kind::Kind;

/// One diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// How clearly the numbers show it: 0.5 at the threshold, and near 1 far beyond it or if a trial
    /// agreed.
    pub confidence: f64,
    /// The numbers.
    pub details: Details,
    /// What to do about it.
    pub remedy: Remedy,
    /// Dependencies of the instances that it may concern, the fullest first.
    pub dependencies: Vec<DependencyUse>,
}

/// The numbers that show a finding. Rates in requests per second, times in seconds, CPU in cores.
#[derive(Clone, Debug, PartialEq)]
pub enum Details {
    /// Requests failed.
    Errors {
        /// Their share.
        share: f64,
        /// The most frequent error.
        most: String,
        /// Instances that died meanwhile.
        crashes: Option<Crashes>,
    },
    /// An instance died, and requests waited until it ran again.
    Crashes(Crashes),
    /// One instance is unlike its peers.
    Uneven(Unevenness),
    /// The process may open too few files for the workload.
    Files(Shortage),
    /// The busiest thread of the generator.
    GeneratorThread {
        /// Share of a core.
        utilisation: f64,
    },
    /// The busiest thread of the balancer.
    BalancerThread {
        /// Share of a core.
        utilisation: f64,
    },
    /// Memory is short.
    MemoryShort {
        /// Processes that were killed.
        kills: u64,
        /// Where it is short, if that was seen.
        level: Option<MemoryLevel>,
        /// Pages from the disk that a request waits for, where it does.
        faults: Option<f64>,
        /// Share of the time in which something waited for memory, where that is long.
        stalled: Option<f64>,
        /// Memory that requests leave behind.
        leak: Option<Leak>,
    },
    /// Memory that will be short.
    Leak(Leak),
    /// A quota stopped the app.
    Throttled {
        /// Share of the periods.
        periods: f64,
        /// Cores that it used.
        cores: f64,
    },
    /// Connections that never came about.
    Connections {
        /// Refused or dropped.
        failed: u64,
        /// Open files and their limit, where they are short.
        open_files: Option<(u64, u64)>,
    },
    /// Requests wait inside an instance for a pool.
    Pooled {
        /// Requests in flight.
        offered: usize,
        /// Those that the instance had read.
        inside: usize,
        /// Served at a time.
        served: usize,
        /// The connections that they wait for, if those were seen.
        pool: Option<Pool>,
    },
    /// Two instances compete for full cores.
    Competing {
        /// Throughput of two over that of one.
        gain: f64,
        /// What a request waited for a core with one instance, and with two.
        run_wait: Option<(f64, f64)>,
    },
    /// Two instances do less than they should, and the cores are not why.
    FallsShort {
        /// Throughput of two over that of one.
        gain: f64,
        /// Cores that two used, with balancer and generator.
        own_cores: f64,
        /// Cores of the machine.
        cores: f64,
        /// Throughput of two on a core less over that of one, where that was tried.
        core_less_gain: Option<f64>,
    },
    /// One instance serves one request at a time.
    OneAtATime {
        /// Throughput with one request in flight.
        light: f64,
        /// Throughput with more.
        peak: f64,
        /// Time of a request.
        service: f64,
    },
    /// A saturated instance keeps cores busy.
    BusyCores {
        /// Cores that it keeps busy.
        busy: f64,
        /// Cores of the machine.
        cores: f64,
        /// CPU time of a request.
        demand: f64,
        /// Cores of balancer and generator.
        relay: f64,
    },
    /// Requests wait for most of their time.
    Waits {
        /// Time of a request.
        service: f64,
        /// Share of it that is CPU.
        cpu_share: f64,
    },
    /// The workload leaves room.
    Room {
        /// The workload as a share of the capacity.
        share: f64,
        /// Instances that leave it.
        instances: usize,
        /// What they can complete and what limits one of them then, if the end of its growth was seen.
        capacity: Option<(f64, Kind)>,
    },
    /// Nothing was seen at its limit.
    NothingFull {
        /// Cores that a saturated instance keeps busy.
        busy: f64,
        /// Cores of the machine.
        cores: f64,
        /// Cores of balancer and generator.
        relay: f64,
        /// Share of a request's time that is CPU.
        cpu_share: f64,
        /// Time of a request that is alone.
        service: f64,
    },
    /// By the model, one instance more adds little.
    Curve {
        /// Running instances.
        instances: usize,
        /// What they can complete.
        now: f64,
        /// What one more would make it.
        next: f64,
        /// What the cores could carry, where they are not the limit.
        cpu_limit: Option<f64>,
    },
    /// By the model, the cores carry no more.
    CoresCarry {
        /// Time for which a request occupies the cores.
        demand: f64,
        /// Cores of the machine.
        cores: f64,
        /// What they carry.
        carried: f64,
        /// Instances that ran with one core less, their throughput then, and before. `None` if that was not
        /// tried.
        tried: Option<(usize, f64, f64)>,
    },
    /// By the model, one thread of the balancer carries no more.
    BalancerCarries(f64),
    /// By the model, one thread of the generator sends no more.
    GeneratorSends(f64),
    /// No more instances fit into the free memory.
    MemoryFits {
        /// Instances that fit.
        instances: usize,
    },
}

/// How full the memory is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryLevel {
    /// Share of the machine's memory that is left.
    Machine(f64),
    /// Bytes that are used, and the limit.
    Limit(u64, u64),
}

/// Memory that every request takes and none gives back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leak {
    /// Bytes a request.
    pub bytes: f64,
    /// Requests a second of a saturated instance.
    pub throughput: f64,
    /// Bytes that an instance can still take.
    pub left: f64,
}

/// What to do about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Mend what ends the instance.
    MendCrashes,
    /// Mend the errors.
    MendErrors,
    /// Look at what is different about this instance.
    InspectInstance(usize),
    /// Allow so many open files.
    OpenFiles(u64),
    /// Send the load from another machine.
    SecondMachine,
    /// Give the balancer more threads.
    BalancerThreads,
    /// Find what keeps the memory.
    FindLeak,
    /// Give each instance more memory.
    MemoryEach,
    /// Add memory, or run fewer instances.
    MemoryOrFewer,
    /// Add memory, or make an instance need less.
    MemoryOrSmaller,
    /// Raise the quota.
    Quota,
    /// Raise the quota before anything else.
    QuotaFirst,
    /// Raise the listen backlog and the limit of open files.
    Backlog,
    /// Make the pool of connections larger.
    LargerPool,
    /// Look for the pool.
    FindPool,
    /// Run one instance.
    OneInstance,
    /// Run no more instances.
    NoMoreInstances,
    /// Look at what all instances use.
    InspectShared,
    /// Add instances, or serve several requests at once.
    Concurrency,
    /// Make a request need less CPU, or add cores: one instance uses several.
    LessCpu,
    /// Run one instance a core at most.
    InstancePerCore,
    /// Make a request cheaper, or add cores.
    CheaperRequests,
    /// Shorten what all instances wait for.
    ShorterWait,
    /// Use the idle CPU for more instances or threads.
    IdleCpu,
    /// Look for a lock or a queue in the app.
    FindQueue,
    /// More instances would meet another limit.
    OtherLimit {
        /// Whether the recommended count makes up for this one.
        is_made_up: bool,
        /// The limit.
        limit: Kind,
    },
    /// Nothing.
    Nothing,
}

impl Leak {
    /// Seconds until nothing is left under full load.
    pub fn lasts(&self) -> f64 {
        self.left / (self.bytes * self.throughput)
    }
}

/// 0.5 at the threshold, 0.99 at `full`.
pub(super) fn clarity(value: f64, threshold: f64, full: f64) -> f64 {
    let distance = ((value - threshold) / (full - threshold)).clamp(0.0, 1.0);
    (50.0 + 49.0 * distance).round() / 100.0
}

pub(super) fn found(
    kind: Kind,
    confidence: f64,
    details: Details,
    remedy: Remedy,
) -> Option<Finding> {
    Some(Finding { kind, confidence, details, remedy, dependencies: Vec::new() })
}
