//! Checks a finished answer against itself. It compares the model with the measurements, and the reason
//! with the findings. It compares the findings with what was tried, and the remedies with the advice.

use crate::calibration::MODEL_AGREEMENT;
use crate::finding::explanation::{advises_instances, no_more_helps};
use crate::finding::result::Finding;
use crate::finding::trial::{Change, Trial};
use crate::goal::{Goal, Measured};
use crate::limit_kind::Kind;
use crate::model::network::Model;
use crate::model::prediction::predict;
use crate::model::saturation::Saturation;
use crate::recommendation::search::Recommendation;

/// All that an answer says.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What the curve and the sentences are taken from.
    pub model: &'a Model,
    /// What is wanted.
    pub goal: &'a Goal,
    /// How many, and why.
    pub recommendation: &'a Recommendation,
    /// What was found.
    pub findings: &'a [Finding],
    /// What was tried.
    pub trials: &'a [Trial],
    /// Valid measurements of the goal's workload. The last one of a count stands for that count.
    pub measured: &'a [Measured],
    /// A valid measurement with every slot busy. Only two instances are measured so with the slots that the
    /// balancer keeps to.
    pub saturated: Option<Saturation>,
}

/// Two parts of an answer that cannot both be right. Throughput is in requests a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contradiction {
    /// Predicted and measured throughput differ by more than the interval of the prediction, and by more
    /// than a tenth.
    Prediction {
        /// Running instances.
        instances: usize,
        /// Predicted, and the interval of that.
        predicted: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
        /// Measured.
        measured: f64,
    },
    /// The same of instances whose slots were all busy.
    Saturated {
        /// Running instances.
        instances: usize,
        /// Predicted, and the interval of that.
        predicted: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
        /// Measured.
        measured: f64,
    },
    /// The cores are said to carry less than was measured.
    Carried {
        /// Running instances.
        instances: usize,
        /// What the cores are said to carry.
        carried: f64,
        /// Measured.
        measured: f64,
    },
    /// One instance more is said not to help, and did.
    OneMore {
        /// Without it.
        instances: usize,
        /// Measured without it.
        before: f64,
        /// Measured with it.
        after: f64,
    },
    /// What is said to limit the answer was not found.
    Reason {
        /// The limit.
        limited_by: Kind,
    },
    /// What a trial speaks for was not found.
    Trial {
        /// What was changed.
        change: Change,
        /// The limit that it shows.
        shows: Kind,
    },
    /// The remedy of the limit is more instances, which would not help.
    Remedy {
        /// The limit.
        limited_by: Kind,
        /// The recommended count.
        instances: usize,
    },
}

/// Everything in an answer that contradicts itself.
pub fn contradictions(answer: &Answer<'_>) -> Vec<Contradiction> {
    let curve = Measured::last_of_each(answer.measured)
        .flat_map(|m| [answer.prediction(m), answer.carried(m)]);
    let others = [answer.saturation(), answer.one_more(), answer.reason(), answer.remedy()];
    curve.chain(others).flatten().chain(answer.tried()).collect()
}

