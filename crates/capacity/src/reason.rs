//! The recommendation in words: one sentence that says how many, limited by what, what would limit
//! next, and whether more would help.

use crate::finding::Kind;
use crate::goal::{Bound, Measured, Outcome};
use crate::laws;
use crate::recommendation::{NextLimit, Recommendation, SLOWER, Search, WORTH};
use crate::response::Workload;
use crate::words::{percent, rate, time};

impl Search<'_> {
    /// The sentence for `r`, from all that the search knows.
    pub(crate) fn reason(&self, r: &Recommendation) -> String {
        // Without an end in sight nothing is known of one that was met all the same.
        let is_unknown = r.goal_met || !self.model.ladder.is_saturated();
        let parts = match self.shortfall(r.instances).filter(|_| is_unknown) {
            // The model knows nothing of this limit, nor of what comes after it.
            Some(outcome) => vec![self.head(r), Some(unexplained(outcome)), self.no_more(r)],
            None => vec![
                self.head(r),
                self.limit_in_words(r),
                self.one_more(r),
                r.next_limit.map(|next| self.next_in_words(r.instances, next)),
            ],
        };
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ") + "."
    }

    fn head(&self, r: &Recommendation) -> Option<String> {
        let n = count(r.instances);
        if !r.goal_met {
            return Some(format!("The goal is out of reach here: {}", self.why_not(r)));
        }
        let holds = match (self.measurement(r.instances), r.instances) {
            (Some(_), 1) => "it holds",
            (Some(_), _) => "they hold",
            (None, 1) => "nothing measured confirms it, but it should hold",
            (None, _) => "nothing measured confirms it, but they should hold",
        };
        let fewer = r.instances.checked_sub(1).filter(|fewer| *fewer > 0).map(|fewer| {
            let does = match self.measurement(fewer) {
                None => "would",
                Some(_) if fewer == 1 => "does",
                Some(_) => "do",
            };
            format!(", {fewer} {does} not{}", self.latency(fewer))
        });
        Some(format!(
            "Run {n}: {holds} the goal{}{}",
            self.latency(r.instances),
            fewer.unwrap_or_default()
        ))
    }

    fn why_not(&self, r: &Recommendation) -> String {
        let n = count(r.instances);
        let s = if r.instances == 1 { "s" } else { "" };
        if let Some(share) = self.bounds.failing {
            return format!("{} of the requests fail without any overload", percent(share));
        }
        let alone = self.model.ladder.least_service();
        if let Some((name, bound)) = self.goal.bound().filter(|(_, bound)| *bound < alone) {
            return format!(
                "a request alone takes {}, {name} is to be within {}, and no count of instances makes a \
                 single request faster; {n} come{s} nearest{}",
                time(alone),
                time(bound),
                self.latency(r.instances)
            );
        }
        match self.behind(r.instances) {
            Some((done, sent)) => {
                format!("{n} complete{s} {} of {} requests/s", rate(done), rate(sent))
            }
            None => format!("{n} come{s} nearest{}", self.latency(r.instances)),
        }
    }

    /// What a count completes of what is sent (1/s), where it does not complete all of it: measured if it
    /// was, else predicted.
    fn behind(&self, n: usize) -> Option<(f64, f64)> {
        let Workload::Open { rate, .. } = self.goal.workload else { return None };
        let (done, sent, is_carried) = match self.measurement(n) {
            Some(m) => (m.throughput, m.offered, m.max.is_none() || self.goal.is_carried_in(m)),
            None => (self.model.capacity(n), rate, self.model.capacity(n) >= rate),
        };
        (!is_carried).then_some((done, sent))
    }

    /// What a count does about the goal: measured if it was, else predicted.
    fn latency(&self, n: usize) -> String {
        if let Some(m) = self.measurement(n) {
            return format!(" ({})", self.measured_in_words(m));
        }
        let p = self.prediction(n);
        let bounds = p.response.map_or_else(
            || self.goal.bounds(None, None),
            |r| self.goal.bounds(Some(r.p95), Some(r.p99)),
        );
        match told(&bounds, f64::INFINITY) {
            Some((name, _, Some(value))) => format!(" ({name} {} predicted)", time(value)),
            Some((_, _, None)) => " (the queue would grow without end)".to_owned(),
            None => format!(" ({} requests/s predicted)", rate(p.throughput)),
        }
    }

    /// The figure that misses the goal; of one that holds it, what it does about the first bound.
    fn measured_in_words(&self, m: &Measured) -> String {
        let Some(slowest) = m.max else { return "no answer came".to_owned() };
        let bounds = self.goal.bounds(m.p95, m.p99);
        let shown = told(&bounds, slowest);
        if shown.is_none_or(|bound| holds(bound, slowest)) {
            if m.errors > self.goal.max_errors {
                return format!("{} of the requests failed", percent(m.errors));
            }
            if !self.goal.is_answered(m, slowest) {
                let (done, sent) = (rate(m.throughput), rate(m.offered));
                return format!("{done} of {sent} requests/s measured");
            }
        }
        match shown {
            Some((name, _, Some(value))) => format!("{name} {} measured", time(value)),
            Some((_, _, None)) => format!("slowest answer {} measured", time(slowest)),
            None => format!("{} requests/s measured", rate(m.throughput)),
        }
    }

    fn limit_in_words(&self, r: &Recommendation) -> Option<String> {
        Some(match r.limited_by {
            // Said already.
            Kind::Failing => return None,
            Kind::Headroom => "nothing limits yet".to_owned(),
            kind => format!("limited by {}", self.in_words(kind, r.instances)),
        })
    }

    /// A limit of `n` instances.
    fn in_words(&self, kind: Kind, n: usize) -> String {
        let each = rate(self.model.ladder.peak());
        let cores = self.model.cores;
        match kind {
            Kind::Serialized => {
                format!("each instance serving one request at a time ({each} requests/s)")
            }
            Kind::Waiting if self.is_far_from_end(n) => {
                format!(
                    "the {} that a request takes by itself",
                    time(self.model.ladder.light_service())
                )
            }
            Kind::Waiting => format!(
                "the {} requests that an instance serves at once ({each} requests/s)",
                self.model.ladder.served()
            ),
            Kind::ConnectionLimited => format!(
                "a pool inside each instance, which serves {} requests at once ({each} requests/s)",
                self.model.ladder.served()
            ),
            Kind::CpuThrottled => format!("the CPU quota of each instance ({each} requests/s)"),
            Kind::MemoryPressure => "the memory".to_owned(),
            Kind::CpuBound if self.model.is_cpu_limited(n) => format!(
                "the CPU: the {cores} cores carry {} requests/s, balancer and load generator included",
                rate(self.model.cpu_limit(n))
            ),
            Kind::CpuBound => {
                // One thread's, and a little that others of the instance use beside it; or several workers'.
                let busy = self.model.app_demand * self.model.ladder.peak();
                let cores =
                    if busy < 1.2 { "one core".to_owned() } else { format!("{busy:.1} cores") };
                format!("the {cores} that an instance keeps busy ({each} requests/s)")
            }
            Kind::Oversubscribed => {
                format!("the CPU: one instance already keeps the {cores} cores busy")
            }
            Kind::SharedDependency => "something that all instances share".to_owned(),
            Kind::BalancerBound => "the one thread of the balancer".to_owned(),
            Kind::GeneratorBound => {
                "the load generator, so that the instances can do more than was measured".to_owned()
            }
            Kind::Failing | Kind::Headroom => kind.to_string(),
        }
    }

    fn one_more(&self, r: &Recommendation) -> Option<String> {
        let (now, more) = (self.model.capacity(r.instances), self.model.capacity(r.instances + 1));
        let next = ordinal(r.instances + 1);
        if self.bounds.failing.is_some() {
            return Some("more instances would fail as often".to_owned());
        }
        let is_light = self.is_far_from_end(r.instances);
        if r.limited_by == Kind::GeneratorBound || (is_light && !r.goal_met) {
            return None;
        }
        if r.goal_met && !self.model.ladder.is_saturated() {
            return Some(format!("{next} is not needed"));
        }
        if more < SLOWER * now {
            return Some(format!("{next} would make it slower"));
        }
        if more < WORTH * now && self.model.is_cpu_limited(r.instances + 1) {
            return Some(format!("{next} would not help, for the cores are busy"));
        }
        if more < WORTH * now && self.is_shared(r.instances) {
            return Some(format!("{next} would not help, for the shared part is busy"));
        }
        if more < WORTH * now && r.limited_by == Kind::BalancerBound {
            return Some(format!("{next} would not help, for the balancer is busy"));
        }
        if let Some(wanted) = self.all_that_users_ask_for(r.instances) {
            return Some(format!("{next} would not help: {wanted}"));
        }
        if r.goal_met {
            let most = rate(more);
            return Some(format!(
                "{next} is not needed, and would raise the most they complete to {most} requests/s"
            ));
        }
        self.no_more(r)
    }

    /// Said where the goal is missed with as many as may be.
    fn no_more(&self, r: &Recommendation) -> Option<String> {
        let is_last = !r.goal_met && r.instances == self.most;
        is_last.then(|| match self.bounds.memory {
            Some(1) => "no more than one fits into the memory".to_owned(),
            Some(fit) if fit == self.most => format!("no more than {fit} fit into the memory"),
            _ if self.most == 1 => "more than one was not allowed (--max-instances)".to_owned(),
            _ => format!("more than {} instances were not allowed (--max-instances)", self.most),
        })
    }

    /// Said where a closed workload itself is the limit.
    fn all_that_users_ask_for(&self, n: usize) -> Option<String> {
        let Workload::Closed { users, think } = self.goal.workload else { return None };
        let service = self.model.ladder.least_service();
        let most = self.model.capacity(n);
        let bound = laws::throughput_bound(users as f64, service, think, most);
        let is_all = bound < most && self.prediction(n).throughput > 0.97 * bound;
        is_all.then(|| {
            let ask =
                if users == 1 { "1 user asks".to_owned() } else { format!("{users} users ask") };
            format!("{ask} for no more than {} requests/s", rate(bound))
        })
    }

    fn next_in_words(&self, now: usize, next: NextLimit) -> String {
        let at = next.at_instances;
        match next.kind {
            kind if at == now => {
                format!("the next limit would be {}", self.in_words(kind, at))
            }
            Kind::MemoryPressure => format!("the memory would be full at {at}"),
            Kind::BalancerBound => format!("one thread of the balancer would limit from {at} on"),
            Kind::GeneratorBound => format!("the load generator would limit from {at} on"),
            Kind::SharedDependency => format!("what they share would limit from {at} on"),
            _ => format!(
                "next limit: the {} cores, from {at} instances on ({} requests/s)",
                self.model.cores,
                rate(self.model.cpu_limit(at))
            ),
        }
    }
}

