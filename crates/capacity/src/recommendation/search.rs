//! How many instances: the curve, the smallest count that holds the goal, and whether more would help.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::calibration::{
    ENOUGH_THROUGHPUT, HEADROOM_UTILISATION, MIN_GAIN, SAME_THROUGHPUT, SLOWER_GAIN,
};
use crate::finding::evidence::Failing;
use crate::goal::{Goal, Measured};
use crate::limit_kind::Kind;
use crate::model::network::Model;
use crate::model::outcome::Outcome;
use crate::model::prediction::{Prediction, expect, predict, undisturbed};
use crate::recommendation::reason::Reason;
use crate::stats::resampling::Side;

/// One count on the curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Instances.
    pub instances: usize,
    /// What the model says.
    pub predicted: Prediction,
    /// What was measured, if it was.
    pub measured: Option<Measured>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// How many to run.
    pub instances: usize,
    /// Smallest count that the interval of the model allows.
    pub low: usize,
    /// Largest count that it allows.
    pub high: usize,
    /// Whether they hold the goal.
    pub goal_met: bool,
    /// Whether disturbed measurements may have changed the answer: fewer instances might do, or the goal
    /// might be within reach.
    pub could_differ: bool,
    /// What limits them.
    pub limited_by: Kind,
    /// What would limit next.
    pub next_limit: Option<NextLimit>,
    /// Why.
    pub reason: Reason,
}

/// A count, whether it holds the goal, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) instances: usize,
    pub(crate) goal_met: bool,
    pub(crate) limited_by: Kind,
}

/// What comes after the present limit, and at how many instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct NextLimit {
    /// The limit.
    pub kind: Kind,
    /// The first count at which it holds.
    pub at_instances: usize,
}

/// What bounds the search, beside the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The most instances that may be recommended.
    pub max_instances: usize,
    /// How many fit into the memory.
    pub memory: Option<usize>,
    /// What keeps one saturated instance from doing more.
    pub instance_limit: Kind,
    /// What no count of instances cures.
    pub failing: Option<Failing>,
    /// How many times longer everything may have taken than on an undisturbed machine, while one instance
    /// and two were measured. It is 1 without a disturbance.
    pub slowdown: f64,
}

/// The answer from the model and what was measured of the goal's workload.
pub fn recommend(
    model: &Model,
    goal: &Goal,
    bounds: &Bounds,
    measured: &[Measured],
) -> Recommendation {
    Search::new(model, goal, bounds, measured).recommendation()
}

/// The count alone, which is known much sooner than its interval.
pub fn recommended_count(
    model: &Model,
    goal: &Goal,
    bounds: &Bounds,
    measured: &[Measured],
) -> usize {
    Search::new(model, goal, bounds, measured).count().0
}

/// The curve at `counts` of instances.
pub fn curve(
    model: &Model,
    goal: &Goal,
    measured: &[Measured],
    counts: impl IntoIterator<Item = usize>,
) -> Vec<Point> {
    let point = |instances| {
        let predicted = predict(model, &goal.workload, instances);
        let measured = Measured::last_at(measured, instances).copied();
        let predicted = measured.map_or(predicted, |m| predicted.holding(&m));
        Point { instances, predicted, measured }
    };
    counts.into_iter().map(point).collect()
}

pub(crate) struct Search<'a> {
    pub(crate) model: &'a Model,
    pub(crate) goal: &'a Goal,
    pub(crate) bounds: &'a Bounds,
    pub(crate) measured: &'a [Measured],
    /// The most instances: as many as are allowed and fit into the memory.
    pub(crate) most: usize,
    /// The highest throughput that this workload can get (1/s).
    pub(crate) best: f64,
    /// By count and side of the interval: with many users a prediction takes a millisecond.
    known: RefCell<BTreeMap<(usize, View), Prediction>>,
}

