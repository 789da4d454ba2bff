//! What another balancer costs beside one central queue in front of the same instances.

use serde::{Deserialize, Serialize};

use crate::calibration::SAME_THROUGHPUT;
use crate::goal::{Goal, Measured};

/// The goal's workload through a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balanced {
    /// What came of the workload.
    pub measured: Measured,
    /// CPU seconds of the balancer in one request, where they were seen.
    pub cpu: Option<f64>,
    /// Whether nothing speaks against the measurement.
    pub is_valid: bool,
}

/// The same instances behind one central queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum CentralQueue {
    /// What came of the same workload.
    Measured(Balanced),
    /// There was no time, or it could not be measured.
    NotMeasured,
    /// There is no workload for which it would be measured.
    NoWorkload,
}

/// What a balancer costs beside a central queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalancingCost {
    /// Behind the balancer.
    pub behind: Balanced,
    /// Behind the queue.
    pub queue: CentralQueue,
}

/// A percentile of the response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Percentile {
    /// The 95th.
    P95,
    /// The 99th.
    P99,
}

/// The two side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideBySide {
    /// What is compared.
    pub percentile: Percentile,
    /// Response times (s): behind the balancer, and behind the queue.
    pub times: (f64, f64),
    /// Requests a second, where they differ.
    pub throughputs: Option<(f64, f64)>,
    /// CPU seconds of the queue in one request, where they were seen.
    pub queue_cpu: Option<f64>,
    /// Whether nothing speaks against either measurement.
    pub is_valid: bool,
}

impl BalancingCost {
    /// Compares the percentile of the goal. Without one it is the highest that both samples carry.
    pub fn side_by_side(&self, goal: &Goal) -> Option<SideBySide> {
        let CentralQueue::Measured(queue) = self.queue else { return None };
        let (a, b) = (self.behind.measured, queue.measured);
        let both = |percentile| Some((percentile, at(&a, percentile).zip(at(&b, percentile))?));
        let order = match (goal.p95, goal.p99) {
            (Some(_), None) => [Percentile::P95, Percentile::P99],
            _ => [Percentile::P99, Percentile::P95],
        };
        let (percentile, times) = order.into_iter().find_map(both)?;
        let differ =
            (a.throughput - b.throughput).abs() > SAME_THROUGHPUT * a.throughput.max(b.throughput);
        Some(SideBySide {
            percentile,
            times,
            throughputs: differ.then_some((a.throughput, b.throughput)),
            queue_cpu: queue.cpu,
            is_valid: self.behind.is_valid && queue.is_valid,
        })
    }
}

fn at(measured: &Measured, percentile: Percentile) -> Option<f64> {
    match percentile {
        Percentile::P95 => measured.p95,
        Percentile::P99 => measured.p99,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::workload::Workload;

    fn balanced(throughput: f64, p95: f64, p99: Option<f64>) -> Balanced {
        let measured = Measured {
            instances: 3,
            throughput,
            offered: throughput,
            errors: 0.0,
            p50: Some(p95 / 2.0),
            p95: Some(p95),
            p99,
            max: Some(1.0),
            duration: 5.0,
            slowdown: 1.0,
        };
        Balanced { measured, cpu: Some(4e-5), is_valid: true }
    }

    fn goal(p95: Option<f64>) -> Goal {
        let workload = Workload::Open { rate: 100.0, arrival_scv: 1.0 };
        Goal { workload, p95, p99: None, max_errors: 0.0 }
    }

    #[test]
    fn the_highest_common_percentile_is_compared_unless_the_goal_names_one() {
        let of = |p99| BalancingCost {
            behind: balanced(100.0, 0.15, Some(0.172)),
            queue: CentralQueue::Measured(balanced(99.0, 0.1, p99)),
        };
        let seen = of(Some(0.119)).side_by_side(&goal(None)).unwrap();
        assert_eq!((seen.percentile, seen.times), (Percentile::P99, (0.172, 0.119)));
        assert_eq!(seen.throughputs, None);
        let asked = of(Some(0.119)).side_by_side(&goal(Some(0.2))).unwrap();
        assert_eq!((asked.percentile, asked.times), (Percentile::P95, (0.15, 0.1)));
        let few = of(None).side_by_side(&goal(None)).unwrap();
        assert_eq!(few.percentile, Percentile::P95);
    }

    #[test]
    fn throughputs_are_told_where_they_differ() {
        let queue = CentralQueue::Measured(balanced(120.0, 0.1, None));
        let cost = BalancingCost { behind: balanced(100.0, 0.15, None), queue };
        let seen = cost.side_by_side(&goal(None)).unwrap();
        assert_eq!(seen.throughputs, Some((100.0, 120.0)));
        let alone = BalancingCost { queue: CentralQueue::NotMeasured, ..cost };
        assert_eq!(alone.side_by_side(&goal(None)), None);
    }
}
