//! Fills the reason of a recommendation with numbers.

use crate::calibration::{MIN_GAIN, OFFERED_DEVIATION, SATISFIED_USERS, SLOWER_GAIN};
use crate::goal::{Bound, Measured};
use crate::limit_kind::Kind;
use crate::queueing::laws;
use crate::queueing::workload::Workload;
use crate::recommendation::reason::{
    BusyPart, CountBound, Head, LimitDetails, NextDetails, Obstacle, OneMore, Performance, Reason,
};
use crate::recommendation::search::{Count, NextLimit, Search};

impl Search<'_> {
    /// Why so many are recommended, from all that the search knows.
    pub(crate) fn reason(&self, r: &Count, next_limit: Option<NextLimit>) -> Reason {
        let head = self.head(r);
        // Nothing is known of a limit that was reached although no end of growth was seen.
        let is_unknown = r.goal_met || !self.model.ladder.is_saturated();
        match self.shortfall(r.instances).filter(|_| is_unknown) {
            // The model knows nothing of this limit, nor of what comes after it.
            Some(outcome) => Reason {
                head,
                unexplained: Some((outcome.measured, outcome.predicted)),
                limit: None,
                one_more: self.no_more(r),
                next: None,
                full_dependency: None,
                uneven: None,
            },
            None => Reason {
                head,
                unexplained: None,
                limit: self.limit_of(r),
                one_more: self.one_more(r),
                next: next_limit.map(|next| self.next_details(r.instances, next)),
                full_dependency: None,
                uneven: None,
            },
        }
    }

    fn head(&self, r: &Count) -> Head {
        let n = r.instances;
        if !r.goal_met {
            return Head::OutOfReach(self.obstacle(r));
        }
        if self.is_without_latency() {
            return self.enough_or_short(n);
        }
        let fewer = n.checked_sub(1).filter(|fewer| *fewer > 0);
        Head::Holds {
            has_bound: self.goal.bound().is_some(),
            is_measured: self.measurement(n).is_some(),
            performance: self.performance(n),
            fewer: fewer.map(|fewer| (self.measurement(fewer).is_some(), self.performance(fewer))),
        }
    }

    /// Users who ask for no latency: what is enough for them, or what keeps them from it.
    fn enough_or_short(&self, n: usize) -> Head {
        let performance = self.performance(n);
        if !self.is_short(n) {
            return Head::Enough { performance, fewer: (n > 1).then(|| self.performance(n - 1)) };
        }
        let bound = match self.bounds.memory {
            _ if n < self.most => CountBound::Bend,
            Some(fit) if fit == n => CountBound::Memory,
            _ => CountBound::Allowed,
        };
        let enough = self.enough(n).map(|enough| (enough, self.best));
        Head::Short { bound, performance, added: self.added(n), enough }
    }

    fn obstacle(&self, r: &Count) -> Obstacle {
        if let Some(failing) = self.bounds.failing {
            return Obstacle::Failing(failing);
        }
        let alone = self.model.ladder.least_service();
        if let Some((percentile, bound)) = self.goal.bound().filter(|(_, bound)| *bound < alone) {
            let performance = self.performance(r.instances);
            return Obstacle::RequestAlone { alone, percentile, bound, performance };
        }
        match self.behind(r.instances) {
            Some((done, sent)) => Obstacle::Behind { done, sent },
            None => Obstacle::Nearest(self.performance(r.instances)),
        }
    }

    /// What a count completes (1/s) if it does not complete all that is sent. It is measured if the count
    /// was, and predicted otherwise.
    fn behind(&self, n: usize) -> Option<(f64, f64)> {
        let Workload::Open { rate, .. } = self.goal.workload else { return None };
        let (done, sent, is_carried) = match self.measurement(n) {
            Some(m) => (m.throughput, m.offered, m.max.is_none() || self.goal.is_carried_in(m)),
            None => (self.model.capacity(n), rate, self.model.capacity(n) >= rate),
        };
        (!is_carried).then_some((done, sent))
    }

    /// What a count does about the goal: measured if it was, else predicted.
    fn performance(&self, n: usize) -> Performance {
        if let Some(m) = self.measurement(n) {
            return self.measured_performance(m);
        }
        let p = self.prediction(n);
        let bounds = p.response.map_or_else(
            || self.goal.bounds(None, None),
            |r| self.goal.bounds(Some(r.p95), Some(r.p99)),
        );
        match decisive(&bounds, f64::INFINITY) {
            Some((name, _, Some(time))) => {
                Performance::Percentile { name, time, is_measured: false }
            }
            Some((_, _, None)) => Performance::Endless,
            None => Performance::Throughput { rate: p.throughput, is_measured: false, sent: None },
        }
    }

    /// The figure that misses the goal. For a count that holds it, the figure of the first bound.
    fn measured_performance(&self, m: &Measured) -> Performance {
        let Some(slowest) = m.max else { return Performance::NoAnswer };
        let bounds = self.goal.bounds(m.p95, m.p99);
        let shown = decisive(&bounds, slowest);
        if shown.is_none_or(|bound| holds(bound, slowest)) {
            if m.errors > self.goal.max_errors {
                return Performance::Failed(m.errors);
            }
            if !self.goal.is_answered(m, slowest) {
                return Performance::Behind { done: m.throughput, sent: m.offered };
            }
        }
        match shown {
            Some((name, _, Some(time))) => {
                Performance::Percentile { name, time, is_measured: true }
            }
            Some((_, _, None)) => Performance::Slowest(slowest),
            None => Performance::Throughput {
                rate: m.throughput,
                is_measured: true,
                sent: self.sent_by_chance(m),
            },
        }
    }

    /// What was really sent, if by chance that is much more or less than the rate.
    fn sent_by_chance(&self, m: &Measured) -> Option<f64> {
        let Workload::Open { rate, .. } = self.goal.workload else { return None };
        ((m.offered / rate - 1.0).abs() > OFFERED_DEVIATION).then_some(m.offered)
    }

    fn limit_of(&self, r: &Count) -> Option<LimitDetails> {
        match r.limited_by {
            // The head says it.
            Kind::Failing => None,
            Kind::Headroom => Some(LimitDetails::Nothing),
            kind => Some(self.limit_details(kind, r.instances, Some(self.each()))),
        }
    }

    /// A limit of `n` instances; `each` is what one instance completes at a limit of its own.
    pub(crate) fn limit_details(&self, kind: Kind, n: usize, each: Option<f64>) -> LimitDetails {
        let cores = self.model.cores;
        match kind {
            Kind::Serialized => LimitDetails::Serialized { each },
            Kind::Waiting if self.is_far_from_end(n) => {
                LimitDetails::ServiceTime(self.model.ladder.light_service())
            }
            Kind::Waiting => LimitDetails::Concurrency { served: self.model.ladder.served(), each },
            Kind::ConnectionLimited => {
                LimitDetails::Pool { served: self.model.ladder.served(), each }
            }
            Kind::CpuThrottled => LimitDetails::Quota { each },
            Kind::MemoryPressure => LimitDetails::Memory,
            Kind::CpuBound if self.model.is_cpu_limited(n) => LimitDetails::Cores {
                cores,
                carried: self.model.cpu_limit(n).max(self.completed(n)),
            },
            Kind::CpuBound => LimitDetails::InstanceCores {
                busy: self.model.app_demand * self.model.ladder.peak(),
                each,
            },
            Kind::Oversubscribed => LimitDetails::FilledCores { cores },
            Kind::SharedDependency => LimitDetails::Shared,
            Kind::BalancerBound => LimitDetails::Balancer,
            Kind::GeneratorBound => LimitDetails::Generator,
            Kind::Failing | Kind::UnevenInstances | Kind::Headroom => LimitDetails::Other(kind),
        }
    }

    /// What one instance completes at its limit. It is a share of several if these were seen to complete
    /// more.
    fn each(&self) -> f64 {
        let each = self.measured.iter().map(|m| m.throughput / m.instances as f64);
        each.fold(self.model.ladder.peak(), f64::max)
    }

    /// The factor by which a further instance changes the most that is completed. It is measured if users
    /// could use more, and otherwise by the model.
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

    fn one_more(&self, r: &Count) -> Option<OneMore> {
        let gain = self.gain(r.instances);
        if self.bounds.failing.is_some() {
            return Some(OneMore::FailsAsOften);
        }
        let is_light = self.is_far_from_end(r.instances);
        if r.goal_met && self.is_short(r.instances) {
            // The head says it.
            return None;
        }
        if r.limited_by == Kind::GeneratorBound || (is_light && !r.goal_met) {
            return None;
        }
        let not_needed = OneMore::NotNeeded { raises_to: None };
        if r.goal_met && !self.model.ladder.is_saturated() {
            return Some(not_needed);
        }
        // The cores are busy only at a load far beyond this one.
        if r.limited_by == Kind::Headroom && gain < MIN_GAIN {
            return Some(not_needed);
        }
        if gain < SLOWER_GAIN {
            return Some(OneMore::Slower);
        }
        if gain < MIN_GAIN && self.model.is_cpu_limited(r.instances + 1) {
            return Some(OneMore::NoHelp(BusyPart::Cores));
        }
        if gain < MIN_GAIN && self.is_shared(r.instances) {
            return Some(OneMore::NoHelp(BusyPart::Shared));
        }
        if gain < MIN_GAIN && r.limited_by == Kind::BalancerBound {
            return Some(OneMore::NoHelp(BusyPart::Balancer));
        }
        if let Some((users, rate)) = self.all_that_users_ask_for(r.instances) {
            return Some(OneMore::UsersAsk { users, rate });
        }
        if r.goal_met {
            let [now, more] = [0, 1].map(|further| self.most_completed(r.instances + further));
            return Some(OneMore::NotNeeded {
                raises_to: (more >= MIN_GAIN * now).then_some(more),
            });
        }
        self.no_more(r)
    }

    /// What ends the search where the goal is missed with as many as may be.
    fn no_more(&self, r: &Count) -> Option<OneMore> {
        let is_last = !r.goal_met && r.instances == self.most;
        is_last.then_some(match self.bounds.memory {
            Some(1) => OneMore::NoMoreFit(1),
            Some(fit) if fit == self.most => OneMore::NoMoreFit(fit),
            _ => OneMore::NotAllowed(self.most),
        })
    }

    /// The users and their most requests a second, where a closed workload itself is the limit.
    fn all_that_users_ask_for(&self, n: usize) -> Option<(usize, f64)> {
        let Workload::Closed { users, think } = self.goal.workload else { return None };
        let service = self.model.ladder.least_service();
        let most = self.model.capacity(n);
        let bound = laws::throughput_bound(users as f64, service, think, most);
        let is_all = bound < most && self.prediction(n).throughput > SATISFIED_USERS * bound;
        is_all.then(|| (users, bound.max(self.completed(n))))
    }

    fn next_details(&self, now: usize, next: NextLimit) -> NextDetails {
        let at = next.at_instances;
        if at == now {
            return NextDetails::Now(self.limit_details(next.kind, at, Some(self.each())));
        }
        NextDetails::Later { cores: self.model.cores, carried: self.model.cpu_limit(at) }
    }
}

/// The first bound that is missed, or else the first.
fn decisive(bounds: &[Bound], slowest: f64) -> Option<Bound> {
    let missed = bounds.iter().find(|bound| !holds(**bound, slowest));
    missed.or(bounds.first()).copied()
}

/// Without enough samples for a percentile the slowest answer counts.
fn holds((_, most, value): Bound, slowest: f64) -> bool {
    value.unwrap_or(slowest) <= most
}
