//! Why a count is recommended: how many, limited by what, what would limit next, and whether more would help.

use capacity::recommendation::reason::{
    BusyPart, CountBound, Head, NextDetails, Obstacle, OneMore, Performance,
};
use capacity::{Failing, Kind, LimitDetails, NextLimit, Recommendation};

use super::dependency;
use super::limit;
use super::number::{about, counted, percent, rate, time};
use super::uneven;

/// The whole reason, as one sentence.
pub fn reason(r: &Recommendation) -> String {
    let reason = &r.reason;
    let parts = [
        Some(head(r.instances, &reason.head)),
        reason.unexplained.map(unexplained),
        reason.limit.as_ref().map(|limit| match (limit, &reason.full_dependency) {
            (LimitDetails::Shared, Some(used)) => format!("limited by {}", dependency::limit(used)),
            (limit, _) => limited_by(limit),
        }),
        reason.uneven.as_ref().map(uneven::differs),
        reason.one_more.map(|more| one_more(r.instances, more)),
        r.next_limit.zip(reason.next).map(|(next, details)| next_limit(r.instances, next, details)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ") + "."
}

fn head(n: usize, head: &Head) -> String {
    match *head {
        Head::OutOfReach(obstacle) => {
            format!("The goal is out of reach here: {}", out_of_reach(n, obstacle))
        }
        Head::Enough { performance: does, fewer } => {
            let fewer = fewer.map_or_else(String::new, |does| {
                let s = if n == 2 { "s" } else { "" };
                format!(", {} complete{s} less{}", n - 1, performance(does))
            });
            format!("Run {}: enough for these users{}{fewer}", count(n), performance(does))
        }
        Head::Short { bound, performance: does, added, enough } => {
            let why = match bound {
                CountBound::Bend => ": the curve bends there",
                CountBound::Memory => ", as many as fit into the memory",
                CountBound::Allowed => ", the most allowed (--max-instances)",
            };
            let enough = enough.map_or_else(String::new, |(enough, best)| {
                format!(
                    ", and about {enough} are enough for these users ({} requests/s)",
                    about(best)
                )
            });
            format!(
                "Run {}{}{why}; a further one would add {} requests/s{enough}; --p95 says how fast it has to be",
                count(n),
                performance(does),
                rate(added)
            )
        }
        Head::Holds { has_bound, is_measured, performance: does, fewer } => {
            let (it, they) = match has_bound {
                true => ("holds the goal", "hold the goal"),
                false => ("carries the rate", "carry the rate"),
            };
            let holds = match (is_measured, n) {
                (true, 1) => format!("it {it}"),
                (true, _) => format!("they {they}"),
                (false, 1) => format!("nothing measured confirms it, but it should {they}"),
                (false, _) => format!("nothing measured confirms it, but they should {they}"),
            };
            let fewer = fewer.map_or_else(String::new, |(is_measured, does)| {
                let verb = match is_measured {
                    false => "would",
                    true if n == 2 => "does",
                    true => "do",
                };
                format!(", {} {verb} not{}", n - 1, performance(does))
            });
            format!("Run {}: {holds}{}{fewer}", count(n), performance(does))
        }
    }
}

fn out_of_reach(n: usize, obstacle: Obstacle) -> String {
    let (nearest, s) = (count(n), if n == 1 { "s" } else { "" });
    match obstacle {
        Obstacle::Failing(failing) => failure(failing),
        Obstacle::RequestAlone { alone, percentile, bound, performance: does } => format!(
            "a request alone takes {}, {percentile} is to be within {}, and no count of instances makes a single \
             request faster; {nearest} come{s} nearest{}",
            time(alone),
            time(bound),
            performance(does)
        ),
        Obstacle::Behind { done, sent } => {
            format!("{nearest} complete{s} {} of {} requests/s", rate(done), rate(sent))
        }
        Obstacle::Nearest(does) => format!("{nearest} come{s} nearest{}", performance(does)),
    }
}

/// How the app fails without an overload.
pub fn failure(failing: Failing) -> String {
    match failing {
        Failing::Requests(share) => {
            format!("{} of the requests fail without any overload", percent(share))
        }
        Failing::Deaths(deaths) => format!("an instance died {deaths} times while it was measured"),
    }
}

/// In parentheses, after the count.
fn performance(performance: Performance) -> String {
    let measured = |is_measured| if is_measured { "measured" } else { "predicted" };
    let said = match performance {
        Performance::NoAnswer => "no answer came".to_owned(),
        Performance::Failed(share) => format!("{} of the requests failed", percent(share)),
        Performance::Behind { done, sent } => {
            format!("{} of {} requests/s measured", rate(done), rate(sent))
        }
        Performance::Percentile { name, time: value, is_measured } => {
            format!("{name} {} {}", time(value), measured(is_measured))
        }
        Performance::Slowest(value) => format!("slowest answer {} measured", time(value)),
        Performance::Endless => "the queue would grow without end".to_owned(),
        Performance::Throughput { rate: value, is_measured, sent } => {
            let sent = sent.map_or_else(String::new, |sent| {
                format!(", as {} were sent by chance", rate(sent))
            });
            format!("{} requests/s {}{sent}", rate(value), measured(is_measured))
        }
    };
    format!(" ({said})")
}

/// Said where less was measured than the model explains.
fn unexplained((measured, predicted): (f64, f64)) -> String {
    format!(
        "but {} requests/s were completed where {} were predicted: something limits that was not seen in the first \
         probes; measure again with nothing else on the machine, and a larger --budget",
        rate(measured),
        rate(predicted)
    )
}

fn limited_by(details: &LimitDetails) -> String {
    match details {
        LimitDetails::Nothing => "nothing limits yet".to_owned(),
        limit => format!("limited by {}", limit::describe(limit)),
    }
}

fn one_more(n: usize, more: OneMore) -> String {
    let next = ordinal(n + 1);
    match more {
        OneMore::FailsAsOften => "more instances would fail as often".to_owned(),
        OneMore::NotNeeded { raises_to } => {
            let raises = raises_to.map_or_else(String::new, |most| {
                format!(", and would raise the most they complete to {} requests/s", rate(most))
            });
            format!("{next} is not needed{raises}")
        }
        OneMore::Slower => format!("{next} would make it slower"),
        OneMore::NoHelp(part) => format!("{next} would not help, {}", busy(part)),
        OneMore::UsersAsk { users, rate: most } => {
            let ask =
                if users == 1 { "1 user asks".to_owned() } else { format!("{users} users ask") };
            format!("{next} would not help: {ask} for no more than {} requests/s", rate(most))
        }
        OneMore::NoMoreFit(1) => "no more than one fits into the memory".to_owned(),
        OneMore::NoMoreFit(most) => format!("no more than {most} fit into the memory"),
        OneMore::NotAllowed(1) => "more than one was not allowed (--max-instances)".to_owned(),
        OneMore::NotAllowed(most) => {
            format!("more than {most} instances were not allowed (--max-instances)")
        }
    }
}

/// Why more instances do not help.
pub fn busy(part: BusyPart) -> &'static str {
    match part {
        BusyPart::Cores => "for the cores are busy",
        BusyPart::Shared => "for the shared part is busy",
        BusyPart::Balancer => "for the balancer is busy",
    }
}

fn next_limit(now: usize, next: NextLimit, details: NextDetails) -> String {
    let at = next.at_instances;
    let from = format!("from {}{at} on", if at > now + 1 { "about " } else { "" });
    match (details, next.kind) {
        (NextDetails::Now(limit), _) => {
            format!("the next limit would be {}", limit::describe(&limit))
        }
        (_, Kind::MemoryPressure) => format!("the memory would be full at {at}"),
        (_, Kind::BalancerBound) => format!("one thread of the balancer would limit {from}"),
        (_, Kind::GeneratorBound) => format!("the load generator would limit {from}"),
        (_, Kind::SharedDependency) => format!("what they share would limit {from}"),
        (NextDetails::Later { cores, carried }, _) => {
            format!("the {cores} cores would limit {from} (about {} requests/s)", about(carried))
        }
    }
}

fn count(n: usize) -> String {
    counted(n, "instance")
}

/// "a third", "a 21st": the next instance in words.
fn ordinal(n: usize) -> String {
    const WORDS: [&str; 9] =
        ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    if let Some(word) = n.checked_sub(2).and_then(|i| WORDS.get(i)) {
        return format!("{} {word}", if *word == "eighth" { "an" } else { "a" });
    }
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{} {n}{suffix}", if n == 11 || n == 18 || n / 10 == 8 { "an" } else { "a" })
}

#[cfg(test)]
mod tests;
