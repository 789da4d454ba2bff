//! What is drawn of a plan. Absent stays absent: it is never 0, and nothing joins across it.

use crate::document::plan::{Plan, Predicted, Purpose};
use crate::document::verdict::Verdict;

pub struct Curve {
    /// By count of instances, rising.
    pub predicted: Vec<(usize, Predicted)>,
    pub measured: Vec<Measured>,
    pub goal_rate: Option<f64>,
    pub goal_p95: Option<f64>,
    pub recommended: Option<Recommended>,
    pub next_limit: Option<(usize, String)>,
}

/// One measurement of the goal's workload.
pub struct Measured {
    pub instances: usize,
    pub throughput: f64,
    /// ms.
    pub p95: Option<f64>,
    pub verdict: Verdict,
}

/// The answer, and the smallest and largest count that the model allows.
#[derive(Clone, Copy)]
pub struct Recommended {
    pub instances: usize,
    pub low: usize,
    pub high: usize,
}

impl Curve {
    /// Nothing of a plan that has none: without a workload no count is predicted.
    pub fn of(plan: &Plan) -> Option<Curve> {
        let mut predicted: Vec<_> =
            plan.curve.iter().map(|point| (point.instances, point.predicted)).collect();
        predicted.sort_by_key(|(instances, _)| *instances);
        predicted.first()?;
        let answer = plan.recommendation.as_ref();
        let next = answer.and_then(|r| r.next_limit);
        Some(Curve {
            predicted,
            measured: measured(plan),
            goal_rate: plan.goal.rate,
            goal_p95: plan.goal.p95_ms,
            recommended: answer.map(|r| Recommended {
                instances: r.instances,
                low: r.low,
                high: r.high,
            }),
            next_limit: next.map(|next| (next.at_instances, words(&next.kind.to_string()))),
        })
    }

    pub fn first(&self) -> usize {
        self.predicted.first().map_or(1, |(instances, _)| *instances)
    }

    pub fn last(&self) -> usize {
        self.predicted.last().map_or(1, |(instances, _)| *instances)
    }

    /// Beyond the largest count that was measured, the model speaks alone.
    pub fn measured_to(&self) -> usize {
        self.measured.iter().map(|m| m.instances).max().unwrap_or(0)
    }

    pub fn has(&self, verdict: Verdict) -> bool {
        self.measured.iter().any(|m| m.verdict == verdict)
    }

    /// Counts at which the queue grows without end, so that there is no p95.
    pub fn endless(&self) -> impl Iterator<Item = usize> {
        self.predicted.iter().filter(|(_, p)| p.p95_ms.is_none()).map(|(instances, _)| *instances)
    }
}

/// Each probe of the goal; of a plan without probes, what its curve says was measured.
fn measured(plan: &Plan) -> Vec<Measured> {
    let probes = plan.probes.iter().filter(|probe| probe.purpose == Purpose::Goal);
    let measured: Vec<Measured> = probes
        .map(|probe| Measured {
            instances: probe.instances,
            throughput: probe.throughput,
            p95: probe.latency_ms.p95,
            verdict: probe.verdict,
        })
        .collect();
    if !measured.is_empty() {
        return measured;
    }
    let points = plan.curve.iter().filter_map(|point| Some((point.instances, point.measured?)));
    points
        .map(|(instances, m)| Measured {
            instances,
            throughput: m.throughput,
            p95: m.p95_ms,
            verdict: Verdict::Valid,
        })
        .collect()
}

/// A kind of limit as words: `cpu_bound` as "CPU bound".
fn words(kind: &str) -> String {
    let words = kind.replace('_', " ");
    words.strip_prefix("cpu").map_or(words.clone(), |rest| format!("CPU{rest}"))
}
