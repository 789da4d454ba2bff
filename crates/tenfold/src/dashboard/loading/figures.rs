//! A running load as a value.

use std::time::Duration;

use load::{Demand, Present, Reason, Report};

use super::super::model::load::{Current, Judgement, Load, Phase};
use crate::document::load::Order;
use crate::document::times::times;
use crate::document::verdict::Verdict;
use crate::report::page::summary::Status;
use crate::words::number::time;

/// What is shorter is too short to judge, whatever seems wrong with it.
const EARLY: Duration = Duration::from_secs(5);

/// At this moment.
pub fn of(
    id: u32,
    order: &Order,
    goal_p95_ms: Option<f64>,
    report: &Report,
    present: &Present,
) -> Load {
    let (users, users_goal, ramp, rate) = match present.demand {
        Demand::Users { now, goal, ramp } => (Some(now), Some(goal), ramp, None),
        Demand::Rate(rate) => (None, None, None, Some(rate)),
    };
    let seconds = report.duration.as_secs_f64();
    let response = times(report.response.counts());
    let verdict = judgement(report);
    let (status, sentence) = judged(response.p95, goal_p95_ms, verdict, report.is_overloaded());
    Load {
        id,
        state: phase(order, present, users != users_goal),
        method: order.method.clone(),
        target: order.target.clone(),
        workload: order.workload.clone(),
        started_at: jiff::Timestamp::try_from(report.started_at)
            .map_or_else(|_| String::new(), |at| at.to_string()),
        elapsed_ms: present.elapsed.as_millis() as u64,
        length_ms: order.length.map(|length| length.as_millis() as u64),
        users,
        users_goal,
        ramp,
        rate,
        phase: present.phase.clone(),
        steered: present.steered,
        requests: report.requests,
        failures: report.error_count(),
        throughput: report.throughput,
        p95_ms: response.p95,
        generator_cores: if seconds > 0.0 { report.cpu_seconds / seconds } else { 0.0 },
        current: Current::default(),
        verdict,
        verdict_reasons: match verdict {
            Judgement::TooEarly => Vec::new(),
            _ => report.reasons.iter().map(ToString::to_string).collect(),
        },
        goal_p95_ms,
        status,
        sentence,
        run: None,
    }
}

fn phase(order: &Order, present: &Present, is_ramping: bool) -> Phase {
    match order.length {
        Some(length) if present.elapsed > length => Phase::Ending,
        _ if present.paused => Phase::Paused,
        _ if is_ramping => Phase::Ramping,
        _ => Phase::Running,
    }
}

/// While it runs. What time alone can mend is no fault.
fn judgement(report: &Report) -> Judgement {
    let ripens =
        |reason: &Reason| matches!(reason, Reason::FewSamples { .. } | Reason::TooShort { .. });
    let early = report.duration < EARLY || report.reasons.iter().all(ripens);
    match Verdict::from(report.verdict) {
        Verdict::Valid => Judgement::Valid,
        _ if early => Judgement::TooEarly,
        verdict => verdict.into(),
    }
}

/// Whether the goal is held so far, and the same in a sentence.
fn judged(
    p95: Option<f64>,
    goal: Option<f64>,
    verdict: Judgement,
    overloaded: bool,
) -> (Status, String) {
    let Some(p95) = p95 else {
        return (Status::Unclear, "Too few requests were answered so far to judge.".to_owned());
    };
    let came = format!("95 % of the answers came within {}", time(p95 / 1e3));
    if overloaded && verdict != Judgement::TooEarly {
        return (
            Status::NotMet,
            format!("{came}, and requests come faster than they are answered."),
        );
    }
    match goal {
        _ if verdict == Judgement::TooEarly => {
            (Status::Unclear, format!("{came} so far: too early to judge."))
        }
        _ if verdict == Judgement::Invalid => {
            (Status::Unclear, format!("{came}, but the measurement is invalid."))
        }
        None => (Status::Measured, format!("{came}.")),
        Some(goal) if p95 < goal => {
            (Status::Met, format!("{came}: the goal of {goal} ms is held."))
        }
        Some(goal) => (Status::NotMet, format!("{came}: the goal of {goal} ms is missed.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_held_missed_or_unclear() {
        let status = |p95, goal, verdict| judged(p95, goal, verdict, false).0;
        assert_eq!(status(Some(42.0), Some(100.0), Judgement::Valid), Status::Met);
        assert_eq!(status(Some(142.0), Some(100.0), Judgement::Suspect), Status::NotMet);
        assert_eq!(status(Some(42.0), Some(100.0), Judgement::Invalid), Status::Unclear);
        assert_eq!(status(Some(42.0), None, Judgement::Valid), Status::Measured);
        assert_eq!(status(None, Some(100.0), Judgement::Valid), Status::Unclear);
        let (status, sentence) = judged(Some(42.0), Some(10.0), Judgement::TooEarly, true);
        assert_eq!(status, Status::Unclear);
        assert!(sentence.ends_with("so far: too early to judge."), "{sentence}");
        let (status, sentence) = judged(Some(42.0), None, Judgement::Valid, true);
        assert_eq!(status, Status::NotMet);
        assert!(sentence.ends_with("faster than they are answered."));
    }
}
