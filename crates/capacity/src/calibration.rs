//! Every threshold and fitted constant of the science, with its unit and its source.
//!
//! `docs/findings.md` quotes them, and `tests/findings_doc.rs` holds it against them. Steps and tolerances of numerical methods
//! stand beside the methods.

use std::ops::RangeInclusive;

/// Bytes.
const MIB: f64 = 1024.0 * 1024.0;

// === Noise of measurements ===

/// Standard deviation of a figure from one probe to the next, as a share. The windows of a single probe
/// cannot show it. So no measurement counts as surer than that.
pub const PROBE_DEVIATION: f64 = 0.01;

/// A Poisson count that differs by at most so many standard deviations differs by chance.
pub const CHANCE_DEVIATIONS: f64 = 2.0;

/// An instance whose requests take so many times as long as those of its peers differs from them, and so does one that
/// fails so many times as often. The live page draws the line at the same place.
pub const UNEVEN_RATIO: f64 = 1.5;

/// Standard errors by which it must also differ. The slowest of several is looked at, which chance makes slower: of ten
/// equal instances one in 3,000 measurements is 4 of them away.
pub const UNEVEN_DEVIATIONS: f64 = 4.0;

/// An instance that answered fewer requests says too little.
pub const UNEVEN_MIN_REQUESTS: u64 = 20;

/// No larger share of failed requests makes an instance different, however few its peers have.
pub const UNEVEN_SETTLED_ERRORS: f64 = 0.01;

/// CPU demands that differ by a smaller share are equal: the rest is noise of the machine.
pub const DEMAND_NOISE: f64 = 0.05;

/// Standard deviation of the logarithm of a percentile from one run to the next.
/// Fitted to sweeps of fifteen apps: with it nine of ten intervals held the truth, without it seven.
pub const PERCENTILE_DEVIATION: f64 = 0.05;

/// Share of the draws outside of an interval, at either end: a 95 % interval.
pub const INTERVAL_TAIL: f64 = 0.025;

/// Models that are drawn for an interval. Each 2.5 % tail holds two of 80.
pub const MODEL_DRAWS: usize = 80;

/// Resamples of the windows of a run: enough for a standard error, not for a quantile.
pub const BOOTSTRAP_DRAWS: usize = 200;

/// So many times of the same work in a row have a median that tells how fast the cores are.
pub const CORE_SPEED_WINDOW: usize = 3;

// === Slots of one instance ===

/// A doubling of the concurrency that gains a smaller share is the end of growth.
/// A serial server gains some per cent, a parallel one nearly 100 %.
pub const MIN_GROWTH: f64 = 0.10;

/// Largest share of the time in which one client leaves a server idle between two requests.
/// A serial server of 10 ms did 12 % more with two in flight, on a core that takes time to wake.
pub const CLIENT_GAP_MAX: f64 = 0.15;

/// A fraction of a request in service that needs no slot of its own. The gaps between requests explain it.
pub const SLOT_FRACTION: f64 = CLIENT_GAP_MAX;

/// Requests by which the mean number in service may differ from the number in flight.
pub const IN_SERVICE_ERROR: f64 = 0.10;

/// An instance that does a smaller share of linear growth has requests that hinder each other.
pub const LINEAR_FRACTION: f64 = 0.93;

/// Factor on the slots of an instance with many: one slot too many costs little then.
pub const SLOT_MARGIN: f64 = 1.2;

/// An instance with more slots has many of them.
pub const MANY_SLOTS: f64 = 8.0;

/// The slots reach this share of the peak; the rest would cost as many slots again.
pub const SLOTS_PEAK_SHARE: f64 = 0.97;

/// A best rung whose relative half-width is larger is the luckiest of several, not the peak.
pub const NOISY_PEAK_ERROR: f64 = 0.04;

/// Cores that one full thread keeps busy, or several that take turns under one lock.
pub const ONE_BUSY_CORE: RangeInclusive<f64> = 0.95..=1.05;

/// With one core busy, a doubling that gains a smaller share is the end of growth.
pub const MIN_GROWTH_ON_ONE_CORE: f64 = 0.5;

