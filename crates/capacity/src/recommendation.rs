//! How many instances: the curve, the smallest count that holds the goal, and whether more would help.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::finding::Kind;
use crate::goal::{Goal, Measured, NEARLY_BEST, Outcome};
use crate::model::{Model, Side};
use crate::next_limit::NextLimit;
use crate::prediction::{Prediction, expect, predict, undisturbed};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// How many to run.
    pub instances: usize,
    /// Smallest count that the interval of the model allows.
    pub low: usize,
    /// Largest count that it allows.
    pub high: usize,
    /// Whether they hold the goal.
    pub goal_met: bool,
    /// Whether what disturbed the measurements may have changed the answer: fewer might do, or the goal might be
    /// within reach. Earlier documents do not tell.
    #[serde(default)]
    pub could_differ: bool,
    /// What limits them.
    pub limited_by: Kind,
    /// What would limit next.
    pub next_limit: Option<NextLimit>,
    /// All of it in words.
    pub reason: String,
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
    /// Share of requests that fail although the app is not overloaded, if more than the goal allows:
    /// no count of instances cures that.
    pub failing: Option<f64>,
    /// How many times longer everything may have taken than on an undisturbed machine, while one instance and two
    /// were measured: 1 where nothing disturbed that.
    pub slowdown: f64,
}

/// A gain below this is none.
pub(crate) const WORTH: f64 = 1.05;
/// One instance more that leaves less than this makes it slower.
pub(crate) const SLOWER: f64 = 0.97;
/// A load below this share of the capacity is far from it.
const LIGHT: f64 = 0.7;

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
pub fn recommended(model: &Model, goal: &Goal, bounds: &Bounds, measured: &[Measured]) -> usize {
    Search::new(model, goal, bounds, measured).count().0
}

/// The curve for 1 to `upto` instances.
pub fn curve(model: &Model, goal: &Goal, measured: &[Measured], upto: usize) -> Vec<Point> {
    let point = |instances| Point {
        instances,
        predicted: predict(model, &goal.workload, instances),
        measured: measured.iter().rfind(|m| m.instances == instances).copied(),
    };
    (1..=upto).map(point).collect()
}

