//! The answer as one value, `tenfold/plan/1`: text, JSON and history are renderings of it.
//!
//! Times in milliseconds, rates in requests a second, CPU in cores; absent is null, never 0.

use std::cmp::Ordering;

use capacity::price::CpuKind;
use capacity::{Basis, Finding, InstanceCapacity, Kind, Recommendation, Trial, Usl};
use observe::TargetUsage;
use serde::{Deserialize, Serialize};

use crate::prices::Origin;

/// The schema's name and version.
pub const SCHEMA: &str = "tenfold/plan/1";

/// A plan, whole or as far as it got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub schema: String,
    /// RFC 3339.
    pub started_at: String,
    pub duration_s: f64,
    pub command: Vec<String>,
    pub machine: Machine,
    /// What each instance was held to.
    #[serde(default)]
    pub limits: Option<Limits>,
    pub goal: Goal,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
    /// `k`: requests that an instance can usefully hold at once, if that was found.
    pub slots: Option<usize>,
    /// What the balancer gave it, and should give it: a little more where requests are short.
    pub balancer_slots: Option<usize>,
    pub probes: Vec<Probe>,
    /// What the model was fitted to, in seconds and not rounded; earlier documents do not tell. Without a workload
    /// its goal is a single user.
    #[serde(default)]
    pub basis: Option<Basis>,
    pub curve: Vec<Point>,
    pub findings: Vec<Finding>,
    /// What was changed to tell explanations apart, and what it showed; earlier documents do not tell.
    #[serde(default)]
    pub interventions: Vec<Trial>,
    pub recommendation: Option<Recommendation>,
    /// The answer where no workload was given, and so no recommendation; earlier documents do not tell.
    #[serde(default)]
    pub capacity: Option<InstanceCapacity>,
    /// Whether what speaks against the measurements may change the recommendation, so that it is the nearest that
    /// is known and no answer. Earlier documents do not tell.
    #[serde(default)]
    pub undecided: bool,
    /// What else was noticed: where model and measurement disagreed, why it ended early.
    pub notes: Vec<String>,
    /// Why no more was measured; earlier documents do not tell.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// What the Universal Scalability Law says, where at least three counts were measured at their limit.
    #[serde(default)]
    pub second_opinion: Option<Usl>,
    /// What the recommendation costs, if that was asked.
    pub cost: Option<Cost>,
}

/// Why the measuring ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    pub reason: StopReason,
    /// The same in a sentence.
    pub explanation: String,
}

/// See [`Stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer was measured; one instance less and one more, and what about it was not sure, as time allowed.
    Confirmed,
    /// Every count that was asked for was measured.
    Swept,
    /// One instance was measured, and two where they could be: there was no workload for more.
    Capacity,
    /// The next measurement would have cost more than the budget had left.
    Budget,
    /// Requests fail whatever the count.
    Failing,
    /// The goal's workload is more than can be sent from here.
    GeneratorBound,
    /// Measured twice, and not valid either time.
    Unsteady,
    /// So many instances did not start, or not run for as long as it takes.
    Unmeasurable,
    /// A signal came.
    Interrupted,
}

/// The machine that everything shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cores: f64,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
}

/// What an instance may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub cpus: Option<f64>,
    pub memory_bytes: Option<u64>,
}

/// What limits did to an instance, whoever set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limited {
    /// Quota in cores.
    pub cpus: Option<f64>,
    /// Share of the quota's periods in which it was used up and the instance stood still.
    pub throttled_ratio: Option<f64>,
    /// Seconds that it stood still for it, a second; several cores' waiting adds up.
    pub throttled_cores: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub memory_used_bytes: Option<u64>,
    /// Times a second that the memory limit was met, so that something had to be given back first.
    pub memory_hits: Option<f64>,
}

/// What was wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub rate: Option<f64>,
    pub users: Option<usize>,
    pub think_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_error_ratio: f64,
}

/// Whether a measurement can be trusted. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Valid,
    Suspect,
    Invalid,
}

/// Why a probe was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// One instance at a given concurrency, to find its slots.
    Ladder,
    /// Every slot busy, to find the capacity.
    Saturation,
    /// The goal's own workload, to confirm.
    Goal,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    pub purpose: Purpose,
    pub instances: usize,
    pub users: Option<usize>,
    pub rate: Option<f64>,
    pub duration_s: f64,
    pub requests: u64,
    pub errors: u64,
    pub throughput: f64,
    /// Requests that were sent a second, by chance more or fewer than the rate. Earlier documents have
    /// none.
    #[serde(default)]
    pub offered: Option<f64>,
    pub latency_ms: Times,
    pub service_ms: Times,
    pub queue_ms: Times,
    pub cpu_cores: CpuCores,
    /// Resident memory of the largest instance.
    #[serde(default)]
    pub rss_bytes: Option<u64>,
    /// The instance that its limits held most.
    #[serde(default)]
    pub limited: Option<Limited>,
    /// Processes of instances that the kernel killed at their memory limit meanwhile.
    #[serde(default)]
    pub memory_kills: u64,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
}

/// A distribution of times; a percentile is absent where the sample cannot carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    /// Earlier documents have none.
    #[serde(default)]
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Who used the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuCores {
    pub app: Option<f64>,
    pub balancer: Option<f64>,
    pub generator: Option<f64>,
    pub machine: Option<f64>,
}

/// One count on the curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub instances: usize,
    pub predicted: Predicted,
    pub measured: Option<Measured>,
}

