//! What is wanted, what was measured of it, and whether the measurement holds the goal.

use serde::{Deserialize, Serialize};

use crate::calibration::{CARRIED_SHARE, CHANCE_DEVIATIONS, ENOUGH_THROUGHPUT, MEDIAN_OF_OVERLOAD};
use crate::queueing::response::Response;
use crate::queueing::workload::Workload;

/// What is wanted; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// How the app is used.
    pub workload: Workload,
    /// Bound on the 95th percentile of the response time.
    pub p95: Option<f64>,
    /// Bound on the 99th percentile.
    pub p99: Option<f64>,
    /// Share of requests that may fail.
    pub max_errors: f64,
}

/// A measurement of the goal's workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Running instances.
    pub instances: usize,
    /// Completed requests a second.
    pub throughput: f64,
    /// Requests that were really sent a second, by chance more or fewer than the workload's rate.
    pub offered: f64,
    /// Share of failed requests.
    pub errors: f64,
    /// Percentiles of the response time (s); `None` where the sample cannot carry one.
    pub p50: Option<f64>,
    /// See `p50`.
    pub p95: Option<f64>,
    /// See `p50`.
    pub p99: Option<f64>,
    /// See `p50`; `None` without a single answer.
    pub max: Option<f64>,
    /// How long it took (s).
    pub duration: f64,
    /// How many times longer everything may have taken than on an undisturbed machine. It is 1 without a
    /// disturbance. Earlier documents do not contain it.
    #[serde(default = "undisturbed")]
    pub slowdown: f64,
}

fn undisturbed() -> f64 {
    1.0
}

