//! Explains what limits the recommended count if one instance and two did not show it. The reason of an
//! answer and the outcome of a trial are always findings.

use super::dependency;
use super::diagnosis::diagnose;
use super::evidence::Evidence;
use super::instance;
use super::result::{Details, Finding, Remedy, clarity, found};
use super::trial::{Change, Trial};
use crate::calibration::{CORES_LIMIT, MIN_GAIN, MODELLED_CONFIDENCE};
use crate::limit_kind::Kind;
use crate::model::network::Model;

/// Every finding that the evidence supports. Adds one each for the limit of `n` instances and for what
/// trials showed, unless it is among them.
pub fn explain(
    model: &Model,
    e: &Evidence,
    n: usize,
    limited_by: Kind,
    trials: &[Trial],
) -> Vec<Finding> {
    let mut findings = diagnose(model, e);
    let is_alone = findings.iter().any(|f| f.kind == Kind::Headroom);
    let tried = trials.iter().filter(|trial| !is_alone && trial.is_of_the_app());
    for kind in std::iter::once(limited_by).chain(tried.map(|trial| trial.shows)) {
        if findings.iter().any(|f| f.kind == kind) {
            continue;
        }
        if let Some(finding) = modelled(model, e, kind, n) {
            let place = findings.iter().position(|f| f.kind > kind);
            findings.insert(place.unwrap_or(findings.len()), finding);
        }
    }
    if no_more_helps(model, n) {
        for f in findings.iter_mut().filter(|f| f.kind != limited_by && advises_instances(f.kind)) {
            f.remedy = Remedy::OtherLimit { is_made_up: n > 1, limit: limited_by };
        }
    }
    dependency::name(&mut findings, &e.dependencies);
    findings
}

/// Whether the remedy of such a finding is to add instances.
pub(crate) fn advises_instances(kind: Kind) -> bool {
    matches!(kind, Kind::Serialized | Kind::Waiting | Kind::ConnectionLimited | Kind::CpuThrottled)
}

/// Whether one more instance than `n` gains nothing, as far as that is known.
pub(crate) fn no_more_helps(model: &Model, n: usize) -> bool {
    model.ladder.is_saturated() && model.capacity(n + 1) < MIN_GAIN * model.capacity(n)
}

/// A finding of this kind, from the model of `n` instances.
fn modelled(model: &Model, e: &Evidence, kind: Kind, n: usize) -> Option<Finding> {
    let curve = |cpu_limit| Details::Curve {
        instances: n,
        now: model.capacity(n),
        next: model.capacity(n + 1),
        cpu_limit,
    };
    let (details, remedy) = match kind {
        Kind::CpuBound => return cpu_bound(model, e, n),
        Kind::Waiting => return instance::waiting_found(model, e),
        Kind::Serialized => return instance::serialized_found(model),
        Kind::ConnectionLimited => return instance::pool_found(model, e),
        Kind::Oversubscribed => (curve(None), Remedy::NoMoreInstances),
        Kind::SharedDependency => (curve(Some(model.cpu_limit(n))), Remedy::InspectShared),
        Kind::BalancerBound => {
            (Details::BalancerCarries(model.relay_limit()), Remedy::BalancerThreads)
        }
        Kind::GeneratorBound => {
            (Details::GeneratorSends(model.relay_limit()), Remedy::SecondMachine)
        }
        Kind::MemoryPressure => (Details::MemoryFits { instances: n }, Remedy::MemoryOrSmaller),
        Kind::Failing | Kind::UnevenInstances | Kind::CpuThrottled | Kind::Headroom => return None,
    };
    found(kind, MODELLED_CONFIDENCE, details, remedy)
}