/// What the model says of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    pub throughput: f64,
    pub low: f64,
    pub high: f64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    /// The interval of the p95; without an upper end the queue may grow without end.
    #[serde(default)]
    pub p95_low_ms: Option<f64>,
    /// See `p95_low_ms`.
    #[serde(default)]
    pub p95_high_ms: Option<f64>,
}

/// What was measured of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub throughput: f64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
}

/// The machines that hold a plan, and their price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub origin: Origin,
    pub needs: Needs,
    /// Of the balancer a month, where it is known.
    pub balancer_month: Option<f64>,
    /// Cheapest first: those with cores of one's own, then others.
    pub offers: Vec<Offer>,
}

/// What is set aside for each instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    pub instances: usize,
    pub cores_each: f64,
    pub cores_from: NeedsFrom,
    pub memory_bytes_each: u64,
    pub memory_from: NeedsFrom,
}

/// Where a need comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedsFrom {
    /// The instance is held to it.
    Limit,
    /// It was seen to use so much, and gets some room above.
    Measured,
}

/// The plan on machines of one type, one more of them than must run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    pub vendor: String,
    pub region: String,
    pub machine: String,
    /// As the vendor counts.
    pub cores: f64,
    pub memory_gib: f64,
    pub cpu_kind: CpuKind,
    pub month_each: f64,
    pub instances_each: usize,
    pub machines: usize,
    /// Of all machines and the balancer.
    pub month: f64,
    pub month_per_thousand: Option<f64>,
}

/// Reasons, each once: of those that differ in their numbers alone, the first is enough.
pub fn distinct<'a>(reasons: impl Iterator<Item = &'a String>) -> Vec<String> {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let mut distinct: Vec<String> = Vec::new();
    for reason in reasons {
        if !distinct.iter().any(|known| words(known) == words(reason)) {
            distinct.push(reason.clone());
        }
    }
    distinct
}

impl Plan {
    /// The answer in words, if there is any.
    pub fn answer(&self) -> Option<&str> {
        let recommended = self.recommendation.as_ref().map(|r| &r.reason);
        recommended.or(self.capacity.as_ref().map(|c| &c.reason)).map(String::as_str)
    }

    /// Whether the goal is met, or what was asked for without a goal is known.
    pub fn is_met(&self) -> bool {
        match (&self.recommendation, &self.capacity) {
            (Some(recommendation), _) => recommendation.goal_met,
            (None, Some(capacity)) => capacity.limited_by != Kind::Failing,
            (None, None) => false,
        }
    }
}

// === conversions from the science and the load, seconds to milliseconds ===

/// Milliseconds to three digits after the point: microseconds are what was measured.
pub fn to_ms(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

impl Machine {
    /// What the plan tells of the machine.
    pub fn of(machine: &observe::Machine) -> Machine {
        Machine {
            cores: machine.cores as f64,
            memory_bytes: machine.memory_bytes,
            kernel: machine.kernel.clone(),
        }
    }
}

impl Limits {
    /// Nothing when there are none.
    pub fn of(limits: &fleet::Limits) -> Option<Limits> {
        let cpus = limits.cpus.map(fleet::Cpus::cores);
        (!limits.is_empty()).then_some(Limits { cpus, memory_bytes: limits.memory })
    }
}

impl Limited {
    /// Of one instance in an interval; nothing when nothing limits it.
    pub fn of(usage: &TargetUsage, seconds: f64) -> Option<Limited> {
        let (quota, memory) = (usage.throttling, usage.memory.as_ref());
        let ratio = |t: observe::Throttling| {
            (t.periods > 0).then(|| t.throttled_periods as f64 / t.periods as f64)
        };
        (quota.is_some() || memory.is_some()).then(|| Limited {
            cpus: quota.map(|q| q.quota_cores),
            throttled_ratio: quota.and_then(ratio).map(to_thousandths),
            throttled_cores: quota.map(|q| to_thousandths(q.throttled_seconds / seconds)),
            memory_bytes: memory.map(|m| m.limit_bytes),
            memory_used_bytes: memory.map(|m| m.used_bytes),
            memory_hits: memory.map(|m| to_thousandths(m.hits as f64 / seconds)),
        })
    }
}

impl Limited {
    /// The instance that was throttled most; of those that were not, the fullest.
    pub fn most<'a>(
        usages: impl Iterator<Item = &'a TargetUsage>,
        seconds: f64,
    ) -> Option<Limited> {
        let key = |l: &Limited| (l.throttled_ratio.unwrap_or(0.0), l.memory_used_bytes);
        let limited = usages.filter_map(|usage| Limited::of(usage, seconds));
        limited.max_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal))
    }
}

fn to_thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl From<&capacity::Point> for Point {
    fn from(point: &capacity::Point) -> Point {
        let p = point.predicted;
        Point {
            instances: point.instances,
            predicted: Predicted {
                throughput: p.throughput,
                low: p.low,
                high: p.high,
                p50_ms: p.response.map(|r| to_ms(r.p50)),
                p95_ms: p.response.map(|r| to_ms(r.p95)),
                p95_low_ms: p.fastest.map(|r| to_ms(r.p95)),
                p95_high_ms: p.slowest.map(|r| to_ms(r.p95)),
            },
            measured: point.measured.map(|m| Measured {
                throughput: m.throughput,
                p50_ms: m.p50.map(to_ms),
                p95_ms: m.p95.map(to_ms),
            }),
        }
    }
}

impl From<load::Verdict> for Verdict {
    fn from(verdict: load::Verdict) -> Verdict {
        match verdict {
            load::Verdict::Valid => Verdict::Valid,
            load::Verdict::Suspect => Verdict::Suspect,
            load::Verdict::Invalid => Verdict::Invalid,
        }
    }
}
