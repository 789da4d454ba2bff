//! What users see: throughput and response time of so many instances under a workload, with intervals.

use serde::Serialize;

use crate::calibration::{
    CARRIED_SHARE, IDLE_UTILISATION, MAX_STABLE_UTILISATION, PERCENTILE_DEVIATION,
};
use crate::goal::{Goal, Measured};
use crate::model::latency_correction::LatencyCorrection;
use crate::model::network::Model;
use crate::model::quota::Throttled;
use crate::queueing::queue::System;
use crate::queueing::response::Response;
use crate::queueing::throughput_table::ThroughputTable;
use crate::queueing::workload::Workload;
use crate::stats::resampling::Side;

/// What a number of instances will do. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Requests a second.
    pub throughput: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Response times; `None` where the queue grows without end.
    pub response: Option<Response>,
    /// Response times at the upper end of the throughput: the lower end of their interval.
    pub fastest: Option<Response>,
    /// Response times at the lower end of the throughput: the upper end of their interval.
    pub slowest: Option<Response>,
}

/// Predicts `instances` of the model under `workload`, with the interval of the answer.
pub fn predict(model: &Model, workload: &Workload, instances: usize) -> Prediction {
    let middle = expect(model, workload, instances);
    let low = expect(model.bound(instances, Side::Low), workload, instances);
    let high = expect(model.bound(instances, Side::High), workload, instances);
    // If instances could do more than users ask for, throughput depends on the time of a request, not on
    // the capacity.
    let is_up_to_users =
        matches!(workload, Workload::Closed { .. }) && model.throttled(instances).is_none();
    let ends = if is_up_to_users {
        model.interval(|m| m.system(workload, instances).throughput(workload, f64::INFINITY))
    } else {
        (low.throughput, high.throughput)
    };
    let with = |end: Option<Response>, chance: Option<Response>, of: fn(_, _) -> _, side| {
        let end = end.map(|end: Response| chance.map_or(end, |chance| of(end, chance)))?;
        Some(middle.response.map_or(end, |middle| end.each(middle, widened(side))))
    };
    Prediction {
        low: ends.0.min(middle.throughput),
        high: ends.1.max(middle.throughput),
        fastest: with(high.fastest, middle.fastest, Response::min, -1.0),
        slowest: with(low.slowest, middle.slowest, Response::max, 1.0),
        ..middle
    }
}

impl Prediction {
    /// Widens the intervals to hold a measurement of the same count, because a measurement wins. How far
    /// the two may differ before the answer is suspect is decided in [`crate::contradictions`].
    pub(crate) fn holding(self, m: &Measured) -> Prediction {
        Prediction {
            low: self.low.min(m.throughput),
            high: self.high.max(m.throughput),
            fastest: self.fastest.map(|end| end.min(m.response(end))),
            slowest: self.slowest.map(|end| end.max(m.response(end))),
            ..self
        }
    }

    /// What was measured of the same count, and what was predicted where that is all that is known.
    pub(crate) fn as_measured(self, m: &Measured) -> Prediction {
        let response = self.response.map(|response| m.response(response));
        Prediction { throughput: m.throughput, response, ..self }
    }
}

/// An end of a percentile's interval, on this side of the middle, widened by the variation from run to run.
fn widened(side: f64) -> impl Fn(f64, f64) -> f64 {
    move |end, middle| {
        let known = (side * (end / middle).ln()).max(0.0);
        middle * (side * known.hypot(1.96 * PERCENTILE_DEVIATION)).exp()
    }
}

/// The prediction alone. The interval of the throughput has no width. The interval of the response times
/// holds the chance that remains however well the model is known.
pub fn expect(model: &Model, workload: &Workload, instances: usize) -> Prediction {
    let prediction = modelled(model, workload, instances);
    let nearest = LatencyCorrection::nearest(model.latency_corrections(), instances);
    let Some(correction) = nearest else { return prediction };
    let is_whole = correction.is_idle && model.is_idle(instances, prediction.throughput);
    let corrected = |r: Option<Response>| r.map(|r| correction.applied(r, instances, is_whole));
    Prediction {
        response: corrected(prediction.response),
        fastest: corrected(prediction.fastest),
        slowest: corrected(prediction.slowest),
        ..prediction
    }
}

