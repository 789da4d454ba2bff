//! What the model does not know of response times: by how much those of a measured count were longer.
//!
//! A core serves the requests in its own queue while the next one idles, a sleeping one takes its time to
//! wake: what is left out of the model at one count is left out at its neighbours too. So the difference
//! of the logarithms is taken over, less what chance has in it.
//!
//! Instances with little to do are the other reason: cores sleep, caches are cold, and timers fire late, so that
//! a request takes several times as long as in a ladder that never rests. That lasts, and all counts with
//! as little to do have it in common: there the whole difference counts.

use serde::Serialize;

use crate::goal::{Goal, Measured};
use crate::model::Model;
use crate::prediction::{Prediction, expect};
use crate::response::Response;

/// Percentiles that were measured at a count, over those that the model predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Stretch {
    /// The count at which it was measured.
    pub instances: usize,
    /// Of the median.
    pub p50: f64,
    /// Of the 95th percentile.
    pub p95: f64,
    /// Of the 99th percentile.
    pub p99: f64,
    /// Whether the instances had little to do.
    pub is_idle: bool,
}

/// The part of a difference that a second measurement shows again, in sweeps of fifteen apps.
const LASTING: f64 = 0.7;
/// More is nothing that the neighbours have in common.
const MOST: f64 = 2.0;
/// Instances have little to do below this share of their capacity: hardly any request meets another.
const IDLE: f64 = 0.2;

/// Whether so many instances have little to do with this throughput.
fn is_idle(model: &Model, instances: usize, throughput: f64) -> bool {
    throughput < IDLE * model.capacity(instances)
}

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
        let is_idle = is_idle(model, measured.instances, measured.throughput);
        let ratio = |measured: Option<f64>, predicted: f64| {
            measured.filter(|time| *time > 0.0).map(|time| time / predicted)
        };
        let p50 = ratio(measured.p50, predicted.p50);
        // A probe at a low rate may be too short for a p95.
        let p95 = ratio(measured.p95, predicted.p95).or(p50.filter(|_| is_idle))?;
        let p99 = ratio(measured.p99, predicted.p99).unwrap_or(p95);
        let p50 = p50.unwrap_or(p95);
        Some(Stretch { instances: measured.instances, p50, p95, p99, is_idle })
    }

    /// As the nearest count was found to be.
    pub(crate) fn apply(
        all: &[Stretch],
        model: &Model,
        instances: usize,
        prediction: Prediction,
    ) -> Prediction {
        let nearest = all.iter().min_by_key(|s| (s.instances.abs_diff(instances), s.instances));
        let Some(stretch) = nearest else { return prediction };
        let is_whole = stretch.is_idle && is_idle(model, instances, prediction.throughput);
        let stretched = |r: Option<Response>| r.map(|r| stretch.applied(r, is_whole));
        Prediction {
            response: stretched(prediction.response),
            fastest: stretched(prediction.fastest),
            slowest: stretched(prediction.slowest),
            ..prediction
        }
    }

    /// The whole difference, or what of it a neighbour has too.
    fn applied(&self, response: Response, is_whole: bool) -> Response {
        let factor = |ratio: f64| match is_whole {
            true => ratio,
            false => ratio.clamp(1.0 / MOST, MOST).powf(LASTING),
        };
        let p50 = factor(self.p50) * response.p50;
        let p95 = (factor(self.p95) * response.p95).max(p50);
        let p99 = (factor(self.p99) * response.p99).max(p95);
        Response { p50, p95, p99, ..response }
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

    // Express at 10 requests/s: 0.41 ms of a busy ladder, 1.13 of cores that sleep.
    #[test]
    fn with_little_to_do_every_count_is_as_slow_as_the_measured_one() {
        let plain = model(1, 0.0004, 0.0003, 2.0);
        let goal = open(10.0, 0.1);
        let p95 = |m: &Model, n| expect(m, &goal.workload, n).response.unwrap().p95;
        let probe = |p50, p95| Measured {
            p50: Some(p50),
            p95,
            p99: None,
            throughput: 10.2,
            offered: 10.2,
            ..measured(1, 0.0)
        };
        let mut fitted = plain.clone();
        fitted.stretch(&goal, &[probe(0.00113, Some(0.0026))]);
        for n in [1, 2, 10] {
            assert!((p95(&fitted, n) - 0.0026).abs() < 1e-5, "{n}: {}", p95(&fitted, n));
        }
        let mut without_p95 = plain.clone();
        without_p95.stretch(&goal, &[probe(0.0012, None)]);
        let ratio = p95(&without_p95, 1) / p95(&plain, 1);
        assert!((ratio - 3.0).abs() < 0.05, "as the median: {ratio}");
    }

    // One of two instances with half of the load is busy: nothing sleeps there.
    #[test]
    fn a_busy_count_does_not_pay_for_sleeping_cores() {
        let mut fitted = model(1, 0.02, 0.001, 2.0);
        let goal = open(15.0, 0.2);
        let p50 = |m: &Model, n| expect(m, &goal.workload, n).response.unwrap().p50;
        let (one, three) = (p50(&fitted, 1), p50(&fitted, 3));
        let slow = Measured { throughput: 15.0, offered: 15.0, ..measured(4, 0.06) };
        fitted.stretch(&goal, &[slow]);
        assert!(p50(&fitted, 3) > 1.5 * three, "{}", p50(&fitted, 3));
        assert!(p50(&fitted, 1) < 1.7 * one, "{}", p50(&fitted, 1));
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