impl Answer<'_> {
    fn prediction(&self, m: &Measured) -> Option<Contradiction> {
        let outcome = self.goal.outcome(self.model, m);
        let predicted = predict(self.model, &self.goal.workload, m.instances);
        // Scale to the arrivals that were really sent.
        let sent = outcome.predicted / predicted.throughput;
        let (low, high) = (predicted.low * sent, predicted.high * sent);
        let is_within = (low - m.chance()..=high + m.chance()).contains(&m.throughput);
        (!outcome.agrees() && !is_within).then_some(Contradiction::Prediction {
            instances: m.instances,
            predicted: outcome.predicted,
            low,
            high,
            measured: m.throughput,
        })
    }

    fn saturation(&self) -> Option<Contradiction> {
        let s = self.saturated?;
        // Without an end of growth the model has no such figure. A full thread of balancer or generator hides
        // what the instances can do.
        if !self.model.ladder.is_saturated() || s.is_relay_full() {
            return None;
        }
        let predicted = self.model.capacity(s.instances);
        let (low, high) = self.model.interval(|model| model.capacity(s.instances));
        let agrees = (s.throughput / predicted - 1.0).abs() <= MODEL_AGREEMENT;
        let chance = s.error * s.throughput;
        let is_within = (low - chance..=high + chance).contains(&s.throughput);
        (!agrees && !is_within).then_some(Contradiction::Saturated {
            instances: s.instances,
            predicted,
            low,
            high,
            measured: s.throughput,
        })
    }

    fn carried(&self, m: &Measured) -> Option<Contradiction> {
        let carried = self.model.cpu_limit(m.instances);
        let is_said = self.recommendation.limited_by == Kind::CpuBound;
        let is_more = m.throughput - m.chance() > (1.0 + MODEL_AGREEMENT) * carried;
        (is_said && is_more).then_some(Contradiction::Carried {
            instances: m.instances,
            carried,
            measured: m.throughput,
        })
    }

    fn one_more(&self) -> Option<Contradiction> {
        let instances = self.recommendation.instances;
        let before = Measured::last_at(self.measured, instances)?;
        let after = Measured::last_at(self.measured, instances + 1)?;
        let gain = after.throughput - after.chance() - before.throughput;
        let helped = gain > MODEL_AGREEMENT * before.throughput;
        (no_more_helps(self.model, instances) && helped).then_some(Contradiction::OneMore {
            instances,
            before: before.throughput,
            after: after.throughput,
        })
    }

    fn reason(&self) -> Option<Contradiction> {
        let limited_by = self.recommendation.limited_by;
        let is_found = limited_by == Kind::Headroom || self.has(limited_by);
        (!is_found).then_some(Contradiction::Reason { limited_by })
    }

    fn remedy(&self) -> Option<Contradiction> {
        let Recommendation { limited_by, instances, .. } = *self.recommendation;
        let is_vain = advises_instances(limited_by) && no_more_helps(self.model, instances);
        is_vain.then_some(Contradiction::Remedy { limited_by, instances })
    }

    /// Trials that agree with no finding. With room to spare no limit is named, because none is reached.
    fn tried(&self) -> impl Iterator<Item = Contradiction> {
        let is_open = |trial: &&Trial| {
            trial.is_of_the_app() && !self.has(trial.shows) && !self.has(Kind::Headroom)
        };
        let open = self.trials.iter().filter(is_open);
        open.map(|trial| Contradiction::Trial { change: trial.change, shows: trial.shows })
    }

    fn has(&self, kind: Kind) -> bool {
        self.findings.iter().any(|f| f.kind == kind)
    }
}

