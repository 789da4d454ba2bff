//! What the model does not know of response times: by how much those of a measured count were longer.
//!
//! A core serves the requests in its own queue while the next one idles, a sleeping one takes its time to
//! wake: what is left out of the model at one count is left out at its neighbours too. So the difference
//! of the logarithms is taken over, less what chance has in it.

use serde::Serialize;

use crate::goal::{Goal, Measured};
use crate::model::Model;
use crate::prediction::expect;
use crate::response::Response;

/// Factors on the percentiles that the model predicts for a count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Stretch {
    /// The count at which it was measured.
    pub instances: usize,
    /// On the median.
    pub p50: f64,
    /// On the 95th percentile.
    pub p95: f64,
    /// On the 99th percentile.
    pub p99: f64,
}

/// The part of a difference that a second measurement shows again, in sweeps of fifteen apps.
const LASTING: f64 = 0.7;
/// More is nothing that the neighbours have in common.
const MOST: f64 = 2.0;

impl Stretch {
    /// At each count whose last measurement says something of it; the model must know none yet.
    pub(crate) fn all(model: &Model, goal: &Goal, measured: &[Measured]) -> Vec<Stretch> {
        let is_last = |i: usize| {
            measured[i + 1..].iter().all(|later| later.instances != measured[i].instances)
        };
        let last = measured.iter().enumerate().filter(|(i, _)| is_last(*i)).map(|(_, m)| m);
        last.filter_map(|m| Stretch::of(model, goal, m)).collect()
    }

    fn of(model: &Model, goal: &Goal, measured: &Measured) -> Option<Stretch> {
        if !goal.is_carried_in(measured) {
            return None;
        }
        let predicted = expect(model, &goal.workload, measured.instances).response?;
        let factor = |measured: Option<f64>, predicted: f64| {
            let ratio = measured.filter(|time| *time > 0.0)? / predicted;
            Some(ratio.clamp(1.0 / MOST, MOST).powf(LASTING))
        };
        let p95 = factor(measured.p95, predicted.p95)?;
        let p50 = factor(measured.p50, predicted.p50).unwrap_or(p95);
        let p99 = factor(measured.p99, predicted.p99).unwrap_or(p95);
        Some(Stretch { instances: measured.instances, p50, p95, p99 })
    }

    /// As the nearest count was found to be.
    pub(crate) fn apply(all: &[Stretch], instances: usize, response: Response) -> Response {
        let nearest = all.iter().min_by_key(|s| (s.instances.abs_diff(instances), s.instances));
        nearest.map_or(response, |s| {
            let p50 = s.p50 * response.p50;
            let p95 = (s.p95 * response.p95).max(p50);
            let p99 = (s.p99 * response.p99).max(p95);
            Response { p50, p95, p99, ..response }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::tests::{measured, open};
    use crate::model::tests::{model, saturation};

    /// 20 ms each, measured at 4 instances with half more time than predicted, and at 5 as predicted.
    fn stretched() -> (Model, Model, Goal) {
        let mut plain = model(1, 0.02, 0.001, 2.0);
        plain.fit(&[saturation(2, 100.0, 0.001, 0.1)]);
        let goal = open(100.0, 0.1);
        let time = |n| expect(&plain, &goal.workload, n).response.unwrap().p95;
        let seen = |n, p95| Measured { p50: None, p99: None, ..measured(n, p95) };
        let mut fitted = plain.clone();
        fitted.stretch(&goal, &[seen(5, time(5)), seen(4, 1.5 * time(4))]);
        (plain, fitted, goal)
    }

    #[test]
    fn what_one_count_took_longer_its_neighbours_do() {
        let (plain, fitted, goal) = stretched();
        let ratio = |n| {
            let p95 = |m| expect(m, &goal.workload, n).response.unwrap().p95;
            p95(&fitted) / p95(&plain)
        };
        let part = 1.5_f64.powf(LASTING);
        for (count, expected) in [(3, part), (4, part), (5, 1.0), (9, 1.0)] {
            assert!((ratio(count) - expected).abs() < 1e-6, "{count}: {}", ratio(count));
        }
    }

    #[test]
    fn percentiles_stay_in_their_order_and_throughput_as_it_was() {
        let (plain, fitted, goal) = stretched();
        let p = expect(&fitted, &goal.workload, 4);
        assert_eq!(p.throughput, expect(&plain, &goal.workload, 4).throughput);
        let r = p.response.unwrap();
        assert!(r.p50 <= r.p95 && r.p95 <= r.p99, "{r:?}");
    }

    // Where more is sent than completed the times are those of a queue that grew for as long as it was watched.
    #[test]
    fn an_overload_says_nothing() {
        let (plain, _, goal) = stretched();
        let mut fitted = plain.clone();
        fitted.stretch(&goal, &[Measured { throughput: 80.0, ..measured(4, 0.5) }]);
        assert_eq!(fitted, plain);
    }
}
