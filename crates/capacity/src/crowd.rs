//! Requests that share a core, and those that have one for themselves.
//!
//! Every core of Linux has a queue of its own. What waits is moved to a core that idles, not to one that is
//! as busy (Lozi et al., "The Linux Scheduler: a Decade of Wasted Cores", EuroSys 2016, section 2): of
//! three on two cores one has a core to itself and the others half of one each, for as long as they last,
//! where one queue for all cores would give each two thirds. On average that is the same.

use crate::balance;
use crate::model::Model;

/// What the cores do to the requests that are in service together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Crowd {
    /// Seconds that one of them spends at the cores on average.
    seconds: f64,
    /// How many share a core on average, 1 at least.
    sharing: f64,
}

impl Crowd {
    /// Of those that are completed, how many, and by how many seconds more than on average: the core has
    /// one more or one less than the average.
    pub(crate) fn split(self) -> [(f64, f64); 2] {
        let (fewer, more) = (self.sharing.floor(), self.sharing.ceil());
        let crowded = self.sharing - fewer;
        let late = |on_core: f64| self.seconds * (on_core / self.sharing - 1.0);
        [(1.0 - crowded, late(fewer)), (crowded, late(more))]
    }
}

impl Model {
    /// Of `held` requests in the slots of `instances`.
    pub(crate) fn crowd(&self, instances: usize, held: f64) -> Crowd {
        let jobs = (held / instances as f64).max(1.0);
        let Some(away) = self.away_with(jobs) else { return Crowd { seconds: 0.0, sharing: 1.0 } };
        let rate = balance::repairman(held, away, self.core_rate(instances));
        let seconds = (held / rate - away).max(0.0);
        Crowd { seconds, sharing: (rate * seconds / self.cores).max(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::tests::{model, saturation};

    #[test]
    fn of_three_on_two_cores_one_is_alone() {
        let mut m = model(1, 0.03, 0.03, 2.0);
        m.fit(&[saturation(2, 63.0, 0.03, 1.95)]);
        let [(alone, sooner), (together, later)] = m.crowd(3, 3.0).split();
        assert!((alone - 0.5).abs() < 0.01 && (together - 0.5).abs() < 0.01, "by completions");
        assert!((later + sooner).abs() < 1e-3, "the mean stays: {sooner} and {later}");
        assert!((0.014..0.018).contains(&later), "60 ms instead of 45: {later}");
        for held in [1.0, 2.0, 4.0] {
            let [(_, late), (share, _)] = m.crowd(4, held).split();
            assert!(share < 1e-6 || late.abs() < 1e-6, "{held} are spread evenly");
        }
    }

    #[test]
    fn who_only_waits_crowds_nothing() {
        let mut m = model(8, 0.1, 1e-6, 2.0);
        m.fit(&[saturation(2, 160.0, 1e-6, 0.1)]);
        let [(share, late), _] = m.crowd(2, 16.0).split();
        assert!(share == 1.0 && late.abs() < 1e-3, "{share}, {late}");
    }
}
