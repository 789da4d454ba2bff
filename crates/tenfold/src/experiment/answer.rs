//! The plan from what is known.

use std::time::Duration;

use capacity::{Answer, Contradiction, Kind};

use super::calibration::{MIN_CURVE_LENGTH, NEIGHBOURS};
use super::knowledge::Knowledge;
use super::observation::Observation;
use super::{Depth, Experiment, verdict};
use crate::config::Pattern;
use crate::document::plan::{self, Plan, Stop, StopReason};
use crate::document::resources::{Limits, Machine};
use crate::document::times::to_ms;
use crate::document::verdict::Verdict;
use crate::process::exit_code::Signal;
use crate::words;

/// Everything that can be said, be it the whole answer or the part that a signal left.
pub fn plan(
    known: &Knowledge<'_>,
    started_at: String,
    elapsed: Duration,
    signal: Option<Signal>,
) -> Plan {
    let experiment = known.experiment;
    let mut plan = Plan {
        schema: plan::SCHEMA.to_owned(),
        started_at,
        duration_s: (elapsed.as_secs_f64() * 10.0).round() / 10.0,
        command: experiment.runnable.source.words(),
        app: None,
        invocation: None,
        request: Some(experiment.workload.request.name()),
        machine: Machine::of(&known.machine),
        limits: Limits::of(&experiment.runnable.app.limits),
        balancer: None,
        goal: goal(experiment),
        verdict: Verdict::Valid,
        verdict_reasons: Vec::new(),
        slots: None,
        balancer_slots: None,
        idle_connections: known.facts().idle_connections,
        probes: probes(known).map(|o| o.judged(known.unwatched_demand())).collect(),
        basis: known.basis(),
        curve: Vec::new(),
        findings: Vec::new(),
        interventions: Vec::new(),
        recommendation: None,
        capacity: None,
        undecided: false,
        notes: known.notes(),
        stop: known.facts().stop.clone(),
        cost: None,
    };
    if signal.is_some() {
        plan.notes.push("Interrupted: this is what was known by then.".to_owned());
        let explanation = "a signal came".to_owned();
        plan.stop = Some(Stop { reason: StopReason::Interrupted, explanation });
    }
    let contradictions = answer(known, &mut plan);
    plan.balancer = balancer(known, &plan);
    verdict::judge(known, &mut plan, &contradictions);
    plan
}

/// Answers the question, and returns what the answer contradicts itself in.
fn answer(known: &Knowledge<'_>, plan: &mut Plan) -> Vec<Contradiction> {
    let Some((model, bounds)) = known.model() else { return Vec::new() };
    if model.ladder.is_saturated() {
        plan.slots = Some(model.slots);
    }
    plan.balancer_slots = known.balancer_slots();
    let trials = known.interventions(model);
    plan.interventions = trials.iter().map(plan::Trial::from).collect();
    if known.experiment.depth == Depth::Capacity {
        let two = known.facts().second.as_ref().map(Observation::throughput);
        let mut answer = capacity::instance_capacity(model, bounds, two);
        answer.uneven = known.uneven();
        let findings = known.findings(model, 1, answer.limited_by, false);
        plan.findings = findings.iter().map(plan::Finding::from).collect();
        plan.capacity = Some(plan::InstanceCapacity::from(&answer));
        return Vec::new();
    }
    let (goal, measured) = (known.goal(), known.measurements());
    let mut answer = capacity::recommend(model, &goal, bounds, &measured);
    if answer.limited_by == Kind::SharedDependency {
        answer.reason.full_dependency = known.full_dependency();
    }
    answer.reason.uneven = known.uneven();
    let mut counts = match &known.experiment.depth {
        Depth::Sweep { counts, .. } => counts.clone(),
        Depth::Confirm | Depth::Capacity => {
            (1..=(answer.instances + NEIGHBOURS).max(MIN_CURVE_LENGTH).min(bounds.max_instances))
                .collect()
        }
    };
    counts.sort_unstable();
    let curve = capacity::curve(model, &goal, &measured, counts);
    plan.curve = curve.iter().map(plan::Point::from).collect();
    if answer.reason.uneven.is_some() {
        plan::Point::mark_extrapolated(&mut plan.curve);
    }
    let findings = known.findings(model, answer.instances, answer.limited_by, answer.goal_met);
    plan.findings = findings.iter().map(plan::Finding::from).collect();
    let contradictions = capacity::contradictions(&Answer {
        model,
        goal: &goal,
        recommendation: &answer,
        findings: &findings,
        trials: &trials,
        measured: &known.valid_measurements(),
        saturated: known.valid_saturation(),
    });
    plan.recommendation = Some(plan::Recommendation::from(&answer));
    contradictions
}

/// The balancer, where it is not Tenfold's own.
fn balancer(known: &Knowledge<'_>, plan: &Plan) -> Option<plan::Balancer> {
    let settings = &known.experiment.balancer;
    let name = settings.program.name();
    let version = known.facts().balancer.as_deref()?.trim_start_matches(name).trim().to_owned();
    let policy = settings.program.policy();
    let answer = plan.recommendation.as_ref().map(|answer| answer.instances);
    let cost = known.balancing_cost(answer).map(|cost| {
        let text = words::balancing::describe(&cost, answer, &known.goal(), name, policy);
        plan::BalancingCost::new(&cost, text)
    });
    let (program, policy) = (name.to_owned(), policy.to_owned());
    Some(plan::Balancer { program, version, policy, threads: settings.threads, cost })
}

fn probes<'a>(known: &'a Knowledge<'_>) -> impl Iterator<Item = &'a Observation> {
    known.facts().rungs.iter().chain(&known.facts().second).chain(&known.facts().confirmed)
}

pub fn goal(experiment: &Experiment) -> plan::Goal {
    let ms = |time: Duration| to_ms(time.as_secs_f64());
    let (users, think, rate) = match experiment.workload.pattern {
        _ if experiment.depth == Depth::Capacity => (None, None, None),
        Pattern::Closed { users, think } => (Some(users), Some(think), None),
        Pattern::Open { rate } => (None, None, Some(rate)),
    };
    plan::Goal {
        rate,
        users,
        think_ms: think.map(ms),
        p95_ms: experiment.goal.p95.map(ms),
        p99_ms: experiment.goal.p99.map(ms),
        max_error_ratio: experiment.goal.max_errors,
    }
}