impl Contradiction {
    /// Whether it concerns how much a number of instances can do, so that another count may be right.
    /// Otherwise it concerns the reason alone.
    pub fn is_of_the_model(&self) -> bool {
        match self {
            Contradiction::Prediction { .. }
            | Contradiction::Saturated { .. }
            | Contradiction::Carried { .. }
            | Contradiction::OneMore { .. } => true,
            Contradiction::Reason { .. }
            | Contradiction::Trial { .. }
            | Contradiction::Remedy { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::evidence::Failing;
    use crate::finding::result::{Details, Remedy};
    use crate::queueing::workload::Workload;
    use crate::recommendation::reason::{Head, Obstacle, Reason};
    use crate::testing::{measured, open};
    use crate::testing::{model, saturation};

    /// 100 users who think for 0.1 s.
    fn users() -> Goal {
        Goal { workload: Workload::Closed { users: 100, think: 0.1 }, p95: None, ..open(1.0, 1.0) }
    }

    /// Eight threads that sleep 20 ms, of which two were measured to carry so many requests/s on two cores.
    fn carrying(throughput: f64) -> Model {
        let mut m = model(8, 0.0225, 2.0e-3, 2.0);
        m.fit(&[saturation(2, throughput, 1.9 / throughput, 1.95)]);
        m
    }

    fn seen(instances: usize, throughput: f64) -> Measured {
        Measured { throughput, offered: throughput, ..measured(instances, 0.2) }
    }

    fn finding(kind: Kind) -> Finding {
        Finding {
            kind,
            confidence: 0.9,
            details: Details::BalancerCarries(1.0),
            remedy: Remedy::Nothing,
            dependencies: Vec::new(),
        }
    }

    fn limited_by(kind: Kind) -> Recommendation {
        Recommendation {
            instances: 2,
            low: 2,
            high: 2,
            goal_met: true,
            could_differ: false,
            limited_by: kind,
            next_limit: None,
            reason: Reason {
                head: Head::OutOfReach(Obstacle::Failing(Failing::Deaths(1))),
                unexplained: None,
                limit: None,
                one_more: None,
                next: None,
                full_dependency: None,
                uneven: None,
            },
        }
    }

    fn check(
        model: &Model,
        reason: Kind,
        found: &[Kind],
        trials: &[Trial],
        measured: &[Measured],
    ) -> Vec<Contradiction> {
        let (goal, recommendation) = (users(), limited_by(reason));
        let findings: Vec<Finding> = found.iter().copied().map(finding).collect();
        let (goal, recommendation, findings) = (&goal, &recommendation, &findings[..]);
        let saturated = None;
        contradictions(&Answer {
            model,
            goal,
            recommendation,
            findings,
            trials,
            measured,
            saturated,
        })
    }

    /// What this measurement under saturation contradicts.
    fn check_saturated(model: &Model, saturated: Saturation) -> Vec<Contradiction> {
        contradictions(&Answer {
            model,
            goal: &users(),
            recommendation: &limited_by(Kind::Headroom),
            findings: &[],
            trials: &[],
            measured: &[],
            saturated: Some(saturated),
        })
    }

    // One probe of five cold instances gave this model.
    #[test]
    fn a_model_is_held_against_every_valid_measurement() {
        let (cpu, found) = (Kind::CpuBound, [Kind::CpuBound]);
        let wrong = check(&carrying(248.0), cpu, &found, &[], &[seen(2, 512.0), seen(3, 659.0)]);
        let count = |of: fn(&Contradiction) -> bool| wrong.iter().filter(|c| of(c)).count();
        let is_two = |c: &Contradiction| match c {
            Contradiction::Prediction { instances: 2, predicted, measured, .. } => {
                (240.0..250.0).contains(predicted) && *measured == 512.0
            }
            _ => false,
        };
        assert_eq!(count(is_two), 1, "{wrong:?}");
        assert_eq!(count(|c| matches!(c, Contradiction::Carried { .. })), 2, "{wrong:?}");
        let one_more = |c: &Contradiction| matches!(c, Contradiction::OneMore { instances: 2, .. });
        assert_eq!(count(one_more), 1, "{wrong:?}");
        let right = check(&carrying(600.0), cpu, &found, &[], &[seen(2, 580.0), seen(3, 610.0)]);
        assert_eq!(right, []);
    }

    // A burst at the end of a probe of three product searches made them seem full. Two had completed 53.3.
    #[test]
    fn a_model_is_held_against_measurements_under_saturation() {
        let mut searches = model(1, 0.0375, 0.030, 2.0);
        searches.fit(&[saturation(2, 27.9, 0.030, 0.9)]);
        let wrong = check_saturated(&searches, saturation(2, 53.3, 0.030, 1.7));
        let [Contradiction::Saturated { instances: 2, predicted, high, measured, .. }] = wrong[..]
        else {
            panic!("{wrong:?}");
        };
        assert!((27.0..29.0).contains(&predicted) && high < 32.0, "{wrong:?}");
        assert_eq!(measured, 53.3);
        assert!(wrong[0].is_of_the_model());
        let is_right = |s| check_saturated(&searches, s).is_empty();
        assert!(is_right(saturation(2, 30.0, 0.030, 0.9)), "within a tenth");
        let unsure = Saturation { error: 0.5, ..saturation(2, 53.3, 0.030, 1.7) };
        assert!(is_right(unsure), "within the error of the measurement");
        let full_relay = Saturation { relay_thread: 0.0187, ..saturation(2, 53.3, 0.030, 1.7) };
        assert!(is_right(full_relay), "the balancer's or the generator's thread was full");
    }

    #[test]
    fn a_later_measurement_of_a_count_stands_for_an_earlier_one() {
        let measured = [seen(2, 300.0), seen(2, 590.0)];
        assert_eq!(check(&carrying(600.0), Kind::CpuBound, &[Kind::CpuBound], &[], &measured), []);
    }

    // 60 users: "limited by something that all instances share", of which nothing had been found.
    #[test]
    fn a_reason_is_one_of_the_findings() {
        let shared = Kind::SharedDependency;
        let wrong = check(&carrying(600.0), shared, &[Kind::Waiting], &[], &[]);
        assert_eq!(wrong, [Contradiction::Reason { limited_by: shared }]);
        assert_eq!(check(&carrying(600.0), Kind::Headroom, &[], &[], &[]), []);
    }

    #[test]
    fn a_trial_without_its_finding_is_a_contradiction() {
        let trial = |change| Trial {
            change,
            instances: 2,
            before: 485.0,
            after: 320.0,
            shows: Kind::CpuBound,
        };
        let check = |found, change| {
            check(&carrying(600.0), Kind::Headroom, &[found], &[trial(change)], &[])
        };
        let (change, shows) = (Change::OneCoreLess, Kind::CpuBound);
        assert_eq!(check(Kind::Waiting, change), [Contradiction::Trial { change, shows }]);
        assert_eq!(check(Kind::CpuBound, change), []);
        assert_eq!(check(Kind::Headroom, change), [], "no limit is met");
        assert_eq!(check(Kind::Waiting, Change::NoBalancer), [], "it says that it was the app");
    }

    #[test]
    fn no_remedy_asks_for_what_would_not_help() {
        let limited_by = Kind::Waiting;
        let mut full = model(1, 0.030, 0.030, 2.0);
        full.fit(&[saturation(2, 63.0, 0.030, 1.95)]);
        let wrong = check(&full, limited_by, &[limited_by], &[], &[]);
        assert_eq!(wrong, [Contradiction::Remedy { limited_by, instances: 2 }]);
        assert_eq!(check(&model(8, 0.0225, 1e-4, 2.0), limited_by, &[limited_by], &[], &[]), []);
    }
}
