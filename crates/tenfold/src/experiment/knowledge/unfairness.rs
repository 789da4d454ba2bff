//! What is to be said of an instance that lets some connections wait for others.

use capacity::finding::fairness::{Loaded, most_unfair};

use super::Knowledge;
use crate::config::BalancerProgram;
use crate::document::plan::Probe;
use crate::words::number::{rate, time};

impl Knowledge<'_> {
    /// The numbers and the remedy, where one instance is unfair to those that wait.
    pub(super) fn unfairness(&self) -> Option<String> {
        let (first, rest) = self.facts.rungs.split_first()?;
        let alone = first.probe.latency_ms;
        let loaded: Vec<Loaded> = rest.iter().filter_map(|o| loaded(&o.probe)).collect();
        let unfair = most_unfair(alone.p50? / alone.mean?, &loaded)?;
        Some(describe(&unfair, self.balancer_slots(), self.experiment.balancer.program))
    }
}

/// A rung's times; `None` where it has too few answers to tell a p95.
fn loaded(probe: &Probe) -> Option<Loaded> {
    let (p50, p95) = (probe.latency_ms.p50? / 1e3, probe.latency_ms.p95? / 1e3);
    Some(Loaded { concurrency: probe.users?, throughput: probe.throughput, p50, p95 })
}

fn describe(unfair: &Loaded, slots: Option<usize>, program: BalancerProgram) -> String {
    let Loaded { concurrency, throughput, p50, p95 } = *unfair;
    let limit = match slots {
        _ if !program.has_queue() => format!(
            "{} cannot hold requests back: take --balancer haproxy or Tenfold's own",
            program.name()
        ),
        Some(slots) => format!("Send an instance at most {slots} at once (--slots {slots})"),
        None => "Send an instance fewer at once (--slots)".to_owned(),
    };
    format!(
        "With {concurrency} requests in flight one instance is unfair: its median is {}, but the mean is {} \
         ({concurrency} / {} requests/s, Little's law) and p95 is {}. Some connections wait while others are \
         served again. {limit}, so that the rest wait in the balancer's queue in order.",
        time(p50),
        time(unfair.mean()),
        rate(throughput),
        time(p95)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfair_service_is_told_with_numbers_and_remedy() {
        let puma = Loaded { concurrency: 16, throughput: 310.4, p50: 0.016, p95: 0.3584 };
        let said = describe(&puma, Some(5), BalancerProgram::Tenfold);
        for part in [
            "With 16 requests in flight",
            "median is 16 ms",
            "mean is 52 ms (16 / 310 requests/s, Little's law) and p95 is 358 ms",
            "at most 5 at once (--slots 5)",
        ] {
            assert!(said.contains(part), "no `{part}` in {said}");
        }
        let nginx = describe(&puma, Some(5), BalancerProgram::Nginx);
        assert!(
            nginx.contains("nginx cannot hold requests back") && !nginx.contains("--slots"),
            "{nginx}"
        );
    }
}
