//! Every threshold of the measuring, with its unit and its source.
//!
//! Those of the science stand in `capacity::calibration`. `docs/measuring.md` says what a plan does with both.

use std::time::Duration;

// === One probe ===

/// How often a running probe is looked at.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A mean of batches wants so many batches.
pub const MIN_BATCHES: usize = 6;

/// Each of them wants so many requests.
pub const REQUESTS_PER_BATCH: f64 = 10.0;

/// Half-width of the interval of the throughput of full instances at which a probe ends, as a share.
/// The machine itself varies by about as much, and the rungs of a ladder are weighed together.
pub const SATURATED_PRECISION: f64 = 0.03;

/// The same under the goal's workload, whose measurement stands beside a prediction.
pub const GOAL_PRECISION: f64 = 0.04;

/// The same for the mean response time of arrivals that are carried. Their throughput is known beforehand.
pub const RESPONSE_PRECISION: f64 = 0.1;

/// A probe of arrivals is extended by so much at least. The number of arrivals in an extension is fixed, and shorter
/// ones would make them too even.
pub const SHORTEST_EXTENSION: Duration = Duration::from_secs(1);

/// A percentile is worth so many seconds. Beyond them, the slowest answer stands for it.
pub const MAX_SECONDS_FOR_SAMPLES: f64 = 15.0;

/// Times of which the generator took more than this share say that much at most.
pub const MAX_SHARE_OF_GENERATOR_TIME: f64 = 0.9;

/// A full instance's probe does not count if a larger share of its requests fails. A goal that allows
/// more failures raises this limit.
pub const MAX_FAILED_SHARE: f64 = 0.01;

// === The budget ===

/// A plan ends by this share of its budget before it is over: what is under way takes as long as it takes.
/// With 1 %, plans of a JVM took up to 60.4 of 60 s.
pub const BUDGET_RESERVE: f64 = 0.02;

/// The answer that tells whether connections may be kept may take 1/30 of the whole budget.
pub const IDLE_TEST_BUDGET_DIVISOR: u32 = 30;

/// A shorter budget has no time to tell whether connections may be kept.
pub const IDLE_TEST_MIN_BUDGET: Duration = Duration::from_secs(20);

/// A rung may take 1/3 of the budget that is left.
pub const RUNG_BUDGET_DIVISOR: u32 = 3;

/// A rung that the goal does not need may take 1/30 of the whole budget.
pub const UNNEEDED_RUNG_BUDGET_DIVISOR: u32 = 30;

/// The measurement of two instances may take 1/2 of the budget that is left.
pub const TWO_INSTANCES_BUDGET_DIVISOR: u32 = 2;

/// An intervention may take 1/4 of the budget that is left.
pub const INTERVENTION_BUDGET_DIVISOR: u32 = 4;

/// New instances have 1/4 of the budget to warm up, and half of what is left of it.
pub const WARM_UP_BUDGET_DIVISOR: u32 = 4;

// === One instance ===

/// While the slots are being looked for, the balancer must not hold anything back.
pub const UNLIMITED_SLOTS: usize = 1 << 20;

/// Requests at once at one instance beyond which a single generator thread measures itself.
pub const MAX_CONCURRENCY: usize = 1024;

/// Instances are warm when a request costs no more than this share less CPU than one probe before.
pub const MAX_CPU_DROP_OF_WARM_INSTANCES: f64 = 0.02;

/// A request that is alone costs so much more where the first ones met an app that had just started, as a share.
pub const COLD_START_EXTRA_CPU: f64 = 0.5;

/// An instance may die once by chance. What fails by itself dies again.
pub const REPEATED_DEATHS: u32 = 2;

/// A request shorter than this (s) leaves its slot idle for a noticeable share of the time until the next
/// one arrives. One more slot hides the gap (JBSQ, Kogias et al., "R2P2", USENIX ATC 2019).
pub const SHORT_REQUEST_S: f64 = 0.002;

/// Slots are busy all the time from this share on: as exact as throughput is.
pub const MIN_SHARE_OF_BUSY_SLOTS: f64 = 0.97;

/// An instance that was stopped in this share of its periods is limited by its quota.
pub const MIN_SHARE_OF_THROTTLED_PERIODS: f64 = 0.9;

/// How often connections are read. All of it lasts longer than it takes to let the next requests in.
pub const SOCKET_SNAPSHOTS: usize = 5;

/// The pause between two of these. It is no round time, as many a sleep of an app is.
pub const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(7);

// === The cores ===

/// With this share of the cores in use, what a request costs decides how fast it is answered.
pub const MIN_UTILISATION_OF_BUSY_CORES: f64 = 0.5;

/// An app that uses less of the cores at its peak is not limited by what a request costs.
pub const MAX_UTILISATION_OF_IDLE_APP: f64 = 0.1;

/// Other programs leave at least this share of the cores: less would be no measurement.
pub const MIN_SHARE_OF_CORES_LEFT: f64 = 0.1;

/// Cores that change their speed may make requests longer by this share in one probe than in another. It is more than
/// predictions may be off.
pub const MAX_EFFECT_OF_CORE_SPEED: f64 = 0.15;

/// In so many pieces of time a fixed piece of work is repeated before a probe.
pub const CORE_SPEED_PIECES: usize = 3;

/// How long each of them takes. Disturbances by other virtual machines of the host took 2 ms, and rarely 70 ms.
pub const CORE_SPEED_PIECE: Duration = Duration::from_millis(5);

/// The pause before each of them.
pub const CORE_SPEED_PAUSE: Duration = Duration::from_millis(15);

/// How often all this is tried, where other threads run meanwhile.
pub const CORE_SPEED_TRIES: usize = 3;

// === The answer ===

/// A count whose measurement is suspect is measured so many times in all.
pub const MAX_TRIES_OF_A_COUNT: usize = 2;

/// A model that was so often wrong is asked no more.
pub const MAX_MISSES_OF_THE_MODEL: usize = 2;

/// Counts so far from the answer are there to compare it with.
pub const NEIGHBOURS: usize = 2;

/// The curve shows at least so many counts.
pub const MIN_CURVE_LENGTH: usize = 10;