/// The finding that the cores limit `n` instances.
fn cpu_bound(model: &Model, e: &Evidence, n: usize) -> Option<Finding> {
    let demand = model.cpu_limit(n).recip() * model.cores;
    let tried = e.trial(Change::OneCoreLess);
    let tried = tried.map(|trial| (trial.instances, trial.after, trial.before));
    // What the instances could complete by themselves, over what the cores carry.
    let (perhaps, clearly) = CORES_LIMIT;
    let clear = clarity(model.own_limit(n) / model.cpu_limit(n), perhaps, clearly);
    found(
        Kind::CpuBound,
        e.confidence(Kind::CpuBound, clear),
        Details::CoresCarry { demand, cores: model.cores, carried: model.cpu_limit(n), tried },
        Remedy::CheaperRequests,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::instance_limit::instance_limit;
    use crate::finding::question::Question;
    use crate::goal::Goal;
    use crate::model::network::CoreTrial;
    use crate::queueing::workload::Workload;
    use crate::recommendation::search::{Bounds, Recommendation, recommend};
    use crate::testing::open;
    use crate::testing::{model, saturation};

    /// The answer and the findings for an app. Two instances of it were measured on two cores.
    fn explained(m: &mut Model, e: &Evidence, goal: &Goal) -> (Recommendation, Vec<Finding>) {
        m.fit(&e.two.into_iter().collect::<Vec<_>>());
        let bounds = Bounds {
            max_instances: 8,
            memory: None,
            instance_limit: instance_limit(m, e),
            failing: None,
            slowdown: 1.0,
        };
        let answer = recommend(m, goal, &bounds, &[]);
        let trials: Vec<_> = e.trials.iter().cloned().chain(Trial::second_instance(m, e)).collect();
        let findings = explain(m, e, answer.instances, answer.limited_by, &trials);
        (answer, findings)
    }

    // Eight threads that sleep 20 ms, 60 users: two keep 1.3 of 2 cores busy, and lose a third with one of them.
    #[test]
    fn the_outcome_of_a_trial_is_a_finding_and_the_reason() {
        let (one, two) = (saturation(1, 355.0, 2.2e-3, 0.9), saturation(2, 485.0, 2.5e-3, 1.3));
        let e = Evidence { two: Some(two), ..Evidence::new(one) };
        let mut m = model(8, 0.0225, 2.2e-3, 2.0);
        let question = Question::of_two(&m, &e).unwrap();
        let trial = question.answer(2, 485.0, 320.0);
        m = m.knowing(Some(CoreTrial { own_cores: two.own_cores(), shows: trial.shows }));
        let e = Evidence { trials: vec![trial], ..e };
        let users =
            Goal { workload: Workload::Closed { users: 60, think: 0.1 }, ..open(1.0, 0.06) };
        let (answer, findings) = explained(&mut m, &e, &users);
        assert_ne!(answer.limited_by, Kind::SharedDependency);
        let kinds: Vec<_> = findings.iter().map(|f| f.kind).collect();
        assert_eq!(kinds, [Kind::CpuBound, Kind::Waiting]);
        let Details::CoresCarry { tried, .. } = &findings[0].details else {
            panic!("{findings:?}")
        };
        assert_eq!(*tried, Some((2, 320.0, 485.0)));
    }

    // Six of ten milliseconds are CPU. A request does not wait for most of its time, and the cores are not
    // full.
    #[test]
    fn a_limit_between_two_signatures_is_found_all_the_same() {
        let mut m = model(2, 0.01, 0.006, 8.0);
        let e = Evidence {
            two: Some(saturation(2, 400.0, 0.006, 2.4)),
            ..Evidence::new(saturation(1, 200.0, 0.006, 1.2))
        };
        let (answer, findings) = explained(&mut m, &e, &open(500.0, 0.1));
        assert!(findings.iter().any(|f| f.kind == answer.limited_by), "{answer:?}: {findings:?}");
    }

    #[test]
    fn no_remedy_asks_for_instances_that_would_not_help() {
        let mut m = model(8, 0.0225, 2.2e-3, 2.0);
        let e = Evidence {
            two: Some(saturation(2, 660.0, 2.5e-3, 1.9)),
            ..Evidence::new(saturation(1, 355.0, 2.2e-3, 0.9))
        };
        let users = Goal {
            workload: Workload::Closed { users: 200, think: 0.1 },
            p95: None,
            ..open(1.0, 1.0)
        };
        let (answer, findings) = explained(&mut m, &e, &users);
        assert_eq!(answer.limited_by, Kind::CpuBound);
        let waiting = findings.iter().find(|f| f.kind == Kind::Waiting).unwrap();
        assert!(matches!(waiting.remedy, Remedy::OtherLimit { limit: Kind::CpuBound, .. }));
    }
}
