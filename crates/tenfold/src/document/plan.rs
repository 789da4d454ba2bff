//! The answer as one value, `tenfold/plan/1`: text, JSON and history are renderings of it.
//!
//! Times in milliseconds, rates in requests a second, CPU in cores; absent is null, never 0.

use capacity::balancing::CentralQueue;
use capacity::finding::result::Details;
use capacity::{Change, InstanceWork, Kind, ModelInputs, NextLimit};
use serde::{Deserialize, Serialize};

use super::app::AppSettings;
use super::cost::Cost;
use super::idle_connections::IdleConnections;
use super::resources::{CpuCores, Limited, Limits, Machine};
use super::times::{Times, to_ms};
use super::verdict::Verdict;
use crate::words;

/// The schema's name and version.
pub const SCHEMA: &str = "tenfold/plan/1";

/// A plan, whole or as far as it got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Plan {
    pub schema: String,
    /// RFC 3339.
    pub started_at: String,
    pub duration_s: f64,
    pub command: Vec<String>,
    /// How it was run beside its command. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(type = "unknown", optional))]
    pub app: Option<AppSettings>,
    /// The command that measures it again, without secrets. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub invocation: Option<Vec<String>>,
    /// Method and path of what is sent, without secrets. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub request: Option<String>,
    pub machine: Machine,
    /// Limits of each instance.
    pub limits: Option<Limits>,
    /// The balancer behind which it was measured, where that is not Tenfold's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub balancer: Option<Balancer>,
    pub goal: Goal,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
    /// `k`: requests that an instance can usefully hold at once, if that was found.
    pub slots: Option<usize>,
    /// What a balancer with a queue gave it, and should give it: a little more where requests are short.
    pub balancer_slots: Option<usize>,
    /// Whether connections to an instance may be kept, if that was found. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub idle_connections: Option<IdleConnections>,
    pub probes: Vec<Probe>,
    /// What the model was fitted to, in seconds and not rounded. Without a workload
    /// its goal is a single user.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub basis: Option<ModelInputs>,
    pub curve: Vec<Point>,
    pub findings: Vec<Finding>,
    /// What was changed to tell explanations apart, and what it showed.
    pub interventions: Vec<Trial>,
    pub recommendation: Option<Recommendation>,
    /// The answer where no workload was given, and so no recommendation.
    pub capacity: Option<InstanceCapacity>,
    /// Whether what speaks against the measurements may change the recommendation, so that it is the nearest that
    /// is known and no answer.
    pub undecided: bool,
    /// What else was noticed: where model and measurement disagreed, why it ended early.
    pub notes: Vec<String>,
    /// Why no more was measured.
    pub stop: Option<Stop>,
    /// What the recommendation costs, if that was asked.
    pub cost: Option<Cost>,
}

/// Another balancer than Tenfold's own, with the settings that `tenfold up` gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Balancer {
    /// nginx or HAProxy.
    pub program: String,
    pub version: String,
    /// How it spreads requests, in its own words.
    pub policy: String,
    pub threads: usize,
    /// What it costs, where an instance was measured.
    pub cost: Option<BalancingCost>,
}

/// What a balancer costs beside Tenfold's own queue, under the goal's workload. Without a workload, or where that was
/// not measured, it is one instance at its most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BalancingCost {
    /// The count at which it was measured: the answer's, or else the nearest.
    pub instances: usize,
    pub behind: Balanced,
    /// Behind Tenfold's own queue, if there was time.
    pub built_in: Option<Balanced>,
    /// All of it in a sentence.
    pub text: String,
}

/// Answers through a balancer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Balanced {
    pub throughput: f64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// CPU of the balancer in one request (us).
    pub cpu_us: Option<f64>,
    /// Whether nothing speaks against the measurement.
    pub valid: bool,
}

/// One diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Finding {
    pub kind: Kind,
    /// How clearly the numbers show it: 0.5 at the threshold, towards 1 far beyond it.
    pub confidence: f64,
    /// The numbers, in a sentence.
    pub evidence: String,
    /// What to do about it, in a sentence.
    pub remedy: String,
    /// What each instance did, where they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<InstanceFigures>>"))]
    pub by_instance: Vec<InstanceFigures>,
}

/// What one of several instances did while all of them were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InstanceFigures {
    /// Its number, from 1.
    pub instance: usize,
    pub requests: u64,
    pub errors: u64,
    /// Mean time of a request in it, without the queue.
    pub service_ms: f64,
    /// CPU time of a request, where it is known.
    pub cpu_ms: Option<f64>,
}

/// A change that tells explanations apart, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Trial {
    pub change: Change,
    /// Instances that ran.
    pub instances: usize,
    /// Requests a second before.
    pub before: f64,
    /// And after.
    pub after: f64,
    /// What it speaks for.
    pub shows: Kind,
    /// All of it in a sentence.
    pub text: String,
}

/// How many instances to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Recommendation {
    pub instances: usize,
    /// Smallest count that the interval of the model allows.
    pub low: usize,
    /// Largest count that it allows.
    pub high: usize,
    pub goal_met: bool,
    /// Whether what disturbed the measurements may have changed the answer. Earlier documents do not tell.
    #[serde(default)]
    pub could_differ: bool,
    pub limited_by: Kind,
    pub next_limit: Option<NextLimit>,
    /// All of it in words.
    pub reason: String,
}

