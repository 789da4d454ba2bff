//! How far a plan can be relied on: its verdict, and whether what speaks against it may change the answer.

use capacity::{Contradiction, Workload};

use super::knowledge::Knowledge;
use super::observation::Observation;
use super::{Depth, SuspectAnswer};
use crate::document::plan::{self, Plan};
use crate::document::verdict::{Verdict, distinct};
use crate::words;
use crate::words::number::{counted, percent, rate, time};

/// The plan is as good as the measurements that it rests on: the ladder, two instances, and the last
/// of the recommended count. That one below is overloaded is expected. Contradictions and instances that were still
/// cold leave no answer where the count rests on the model.
pub fn judge(known: &Knowledge<'_>, plan: &mut Plan, contradictions: &[Contradiction]) {
    // Without a workload every disturbance changes what was measured.
    let (instances, could_differ) = match (&plan.recommendation, &plan.capacity) {
        (Some(answer), _) => (Some(answer.instances), answer.could_differ),
        (None, Some(_)) => (None, true),
        (None, None) => return,
    };
    let confirmed = instances.and_then(|n| known.confirmed_at(n));
    let is_measured = plan.recommendation.as_ref().is_some_and(|r| is_measured(known, r));
    let rests_on: Vec<_> =
        known.facts().rungs.iter().chain(known.second()).chain(confirmed).collect();
    // What may change the answer.
    let mut open = Vec::new();
    for contradiction in contradictions {
        plan.verdict = plan.verdict.max(Verdict::Suspect);
        plan.verdict_reasons.push(words::contradiction::describe(contradiction));
        if contradiction.is_of_the_model() && !is_measured {
            open.push(words::contradiction::describe(contradiction));
        }
    }
    // One less that missed the goal while it was cold might hold it.
    let one_less = instances.and_then(|n| known.confirmed_at(n.checked_sub(1)?));
    open.extend(one_less.and_then(Observation::coldness));
    for o in rests_on {
        if known.is_only_crowded(o) {
            plan.notes.push(crowd(o, known.cores()));
            continue;
        }
        let judged = o.judged(known.unwatched_demand());
        plan.verdict = plan.verdict.max(judged.verdict);
        let is_cold = o.warming.is_some() && !is_measured;
        if is_cold || may_change(known, o, could_differ) {
            open.extend(judged.verdict_reasons.iter().cloned());
        }
        plan.verdict_reasons.extend(judged.verdict_reasons);
    }
    if let Some(slowdown) = known.core_slowdown() {
        let reason = changed_speed(slowdown);
        if !is_measured {
            open.push(reason.clone());
        }
        plan.verdict = plan.verdict.max(Verdict::Suspect);
        plan.verdict_reasons.push(reason);
    }
    if let Some(n) = instances.filter(|_| confirmed.is_none() && known.failing().is_none()) {
        let remedy = match &known.experiment.depth {
            Depth::Sweep { counts, .. } if !counts.contains(&n) => {
                format!(", so add {n} to --counts")
            }
            _ => String::new(),
        };
        open.push(format!("the goal's workload was not measured with {n} running{remedy}"));
    }
    for deaths in known.facts().deaths.values() {
        // Those at the memory limit are told as such.
        let times = deaths.past.restarts.saturating_sub(deaths.past.memory_kills);
        if times > 0 {
            let death = words::crash::describe(&deaths.crashes(times));
            open.push(format!("{death}; see why, and measure again"));
        }
    }
    if !open.is_empty() {
        plan.verdict = plan.verdict.max(Verdict::Suspect);
        plan.verdict_reasons.extend(open.iter().cloned());
    }
    plan.verdict_reasons = distinct(plan.verdict_reasons.iter());
    let is_accepted = known.experiment.suspect == SuspectAnswer::Accepted;
    if let Some(doubt) = open.first().filter(|_| !is_accepted || plan.verdict == Verdict::Invalid) {
        plan.undecided = true;
        let reason = no_answer(plan, doubt);
        plan.recommendation.iter_mut().for_each(|r| r.reason.clone_from(&reason));
        plan.capacity.iter_mut().for_each(|c| c.reason.clone_from(&reason));
    }
}