/// Requests queue where their number, each as fast as one alone, makes this multiple of the peak.
pub const QUEUEING_FACTOR: f64 = 1.25;

// === The model of several instances ===

/// Share of the cores from which on the CPU is the limit.
/// The rest is lost where app, balancer and generator hand requests to each other.
pub const CPU_FULL: f64 = 0.80;

/// Share of a core from which on a thread of balancer or generator limits what instances complete.
/// The rest is lost as that of the cores is.
pub const RELAY_THREAD_FULL: f64 = CPU_FULL;

/// A load that uses a smaller share of the cores does not fill them, whatever else runs.
pub const MIN_CORE_SHARE: f64 = 0.4;

/// A thread that is busy for a smaller share of its time tells nothing of its limit.
/// At a low rate most of its CPU time goes into waking up.
pub const MIN_UTILISATION: f64 = 0.3;

/// Cache misses grow with this power of the number of instances.
/// Hartstein, Srinivasan, Puzak and Emma, "Cache miss behavior: is it sqrt(2)?", Computing Frontiers 2006.
pub const CACHE_MISS_EXPONENT: f64 = 0.5;

/// The range of the exponent: from 0.3 among programs (same source) to 1.
/// A request of /products of examples/threads cost 11 % more CPU with two instances, and 37 % more with four.
/// These are means of nine sweeps.
pub const CACHE_MISS_EXPONENTS: (f64, f64) = (0.3, 1.0);

/// Relative half-width of the 95 % interval of a CPU demand beside other instances, compared with that of one alone.
/// In eight plans of /products of examples/threads, two instances cost 1 to 18 % more, with 5 % of standard deviation.
/// In the sweeps before and after these plans it was 10 %.
pub const DEMAND_BESIDE_OTHERS_ERROR: f64 = 0.10;

/// Cores and instances limit together where the instances alone would complete this multiple of what the cores carry.
pub const JOINT_LIMIT: f64 = 1.05;

/// A trial with one core less also speaks for cores that are at least this share as busy as before it.
pub const CORE_TRIAL_SHARE: f64 = 0.95;

/// Standard deviation of what all instances may share, as a share of a request, before two were measured.
pub const UNKNOWN_SHARED_DEMAND: f64 = 0.25;

/// Largest share of the throughput that slots lose between an answer and the next request.
pub const MAX_SLOT_REST: f64 = 0.06;

/// Explanations whose Akaike criteria differ by less are equally good, and the simplest is used.
pub const CRITERION_TIE: f64 = 0.1;

/// Share of a difference between measured and predicted latency that a second measurement repeats.
/// Fitted to sweeps of fifteen apps.
pub const REPEATABLE_SHARE: f64 = 0.7;

/// Largest factor of a latency that neighbouring counts have in common.
pub const LATENCY_CORRECTION_MAX: f64 = 2.0;

/// Instances below this share of their capacity have cold caches and sleeping cores.
pub const IDLE_UTILISATION: f64 = 0.2;

/// An open queue at a higher utilisation has no steady state.
pub const MAX_STABLE_UTILISATION: f64 = 0.995;

/// A predicted throughput is sure where the half-width of its interval is a smaller share.
pub const SURE_WITHIN: f64 = 0.10;

// === Goals ===

/// Model and measurement agree where they differ by a smaller share.
pub const MODEL_AGREEMENT: f64 = 0.10;

/// Throughputs of two probes of the goal's workload that differ by a smaller share are said to be the same. It is
/// twice the relative error (4 %) at which such a probe ends.
pub const SAME_THROUGHPUT: f64 = 0.08;

/// An open workload is carried when this share of what was sent is completed.
pub const CARRIED_SHARE: f64 = 0.97;

/// Under overload a backlog grows all the time. The median wait is then half of the time that the last backlog takes.
/// After a burst at the end, the backlog may be as large, but the median is less than this share of that time.
pub const MEDIAN_OF_OVERLOAD: f64 = 0.25;

