//! A comparison in words.

use super::{Fact, Kind, LatencyCurve, Part, PartName, Status, Summary};
use crate::document::comparison::{Comparison, Named, Outcome};
use crate::document::verdict::Verdict;
use crate::report::compare::{complaints, method, side, table};
use crate::words;

pub fn of(comparison: &Comparison, a: &[Named], b: &[Named]) -> Summary {
    let (status, word) = status(comparison);
    let metrics = Part::table(PartName::Sides, "Metrics of both sides", table(comparison));
    let notes = comparison.notes.iter().map(|note| format!("{note}.")).collect();
    let sides = [("A", a), ("B", b)];
    Summary {
        kind: Kind::Compare,
        subject: format!("{} and {}", comparison.a.runs.join(", "), comparison.b.runs.join(", ")),
        status,
        status_word: word.to_owned(),
        answer: std::iter::once(answer(comparison)).chain(complaints(comparison)).collect(),
        doubt: None,
        goal: None,
        parts: [
            Some(Part { lines: vec![method(comparison)], ..metrics }),
            Part::lines(PartName::Notes, "Notes", notes),
        ]
        .into_iter()
        .flatten()
        .collect(),
        facts: vec![
            Fact::new("A", after_name(&side("A", &comparison.a))),
            Fact::new("B", after_name(&side("B", &comparison.b))),
            super::version(),
        ],
        repeat: comparison.invocation.as_deref().map(words::shell::line),
        latency: sides.into_iter().filter_map(|(name, runs)| merged(name, runs)).collect(),
        statistics: Vec::new(),
    }
}

fn after_name(side: &str) -> String {
    side.split_once(": ").map_or(side, |(_, rest)| rest).to_owned()
}

/// Which metrics differ beyond the noise, in a sentence.
fn answer(comparison: &Comparison) -> String {
    let of = |outcome: Outcome| {
        let rows = comparison.metrics.iter().filter(move |row| row.outcome == outcome);
        rows.map(|row| row.metric.as_str()).collect::<Vec<_>>().join(", ")
    };
    let parts = [(Outcome::Worse, "worse"), (Outcome::Better, "better")].map(|(outcome, word)| {
        let names = of(outcome);
        (!names.is_empty()).then(|| format!("{word} in {names}"))
    });
    let differs: Vec<String> = parts.into_iter().flatten().collect();
    match differs.is_empty() {
        false => format!("B is {} than A.", differs.join(", and ")),
        true if nothing_is_known(comparison) => "Whether A and B differ cannot be told.".to_owned(),
        true => "No difference is seen between A and B.".to_owned(),
    }
}

fn nothing_is_known(comparison: &Comparison) -> bool {
    comparison.metrics.iter().all(|row| row.outcome == Outcome::Unknown)
}

fn status(comparison: &Comparison) -> (Status, &'static str) {
    let has = |outcome| comparison.metrics.iter().any(|row| row.outcome == outcome);
    let invalid = [&comparison.a, &comparison.b].iter().any(|s| s.verdict == Verdict::Invalid);
    match (has(Outcome::Worse), has(Outcome::Better)) {
        _ if invalid || nothing_is_known(comparison) => (Status::Unclear, "cannot be told"),
        _ if comparison.metrics.iter().any(|row| row.broken) => {
            (Status::NotMet, "worse than allowed")
        }
        (true, false) => (Status::NotMet, "worse"),
        (false, true) => (Status::Met, "better"),
        (true, true) => (Status::Measured, "better and worse"),
        (false, false) => (Status::Measured, "no difference seen"),
    }
}

/// All runs of a side as one.
fn merged(name: &str, runs: &[Named]) -> Option<LatencyCurve> {
    let histograms = runs.iter().map(|run| run.document.histograms.response.histogram());
    let all = histograms.reduce(|mut all, one| {
        all += one;
        all
    });
    super::latency(name, &all?)
}