/// What one instance and two carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InstanceCapacity {
    /// The most that one instance completed (1/s).
    pub one: f64,
    /// What two completed together (1/s), where they were measured.
    pub two: Option<f64>,
    /// Whether a second instance completes more, where that is known.
    pub second_helps: Option<bool>,
    pub limited_by: Kind,
    /// All of it in words.
    pub reason: String,
}

/// Why the measuring ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Stop {
    pub reason: StopReason,
    /// The reason in a sentence.
    pub explanation: String,
}

/// See [`Stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
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
    /// That many instances did not start, or died while measured.
    Unmeasurable,
    /// A signal came.
    Interrupted,
}

/// The goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Goal {
    pub rate: Option<f64>,
    pub users: Option<usize>,
    pub think_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_error_ratio: f64,
}

/// Why a probe was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
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
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Probe {
    pub purpose: Purpose,
    pub instances: usize,
    pub users: Option<usize>,
    pub rate: Option<f64>,
    pub duration_s: f64,
    pub requests: u64,
    pub errors: u64,
    pub throughput: f64,
    /// Requests that were sent a second, by chance more or fewer than the rate.
    pub offered: Option<f64>,
    pub latency_ms: Times,
    pub service_ms: Times,
    pub queue_ms: Times,
    pub cpu_cores: CpuCores,
    /// Resident memory of the largest instance.
    pub rss_bytes: Option<u64>,
    /// The instance that its limits held most.
    pub limited: Option<Limited>,
    /// Processes of instances that the kernel killed at their memory limit meanwhile.
    pub memory_kills: u64,
    pub verdict: Verdict,
    pub verdict_reasons: Vec<String>,
}

/// One count on the curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Point {
    pub instances: usize,
    pub predicted: Predicted,
    pub measured: Option<Measured>,
    /// What the prediction rests on beside the model, where that is doubtful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub assumes: Option<Assumption>,
}

/// What a prediction takes for granted, and what was measured speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Assumption {
    /// That all instances are like the first one. Those that ran differ.
    EqualInstances,
}

/// What the model says of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Predicted {
    pub throughput: f64,
    pub low: f64,
    pub high: f64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    /// The interval of the p95; without an upper end the queue may grow without end.
    pub p95_low_ms: Option<f64>,
    /// See `p95_low_ms`.
    pub p95_high_ms: Option<f64>,
}

/// What was measured of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Measured {
    pub throughput: f64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
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

impl Point {
    /// Marks the counts of several instances that are predicted from instances that differ.
    pub fn mark_extrapolated(curve: &mut [Point]) {
        let is_predicted = |point: &&mut Point| point.instances > 1 && point.measured.is_none();
        for point in curve.iter_mut().filter(is_predicted) {
            point.assumes = Some(Assumption::EqualInstances);
        }
    }
}

impl BalancingCost {
    pub fn new(cost: &capacity::balancing::BalancingCost, text: String) -> BalancingCost {
        BalancingCost {
            instances: cost.behind.measured.instances,
            behind: Balanced::from(&cost.behind),
            built_in: match &cost.queue {
                CentralQueue::Measured(queue) => Some(Balanced::from(queue)),
                CentralQueue::NotMeasured | CentralQueue::NoWorkload => None,
            },
            text,
        }
    }
}

impl From<&capacity::balancing::Balanced> for Balanced {
    fn from(balanced: &capacity::balancing::Balanced) -> Balanced {
        let measured = &balanced.measured;
        Balanced {
            throughput: measured.throughput,
            p50_ms: measured.p50.map(to_ms),
            p95_ms: measured.p95.map(to_ms),
            p99_ms: measured.p99.map(to_ms),
            cpu_us: balanced.cpu.map(|seconds| (seconds * 1e7).round() / 10.0),
            valid: balanced.is_valid,
        }
    }
}

impl From<&capacity::Finding> for Finding {
    fn from(finding: &capacity::Finding) -> Finding {
        Finding {
            kind: finding.kind,
            confidence: finding.confidence,
            evidence: words::finding::evidence(finding),
            remedy: words::finding::remedy(finding.remedy),
            by_instance: match &finding.details {
                Details::Uneven(uneven) => uneven.all.iter().map(InstanceFigures::from).collect(),
                _ => Vec::new(),
            },
        }
    }
}

impl From<&InstanceWork> for InstanceFigures {
    fn from(work: &InstanceWork) -> InstanceFigures {
        InstanceFigures {
            instance: work.instance,
            requests: work.requests,
            errors: work.failed,
            service_ms: to_ms(work.service),
            cpu_ms: work.cpu.map(to_ms),
        }
    }
}

impl From<&capacity::Trial> for Trial {
    fn from(trial: &capacity::Trial) -> Trial {
        let capacity::Trial { change, instances, before, after, shows } = *trial;
        Trial { change, instances, before, after, shows, text: words::trial::describe(trial) }
    }
}

impl From<&capacity::Recommendation> for Recommendation {
    fn from(r: &capacity::Recommendation) -> Recommendation {
        Recommendation {
            instances: r.instances,
            low: r.low,
            high: r.high,
            goal_met: r.goal_met,
            could_differ: r.could_differ,
            limited_by: r.limited_by,
            next_limit: r.next_limit,
            reason: words::recommendation::reason(r),
        }
    }
}

impl From<&capacity::InstanceCapacity> for InstanceCapacity {
    fn from(answer: &capacity::InstanceCapacity) -> InstanceCapacity {
        InstanceCapacity {
            one: answer.one,
            two: answer.two,
            second_helps: answer.second_helps,
            limited_by: answer.limited_by,
            reason: words::capacity::reason(answer),
        }
    }
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
            assumes: None,
        }
    }
}