/// The prediction for a machine that is `slowdown` times as fast. The model keeps its own clock: the
/// workload then comes `slowdown` times as slowly, and the answers count as `slowdown` times as fast.
pub(crate) fn undisturbed(
    model: &Model,
    workload: &Workload,
    instances: usize,
    slowdown: f64,
) -> Prediction {
    let slower = match *workload {
        Workload::Open { rate, arrival_scv } => {
            Workload::Open { rate: rate / slowdown, arrival_scv }
        }
        Workload::Closed { users, think } => Workload::Closed { users, think: think * slowdown },
    };
    let p = expect(model, &slower, instances);
    let faster = |r: Option<Response>| r.map(|r| r.each(r, |time, _| time / slowdown));
    Prediction {
        throughput: p.throughput * slowdown,
        low: p.low * slowdown,
        high: p.high * slowdown,
        response: faster(p.response),
        fastest: faster(p.fastest),
        slowest: faster(p.slowest),
    }
}

impl Model {
    /// The instances as a queue under a workload.
    fn system(&self, workload: &Workload, instances: usize) -> System<'_> {
        let slots = self.total_slots(instances);
        let most = match *workload {
            Workload::Closed { users, .. } => users.clamp(1, slots),
            Workload::Open { .. } => slots,
        };
        let rates = ThroughputTable::new(
            most,
            self.ladder.is_saturated(),
            |held| self.rate(instances, held),
            |held| self.core_sharing(instances, held),
        );
        System { rates, slots, shape: &self.shape }
    }

    /// Whether so many instances have little to do at this throughput (1/s).
    fn is_idle(&self, instances: usize, throughput: f64) -> bool {
        throughput < IDLE_UTILISATION * self.capacity(instances)
    }

    /// Corrects predicted response times by those measured under the goal's workload. The last measurement
    /// of each count decides. Call it once, after everything is fitted.
    pub fn correct_latency(&mut self, goal: &Goal, measured: &[Measured]) {
        let correction = |m: &Measured| {
            let predicted = expect(self, &goal.workload, m.instances).response;
            let predicted = predicted.filter(|_| goal.is_carried_in(m))?;
            LatencyCorrection::new(m, predicted, self.is_idle(m.instances, m.throughput))
        };
        let corrections = Measured::last_of_each(measured).filter_map(correction).collect();
        self.set_latency_corrections(corrections);
    }
}

impl Goal {
    /// Whether a prediction holds the goal; `best` is the highest throughput of any count.
    pub fn holds(&self, p: &Prediction, best: f64) -> bool {
        let within = |bound: Option<f64>, value: f64| bound.is_none_or(|b| value <= b);
        let fast = p.response.is_some_and(|r| within(self.p95, r.p95) && within(self.p99, r.p99));
        fast && match self.workload {
            Workload::Open { rate, .. } => p.throughput >= CARRIED_SHARE * rate,
            Workload::Closed { .. } => self.is_enough(p.throughput, best),
        }
    }
}

