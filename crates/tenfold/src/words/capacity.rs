//! What one instance and two carry, where no workload was given.

use capacity::InstanceCapacity;
use capacity::recommendation::instance_capacity::{CapacityReason, Second};

use super::limit;
use super::number::rate;
use super::recommendation::{busy, failure};
use super::uneven;

const WHAT_TO_ADD: &str = "To learn how many instances you need, say how the app is used: add --users N --think 1s \
                           or --rate R, and --p95 TIME.";

/// All of it in words.
pub fn reason(answer: &InstanceCapacity) -> String {
    match answer.reason {
        CapacityReason::Failing(failing) => format!(
            "What one instance carries is not known: {}; mend that first, for more instances would fail as often.",
            failure(failing)
        ),
        CapacityReason::Carries { limit, second } => {
            let one = rate(answer.one);
            let first = match limit {
                None => {
                    format!(
                        "One instance carries {one} requests/s or more: its limit was not reached"
                    )
                }
                Some(limit) => format!(
                    "One instance carries {one} requests/s, limited by {}",
                    limit::describe(&limit)
                ),
            };
            let differs = answer.uneven.as_ref().map(uneven::differs);
            let differs = differs.map_or_else(String::new, |differs| format!("; {differs}"));
            format!("{first}; {}{differs}. {WHAT_TO_ADD}", self::second(second))
        }
    }
}

fn second(second: Second) -> String {
    match second {
        Second::NotAllowed => "more than one was not allowed (--max-instances)".to_owned(),
        Second::NoRoom => "no more than one fits into the memory".to_owned(),
        Second::NotMeasured => "what two carry was not measured".to_owned(),
        Second::Unknown { carried } => {
            format!("two carried {} with twice as many requests at once", rate(carried))
        }
        Second::Slower { carried } => {
            format!("two carry {}, so a second would make it slower", rate(carried))
        }
        Second::NoHelp { carried, why } => {
            let why = why.map_or_else(String::new, |part| format!(", {}", busy(part)));
            format!("two carry {}, so a second would not help{why}", rate(carried))
        }
        Second::Helps { carried } => format!("two carry {}, so a second helps", rate(carried)),
    }
}

#[cfg(test)]
mod tests;
