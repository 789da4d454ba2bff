//! What limits after the present limit is gone, as far as that concerns anybody.

use crate::calibration::{NEXT_LIMIT_REACH, SHARED_GAIN};
use crate::limit_kind::Kind;
use crate::model::network::Model;
use crate::queueing::workload::Workload;
use crate::recommendation::search::{NextLimit, Search};
use crate::stats::resampling::Side;

impl Search<'_> {
    /// What limits after `now`, which limits `n` instances.
    pub(crate) fn next_limit(&self, n: usize, now: Kind) -> Option<NextLimit> {
        if now == Kind::Headroom && self.model.ladder.is_saturated() {
            // More load meets the limit of the count that runs already.
            let next = NextLimit { kind: self.limit(n, false), at_instances: n };
            return Some(next).filter(|_| self.is_near(self.model.capacity(n), n));
        }
        // What lies beyond one instance is unknown if that one still grew, or if the generator ended its
        // growth. No count goes beyond a limit that all instances share.
        let is_last = match now {
            Kind::SharedDependency | Kind::BalancerBound | Kind::GeneratorBound => true,
            Kind::MemoryPressure => self.bounds.memory.is_some_and(|fit| fit <= n),
            _ => false,
        };
        let is_open = self.model.ladder.is_saturated() && !is_last;
        if self.model.is_cpu_limited(n) || !is_open {
            return None;
        }
        // The first count that is limited, of those that complete no more than concerns anybody.
        let first = |kind, holds: &dyn Fn(usize) -> bool| {
            let counts = n + 1..=(NEXT_LIMIT_REACH * n as f64).ceil() as usize + 1;
            let mut near = counts.take_while(|m| self.is_near(self.model.capacity(m - 1), n));
            let at = near.find(|m| holds(*m));
            // A count is no limit where fewer instances were seen to complete more.
            let at = at.filter(|m| self.model.capacity(*m) > self.completed(n));
            at.map(|at_instances| NextLimit { kind, at_instances })
        };
        let memory = self.bounds.memory.filter(|fit| *fit >= n);
        let shared = |m| !self.is_shared(n) && self.is_surely_shared(m);
        let relay = |m| self.model.own_limit(m) >= self.model.relay_limit();
        [
            first(Kind::CpuBound, &|m| self.model.is_cpu_limited(m)),
            first(Kind::SharedDependency, &shared),
            first(self.model.relay_kind, &relay),
            first(Kind::MemoryPressure, &|m| memory.is_some_and(|fit| m > fit)),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|limit| limit.at_instances)
    }

    /// Whether a throughput (1/s) is near what the workload asks of `n` instances.
    fn is_near(&self, throughput: f64, n: usize) -> bool {
        let load = match self.goal.workload {
            Workload::Open { rate, .. } => rate,
            Workload::Closed { .. } => {
                self.measurement(n).map_or_else(|| self.prediction(n).throughput, |m| m.throughput)
            }
        };
        throughput <= NEXT_LIMIT_REACH * load
    }

    /// From here on a further instance adds less than half of what it adds alone.
    pub(crate) fn is_shared(&self, n: usize) -> bool {
        is_shared(self.model, n)
    }

    /// Whether something is shared, and nothing measured can be explained without it.
    pub(crate) fn is_surely_shared(&self, n: usize) -> bool {
        self.is_shared(n) && is_shared(self.model.bound(n, Side::High), n)
    }
}

fn is_shared(model: &Model, n: usize) -> bool {
    let gain = model.own_limit(n + 1) - model.own_limit(n);
    model.sharing.is_shared() && gain < SHARED_GAIN * model.own_limit(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sharing::Sharing;
    use crate::recommendation::search::recommend;
    use crate::testing::bounds;
    use crate::testing::open;
    use crate::testing::{model, saturation};

    /// 20 ms each, one at a time, with so much CPU in it on two cores; two of them were measured.
    fn serial(cpu: f64, two: f64) -> Model {
        let mut m = model(1, 0.02, cpu, 2.0);
        m.fit(&[saturation(2, two, cpu, 0.1)]);
        m
    }

    #[test]
    fn the_next_limit_is_told_where_it_is_within_three_times_the_load() {
        let next = |cpu| {
            let m = serial(cpu, 100.0);
            recommend(&m, &open(150.0, 0.5), &bounds(Kind::Serialized), &[]).next_limit
        };
        assert_eq!(next(0.0002), None, "the cores carry 10,000 requests/s");
        let near = next(0.005).unwrap();
        assert_eq!(near.kind, Kind::CpuBound);
        assert!((7..=9).contains(&near.at_instances), "400 requests/s: {near:?}");
    }

    // Two do 1.99 times one: something shared is possible, and so is nothing.
    #[test]
    fn instances_that_share_nothing_are_not_told_to() {
        let mut m = serial(0.0002, 99.5);
        m.sharing = Sharing::Contention { contention: 0.06, coherency: 0.0 };
        let r = recommend(&m, &open(150.0, 0.5), &bounds(Kind::Serialized), &[]);
        assert!(m.capacity(13) < NEXT_LIMIT_REACH * 150.0, "near enough: {}", m.capacity(13));
        assert_eq!(r.next_limit, None, "{r:?}");
    }

    #[test]
    fn a_shared_dependency_that_noise_explains_is_not_the_limit() {
        let limited_by = |two: f64| {
            let mut m = serial(0.0002, two);
            m.sharing = Sharing::Contention { contention: 0.2, coherency: 0.0 };
            recommend(&m, &open(80.0, 0.5), &bounds(Kind::Serialized), &[]).limited_by
        };
        assert_eq!(limited_by(99.5), Kind::Serialized);
        assert_eq!(limited_by(83.0), Kind::SharedDependency);
    }
}