pub(crate) struct Search<'a> {
    pub(crate) model: &'a Model,
    pub(crate) goal: &'a Goal,
    pub(crate) bounds: &'a Bounds,
    pub(crate) measured: &'a [Measured],
    /// The most instances: as many as are allowed and fit into the memory.
    pub(crate) most: usize,
    best: f64,
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
    fn new(model: &'a Model, goal: &'a Goal, bounds: &'a Bounds, measured: &'a [Measured]) -> Self {
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
        let mut answer = Recommendation {
            instances,
            low,
            high,
            goal_met,
            could_differ,
            limited_by,
            next_limit,
            reason: String::new(),
        };
        answer.reason = self.reason(&answer);
        answer
    }

    /// How many, and whether they hold the goal.
    fn count(&self) -> (usize, bool) {
        let found = self.smallest(View::Middle).filter(|_| self.bounds.failing.is_none());
        (found.unwrap_or_else(|| self.least_bad()), found.is_some())
    }

    pub(crate) fn measurement(&self, n: usize) -> Option<&Measured> {
        self.measured.iter().rfind(|m| m.instances == n)
    }

    /// What so many were seen to complete (1/s); 0 where they were not measured.
    pub(crate) fn completed(&self, n: usize) -> f64 {
        self.measurement(n).map_or(0.0, |m| m.throughput)
    }

    /// The most that so many complete (1/s): as the model says, or as was measured where that is more.
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

    /// Whether a count was measured to hold the goal. What failed on a disturbed machine might have held.
    fn verdict(&self, n: usize, view: View) -> Option<bool> {
        let m = self.measurement(n)?;
        let is_met = self.goal.is_met_by(m, self.best);
        let may_have_held = m.slowdown > 1.0 && view == View::End(Side::High);
        (is_met || !may_have_held).then_some(is_met)
    }

    /// How many times longer everything may have taken than on an undisturbed machine.
    fn slowdown(&self) -> f64 {
        self.measured.iter().map(|m| m.slowdown).fold(self.bounds.slowdown, f64::max)
    }

    /// What was measured, or predicted as far as predictions have come true.
    fn best_throughput(&self) -> f64 {
        let truth = |m: &Measured| m.throughput / self.prediction(m.instances).throughput;
        let truth = self.measured.iter().map(truth).fold(1.0, f64::min);
        let throughput = |n| {
            self.measurement(n)
                .map_or_else(|| truth * self.prediction(n).throughput, |m| m.throughput)
        };
        (1..=self.most).map(throughput).fold(0.0, f64::max)
    }

    /// The smallest count that holds. A measurement beats a prediction, and a count that was measured
    /// to fail speaks for every smaller one that was not measured and can do no more.
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

    /// The goal is out of reach: the smallest count that comes about as near as any.
    fn least_bad(&self) -> usize {
        let bound = |n| self.prediction(n).response.and_then(|r| self.goal.bound_of(r));
        let fastest = (1..=self.most).filter_map(bound).reduce(f64::min);
        if let Some(fastest) = fastest {
            let is_near = |n: &usize| bound(*n).is_some_and(|time| time * NEARLY_BEST <= fastest);
            return (1..=self.most).find(is_near).unwrap_or(1);
        }
        let throughput = |n| self.prediction(n).throughput;
        let best = (1..=self.most).map(throughput).fold(0.0, f64::max);
        (1..=self.most).find(|n| throughput(*n) >= NEARLY_BEST * best).unwrap_or(1)
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
        } else if goal_met && n == 1 && used < LIGHT && is_known && self.shortfall(n).is_none() {
            Kind::Headroom
        } else if is_hidden || self.is_unexplained(n) || self.is_far_from_end(n) {
            self.bounds.instance_limit
        } else if self.model.is_cpu_limited(n) && self.model.capacity(n + 1) < SLOWER * capacity {
            Kind::Oversubscribed
        } else if self.model.is_cpu_limited(n) {
            Kind::CpuBound
        } else if capacity * WORTH > self.model.relay_limit() {
            self.model.relay_kind
        } else if self.is_shared(n) {
            Kind::SharedDependency
        } else if !goal_met && self.bounds.memory.is_some_and(|fit| fit <= n) {
            Kind::MemoryPressure
        } else {
            self.bounds.instance_limit
        }
    }

    /// Whether one instance without an end in sight was at one after all.
    fn is_unexplained(&self, n: usize) -> bool {
        !self.model.ladder.is_saturated() && self.shortfall(n).is_some()
    }

    /// Whether no end of one instance was seen, and the workload asks for much less than was: then it is no
    /// throughput that lacks.
    pub(crate) fn is_far_from_end(&self, n: usize) -> bool {
        let used = self.prediction(n).throughput / self.model.capacity(n);
        !self.model.ladder.is_saturated() && used < LIGHT && self.shortfall(n).is_none()
    }

    /// What was measured of a count, where it is less than the model says.
    pub(crate) fn shortfall(&self, n: usize) -> Option<Outcome> {
        let outcome = self.goal.outcome(self.model, self.measurement(n)?);
        outcome.falls_short().then_some(outcome)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::goal::tests::{measured, open};
    use crate::ladder::tests::ladder;
    use crate::model::tests::{model, saturation};
    use crate::response::Workload;
    use crate::shape::ServiceShape;

    pub(crate) fn bounds(instance_limit: Kind) -> Bounds {
        Bounds { max_instances: 32, memory: None, instance_limit, failing: None, slowdown: 1.0 }
    }

    fn closed(users: usize, think: f64, p95: Option<f64>) -> Goal {
        Goal { workload: Workload::Closed { users, think }, p95, p99: None, max_errors: 0.001 }
    }

    fn sleeper(service: f64) -> Model {
        let mut m = model(1, service, service / 200.0, 2.0);
        m.fit(&[saturation(2, 2.0 / service, service / 200.0, 0.1)]);
        m
    }

    // FibScale: 10 users thinking 1 s; R = 10 / N - 1 stays within 2 s from N = 3.3 on.
    #[test]
    fn ten_users_need_four_serial_seconds() {
        let r =
            recommend(&sleeper(1.0), &closed(10, 1.0, Some(2.0)), &bounds(Kind::Serialized), &[]);
        assert_eq!((r.instances, r.goal_met, r.limited_by), (4, true, Kind::Serialized));
        assert!(r.low <= 4 && r.high >= 4);
        assert_eq!(r.next_limit, None, "the cores carry a hundred times as much");
        assert!(r.reason.contains("3 would not"), "{}", r.reason);
    }

    #[test]
    fn four_hundred_a_second_of_twenty_milliseconds() {
        let r = recommend(&sleeper(0.0205), &open(400.0, 0.1), &bounds(Kind::Serialized), &[]);
        assert!((9..=11).contains(&r.instances), "{r:?}");
    }

    #[test]
    fn a_measurement_beats_the_model() {
        let (m, goal, b) = (sleeper(0.0205), open(400.0, 0.1), bounds(Kind::Serialized));
        let found = recommend(&m, &goal, &b, &[]).instances;
        let slower = recommend(&m, &goal, &b, &[measured(found, 0.3)]);
        assert!(slower.instances > found);
        let faster = recommend(&m, &goal, &b, &[measured(found, 0.05), measured(found - 1, 0.08)]);
        assert_eq!(faster.instances, found - 1);
        let both = recommend(&m, &goal, &b, &[measured(found, 0.05), measured(found - 1, 0.3)]);
        assert_eq!((both.instances, both.low, both.high), (found, found, found));
    }

    #[test]
    fn a_third_would_not_help_on_two_cores() {
        let mut m = model(1, 0.03, 0.03, 2.0);
        m.fit(&[saturation(2, 63.0, 0.03, 1.95)]);
        for goal in [open(45.0, 0.5), open(200.0, 0.5), closed(10, 0.0, None)] {
            let r = recommend(&m, &goal, &bounds(Kind::CpuBound), &[]);
            assert_eq!((r.instances, r.limited_by), (2, Kind::CpuBound));
            assert!(r.reason.contains("a third would not help"), "{}", r.reason);
        }
    }

    #[test]
    fn without_a_latency_goal_the_knee_is_enough() {
        let r = recommend(&sleeper(1.0), &closed(10, 1.0, None), &bounds(Kind::Serialized), &[]);
        assert_eq!(r.instances, 5, "10 users of 2 s each offer 5 requests/s");
    }

    #[test]
    fn errors_are_not_cured_by_instances() {
        let b = Bounds { failing: Some(0.05), ..bounds(Kind::Serialized) };
        let r = recommend(&sleeper(0.02), &open(60.0, 0.3), &b, &[]);
        assert_eq!((r.goal_met, r.limited_by), (false, Kind::Failing));
        assert!(r.reason.contains("5 % of the requests fail"), "{}", r.reason);
    }

    #[test]
    fn a_bound_below_the_service_time_needs_no_instances() {
        let r =
            recommend(&sleeper(0.02), &closed(3, 0.0, Some(0.01)), &bounds(Kind::Serialized), &[]);
        assert_eq!((r.instances, r.goal_met), (3, false), "{}", r.reason);
        assert!(r.reason.contains("a request alone takes 20 ms"), "{}", r.reason);
    }

    #[test]
    fn the_best_is_what_was_measured() {
        let mut m = model(1, 0.03, 0.03, 2.0);
        m.fit(&[saturation(2, 63.0, 0.03, 1.95)]);
        let two = Measured { throughput: 58.0, offered: 58.0, ..measured(2, 0.2) };
        let r = recommend(&m, &closed(10, 0.0, None), &bounds(Kind::CpuBound), &[two]);
        assert_eq!((r.instances, r.goal_met), (2, true), "{}", r.reason);
    }

    #[test]
    fn memory_bounds_the_answer() {
        let b = Bounds { memory: Some(3), ..bounds(Kind::Serialized) };
        let r = recommend(&sleeper(0.0205), &open(400.0, 0.1), &b, &[]);
        assert_eq!((r.instances, r.goal_met, r.limited_by), (3, false, Kind::MemoryPressure));
        assert_eq!(r.next_limit, None, "{}", r.reason);
        let one = Bounds { memory: Some(1), ..b };
        let reason = recommend(&sleeper(0.0205), &open(400.0, 0.1), &one, &[]).reason;
        assert!(reason.ends_with("; no more than one fits into the memory."), "{reason}");
    }

    // 16,000 requests/s are all that the balancer's thread carries, and all that one instance does.
    #[test]
    fn beyond_the_balancers_limit_there_is_no_other() {
        let m = model(16, 0.001, 1e-5, 64.0);
        let r = recommend(&m, &open(15_000.0, 0.1), &bounds(Kind::Waiting), &[]);
        assert_eq!((r.limited_by, r.next_limit), (Kind::BalancerBound, None), "{}", r.reason);
        let futile = "a second would not help, for the balancer is busy.";
        assert!(r.reason.ends_with(futile), "{}", r.reason);
    }

    // The same where it is the generator's thread that is the busier one.
    #[test]
    fn what_the_generator_cannot_send_is_not_laid_to_the_balancer() {
        let mut m = model(16, 0.001, 1e-5, 64.0);
        m.relay_kind = Kind::GeneratorBound;
        let r = recommend(&m, &open(15_000.0, 0.1), &bounds(Kind::Waiting), &[]);
        assert_eq!((r.limited_by, r.next_limit), (Kind::GeneratorBound, None), "{}", r.reason);
        assert!(!r.reason.contains("the balancer"), "{}", r.reason);
        let r = recommend(&m, &open(6_000.0, 0.1), &bounds(Kind::Waiting), &[]);
        assert_eq!(r.next_limit.unwrap().kind, Kind::GeneratorBound, "{}", r.reason);
    }

    // A second of sleep each, as far as four at once were tried, where half a second is wanted.
    #[test]
    fn cores_that_idle_are_no_limit() {
        let ladder = ladder(&[(1, 1.0), (2, 2.0), (4, 4.0)]);
        let m = Model::new(ladder, saturation(1, 4.0, 0.001, 0.1), ServiceShape::constant(), 2.0);
        let r = recommend(&m, &closed(3, 0.0, Some(0.5)), &bounds(Kind::Waiting), &[]);
        assert_eq!((r.goal_met, r.limited_by), (false, Kind::Waiting), "{}", r.reason);
        let why = "; limited by the 1.00 s that a request takes by itself.";
        assert!(r.reason.ends_with(why), "{}", r.reason);
    }

    #[test]
    fn an_instance_without_an_end_is_enough() {
        let ladder = ladder(&[(1, 1.0), (2, 2.0), (4, 4.0)]);
        let m = Model::new(ladder, saturation(1, 4.0, 0.001, 0.1), ServiceShape::constant(), 2.0);
        let r = recommend(&m, &open(20.0, 2.5), &bounds(Kind::Waiting), &[]);
        assert_eq!((r.instances, r.limited_by, r.next_limit), (1, Kind::Headroom, None), "{r:?}");
    }

    #[test]
    fn less_than_predicted_is_no_headroom() {
        let ladder = ladder(&[(1, 1.0), (2, 2.0)]);
        let m = Model::new(ladder, saturation(1, 2.0, 0.001, 0.1), ServiceShape::constant(), 2.0);
        let users = closed(40, 0.0, None);
        let answer = |throughput| {
            let seen = Measured { throughput, ..measured(1, 1.0) };
            recommend(&m, &users, &bounds(Kind::Waiting), &[seen])
        };
        assert_eq!(answer(39.0).limited_by, Kind::Headroom);
        let r = answer(4.0);
        assert_eq!((r.instances, r.limited_by), (1, Kind::Waiting), "{}", r.reason);
        let contradiction = "but 4.00 requests/s were completed where 40.0 were predicted";
        assert!(r.reason.contains(contradiction), "{}", r.reason);
        assert!(!r.reason.contains("nothing limits yet"), "{}", r.reason);
    }

    // 11.7 of 0.15 s each a second on two cores, of which other programs used one.
    #[test]
    fn what_a_disturbed_machine_did_is_no_answer() {
        let m = model(1, 0.3, 0.3, 2.0);
        let b = Bounds { slowdown: 2.0, ..bounds(Kind::CpuBound) };
        let two =
            |slowdown| Measured { throughput: 6.55, offered: 11.7, slowdown, ..measured(2, 5.0) };
        let disturbed = recommend(&m, &open(11.7, 2.0), &b, &[two(2.0)]);
        assert_eq!((disturbed.goal_met, disturbed.could_differ), (false, true));
        assert!(disturbed.low < disturbed.high || disturbed.low == 2, "{disturbed:?}");
        let alone = recommend(&m, &open(11.7, 2.0), &bounds(Kind::CpuBound), &[two(1.0)]);
        assert_eq!((alone.goal_met, alone.could_differ), (false, false));
        assert_eq!((alone.low, alone.high), (alone.instances, alone.instances));
    }

    // Four hold the goal and three do not: beside others, three might.
    #[test]
    fn the_interval_holds_what_a_disturbance_can_have_done() {
        let (m, goal) = (sleeper(0.02), open(150.0, 0.1));
        let known = |slowdown| {
            let seen = |n, p95, throughput| Measured {
                throughput,
                offered: 150.0,
                slowdown,
                ..measured(n, p95)
            };
            let bounds = Bounds { slowdown, ..bounds(Kind::Serialized) };
            let r = recommend(&m, &goal, &bounds, &[seen(4, 0.05, 150.0), seen(3, 0.3, 140.0)]);
            (r.instances, r.low, r.high, r.could_differ)
        };
        assert_eq!(known(1.0), (4, 4, 4, false));
        assert_eq!(known(1.33), (4, 3, 4, true));
        // One that is enough cannot be less.
        let b = Bounds { slowdown: 1.5, ..bounds(Kind::Serialized) };
        let r = recommend(&m, &open(5.0, 0.5), &b, &[]);
        assert_eq!((r.instances, r.could_differ), (1, false));
    }

    #[test]
    fn light_load_is_headroom() {
        let r = recommend(&sleeper(0.02), &open(5.0, 0.5), &bounds(Kind::Serialized), &[]);
        assert_eq!((r.instances, r.limited_by, r.next_limit), (1, Kind::Headroom, None));
    }
}