/// Where in the model's interval one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum View {
    Middle,
    End(Side),
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        model: &'a Model,
        goal: &'a Goal,
        bounds: &'a Bounds,
        measured: &'a [Measured],
    ) -> Self {
        let most = bounds.max_instances.min(bounds.memory.unwrap_or(usize::MAX)).max(1);
        let known = RefCell::default();
        let mut search = Search { model, goal, bounds, measured, most, best: 0.0, known };
        search.best = search.best_throughput();
        search
    }

    fn recommendation(&self) -> Recommendation {
        let (instances, goal_met) = self.count();
        let (low, high) = self.interval(instances, goal_met);
        let could_differ = self.could_differ(instances, goal_met);
        let limited_by = self.limit(instances, goal_met);
        let next_limit = self.next_limit(instances, limited_by);
        let count = Count { instances, goal_met, limited_by };
        let reason = self.reason(&count, next_limit);
        Recommendation {
            instances,
            low,
            high,
            goal_met,
            could_differ,
            limited_by,
            next_limit,
            reason,
        }
    }

    /// How many, and whether they hold the goal.
    fn count(&self) -> (usize, bool) {
        let found = self.smallest(View::Middle).filter(|_| self.bounds.failing.is_none());
        if found.is_none() && self.is_without_latency() && self.bounds.failing.is_none() {
            let bend = self.bend();
            return (bend, self.measurement(bend).is_none_or(|m| self.goal.is_met_by(m, 0.0)));
        }
        (found.unwrap_or_else(|| self.least_bad()), found.is_some())
    }

    pub(crate) fn measurement(&self, n: usize) -> Option<&Measured> {
        Measured::last_at(self.measured, n)
    }

    /// Measured throughput of `n` instances (1/s), 0 if it was not measured.
    pub(crate) fn completed(&self, n: usize) -> f64 {
        self.measurement(n).map_or(0.0, |m| m.throughput)
    }

    /// The most that `n` instances complete (1/s): by the model, or measured if that is more.
    pub(crate) fn most_completed(&self, n: usize) -> f64 {
        self.model.capacity(n).max(self.completed(n))
    }

    /// The prediction for a count.
    pub(crate) fn prediction(&self, n: usize) -> Prediction {
        self.prediction_at(n, View::Middle)
    }

    fn prediction_at(&self, n: usize, view: View) -> Prediction {
        let workload = &self.goal.workload;
        let ask = || match view {
            View::Middle => expect(self.model, workload, n),
            View::End(Side::Low) => expect(self.model.bound(n, Side::Low), workload, n),
            View::End(Side::High) => {
                undisturbed(self.model.bound(n, Side::High), workload, n, self.slowdown())
            }
        };
        *self.known.borrow_mut().entry((n, view)).or_insert_with(ask)
    }

    /// Whether a count was measured to hold the goal. What failed might have held on an undisturbed machine, or
    /// in another run if the model expects so.
    fn verdict(&self, n: usize, view: View) -> Option<bool> {
        let m = self.measurement(n)?;
        let is_met = self.goal.is_met_by(m, self.best);
        let may_hold = || m.slowdown > 1.0 || self.goal.holds(&self.prediction(n), self.best);
        let may_have_held = view == View::End(Side::High) && may_hold();
        (is_met || !may_have_held).then_some(is_met)
    }

    /// How many times longer everything may have taken than on an undisturbed machine.
    fn slowdown(&self) -> f64 {
        self.measured.iter().map(|m| m.slowdown).fold(self.bounds.slowdown, f64::max)
    }

    /// The best throughput, measured, or predicted as far as predictions have come true.
    fn best_throughput(&self) -> f64 {
        let truth = |m: &Measured| m.throughput / self.prediction(m.instances).throughput;
        let truth = self.measured.iter().map(truth).fold(1.0, f64::min);
        let throughput = |n| {
            self.measurement(n)
                .map_or_else(|| truth * self.prediction(n).throughput, |m| m.throughput)
        };
        (1..=self.most).chain(self.beyond()).map(throughput).fold(0.0, f64::max)
    }

    /// The smallest count that holds the goal. A measurement beats a prediction. If a count was measured to
    /// fail, smaller ones that were not measured fail, too, unless they can do as much.
    fn smallest(&self, view: View) -> Option<usize> {
        let failed =
            (1..=self.most).rev().find(|n| self.verdict(*n, view) == Some(false)).unwrap_or(0);
        let is_less = |n: usize| self.model.capacity(n) < self.model.capacity(failed.max(1));
        (1..=self.most).find(|n| match self.verdict(*n, view) {
            Some(met) => met,
            None if *n < failed && is_less(*n) => false,
            None => self.goal.holds(&self.prediction_at(*n, view), self.best),
        })
    }

    /// The smallest count that is not worse than the best one beyond the interval, if the goal is out of reach.
    /// Otherwise chance would decide between counts that do the same.
    fn least_bad(&self) -> usize {
        let speed = |p: &Prediction| {
            let time = p.response.and_then(|response| self.goal.bound_of(response));
            time.map_or(0.0, |time| 1.0 / time)
        };
        let is_timed = (1..=self.most).any(|n| speed(&self.prediction(n)) > 0.0);
        let figure = |p: &Prediction| if is_timed { speed(p) } else { p.throughput };
        let nearest = self.nearest(figure);
        // Measurements win over the model.
        let seen = |n| Some((n, figure(&self.prediction(n).as_measured(self.measurement(n)?))));
        let seen: Vec<(usize, f64)> = (1..=self.most).filter_map(seen).collect();
        if seen.iter().all(|(n, _)| *n != nearest) {
            return nearest;
        }
        let best = seen.iter().map(|(_, figure)| *figure).fold(0.0, f64::max);
        let is_same = |(_, figure): &&(usize, f64)| *figure >= (1.0 - SAME_THROUGHPUT) * best;
        seen.iter().find(is_same).map_or(nearest, |(n, _)| *n)
    }

    /// The same by the model alone. The larger the figure of a prediction is, the nearer it comes to the goal.
    fn nearest(&self, figure: impl Fn(&Prediction) -> f64) -> usize {
        let better = |best: usize, n: usize| {
            let is_better = figure(&self.prediction(n)) > figure(&self.prediction(best));
            if is_better { n } else { best }
        };
        let best = (1..=self.most).fold(1, better);
        let is_enough =
            |n: &Prediction, best: &Prediction| figure(n) >= ENOUGH_THROUGHPUT * figure(best);
        let is_no_worse = |n: &usize| {
            // The same draw predicts both counts, because most errors are common to them.
            let draw = self.model.draw_in_favour(*n, best);
            let drawn = |n| expect(draw, &self.goal.workload, n);
            is_enough(&self.prediction(*n), &self.prediction(best))
                || is_enough(&drawn(*n), &drawn(best))
        };
        (1..best).find(is_no_worse).unwrap_or(best)
    }

    fn interval(&self, instances: usize, goal_met: bool) -> (usize, usize) {
        let low = self.smallest(View::End(Side::High)).unwrap_or(instances);
        if !goal_met {
            // What the goal would take without the disturbance, if any count holds it then.
            let other = if self.could_differ(instances, goal_met) { low } else { instances };
            return (other.min(instances), other.max(instances));
        }
        let high = self.smallest(View::End(Side::Low)).unwrap_or(self.most);
        (low.min(instances), high.max(instances))
    }

    /// See [`Recommendation::could_differ`].
    fn could_differ(&self, instances: usize, goal_met: bool) -> bool {
        let best = self.smallest(View::End(Side::High));
        let is_other = best.is_some_and(|best| !goal_met || best < instances);
        self.slowdown() > 1.0 && self.bounds.failing.is_none() && is_other
    }

    pub(crate) fn limit(&self, n: usize, goal_met: bool) -> Kind {
        let capacity = self.model.capacity(n);
        let used = self.prediction(n).throughput / capacity;
        let measuring = [Kind::GeneratorBound, Kind::BalancerBound];
        let is_hidden = measuring.contains(&self.bounds.instance_limit);
        let is_known = self.measurement(n).is_some() || !is_hidden;
        if self.bounds.failing.is_some() {
            Kind::Failing
        } else if goal_met
            && n == 1
            && used < HEADROOM_UTILISATION
            && is_known
            && self.shortfall(n).is_none()
        {
            Kind::Headroom
        } else if is_hidden || self.is_unexplained(n) || self.is_far_from_end(n) {
            self.bounds.instance_limit
        } else if self.model.is_cpu_limited(n)
            && self.model.capacity(n + 1) < SLOWER_GAIN * capacity
        {
            Kind::Oversubscribed
        } else if self.model.is_cpu_limited(n) {
            Kind::CpuBound
        } else if capacity * MIN_GAIN > self.model.relay_limit() {
            self.model.relay_kind
        } else if self.is_surely_shared(n) {
            Kind::SharedDependency
        } else if !goal_met && self.bounds.memory.is_some_and(|fit| fit <= n) {
            Kind::MemoryPressure
        } else {
            self.bounds.instance_limit
        }
    }

    /// Whether one instance was at its limit although no end of growth was seen.
    fn is_unexplained(&self, n: usize) -> bool {
        !self.model.ladder.is_saturated() && self.shortfall(n).is_some()
    }

    /// Whether no end of growth was seen in one instance, and the workload asks for much less than it
    /// completed. Then throughput is not what is missing.
    pub(crate) fn is_far_from_end(&self, n: usize) -> bool {
        let used = self.prediction(n).throughput / self.model.capacity(n);
        !self.model.ladder.is_saturated()
            && used < HEADROOM_UTILISATION
            && self.shortfall(n).is_none()
    }

    /// The measurement of a count that completed less than the model says.
    pub(crate) fn shortfall(&self, n: usize) -> Option<Outcome> {
        let outcome = self.goal.outcome(self.model, self.measurement(n)?);
        outcome.falls_short().then_some(outcome)
    }
}

#[cfg(test)]
mod tests;
