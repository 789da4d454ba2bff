//! Why a count is recommended, as values: the search fills them with numbers.

use crate::finding::dependency_use::DependencyUse;
use crate::finding::evidence::Failing;
use crate::finding::uneven::Unevenness;
use crate::limit_kind::Kind;

/// Why a count is recommended. Rates in requests per second, times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// What the count does about the goal.
    pub head: Head,
    /// A measured and a predicted throughput, where less was measured than the model explains.
    pub unexplained: Option<(f64, f64)>,
    /// What limits the count.
    pub limit: Option<LimitDetails>,
    /// What one more instance would do.
    pub one_more: Option<OneMore>,
    /// What limits next.
    pub next: Option<NextDetails>,
    /// The instance that is unlike its peers, so that little is known of other counts.
    pub uneven: Option<Unevenness>,
    /// What instances share, where it limits the count, was watched and is at its limit.
    pub full_dependency: Option<DependencyUse>,
}

/// What a count does about the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Head {
    /// No count holds the goal.
    OutOfReach(Obstacle),
    /// The count is enough for users who ask for no latency; what one less does.
    Enough {
        /// What it does.
        performance: Performance,
        /// What one less does, if there is one less.
        fewer: Option<Performance>,
    },
    /// The count is not enough for users who ask for no latency.
    Short {
        /// What keeps it small.
        bound: CountBound,
        /// What it does.
        performance: Performance,
        /// Throughput that a further instance would add.
        added: f64,
        /// About how many are enough, and what they complete.
        enough: Option<(usize, f64)>,
    },
    /// The count holds the goal.
    Holds {
        /// Whether the goal bounds latency.
        has_bound: bool,
        /// Whether the count was measured.
        is_measured: bool,
        /// What it does.
        performance: Performance,
        /// Whether one less was measured, and what it does.
        fewer: Option<(bool, Performance)>,
    },
}

/// Why no count holds the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// The app fails without any overload.
    Failing(Failing),
    /// A request that is alone takes longer than the goal allows.
    RequestAlone {
        /// Its time.
        alone: f64,
        /// The percentile that is bounded.
        percentile: &'static str,
        /// The bound.
        bound: f64,
        /// What the nearest count does.
        performance: Performance,
    },
    /// Less is completed than is sent.
    Behind {
        /// Completed.
        done: f64,
        /// Sent.
        sent: f64,
    },
    /// The nearest count is not near enough.
    Nearest(Performance),
}

/// What keeps a count small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBound {
    /// A further instance would add little.
    Bend,
    /// No more fit into the memory.
    Memory,
    /// No more are allowed.
    Allowed,
}

/// What a count does about the goal, measured or predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Performance {
    /// Nothing was answered.
    NoAnswer,
    /// This share of the requests failed.
    Failed(f64),
    /// Less was completed than was sent.
    Behind {
        /// Completed.
        done: f64,
        /// Sent.
        sent: f64,
    },
    /// A percentile of the response time.
    Percentile {
        /// Its name.
        name: &'static str,
        /// Its value.
        time: f64,
        /// Whether it was measured.
        is_measured: bool,
    },
    /// The slowest answer, where too few came for a percentile.
    Slowest(f64),
    /// The queue would grow without end.
    Endless,
    /// The throughput.
    Throughput {
        /// Its value.
        rate: f64,
        /// Whether it was measured.
        is_measured: bool,
        /// What was sent, where that differs by chance from what was asked for.
        sent: Option<f64>,
    },
}

/// A limit with its numbers; `each` is what one instance completes at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitDetails {
    /// Nothing limits yet.
    Nothing,
    /// An instance serves one request at a time.
    Serialized {
        /// What one instance completes at this limit, where it is told.
        each: Option<f64>,
    },
    /// The time that a request takes by itself.
    ServiceTime(f64),
    /// An instance serves so many at once.
    Concurrency {
        /// Requests.
        served: usize,
        /// What one instance completes at this limit, where it is told.
        each: Option<f64>,
    },
    /// A pool inside each instance.
    Pool {
        /// Requests that it serves at once.
        served: usize,
        /// What one instance completes at this limit, where it is told.
        each: Option<f64>,
    },
    /// The quota of each instance.
    Quota {
        /// What one instance completes at this limit, where it is told.
        each: Option<f64>,
    },
    /// The memory.
    Memory,
    /// The cores of the machine.
    Cores {
        /// How many.
        cores: f64,
        /// What they carry.
        carried: f64,
    },
    /// The cores that an instance keeps busy.
    InstanceCores {
        /// How many.
        busy: f64,
        /// What one instance completes at this limit, where it is told.
        each: Option<f64>,
    },
    /// One instance keeps all cores busy.
    FilledCores {
        /// How many.
        cores: f64,
    },
    /// Something that all instances share.
    Shared,
    /// The one thread of the balancer.
    Balancer,
    /// The load generator.
    Generator,
    /// Another one.
    Other(Kind),
}

/// What one more instance would do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OneMore {
    /// It would fail as often.
    FailsAsOften,
    /// It is not needed.
    NotNeeded {
        /// The most that they complete with it, where that is more.
        raises_to: Option<f64>,
    },
    /// It would make it slower.
    Slower,
    /// It would not help, for this is busy.
    NoHelp(BusyPart),
    /// It would not help, for the users ask for no more.
    UsersAsk {
        /// How many.
        users: usize,
        /// What they ask for.
        rate: f64,
    },
    /// No more than so many fit into the memory.
    NoMoreFit(usize),
    /// No more than so many were allowed.
    NotAllowed(usize),
}

/// What is busy where more instances do not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPart {
    /// The cores.
    Cores,
    /// What instances share.
    Shared,
    /// The balancer.
    Balancer,
}

/// What is known of the next limit beside its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextDetails {
    /// It limits the count that runs already.
    Now(LimitDetails),
    /// It limits from a later count on.
    Later {
        /// Cores of the machine.
        cores: f64,
        /// What they carry then.
        carried: f64,
    },
}
