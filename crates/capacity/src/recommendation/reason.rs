//! The recommendation in words: one sentence that says how many, limited by what, what would limit
//! next, and whether more would help.

use crate::calibration::{MIN_GAIN, OFFERED_DEVIATION, SATISFIED_USERS, SLOWER_GAIN};
use crate::finding::evidence::Failing;
use crate::goal::{Bound, Measured};
use crate::kind::Kind;
use crate::model::outcome::Outcome;
use crate::queueing::laws;
use crate::queueing::workload::Workload;
use crate::recommendation::search::{NextLimit, Recommendation, Search};
use crate::words::{about, counted, percent, rate, time};

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
        if self.is_without_latency() {
            return Some(self.enough_in_words(r.instances));
        }
        let (it, they) = match self.goal.bound() {
            Some(_) => ("holds the goal", "hold the goal"),
            None => ("carries the rate", "carry the rate"),
        };
        let holds = match (self.measurement(r.instances), r.instances) {
            (Some(_), 1) => format!("it {it}"),
            (Some(_), _) => format!("they {they}"),
            (None, 1) => format!("nothing measured confirms it, but it should {they}"),
            (None, _) => format!("nothing measured confirms it, but they should {they}"),
        };
        let fewer = r.instances.checked_sub(1).filter(|fewer| *fewer > 0).map(|fewer| {
            let does = match self.measurement(fewer) {
                None => "would",
                Some(_) if fewer == 1 => "does",
                Some(_) => "do",
            };
            format!(", {fewer} {does} not{}", self.latency(fewer))
        });
        Some(format!("Run {n}: {holds}{}{}", self.latency(r.instances), fewer.unwrap_or_default()))
    }

    /// Of users who ask for no latency: what is enough for them, or what keeps them from it.
    fn enough_in_words(&self, n: usize) -> String {
        let (run, does) = (format!("Run {}", count(n)), self.latency(n));
        if !self.is_short(n) {
            let fewer = (n > 1).then(|| {
                format!(
                    ", {} complete{} less{}",
                    n - 1,
                    if n == 2 { "s" } else { "" },
                    self.latency(n - 1)
                )
            });
            return format!("{run}: enough for these users{does}{}", fewer.unwrap_or_default());
        }
        let adds = format!("a further one would add {} requests/s", rate(self.added(n)));
        let enough = self.enough(n).map_or_else(String::new, |enough| {
            format!(
                ", and about {enough} are enough for these users ({} requests/s)",
                about(self.best)
            )
        });
        let why = match self.bounds.memory {
            _ if n < self.most => ": the curve bends there",
            Some(fit) if fit == n => ", as many as fit into the memory:",
            _ => ", the most allowed (--max-instances):",
        };
        format!("{run}{why}{does}; {adds}{enough}; --p95 says how fast it has to be")
    }

    fn why_not(&self, r: &Recommendation) -> String {
        let n = count(r.instances);
        let s = if r.instances == 1 { "s" } else { "" };
        if let Some(failure) = self.failure() {
            return failure;
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

    /// How the app fails without an overload.
    pub(crate) fn failure(&self) -> Option<String> {
        self.bounds.failing.map(|failing| match failing {
            Failing::Requests(share) => {
                format!("{} of the requests fail without any overload", percent(share))
            }
            Failing::Deaths(deaths) => {
                format!("an instance died {deaths} times while it was measured")
            }
        })
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
            None => format!("{} requests/s measured{}", rate(m.throughput), self.chance_of(m)),
        }
    }

    /// What was sent by chance, where that is much more or less than the rate.
    fn chance_of(&self, m: &Measured) -> String {
        match self.goal.workload {
            Workload::Open { rate: wanted, .. }
                if (m.offered / wanted - 1.0).abs() > OFFERED_DEVIATION =>
            {
                format!(", as {} were sent by chance", rate(m.offered))
            }
            _ => String::new(),
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
        self.limit_named(kind, n, &format!(" ({} requests/s)", rate(self.each())))
    }

    /// The same, with `each` behind a limit of every single instance: what it completes.
    pub(crate) fn limit_named(&self, kind: Kind, n: usize, each: &str) -> String {
        let cores = self.model.cores;
        match kind {
            Kind::Serialized => {
                format!("each instance serving one request at a time{each}")
            }
            Kind::Waiting if self.is_far_from_end(n) => {
                format!(
                    "the {} that a request takes by itself",
                    time(self.model.ladder.light_service())
                )
            }
            Kind::Waiting => format!(
                "the {} that an instance serves at once{each}",
                counted(self.model.ladder.served(), "request")
            ),
            Kind::ConnectionLimited => format!(
                "a pool inside each instance, which serves {} at once{each}",
                counted(self.model.ladder.served(), "request")
            ),
            Kind::CpuThrottled => format!("the CPU quota of each instance{each}"),
            Kind::MemoryPressure => "the memory".to_owned(),
            Kind::CpuBound if self.model.is_cpu_limited(n) => format!(
                "the CPU: the {cores} cores carry {} requests/s, balancer and load generator included",
                rate(self.model.cpu_limit(n).max(self.completed(n)))
            ),
            Kind::CpuBound => {
                // One thread's, and a little that others of the instance use beside it; or several workers'.
                let busy = self.model.app_demand * self.model.ladder.peak();
                let cores =
                    if busy < 1.2 { "one core".to_owned() } else { format!("{busy:.1} cores") };
                format!("the {cores} that an instance keeps busy{each}")
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

    /// What one instance completes at its limit, as a share of several where these were seen to complete more.
    fn each(&self) -> f64 {
        let each = self.measured.iter().map(|m| m.throughput / m.instances as f64);
        each.fold(self.model.ladder.peak(), f64::max)
    }

    /// By which factor a further instance changes the most that is completed: as users who could use more were
    /// served, else as the model says.
    fn gain(&self, n: usize) -> f64 {
        let is_told = match self.goal.workload {
            Workload::Closed { .. } => self.all_that_users_ask_for(n).is_none(),
            Workload::Open { .. } => false,
        };
        match (self.measurement(n), self.measurement(n + 1)) {
            (Some(now), Some(more)) if is_told => more.throughput / now.throughput,
            _ => self.model.capacity(n + 1) / self.model.capacity(n),
        }
    }

    fn one_more(&self, r: &Recommendation) -> Option<String> {
        let gain = self.gain(r.instances);
        let next = ordinal(r.instances + 1);
        if self.bounds.failing.is_some() {
            return Some("more instances would fail as often".to_owned());
        }
        let is_light = self.is_far_from_end(r.instances);
        if r.goal_met && self.is_short(r.instances) {
            // Said already.
            return None;
        }
        if r.limited_by == Kind::GeneratorBound || (is_light && !r.goal_met) {
            return None;
        }
        if r.goal_met && !self.model.ladder.is_saturated() {
            return Some(format!("{next} is not needed"));
        }
        // The cores are busy only at a load far beyond this one.
        if r.limited_by == Kind::Headroom && gain < MIN_GAIN {
            return Some(format!("{next} is not needed"));
        }
        if gain < SLOWER_GAIN {
            return Some(format!("{next} would make it slower"));
        }
        if gain < MIN_GAIN && self.model.is_cpu_limited(r.instances + 1) {
            return Some(format!("{next} would not help, for the cores are busy"));
        }
        if gain < MIN_GAIN && self.is_shared(r.instances) {
            return Some(format!("{next} would not help, for the shared part is busy"));
        }
        if gain < MIN_GAIN && r.limited_by == Kind::BalancerBound {
            return Some(format!("{next} would not help, for the balancer is busy"));
        }
        if let Some(wanted) = self.all_that_users_ask_for(r.instances) {
            return Some(format!("{next} would not help: {wanted}"));
        }
        if r.goal_met {
            let [now, more] = [0, 1].map(|further| self.most_completed(r.instances + further));
            let is_more = more >= MIN_GAIN * now;
            let raises =
                format!(", and would raise the most they complete to {} requests/s", rate(more));
            return Some(format!("{next} is not needed{}", if is_more { &raises } else { "" }));
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
        let is_all = bound < most && self.prediction(n).throughput > SATISFIED_USERS * bound;
        is_all.then(|| {
            let ask =
                if users == 1 { "1 user asks".to_owned() } else { format!("{users} users ask") };
            format!("{ask} for no more than {} requests/s", rate(bound.max(self.completed(n))))
        })
    }

    fn next_in_words(&self, now: usize, next: NextLimit) -> String {
        let at = next.at_instances;
        let from = format!("from {}{at} on", if at > now + 1 { "about " } else { "" });
        match next.kind {
            kind if at == now => {
                format!("the next limit would be {}", self.in_words(kind, at))
            }
            Kind::MemoryPressure => format!("the memory would be full at {at}"),
            Kind::BalancerBound => format!("one thread of the balancer would limit {from}"),
            Kind::GeneratorBound => format!("the load generator would limit {from}"),
            Kind::SharedDependency => format!("what they share would limit {from}"),
            _ => format!(
                "the {} cores would limit {from} (about {} requests/s)",
                self.model.cores,
                about(self.model.cpu_limit(at))
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
