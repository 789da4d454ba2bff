//! Bigger or more, in words.

use capacity::cost::Growth;

use super::{Fact, Kind, Part, PartName, Status, Summary};
use crate::cost::Sizing;
use crate::document::verdict::Verdict;
use crate::report::cost::{NO_ANSWER, doubt, goal, remarks, table};
use crate::words;
use crate::words::number::duration;

pub fn of(sizing: &Sizing) -> Summary {
    let (status, word) = status(sizing);
    let answer = sizing.advice.as_ref().map_or(NO_ANSWER, |advice| advice.reason.as_str());
    let tables = [
        (PartName::Bigger, "Bigger: one instance", &sizing.vertical),
        (PartName::More, "More: instances of the smallest size", &sizing.horizontal),
    ];
    let tables = tables.map(|(name, heading, rows)| {
        Part::table(name, heading, table(rows, sizing).without_empty_columns())
    });
    let notes = Part::lines(PartName::Notes, "Notes", remarks(sizing));
    Summary {
        kind: Kind::Cost,
        subject: words::shell::line(&sizing.command),
        status,
        status_word: word.to_owned(),
        answer: vec![answer.to_owned()],
        doubt: doubt(sizing),
        goal: Some(goal(sizing)),
        parts: tables.into_iter().chain(notes).collect(),
        facts: facts(sizing),
        repeat: sizing.invocation.as_deref().map(words::shell::line),
        latency: Vec::new(),
        statistics: Vec::new(),
    }
}

fn status(sizing: &Sizing) -> (Status, &'static str) {
    let mut rows = sizing.vertical.iter().chain(&sizing.horizontal);
    match sizing.verdict {
        Verdict::Invalid => (Status::Unclear, "invalid"),
        _ if !rows.any(|row| row.month_per_thousand.is_some()) => (Status::NotMet, "goal not met"),
        _ if !sizing.advice.as_ref().is_some_and(|advice| advice.growth != Growth::Unknown) => {
            (Status::Unclear, "no answer")
        }
        _ => (Status::Met, "goal met"),
    }
}

fn facts(sizing: &Sizing) -> Vec<Fact> {
    let load = format!("{} requests, {} at once", sizing.requests, sizing.concurrency);
    [
        Some(Fact::new("Command", words::shell::line(&sizing.command))),
        Some(super::machine(&sizing.machine)),
        Some(Fact::new("Load on each", load)),
        Some(Fact::new("Prices", sizing.prices.describe())),
        super::started(&sizing.started_at),
        Some(Fact::new("Measured for", duration(sizing.duration_s))),
        Some(super::version()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