/// The name of a percentile, its bound, and what was seen of it.
pub(crate) type Bound = (&'static str, f64, Option<f64>);

impl Goal {
    /// Whether a measurement holds the goal; `best` is the highest throughput of any count. Without enough samples
    /// for a percentile the slowest answer counts. Without any answer nothing is met.
    pub fn is_met_by(&self, m: &Measured, best: f64) -> bool {
        let Some(slowest) = m.max else { return false };
        let within = |bound: Option<f64>, value: Option<f64>| {
            bound.is_none_or(|b| value.unwrap_or(slowest) <= b)
        };
        let enough = match self.workload {
            Workload::Open { .. } => self.is_answered(m, slowest),
            Workload::Closed { .. } => self.is_enough(m.throughput, best),
        };
        enough && within(self.p95, m.p95) && within(self.p99, m.p99) && m.errors <= self.max_errors
    }

    /// Whether what was sent was answered, even with a failure. How much may fail is another question.
    pub(crate) fn is_answered(&self, m: &Measured, slowest: f64) -> bool {
        match self.workload {
            Workload::Open { .. } => m.is_carried(slowest, 1.0 - m.errors),
            Workload::Closed { .. } => true,
        }
    }

    /// Whether what was sent was also completed. Users wait for their answers, so for them it always is.
    pub(crate) fn is_carried_in(&self, m: &Measured) -> bool {
        match self.workload {
            Workload::Open { .. } => m.max.is_some_and(|slowest| m.is_carried(slowest, 1.0)),
            Workload::Closed { .. } => true,
        }
    }

    /// Whether this throughput is enough if no latency is asked for.
    pub(crate) fn is_enough(&self, throughput: f64, best: f64) -> bool {
        self.p95.is_some() || self.p99.is_some() || throughput >= ENOUGH_THROUGHPUT * best
    }

    /// Every bound on latency, beside what was seen of it.
    pub(crate) fn bounds(&self, p95: Option<f64>, p99: Option<f64>) -> Vec<Bound> {
        let of = |name, bound: Option<f64>, seen| bound.map(|bound| (name, bound, seen));
        [of("p95", self.p95, p95), of("p99", self.p99, p99)].into_iter().flatten().collect()
    }

    /// The bound that is named in the answer.
    pub(crate) fn bound(&self) -> Option<(&'static str, f64)> {
        self.p95.map(|b| ("p95", b)).or(self.p99.map(|b| ("p99", b)))
    }

    /// What a response is at that bound.
    pub(crate) fn bound_of(&self, r: Response) -> Option<f64> {
        self.p95.map(|_| r.p95).or(self.p99.map(|_| r.p99))
    }
}

impl Measured {
    /// The last measurement of so many instances.
    pub(crate) fn last_at(measured: &[Measured], instances: usize) -> Option<&Measured> {
        measured.iter().rfind(|m| m.instances == instances)
    }

    /// The last measurement of each count.
    pub(crate) fn last_of_each(measured: &[Measured]) -> impl Iterator<Item = &Measured> {
        let is_last = |i: usize, m: &Measured| {
            measured[i + 1..].iter().all(|later| later.instances != m.instances)
        };
        measured.iter().enumerate().filter(move |(i, m)| is_last(*i, m)).map(|(_, m)| m)
    }

    /// Whether this share of what was sent was completed, except for what chance explains.
    fn is_carried(&self, slowest: f64, share: f64) -> bool {
        let in_flight = self.offered * self.p50.unwrap_or(slowest);
        let chance =
            CHANCE_DEVIATIONS * (2.0 * in_flight).sqrt() / (self.offered * self.duration).max(1.0);
        self.throughput >= (CARRIED_SHARE - chance) * share * self.offered
    }

    /// Whether arrivals were more than could be answered, of which there were so many a second. What was
    /// turned away says so; else the edges may be all that is missing.
    pub fn is_overload(&self, answered: f64, turned_away: u64) -> bool {
        let m = Measured { throughput: answered, ..*self };
        match (turned_away, self.max) {
            (0, Some(slowest)) => !m.is_carried(slowest, 1.0) && m.has_waited(slowest),
            _ => answered < CARRIED_SHARE * self.offered,
        }
    }

    /// Whether requests waited all along, as behind a backlog that grows, and not at the end alone.
    fn has_waited(&self, slowest: f64) -> bool {
        let backlog = (self.offered - self.throughput) * self.duration;
        self.p50.unwrap_or(slowest) * self.throughput >= MEDIAN_OF_OVERLOAD * backlog
    }

    /// Its percentiles, and those of `other` where the sample could not carry one.
    pub(crate) fn response(&self, other: Response) -> Response {
        Response {
            mean: other.mean,
            p50: self.p50.unwrap_or(other.p50),
            p95: self.p95.unwrap_or(other.p95),
            p99: self.p99.unwrap_or(other.p99),
        }
    }

    /// Requests a second by which the count of a probe may be off.
    pub(crate) fn chance(&self) -> f64 {
        CHANCE_DEVIATIONS * (self.throughput * self.duration).sqrt() / self.duration.max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measured, model, open};

    #[test]
    fn no_answer_meets_nothing() {
        let (goal, m) = (open(0.1, 0.3), measured(1, 0.0));
        let nothing = Measured { throughput: 0.0, offered: 0.0, max: None, p95: None, ..m };
        assert!(!goal.is_met_by(&nothing, 0.0));
    }

    #[test]
    fn a_tenth_of_what_was_predicted_falls_short() {
        let m = model(8, 0.1, 0.001, 2.0);
        let users = Goal {
            workload: Workload::Closed { users: 40, think: 1.0 },
            p95: None,
            ..open(1.0, 0.1)
        };
        let outcome = |throughput| users.outcome(&m, &Measured { throughput, ..measured(1, 0.2) });
        let predicted = outcome(36.0).predicted;
        assert!((36.0..36.5).contains(&predicted), "40 users of 1.1 s each: {predicted}");
        assert!(outcome(36.0).agrees() && !outcome(36.0).falls_short());
        assert!(!outcome(32.0).agrees() && !outcome(32.0).falls_short(), "160 requests by chance");
        assert!(outcome(3.6).falls_short());
    }

    // One in twenty may fail, and does: all that was sent came back.
    #[test]
    fn errors_that_are_allowed_are_no_shortfall() {
        let goal = Goal { max_errors: 0.1, ..open(400.0, 0.1) };
        let m = Measured { throughput: 380.0, errors: 0.05, p50: Some(0.01), ..measured(2, 0.05) };
        assert!(goal.is_met_by(&m, 0.0));
        assert!(!goal.is_met_by(&Measured { throughput: 360.0, ..m }, 0.0));
        assert!(!goal.is_met_by(&Measured { throughput: 340.0, errors: 0.15, ..m }, 0.0));
    }

    #[test]
    fn the_edges_of_a_short_probe_are_chance() {
        let slow = Measured { throughput: 19.0, offered: 20.0, p50: Some(1.0), ..measured(2, 1.2) };
        assert!(open(20.0, 1.5).is_met_by(&slow, 0.0), "20 in flight at each edge, 5 s apart");
        let fast = Measured { throughput: 380.0, p50: Some(0.01), ..measured(2, 0.05) };
        assert!(!open(400.0, 0.1).is_met_by(&fast, 0.0));
    }

    // 20 in flight at each edge, 5 s apart; with 0.2 of them, a tenth and more is missing indeed.
    #[test]
    fn requests_in_flight_at_the_end_do_not_contradict_the_model() {
        let m = model(40, 1.0, 0.001, 2.0);
        let agrees = |p50, throughput| {
            let p50 = Some(p50);
            let seen = Measured { throughput, offered: 20.0, p50, ..measured(1, 1.2) };
            open(20.0, 1.5).outcome(&m, &seen).agrees()
        };
        assert!(agrees(1.0, 17.5) && !agrees(0.01, 17.5));
        assert!(agrees(0.01, 18.5), "within a tenth");
        assert!(!agrees(1.0, 14.0), "more than the edges can keep");
    }

    // Three instances of eight slots and a second each, as measured, and two of them.
    #[test]
    fn the_edges_of_a_short_probe_are_no_overload() {
        let probe = |instances, throughput, offered, p50| {
            let (p50, duration) = (Some(p50), 6.3);
            Measured { throughput, offered, p50, duration, ..measured(instances, 1.2) }
        };
        let three = probe(3, 21.95, 23.54, 1.005);
        assert!(!three.is_overload(three.throughput, 0), "24 fit in");
        assert!(three.is_overload(three.throughput, 1), "one was turned away");
        let two = probe(2, 15.88, 21.68, 1.462);
        assert!(two.is_overload(two.throughput, 0));
    }

    // Three product searches and one of them, as measured on two cores.
    #[test]
    fn a_burst_at_the_end_is_no_overload() {
        let probe = |instances, throughput, offered, p50| {
            let (p50, duration) = (Some(p50), 6.1);
            Measured { throughput, offered, p50, duration, ..measured(instances, 0.6) }
        };
        let three = probe(3, 26.59, 29.07, 0.071);
        assert!(!three.is_overload(three.throughput, 0), "15 arrived in the last half second");
        let one = probe(1, 22.41, 28.17, 0.752);
        assert!(one.is_overload(one.throughput, 0));
    }
}
