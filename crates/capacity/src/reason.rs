//! The recommendation in words: one sentence that says how many, limited by what, what would limit
//! next, and whether more would help.

use crate::finding::Kind;
use crate::model::Model;
use crate::recommendation::{NextLimit, Recommendation, Search, WORTH};
use crate::response::{Workload, predict};
use crate::words::{rate, time};

impl Search<'_> {
    /// The sentence for `r`, from all that the search knows.
    pub(crate) fn reason(&self, r: &Recommendation) -> String {
        let parts = [
            self.head(r),
            self.limit_in_words(r),
            self.one_more(r),
            r.next_limit.map(|next| next_in_words(next, self.model)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ") + "."
    }

    fn head(&self, r: &Recommendation) -> Option<String> {
        let n = count(r.instances);
        if !r.goal_met {
            return Some(match self.goal.workload {
                Workload::Open { rate: wanted, .. }
                    if self.model.capacity(r.instances) < wanted =>
                {
                    format!(
                        "The goal is out of reach here: {n} complete{} {} of {} requests/s",
                        if r.instances == 1 { "s" } else { "" },
                        rate(self.model.capacity(r.instances)),
                        rate(wanted)
                    )
                }
                _ => format!(
                    "The goal is out of reach here: {n} come{} nearest{}",
                    if r.instances == 1 { "s" } else { "" },
                    self.latency(r.instances)
                ),
            });
        }
        let holds = format!(
            "Run {n}: {} the goal{}",
            if r.instances == 1 { "it holds" } else { "they hold" },
            self.latency(r.instances)
        );
        let fewer = r.instances.checked_sub(1).filter(|fewer| *fewer > 0).map(|fewer| {
            let does = if fewer == 1 { "does" } else { "do" };
            format!(", {fewer} {does} not{}", self.latency(fewer))
        });
        Some(holds + &fewer.unwrap_or_default())
    }

    /// What a count does about the bound: measured if it was, else predicted.
    fn latency(&self, n: usize) -> String {
        let predicted = predict(self.model, &self.goal.workload, n);
        let Some((name, _)) = self.goal.bound() else {
            return self.measurement(n).map_or_else(
                || format!(" ({} requests/s predicted)", rate(predicted.throughput)),
                |m| format!(" ({} requests/s measured)", rate(m.throughput)),
            );
        };
        if let Some(m) = self.measurement(n) {
            let of_sample = if name == "p95" { m.p95 } else { m.p99 };
            return of_sample.map_or_else(
                || format!(" (slowest answer {} measured)", time(m.max)),
                |value| format!(" ({name} {} measured)", time(value)),
            );
        }
        predicted.response.map_or_else(
            || " (the queue would grow without end)".to_owned(),
            |p| format!(" ({name} {} predicted)", time(if name == "p95" { p.p95 } else { p.p99 })),
        )
    }

    fn limit_in_words(&self, r: &Recommendation) -> Option<String> {
        let each = rate(self.model.ladder.peak());
        let cores = self.model.cores;
        Some(match r.limited_by {
            Kind::Serialized => {
                format!(
                    "limited by each instance serving one request at a time ({each} requests/s)"
                )
            }
            Kind::Waiting => format!(
                "limited by the {} requests that an instance serves at once ({each} requests/s)",
                self.model.slots
            ),
            Kind::CpuBound if self.model.is_cpu_limited(r.instances) => format!(
                "limited by the CPU: the {cores} cores carry {} requests/s, balancer and load generator included",
                rate(self.model.cpu_limit(r.instances))
            ),
            Kind::CpuBound => {
                format!("limited by the one core that an instance keeps busy ({each} requests/s)")
            }
            Kind::Oversubscribed => {
                format!("limited by the CPU: one instance already keeps the {cores} cores busy")
            }
            Kind::SharedDependency => "limited by something that all instances share".to_owned(),
            Kind::Headroom => "nothing limits yet".to_owned(),
            other => format!("limited by {other}"),
        })
    }

    fn one_more(&self, r: &Recommendation) -> Option<String> {
        let (now, more) = (self.model.capacity(r.instances), self.model.capacity(r.instances + 1));
        let next = ordinal(r.instances + 1);
        if more < 0.97 * now {
            return Some(format!("{next} would make it slower"));
        }
        if more < WORTH * now && self.model.is_cpu_limited(r.instances) {
            return Some(format!("{next} would not help, for the cores are busy"));
        }
        if more < WORTH * now && self.is_shared(r.instances) {
            return Some(format!("{next} would not help, for the shared part is busy"));
        }
        if r.goal_met {
            return Some(format!(
                "{next} is not needed, and would raise the most they complete to {} requests/s",
                rate(more)
            ));
        }
        Some(format!(
            "more than {} instances were not allowed (--max-instances)",
            self.bounds.max_instances
        ))
    }
}

fn next_in_words(next: NextLimit, model: &Model) -> String {
    let at = next.at_instances;
    match next.kind {
        Kind::MemoryPressure => format!("the memory would be full at {at}"),
        Kind::SharedDependency => format!("what they share would limit from {at} on"),
        _ => format!(
            "next limit: the {} cores, from {at} instances on ({} requests/s)",
            model.cores,
            rate(model.cpu_limit(at))
        ),
    }
}

fn count(n: usize) -> String {
    if n == 1 { "1 instance".to_owned() } else { format!("{n} instances") }
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
mod tests {
    use super::*;

    #[test]
    fn ordinals() {
        assert_eq!(
            [2, 8, 11, 21, 80, 112].map(ordinal),
            ["a second", "an eighth", "an 11th", "a 21st", "an 80th", "a 112th"]
        );
    }
}
