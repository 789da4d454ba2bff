//! What is enough for users where no latency is asked for.

use crate::calibration::{BEND_GAIN, ENOUGH_THROUGHPUT};
use crate::queueing::workload::Workload;
use crate::recommendation::search::Search;

impl Search<'_> {
    /// Whether the workload is users without a bound on latency. Then throughput is all that can be asked
    /// for.
    pub(crate) fn is_without_latency(&self) -> bool {
        let is_closed = matches!(self.goal.workload, Workload::Closed { .. });
        is_closed && self.goal.bound().is_none()
    }

    /// Counts beyond the most that is allowed, doubled until every user has an instance. The most that this
    /// load could get does not depend on what is allowed.
    pub(crate) fn beyond(&self) -> impl Iterator<Item = usize> + use<> {
        let users = match self.goal.workload {
            Workload::Closed { users, .. } if self.is_without_latency() => users,
            _ => 0,
        };
        std::iter::successors(Some(2 * self.most), |n| Some(2 * n))
            .take_while(move |n| *n < 2 * users)
    }

    /// Where the curve bends, or the most that is allowed.
    pub(crate) fn bend(&self) -> usize {
        let first = self.prediction(1).throughput;
        (1..self.most).find(|n| self.added(*n) < BEND_GAIN * first).unwrap_or(self.most)
    }

    /// What one instance more than `n` adds (requests/s).
    pub(crate) fn added(&self, n: usize) -> f64 {
        (self.prediction(n + 1).throughput - self.prediction(n).throughput).max(0.0)
    }

    /// Whether so many complete clearly less than this load could get.
    pub(crate) fn is_short(&self, n: usize) -> bool {
        let done =
            self.measurement(n).map_or_else(|| self.prediction(n).throughput, |m| m.throughput);
        self.is_without_latency() && done < ENOUGH_THROUGHPUT * self.best
    }

    /// About how many instances, more than `n`, get nearly all that this load could. `None` if no count
    /// does.
    pub(crate) fn enough(&self, n: usize) -> Option<usize> {
        let is_enough = |n: &usize| self.prediction(*n).throughput >= ENOUGH_THROUGHPUT * self.best;
        let mut high = (n + 1..=self.most).chain(self.beyond()).find(is_enough)?;
        let mut low = (high / 2).max(n);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if is_enough(&middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use crate::goal::Goal;
    use crate::limit_kind::Kind;
    use crate::queueing::workload::Workload;
    use crate::recommendation::reason::{CountBound, Head};
    use crate::recommendation::search::{Bounds, Recommendation, recommend};
    use crate::testing::bounds;
    use crate::testing::open;
    use crate::testing::{model, saturation};

    /// 50 users of an app that sleeps for 20 ms and serves one at a time.
    fn allowed(max_instances: usize) -> Recommendation {
        let mut m = model(1, 0.02, 0.0001, 8.0);
        m.fit(&[saturation(2, 100.0, 0.0001, 0.1)]);
        let workload = Workload::Closed { users: 50, think: 0.1 };
        let goal = Goal { workload, p95: None, ..open(1.0, 1.0) };
        recommend(&m, &goal, &Bounds { max_instances, ..bounds(Kind::Serialized) }, &[])
    }

    // Each user asks for 1 / 0.12 s: 417 requests/s of all, which nine instances nearly give.
    #[test]
    fn the_answer_without_a_goal_does_not_follow_max_instances() {
        let [few, many] = [16, 48].map(|most| allowed(most).instances);
        assert_eq!(few, many);
        assert!((8..=10).contains(&few), "{few}");
        assert!(matches!(allowed(16).reason.head, Head::Enough { .. }), "{:?}", allowed(16));
    }

    #[test]
    fn a_cap_that_decides_is_named_with_what_more_would_add() {
        let r = allowed(4);
        assert_eq!((r.instances, r.goal_met), (4, true));
        let Head::Short { bound, added, enough, .. } = r.reason.head else { panic!("{r:?}") };
        assert_eq!(bound, CountBound::Allowed);
        assert!(added > 0.0 && enough.is_some(), "{r:?}");
        assert_eq!(r.reason.one_more, None, "the head says it");
    }
}
