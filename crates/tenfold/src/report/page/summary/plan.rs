//! A plan in words.

use super::{Fact, Kind, Part, PartName, Status, Summary};
use crate::document::plan::Plan;
use crate::document::verdict::Verdict;
use crate::report::plan::{Rows, answer, behind, cost, curve, doubt, goal, held_to, one_instance};
use crate::words;
use crate::words::number::duration;

pub fn of(plan: &Plan) -> Summary {
    let (status, word) = status(plan);
    Summary {
        kind: Kind::Plan,
        subject: words::shell::line(&plan.command),
        status,
        status_word: word.to_owned(),
        answer: answer(plan),
        doubt: doubt(plan),
        goal: Some(goal(&plan.goal)),
        parts: parts(plan),
        facts: facts(plan),
        repeat: plan.invocation.as_deref().map(words::shell::line),
        latency: Vec::new(),
        statistics: Vec::new(),
    }
}

fn status(plan: &Plan) -> (Status, &'static str) {
    let has_goal = plan.recommendation.is_some();
    match plan.answer() {
        None => (Status::Unclear, "no answer"),
        _ if plan.verdict == Verdict::Invalid || plan.undecided => (Status::Unclear, "not decided"),
        _ if plan.is_met() && has_goal => (Status::Met, "goal met"),
        _ if plan.is_met() => (Status::Measured, "measured"),
        _ if has_goal => (Status::NotMet, "goal not met"),
        _ => (Status::NotMet, "failing"),
    }
}

fn parts(plan: &Plan) -> Vec<Part> {
    let findings = plan.findings.iter().map(|finding| {
        let share = finding.confidence * 100.0;
        format!("{} ({share:.0} %): {}. → {}.", finding.kind, finding.evidence, finding.remedy)
    });
    let tried = plan.interventions.iter().map(|trial| format!("{}.", trial.text));
    let ended = plan.stop.as_ref().map(|stop| format!("Measuring ended: {}.", stop.explanation));
    let notes = plan.notes.iter().cloned().chain(ended);
    let counts = curve(plan, Rows::Relevant).map(|section| Part {
        // The page draws all counts.
        lines: Vec::new(),
        ..Part::of(PartName::Curve, &section)
    });
    [
        counts,
        Part::lines(PartName::Findings, "Findings", findings.collect()),
        plan.cost.as_ref().map(|priced| Part::of(PartName::Cost, &cost(priced))),
        one_instance(plan).map(|section| Part::of(PartName::OneInstance, &section)),
        Part::lines(PartName::Tried, "What was tried", tried.collect()),
        Part::lines(PartName::Notes, "Notes", notes.collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn facts(plan: &Plan) -> Vec<Fact> {
    let shared = "shared by app, balancer and load generator";
    let mut machine = super::machine(&plan.machine);
    machine.value = format!("{}, {shared}", machine.value);
    [
        Some(Fact::new("Command", words::shell::line(&plan.command))),
        plan.request.as_ref().map(|request| Fact::new("Request", request.clone())),
        Some(machine),
        held_to(plan).map(|limits| Fact::new("Limits", limits)),
        behind(plan).map(|balancer| Fact::new("Balancer", balancer)),
        super::started(&plan.started_at),
        Some(Fact::new("Measured for", duration(plan.duration_s))),
        Some(super::version()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