/// The first bound that is missed, or else the first.
fn told(bounds: &[Bound], slowest: f64) -> Option<Bound> {
    let missed = bounds.iter().find(|bound| !holds(**bound, slowest));
    missed.or(bounds.first()).copied()
}

/// Without enough samples for a percentile the slowest answer counts.
fn holds((_, most, value): Bound, slowest: f64) -> bool {
    value.unwrap_or(slowest) <= most
}

/// Said where less was measured than the model explains.
fn unexplained(outcome: Outcome) -> String {
    format!(
        "but {} requests/s were completed where {} were predicted: something limits that was not seen in \
         the first probes; measure again with nothing else on the machine, and a larger --budget",
        rate(outcome.measured),
        rate(outcome.predicted)
    )
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
    use crate::goal::Goal;
    use crate::goal::tests::{measured, open};
    use crate::ladder::tests::ladder;
    use crate::model::Model;
    use crate::model::tests::{model, saturation};
    use crate::recommendation::tests::bounds;
    use crate::recommendation::{Bounds, recommend};
    use crate::saturation::Saturation;
    use crate::shape::ServiceShape;

    // 400 requests a second of 20.5 ms each, one at a time.
    #[test]
    fn what_no_measurement_confirms_is_said() {
        let mut m = model(1, 0.0205, 0.0001, 2.0);
        m.fit(&[saturation(2, 2.0 / 0.0205, 0.0001, 0.1)]);
        let bounds = bounds(Kind::Serialized);
        let answer = |known: &[_]| recommend(&m, &open(400.0, 0.1), &bounds, known);
        let n = answer(&[]).instances;
        let guess = answer(&[]).reason;
        let head = format!("Run {n} instances: nothing measured confirms it, but they should hold");
        assert!(guess.starts_with(&head), "{guess}");
        assert!(guess.contains(&format!(", {} would not (", n - 1)), "{guess}");
        let known = answer(&[measured(n, 0.05), measured(n - 1, 0.3)]).reason;
        assert!(known.starts_with(&format!("Run {n} instances: they hold the goal (p95 50 ms")));
        assert!(known.contains(&format!(", {} do not (p95 300 ms measured)", n - 1)), "{known}");
    }

    // What a count is said to miss is what it missed.
    #[test]
    fn the_figure_that_misses_its_bound_is_named() {
        let mut m = model(1, 0.0205, 0.0001, 2.0);
        m.fit(&[saturation(2, 2.0 / 0.0205, 0.0001, 0.1)]);
        let bounds = bounds(Kind::Serialized);
        let goal = Goal { p99: Some(0.2), ..open(400.0, 0.1) };
        let fewer = recommend(&m, &goal, &bounds, &[]).instances - 1;
        let said = |fewer: Measured| {
            let n = fewer.instances + 1;
            recommend(&m, &goal, &bounds, &[fewer, measured(n, 0.04)]).reason
        };
        let good = measured(fewer, 0.05);
        let failing = said(Measured { errors: 0.05, ..good });
        assert!(failing.contains(" do not (5 % of the requests failed)"), "{failing}");
        let late = said(Measured { p99: Some(0.3), ..good });
        assert!(late.contains(" do not (p99 300 ms measured)"), "{late}");
        let behind = said(Measured { throughput: 350.0, ..good });
        assert!(behind.contains(" do not (350 of 400 requests/s measured)"), "{behind}");
    }

    #[test]
    fn one_may_be_all_that_is_allowed() {
        let m = model(1, 0.0205, 0.0001, 2.0);
        let bounds = Bounds { max_instances: 1, ..bounds(Kind::Serialized) };
        let reason = recommend(&m, &open(400.0, 0.1), &bounds, &[]).reason;
        assert!(reason.contains("; more than one was not allowed (--max-instances)"), "{reason}");
    }

    // A second of sleep each, as far as two at once were tried, and a tenth of what that promised to forty.
    #[test]
    fn cores_that_were_never_busy_are_not_blamed() {
        let ladder = ladder(&[(1, 1.0), (2, 2.0)]);
        let m = Model::new(ladder, saturation(1, 2.0, 0.001, 0.1), ServiceShape::constant(), 2.0);
        let workload = Workload::Closed { users: 40, think: 0.0 };
        let goal = Goal { workload, ..open(1.0, 2.0) };
        let bounds = Bounds { max_instances: 1, ..bounds(Kind::Waiting) };
        let seen = Measured { throughput: 4.0, ..measured(1, 10.0) };
        let reason = recommend(&m, &goal, &bounds, &[seen]).reason;
        let head = "The goal is out of reach here: 1 instance comes nearest (p95 10.00 s measured); but 4.00 \
                    requests/s were completed where 40.0 were predicted";
        assert!(reason.starts_with(head), "{reason}");
        assert!(reason.ends_with("; more than one was not allowed (--max-instances)."), "{reason}");
        assert!(!reason.contains("cores") && !reason.contains("limited by"), "{reason}");
    }

    // The first rung was cold: its 20 ms are no least that a request takes.
    #[test]
    fn what_a_request_takes_at_least_is_its_least() {
        let ladder = ladder(&[(1, 50.0), (2, 400.0), (4, 410.0)]);
        let one = saturation(1, 410.0, 0.001, 0.5);
        let m = Model::new(ladder, one, ServiceShape::constant(), 2.0);
        let bounds = Bounds { max_instances: 1, ..bounds(Kind::Waiting) };
        let said = |p95| recommend(&m, &open(100.0, p95), &bounds, &[measured(1, 0.03)]).reason;
        assert!(!said(0.01).contains("a request alone takes"), "{}", said(0.01));
        assert!(said(0.004).contains("a request alone takes 5.00 ms"), "{}", said(0.004));
    }

    // The model takes 390 of them to be the most; all 400 were answered, but late.
    #[test]
    fn what_was_completed_is_told_as_it_was_measured() {
        let m = model(8, 0.0205, 0.0001, 2.0);
        let bounds = Bounds { max_instances: 1, ..bounds(Kind::Waiting) };
        let said = |known: &[_]| recommend(&m, &open(400.0, 0.1), &bounds, known).reason;
        let late = said(&[measured(1, 0.3)]);
        assert!(late.contains("1 instance comes nearest (p95 300 ms measured)"), "{late}");
        let behind = said(&[Measured { throughput: 300.0, p50: Some(0.01), ..measured(1, 0.3) }]);
        assert!(behind.contains("1 instance completes 300 of 400 requests/s"), "{behind}");
        assert!(said(&[]).contains("1 instance completes 390 of 400 requests/s"), "{}", said(&[]));
    }

    // One in five thousand, where one in ten thousand may.
    #[test]
    fn a_small_share_that_fails_is_not_none() {
        let m = model(1, 0.0205, 0.0001, 2.0);
        let bounds = Bounds { max_instances: 1, failing: Some(0.0002), ..bounds(Kind::Serialized) };
        let reason = recommend(&m, &open(10.0, 0.1), &bounds, &[]).reason;
        let said = "0.02 % of the requests fail without any overload; more instances would fail";
        assert!(reason.contains(said), "{reason}");
    }

    // One thread, and a cluster of two workers, on a machine that has more cores.
    #[test]
    fn as_many_cores_are_told_as_an_instance_keeps_busy() {
        for (workers, cores) in [(1, "the one core that"), (2, "the 1.9 cores that")] {
            let m = model(workers, 0.01, 0.0095, 8.0);
            let bounds = Bounds { max_instances: 8, ..bounds(Kind::CpuBound) };
            let reason = recommend(&m, &open(80.0, 0.1), &bounds, &[]).reason;
            assert!(reason.contains(&format!("{cores} an instance keeps busy")), "{reason}");
        }
    }

    // `/api` of examples/threads under 100 users: one fills the cores but for what is lost in handing over.
    #[test]
    fn what_a_second_takes_from_the_first_is_not_laid_to_the_users() {
        let (one, relay) = (saturation(1, 34_579.0, 3.23e-5, 1.69), 1.64e-5);
        let rungs = [(1, 8000.0), (4, 16_700.0), (16, 31_550.0), (32, 33_750.0), (64, 34_579.0)];
        let ladder = ladder(&rungs);
        let two = saturation(2, 33_656.0, 3.65e-5, 1.83);
        let relayed = |s| Saturation { relay_demand: relay, relay_thread: 1.2e-5, ..s };
        let mut m = Model::new(ladder, relayed(one), ServiceShape::constant(), 2.0);
        m.fit(&[relayed(two)]);
        let workload = Workload::Closed { users: 100, think: 0.0 };
        let goal = Goal { p95: None, workload, ..open(1.0, 1.0) };
        let bounds = Bounds { max_instances: 4, ..bounds(Kind::CpuBound) };
        let r = recommend(&m, &goal, &bounds, &[]);
        let gain = m.capacity(2) / m.capacity(1);
        assert!(r.instances == 1 && (SLOWER..1.0).contains(&gain), "{gain}: {}", r.reason);
        let told = "a second would not help, for the cores are busy";
        assert!(r.reason.contains(told), "{}", r.reason);
    }

    #[test]
    fn ordinals() {
        assert_eq!(
            [2, 8, 11, 21, 80, 112].map(ordinal),
            ["a second", "an eighth", "an 11th", "a 21st", "an 80th", "a 112th"]
        );
    }
}
