//! Whether bigger or more instances are cheaper.

use capacity::calibration::SAME_COST;
use capacity::cost::{Advice, AdviceReason, Growth, Lack, Limit, Setting};

use super::number::{cores, rate, time};

/// The advice, in one sentence.
pub fn advice(advice: &Advice, currency: &str) -> String {
    match advice.reason {
        AdviceReason::Priced { winner, loser, lack } => {
            let both = format!(
                "{} {} {} requests/s for {:.2} {currency} a month, {} {} for {:.2}",
                name(&winner),
                if winner.instances == 1 { "carries" } else { "carry" },
                rate(winner.rate),
                winner.month,
                name(&loser),
                rate(loser.rate),
                loser.month
            );
            let why = lack.map_or_else(String::new, |lack| because(lack, &loser, &winner, currency));
            match advice.growth {
                Growth::More => format!("More: {both}{why}."),
                Growth::Bigger => format!("Bigger: {both}{why}."),
                Growth::Either | Growth::Neither | Growth::Unknown => format!(
                    "Either: {both}, which is the same within {:.0} %; one is simpler, several survive a failure.",
                    SAME_COST * 100.0
                ),
            }
        }
        AdviceReason::Only(s) if advice.growth == Growth::Bigger => format!(
            "Bigger: no number of the smallest holds the goal, {} does, with {} requests/s.",
            name(&s),
            rate(s.rate)
        ),
        AdviceReason::Only(s) => format!(
            "More: no single size holds the goal, {} do, with {} requests/s.",
            name(&s),
            rate(s.rate)
        ),
        AdviceReason::NothingHolds => {
            "Neither: nothing that was measured holds the goal; give larger sizes, or a goal that can be held."
                .to_owned()
        }
        AdviceReason::OtherLimit(first) => format!(
            "No answer: from {} on, {}; measure on a machine with more cores, or requests that ask more of the app.",
            name(&first),
            limit(first.limit)
        ),
        AdviceReason::NoCommonSize => {
            "No answer: the lines have no size in common; give --instances that make up the largest of --cpus."
                .to_owned()
        }
    }
}

/// What a limit means for a measured rate.
pub fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Instances => "the instances themselves set the rate",
        Limit::Balancer => "the balancer was full and the instances were not",
        Limit::Generator => "the load generator was full and the instances were not",
        Limit::Machine => {
            "the machine's cores were full before the instances had what they may use"
        }
    }
}

fn because(lack: Lack, loser: &Setting, winner: &Setting, currency: &str) -> String {
    let (lost_in, won_in) = (short(loser), short(winner));
    match lack {
        Lack::UnusedCores { used, size } => {
            let why = if loser.instances == 1 { ": it has too few threads, or waits" } else { "" };
            format!(", because {lost_in} used {used:.2} of {}{why}", cores(size))
        }
        Lack::Demand { lost, won } => format!(
            ", because a request takes {} of CPU in {lost_in} and {} in {won_in}",
            time(lost),
            time(won)
        ),
        Lack::CorePrice { lost, won } => format!(
            ", because a core of {lost_in} costs {lost:.2} {currency} and of {won_in} {won:.2}"
        ),
    }
}

fn name(s: &Setting) -> String {
    format!("{} of {}", s.instances, cores(s.cores))
}

/// In a sentence that has named it.
fn short(s: &Setting) -> String {
    if s.instances == 1 { "the one".to_owned() } else { format!("the {}", s.instances) }
}

#[cfg(test)]
mod tests {
    use capacity::cost::{Answers, advise};

    use super::*;

    fn setting(instances: usize, cores: f64, rate: f64, month: f64) -> Setting {
        let used = Some(instances as f64 * cores);
        let (answers, limit) = (Answers::Hold, Limit::Instances);
        Setting { instances, cores, rate, month, used, answers, limit }
    }

    #[test]
    fn the_reason_is_what_was_measured() {
        let small = setting(1, 0.1, 100.0, 1.0);
        let one = setting(1, 1.0, 1000.0, 10.0);
        let said = |more: Setting| advice(&advise(&[small, one], &[small, more]), "EUR");
        let demanding = setting(10, 0.1, 700.0, 10.0);
        let reason = ", because a request takes 1.43 ms of CPU in the 10 and 1.00 ms in the one.";
        assert!(said(demanding).ends_with(reason), "{}", said(demanding));
        let idle = Setting { used: Some(0.7), ..demanding };
        assert!(said(idle).ends_with(", because the 10 used 0.70 of 1 core."), "{}", said(idle));
        let billed = setting(10, 0.1, 1000.0, 15.0);
        let reason = ", because a core of the 10 costs 15.00 EUR and of the one 10.00.";
        assert!(said(billed).ends_with(reason), "{}", said(billed));
        let same = setting(10, 0.1, 1020.0, 10.0);
        assert!(said(same).starts_with("Either: "));
        let unused = Setting { used: Some(0.6), ..setting(1, 1.0, 338.2, 6.81) };
        let more = advice(&advise(&[small, unused], &[small, setting(10, 0.1, 437.2, 5.1)]), "USD");
        assert_eq!(
            more,
            "More: 10 of 0.1 cores carry 437 requests/s for 5.10 USD a month, 1 of 1 core 338 for 6.81, because the \
             one used 0.60 of 1 core: it has too few threads, or waits."
        );
    }

    #[test]
    fn rows_limited_by_the_generator_give_no_answer() {
        let first = Setting { limit: Limit::Generator, ..setting(3, 0.1, 300.0, 3.0) };
        let unknown = Advice { growth: Growth::Unknown, reason: AdviceReason::OtherLimit(first) };
        let said = advice(&unknown, "USD");
        let start = "No answer: from 3 of 0.1 cores on, the load generator was full and the instances were not;";
        assert!(said.starts_with(start), "{said}");
    }
}