/// Without a bound on latency, this share of the best throughput is enough.
pub const ENOUGH_THROUGHPUT: f64 = 0.95;

// === Findings: the CPU ===

/// Share of a core from which on a thread is at its limit.
pub const THREAD_FULL: f64 = 0.85;

/// Cores from which on a dependency is named beside full cores. A smaller use does not matter to them.
pub const DEPENDENCY_SEEN: f64 = 0.05;

/// Share of a core from which on a trial asks whether a thread is the limit.
pub const THREAD_SUSPECT: f64 = 0.6;

/// An app that uses more cores runs on several of them.
pub const SEVERAL_CORES: f64 = 1.2;

/// Cores that the threads under one interpreter lock use at most.
pub const INTERPRETER_LOCK_CORES: f64 = 1.15;

/// Share of the cores from which on the CPU is the nearest limit where none was reached.
pub const MOSTLY_BUSY_CORES: f64 = 0.5;

/// An instance waits when its requests use a smaller share of their time as CPU.
pub const WAITING_CPU_SHARE: f64 = 0.5;

/// Share of the periods from which on a quota that stops an instance is a finding.
pub const THROTTLED_PERIODS: f64 = 0.05;

/// Share of the periods from which on the quota is the limit: below, it cuts off peaks.
pub const QUOTA_FULL_PERIODS: f64 = 0.5;

// === Findings: several instances ===

/// A factor of the throughput below this is no gain: it is the error of two probes.
pub const MIN_GAIN: f64 = 1.05;

/// A factor of the throughput below this is a loss.
pub const SLOWER_GAIN: f64 = 0.97;

/// A second instance that multiplies the throughput by less is held back by something.
pub const FULL_GAIN: f64 = 1.85;

/// A second instance that multiplies the throughput by less shares all of its limit with the first.
pub const ALL_SHARED_GAIN: f64 = 1.2;

/// Shares of the cores between which a trial decides whether the cores are the limit.
pub const UNDECIDED_CORES: (f64, f64) = (0.5, 0.95);

/// Relative growth of the throughput from which on a trial has removed the limit.
pub const RELIEF_GAIN: f64 = 0.15;

/// Confidence in a finding that a trial confirmed.
pub const TRIAL_CONFIDENCE: f64 = 0.95;

/// Confidence in a finding that follows from the model alone.
pub const MODELLED_CONFIDENCE: f64 = 0.7;

/// Confidence in the nearest limit where none was reached.
pub const NEAREST_CONFIDENCE: f64 = 0.3;

/// A workload below this share of the capacity leaves room.
pub const HEADROOM_UTILISATION: f64 = 0.7;

/// A median below this share of the mean means that some connections wait while others are served again.
pub const UNFAIR_MEDIAN_SHARE: f64 = 2.0 / 3.0;

// === Findings: memory and files ===

/// Share of a memory limit from which on it is full: the kernel reclaims before it kills.
pub const MEMORY_LIMIT_FULL: f64 = 0.95;

/// Share of the machine's memory below which none is left.
pub const LOW_MEMORY_SHARE: f64 = 0.1;

/// Share of the time that may pass waiting for memory.
/// systemd-oomd kills at 0.6 for 30 s; a service feels far less.
pub const MEMORY_STALL_SHARE: f64 = 0.05;

/// Pages from the disk that a request waits for, from which on a full memory thrashes.
pub const MAJOR_FAULTS_PER_REQUEST: f64 = 1.0;

/// Probes that must show growth before it is a leak.
pub const LEAK_MIN_PROBES: usize = 4;

/// The least growth of a request in the later probes, as a share of the median: less is a warm-up.
pub const LEAK_STEADINESS: f64 = 0.5;

/// Bytes by which heaps of managed languages grow before their first collection.
pub const HEAP_WARM_UP_BYTES: f64 = 64.0 * MIB;

/// Under a memory limit heaps grow by this share of what is left.
pub const HEAP_WARM_UP_SHARE: f64 = 0.25;

