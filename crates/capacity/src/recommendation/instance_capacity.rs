//! What one instance and two carry, where no workload says how many are needed.

use serde::{Deserialize, Serialize};

use crate::calibration::{MIN_GAIN, SLOWER_GAIN};
use crate::goal::Goal;
use crate::kind::Kind;
use crate::model::network::Model;
use crate::queueing::workload::Workload;
use crate::recommendation::search::{Bounds, Search};
use crate::words::rate;

/// The answer where no workload was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceCapacity {
    /// The most that one instance completed (1/s).
    pub one: f64,
    /// What two completed together (1/s), where they were measured.
    pub two: Option<f64>,
    /// Whether a second instance completes more, where that is known.
    pub second_helps: Option<bool>,
    /// What limits one instance.
    pub limited_by: Kind,
    /// All of it in words.
    pub reason: String,
}

const WHAT_TO_ADD: &str = "To learn how many instances you need, say how the app is used: add --users N --think 1s \
                           or --rate R, and --p95 TIME.";

/// The answer from the model, and from what `two` instances completed (1/s).
pub fn instance_capacity(model: &Model, bounds: &Bounds, two: Option<f64>) -> InstanceCapacity {
    // A single user asks for less than was measured anyway.
    let workload = Workload::Closed { users: 1, think: 0.0 };
    let goal = Goal { workload, p95: None, p99: None, max_errors: 0.0 };
    Search::new(model, &goal, bounds, &[]).instance_capacity(two)
}

impl Search<'_> {
    fn instance_capacity(&self, two: Option<f64>) -> InstanceCapacity {
        let one = self.model.ladder.peak();
        let limited_by = self.limit(1, false);
        let reason = self.failure().map_or_else(
            || format!("{}; {}. {WHAT_TO_ADD}", self.first(limited_by), self.second(two)),
            |failure| {
                format!(
                    "What one instance carries is not known: {failure}; mend that first, for more instances would \
                     fail as often."
                )
            },
        );
        let second_helps = self.second_gain(two).map(|gain| gain >= MIN_GAIN);
        InstanceCapacity { one, two, second_helps, limited_by, reason }
    }

    /// By which factor a second instance changes what is completed. Where no end of one was seen, two say nothing.
    fn second_gain(&self, two: Option<f64>) -> Option<f64> {
        let two = two.filter(|_| self.model.ladder.is_saturated())?;
        Some(two / self.model.ladder.peak())
    }

    fn first(&self, limited_by: Kind) -> String {
        let one = rate(self.model.ladder.peak());
        if !self.model.ladder.is_saturated() {
            return format!(
                "One instance carries {one} requests/s or more: its limit was not reached"
            );
        }
        let limit = self.limit_named(limited_by, 1, "");
        format!("One instance carries {one} requests/s, limited by {limit}")
    }

    fn second(&self, two: Option<f64>) -> String {
        let Some(carried) = two.map(rate) else {
            return match self.bounds {
                Bounds { max_instances: 1, .. } => {
                    "more than one was not allowed (--max-instances)"
                }
                Bounds { memory: Some(1), .. } => "no more than one fits into the memory",
                _ => "what two carry was not measured",
            }
            .to_owned();
        };
        match self.second_gain(two) {
            None => format!("two carried {carried} with twice as many requests at once"),
            Some(gain) if gain < SLOWER_GAIN => {
                format!("two carry {carried}, so a second would make it slower")
            }
            Some(gain) if gain < MIN_GAIN => {
                let why = match self.model.is_cpu_limited(2) {
                    true => ", for the cores are busy",
                    false if self.is_shared(1) => ", for the shared part is busy",
                    false => "",
                };
                format!("two carry {carried}, so a second would not help{why}")
            }
            Some(_) => format!("two carry {carried}, so a second helps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::evidence::Failing;
    use crate::queueing::service_shape::ServiceShape;
    use crate::testing::bounds;
    use crate::testing::ladder;
    use crate::testing::{model, saturation};

    #[test]
    fn a_second_instance_of_an_app_that_serves_one_request_at_a_time_helps() {
        let mut m = model(1, 0.02, 0.0001, 2.0);
        m.fit(&[saturation(2, 97.0, 0.0001, 0.1)]);
        let answer = instance_capacity(&m, &bounds(Kind::Serialized), Some(97.0));
        assert_eq!((answer.second_helps, answer.limited_by), (Some(true), Kind::Serialized));
        let said = "One instance carries 50.0 requests/s, limited by each instance serving one request at a time; two \
                    carry 97.0, so a second helps. To learn how many instances you need,";
        assert!(answer.reason.starts_with(said), "{}", answer.reason);
        assert!(answer.reason.contains("--users N --think 1s or --rate R"), "{}", answer.reason);
    }

    #[test]
    fn a_second_instance_on_a_full_core_does_not_help() {
        let mut m = model(1, 0.03, 0.03, 1.0);
        m.fit(&[saturation(2, 33.5, 0.03, 1.0)]);
        let answer = instance_capacity(&m, &bounds(Kind::CpuBound), Some(33.5));
        assert_eq!((answer.second_helps, answer.limited_by), (Some(false), Kind::CpuBound));
        let said = "two carry 33.5, so a second would not help, for the cores are busy.";
        assert!(answer.reason.contains(said), "{}", answer.reason);
    }

    #[test]
    fn of_an_instance_whose_limit_was_not_reached_a_second_says_nothing() {
        let one = saturation(1, 4612.0, 1.8e-4, 1.4);
        let rungs = ladder(&[(1, 2630.0), (2, 4612.0)]);
        let m = Model::new(rungs, one, ServiceShape::constant(), 2.0);
        let answer = instance_capacity(&m, &bounds(Kind::CpuBound), Some(6099.0));
        assert_eq!(answer.second_helps, None);
        let said = "carries 4612 requests/s or more: its limit was not reached; two carried 6099";
        assert!(answer.reason.contains(said), "{}", answer.reason);
    }

    #[test]
    fn without_a_second_it_is_said_why() {
        let m = model(1, 0.02, 0.0001, 2.0);
        let said = |bounds: &Bounds| instance_capacity(&m, bounds, None).reason;
        let allowed = Bounds { max_instances: 1, ..bounds(Kind::Serialized) };
        assert!(said(&allowed).contains("; more than one was not allowed (--max-instances)."));
        let full = Bounds { memory: Some(1), ..bounds(Kind::Serialized) };
        assert!(said(&full).contains("; no more than one fits into the memory."));
        let failing = Bounds { failing: Some(Failing::Requests(0.2)), ..allowed };
        assert!(
            said(&failing).contains("not known: 20 % of the requests fail without any overload")
        );
    }
}