fn modelled(model: &Model, workload: &Workload, instances: usize) -> Prediction {
    let system = model.system(workload, instances);
    let throttled = model.throttled(instances);
    let capacity =
        throttled.as_ref().map_or_else(|| system.rate(system.slots), Throttled::capacity);
    let throughput = system.throughput(workload, capacity);
    let is_endless = matches!(workload, Workload::Open { rate, .. } if *rate >= MAX_STABLE_UTILISATION * capacity);
    let response = if is_endless { None } else { system.response(workload) };
    let simulated = throttled.filter(|_| !is_endless).and_then(|t| t.simulate(workload));
    let (throughput, [response, fastest, slowest]) = match simulated {
        None => (throughput, [response; 3]),
        Some(simulated) => {
            let throughput = match workload {
                Workload::Closed { .. } => simulated.throughput,
                // The rate that is sent is known. The simulation sends more or less by chance.
                Workload::Open { .. } => throughput,
            };
            let times = [simulated.response, simulated.fastest, simulated.slowest];
            (throughput, times.map(Some))
        }
    };
    Prediction { throughput, low: throughput, high: throughput, response, fastest, slowest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::quota::Quota;
    use crate::stats::interval::Interval;
    use crate::testing::measured;
    use crate::testing::{model, saturation};

    // Each draw has another capacity, so a draw that completes more may also take longer.
    #[test]
    fn an_interval_lies_around_what_is_predicted() {
        let demand = Interval::of_another(&[0.0040, 0.0041, 0.0042]);
        let quota = Quota { cores: 0.2, running: 0.0044, demand };
        let mut m = model(1, 0.0205, 0.0041, 2.0).under(Some(quota));
        m.fit(&[saturation(2, 97.0, 0.0041, 0.4)]);
        for instances in 1..=8 {
            let p = predict(&m, &Workload::Closed { users: 20, think: 0.1 }, instances);
            let [fast, middle, slow] =
                [p.fastest, p.response, p.slowest].map(|response| response.unwrap().p95);
            assert!(fast < 0.91 * middle && slow > 1.1 * middle, "{fast}, {middle}, {slow}");
        }
    }

    // The model with the least capacity may answer few users fastest.
    #[test]
    fn the_throughput_of_few_users_has_its_own_interval() {
        let mut m = model(16, 0.02, 0.001, 2.0);
        m.fit(&[saturation(2, 1500.0, 0.001, 1.5)]);
        let p = predict(&m, &Workload::Closed { users: 4, think: 0.0 }, 2);
        let (low, high) = (p.low / p.throughput, p.high / p.throughput);
        assert!(low < 0.985 && high > 1.015, "{low}, {high}");
    }

    #[test]
    fn a_machine_twice_as_fast_does_twice_as_much() {
        let (slow, fast) = (model(1, 0.02, 0.001, 2.0), model(1, 0.01, 0.0005, 2.0));
        for workload in [
            Workload::Open { rate: 60.0, arrival_scv: 1.0 },
            Workload::Closed { users: 4, think: 0.03 },
        ] {
            let (p, q) = (undisturbed(&slow, &workload, 1, 2.0), expect(&fast, &workload, 1));
            assert!((p.throughput / q.throughput - 1.0).abs() < 1e-6, "{p:?} {q:?}");
            let [p, q] = [p, q].map(|p| p.response.unwrap().p95);
            assert!((p / q - 1.0).abs() < 1e-6, "{p} {q}");
        }
    }

    #[test]
    fn an_interval_holds_what_was_measured_of_the_same_count() {
        let m = model(1, 0.02, 0.001, 2.0);
        let p95_of = |r: Option<Response>| r.unwrap().p95;
        let closed = Workload::Closed { users: 4, think: 0.1 };
        let p = predict(&m, &closed, 2);
        let (throughput, slow) = (1.06 * p.high, 2.0 * p95_of(p.slowest));
        let seen = Measured { throughput, p50: None, ..measured(2, slow) };
        let held = p.holding(&seen);
        assert_eq!((held.low, held.high), (p.low, throughput));
        assert_eq!((p95_of(held.fastest), p95_of(held.slowest)), (p95_of(p.fastest), slow));
        assert_eq!(held.slowest.unwrap().p50, p.slowest.unwrap().p50, "it was not measured");
        let open = Workload::Open { rate: 10.0, arrival_scv: 1.0 };
        let chance = Measured { throughput: 11.9, offered: 11.9, ..measured(2, 0.02) };
        let p = predict(&m, &open, 2);
        let held = p.holding(&chance);
        assert_eq!((held.low, held.high), (p.low, 11.9), "more came than the rate by chance");
    }

    // The best rung of an instance, 53 requests/s, began with an unspent budget.
    #[test]
    fn an_overload_gets_what_the_quota_gives_not_what_a_lucky_rung_did() {
        let demand = Interval::of_another(&[0.0040, 0.0041, 0.0042]);
        let quota = Quota { cores: 0.2, running: 0.0044, demand };
        let mut m = model(1, 1.0 / 53.0, 0.0041, 2.0).under(Some(quota));
        m.fit(&[saturation(2, 106.0, 0.0041, 0.4)]);
        let p = predict(&m, &Workload::Open { rate: 60.0, arrival_scv: 1.0 }, 1);
        assert!((p.throughput / (0.2 / 0.0041) - 1.0).abs() < 1e-3, "{p:?}");
        assert!(p.low < p.throughput && p.throughput < p.high, "{p:?}");
        assert_eq!(p.response, None);
    }
}