/// Resident growth is a leak only if this share of it was newly allocated.
/// A JVM reserves a heap at its start and fills it later.
pub const LEAK_ALLOCATED_SHARE: f64 = 0.5;

/// Seconds under full load: a leak that takes longer to exhaust the memory is ignored.
pub const EXHAUSTION_HORIZON_S: f64 = 3600.0;

/// Share of the files that a process may open, from which on they are short.
pub const FILES_FULL: f64 = 0.9;

/// Files of a request in flight: the generator's connection, its other end in the balancer, and one to the app.
pub const FILES_PER_REQUEST: u64 = 3;

/// Files for all else: event loops, logs, and what watches the instances.
pub const SPARE_FILES: u64 = 256;

/// Standard deviations above the mean that the number in flight reaches at times.
pub const IN_FLIGHT_PEAK_DEVIATIONS: f64 = 3.0;

// === Findings: confidence ===
// It is 0.5 where a finding begins, and grows to 0.99 at a value that is called clear here.

/// Share of the periods in which a quota stops an instance.
pub const CLEARLY_THROTTLED: f64 = 0.5;

/// Relative growth with more requests in flight, up to which an instance may be serial. One that is serial has none.
pub const SERIAL_GROWTH: f64 = 0.5;

/// A busiest thread at this share of a core may be full.
pub const THREAD_NEARLY_FULL: f64 = 0.75;

/// How much less than the least gain a second instance brings.
pub const CLEARLY_OVERSUBSCRIBED: f64 = 0.2;

/// How much less than [`FULL_GAIN`] a second instance brings.
pub const CLEARLY_SHARED: f64 = 0.6;

/// How much less than [`HEADROOM_UTILISATION`] is used.
pub const CLEARLY_HEADROOM: f64 = 0.5;

/// Share of the time in stalls for memory.
pub const CLEARLY_STALLED: f64 = 0.3;

/// Pages from the disk that a request waits for.
pub const CLEARLY_THRASHING: f64 = 10.0;

/// Share of failed requests, as a multiple of what the goal allows. That counts as at least a hundredth.
pub const CLEARLY_FAILING: f64 = 4.0;

/// The ratio at which instances are clearly uneven.
pub const CLEARLY_UNEVEN: f64 = 3.0;

/// What the instances alone would complete, over what the cores carry: where the cores limit perhaps, and clearly.
pub const CORES_LIMIT: (f64, f64) = (0.95, 1.5);

/// Confidence where processes were killed at a memory limit.
pub const KILLED_CONFIDENCE: f64 = 0.99;

/// Confidence in a limit of connections: where some failed and files are short, and where only one of both was seen.
pub const REFUSED_CONFIDENCE: (f64, f64) = (0.95, 0.8);

/// Confidence in a pool whose connections were seen, and in one that is only inferred.
pub const POOL_CONFIDENCE: (f64, f64) = (0.9, 0.7);

// === Recommendations ===

/// The curve bends where a further instance adds a smaller share of what the first one does.
pub const BEND_GAIN: f64 = 0.5;

/// Something is shared where a further instance adds a smaller share of what one alone does.
pub const SHARED_GAIN: f64 = 0.5;

/// Users who get this share of the most that they can ask for are satisfied.
pub const SATISFIED_USERS: f64 = 0.97;

/// A limit at more than this multiple of the load is not reported, because the model is not known so far
/// out.
pub const NEXT_LIMIT_REACH: f64 = 3.0;

/// Arrivals that differ from the rate by a larger share by chance are mentioned.
pub const OFFERED_DEVIATION: f64 = 0.05;

// === Costs ===

/// Costs that differ by a smaller share are the same: two runs of one setting differ as much.
pub const SAME_COST: f64 = 0.05;

/// Instances that use a smaller share of their cores leave some of them unused.
pub const USED_CORES: f64 = 0.85;

/// Share of its time from which on a thread or a machine has no more to give.
pub const COST_THREAD_FULL: f64 = 0.9;

/// Share of a machine's CPU that is planned with: near all of it, queues get long.
pub const PLANNED_UTILISATION: f64 = 0.7;
