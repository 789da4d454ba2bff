//! What another balancer costs beside Tenfold's own queue.

use capacity::Goal;
use capacity::balancing::{BalancingCost, CentralQueue, Percentile};

use super::number::{counted, rate, time};

/// All of it in a sentence, about the program `name` and its `policy`, where the plan recommends `answer` instances.
pub fn describe(
    cost: &BalancingCost,
    answer: Option<usize>,
    goal: &Goal,
    name: &str,
    policy: &str,
) -> String {
    let measured = cost.behind.measured.instances;
    let with = format!("With {},", counted(measured, "instance"));
    let elsewhere = answer.filter(|answer| *answer != measured);
    let cpu = cost.behind.cpu.map(|cpu| format!("uses {} of CPU a request", time(cpu)));
    let alone = |rest: &str| match &cpu {
        Some(cpu) => format!("{with} {name} ({policy}) {cpu}{rest}"),
        None => format!("{with} the app was measured behind {name} ({policy}){rest}"),
    };
    let Some(seen) = cost.side_by_side(goal) else {
        return match cost.queue {
            CentralQueue::NoWorkload => alone(""),
            _ => {
                let at = elsewhere.map_or_else(String::new, |n| format!(" at {n}"));
                alone(&format!("; raise --budget to compare it with the built-in queue{at}"))
            }
        };
    };
    let percentile = match seen.percentile {
        Percentile::P95 => "p95",
        Percentile::P99 => "p99",
    };
    let (behind, queue) = seen.throughputs.map_or_else(Default::default, |(behind, queue)| {
        (format!(" and {} requests/s", rate(behind)), format!(" and {}", rate(queue)))
    });
    let of_queue =
        seen.queue_cpu.map_or_else(String::new, |cpu| format!(", the queue {}", time(cpu)));
    let cpu = cpu.map_or_else(String::new, |cpu| format!("; {name} {cpu}{of_queue}"));
    let doubt = match seen.is_valid {
        true => "",
        false => {
            "; one of the two measurements was disturbed, so measure again to rely on the difference"
        }
    };
    let elsewhere = elsewhere
        .map_or_else(String::new, |n| format!("; with {n}, the answer, they were not compared"));
    format!(
        "{with} {percentile} is {}{behind} behind {name} ({policy}), {}{queue} behind the built-in queue{cpu}{elsewhere}\
         {doubt}",
        time(seen.times.0),
        time(seen.times.1)
    )
}

#[cfg(test)]
mod tests {
    use capacity::balancing::Balanced;
    use capacity::{Measured, Workload};

    use super::*;

    fn balanced(throughput: f64, p99: f64, cpu: f64, is_valid: bool) -> Balanced {
        let measured = Measured {
            instances: 3,
            throughput,
            offered: throughput,
            errors: 0.0,
            p50: Some(p99 / 2.0),
            p95: Some(p99),
            p99: Some(p99),
            max: Some(1.0),
            duration: 5.0,
            slowdown: 1.0,
        };
        Balanced { measured, cpu: Some(cpu), is_valid }
    }

    fn said(behind: Balanced, queue: CentralQueue) -> String {
        said_of(Some(3), behind, queue)
    }

    fn said_of(answer: Option<usize>, behind: Balanced, queue: CentralQueue) -> String {
        let workload = Workload::Open { rate: 100.0, arrival_scv: 1.0 };
        let goal = Goal { workload, p95: None, p99: Some(0.2), max_errors: 0.0 };
        describe(&BalancingCost { behind, queue }, answer, &goal, "nginx", "least_conn")
    }

    #[test]
    fn the_two_stand_side_by_side() {
        let nginx = balanced(100.0, 0.172, 41e-6, true);
        let queue = |throughput, is_valid| {
            CentralQueue::Measured(balanced(throughput, 0.119, 35e-6, is_valid))
        };
        assert_eq!(
            said(nginx, queue(99.0, true)),
            "With 3 instances, p99 is 172 ms behind nginx (least_conn), 119 ms behind the built-in queue; nginx uses \
             41 us of CPU a request, the queue 35 us"
        );
        let more = said(nginx, queue(140.0, false));
        assert!(
            more.starts_with(
                "With 3 instances, p99 is 172 ms and 100 requests/s behind nginx (least_conn), 119 ms and 140 behind the \
                 built-in queue;"
            ),
            "{more}"
        );
        assert!(more.ends_with("so measure again to rely on the difference"), "{more}");
    }

    #[test]
    fn without_a_comparison_the_cpu_is_told() {
        let nginx = balanced(100.0, 0.172, 41e-6, true);
        let cpu = "With 3 instances, nginx (least_conn) uses 41 us of CPU a request";
        assert_eq!(said(nginx, CentralQueue::NoWorkload), cpu);
        let late = said(nginx, CentralQueue::NotMeasured);
        assert_eq!(late, format!("{cpu}; raise --budget to compare it with the built-in queue"));
    }

    #[test]
    fn an_answer_that_was_not_measured_is_told_from_what_was() {
        let nginx = balanced(100.0, 0.172, 41e-6, true);
        let compared = said_of(Some(2), nginx, CentralQueue::Measured(nginx));
        assert!(compared.starts_with("With 3 instances, p99 is 172 ms"), "{compared}");
        assert!(compared.ends_with("; with 2, the answer, they were not compared"), "{compared}");
        let alone = said_of(Some(4), nginx, CentralQueue::NotMeasured);
        assert!(alone.starts_with("With 3 instances, nginx"), "{alone}");
        assert!(
            alone.ends_with("raise --budget to compare it with the built-in queue at 4"),
            "{alone}"
        );
    }
}