/// Whether measurements alone decide the count, whatever the model says. They do if the count holds the
/// goal, and one less, warm, does not. They do if no count of instances cures what fails. Without a goal
/// for latency the model shows where the curve bends.
fn is_measured(known: &Knowledge<'_>, answer: &plan::Recommendation) -> bool {
    let goal = known.goal();
    let has_goal = match goal.workload {
        Workload::Open { .. } => true,
        Workload::Closed { .. } => goal.p95.or(goal.p99).is_some(),
    };
    let holds = answer.goal_met && known.confirmed_at(answer.instances).is_some();
    let one_less = known.confirmed_at(answer.instances - 1);
    let is_least = answer.instances == 1 || one_less.is_some_and(|o| o.warming.is_none());
    known.failing().is_some() || (has_goal && holds && is_least)
}

/// Whether the doubt about a measurement may change the answer. The answer's interval already holds what
/// other programs took. If more was sent than could be completed, that is why the goal is missed.
fn may_change(known: &Knowledge<'_>, o: &Observation, could_differ: bool) -> bool {
    let is_disturbed = o.disturbance(known.unwatched_demand()).is_some();
    let is_doubtful = o.probe.verdict > Verdict::Valid && !o.is_crowded && !o.is_overloaded();
    o.probe.verdict == Verdict::Invalid || is_doubtful || (is_disturbed && could_differ)
}

/// What is to be said of cores on which the same work took so many times longer at one time than at another.
fn changed_speed(slowdown: f64) -> String {
    format!(
        "the same work took {slowdown:.2} times as much CPU before some probes as before others: the cores changed \
         their speed; plan again, or on a machine with cores of its own"
    )
}

/// What is to be said of a generator that had to wait for a core that the app used.
fn crowd(o: &Observation, cores: f64) -> String {
    let late = 1.0 - 1.0 / o.crowding;
    let p95 = o.measured().p95.map_or_else(String::new, |p95| {
        format!(", which makes p95 {} to {}", time(p95 / o.crowding), time(p95))
    });
    format!(
        "With {} running, app, balancer and load generator shared {}. The generator waited for a core, so that times \
         are too long by {} at most{p95}; the interval of the answer holds that. More cores, or the load from another \
         machine (`tenfold load`), would tell more exactly.",
        o.instances(),
        crate::words::number::cores(cores),
        percent((late * 100.0).round() / 100.0),
    )
}

/// The sentence for a plan that `doubt` leaves without an answer.
fn no_answer(plan: &Plan, doubt: &str) -> String {
    if let Some(capacity) = &plan.capacity {
        return format!(
            "No answer yet: {doubt}. Nearest: {} --allow-suspect accepts that as the answer.",
            capacity.reason
        );
    }
    let Some(r) = &plan.recommendation else { return String::new() };
    let point = plan.curve.iter().find(|point| point.instances == r.instances);
    let seen = point.and_then(|point| point.measured).map_or_else(String::new, |m| {
        let p95 = m.p95_ms.filter(|_| plan.goal.p95_ms.is_some());
        let p95 = p95.map_or_else(String::new, |ms| format!(", p95 {}", time(ms / 1e3)));
        format!(" ({} requests/s{p95} measured)", rate(m.throughput))
    });
    let range = match (r.low, r.high) {
        (low, high) if low == high => String::new(),
        (low, high) => format!("; {low} to {high} are possible"),
    };
    let nearest = counted(r.instances, "instance");
    format!(
        "No answer yet: {doubt}. Nearest: {nearest}{seen}{range}. --allow-suspect accepts the nearest as the answer."
    )
}

#[cfg(test)]
mod tests;
