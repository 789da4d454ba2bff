//! How long to measure: enough for the app at hand, never more than the budget.

use std::time::{Duration, Instant};

use super::calibration::{
    BUDGET_RESERVE, GOAL_PRECISION, MAX_SECONDS_FOR_SAMPLES, SATURATED_PRECISION,
    SHORTEST_EXTENSION,
};

/// The time that a plan may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    started: Instant,
    total: Duration,
}

/// How one probe spends its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeTiming {
    /// Until the system is in its steady state; not measured.
    pub warm_up: Duration,
    /// Measured at least.
    pub least: Duration,
    /// Measured at most, when the interval is still wide.
    pub most: Duration,
    /// Half-width of the interval of the throughput at which the probe ends, as a share.
    pub precision: f64,
}

impl Budget {
    pub fn new(total: Duration) -> Budget {
        Budget { started: Instant::now(), total }
    }

    pub fn total(&self) -> Duration {
        self.total
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What probes may still take.
    pub fn left(&self) -> Duration {
        self.total.mul_f64(1.0 - BUDGET_RESERVE).saturating_sub(self.elapsed())
    }
}

impl ProbeTiming {
    /// Every slot is busy; `cycle` seconds pass between two requests of a user.
    ///
    /// Fractional counting makes two cycles exact for a constant service time; an app that varies
    /// goes on until its interval is tight.
    pub fn saturating(cycle: f64) -> ProbeTiming {
        ProbeTiming {
            warm_up: seconds((1.0 * cycle).max(0.3)),
            least: seconds((2.0 * cycle).max(1.0)),
            most: seconds((6.0 * cycle).max(3.0)),
            precision: SATURATED_PRECISION,
        }
    }

    /// The goal's own workload, at the expected rate (1/s). The users spread for two cycles. Then it
    /// measures for three cycles at least, and for as many requests as the goal's percentile needs.
    pub fn confirming(cycle: f64, throughput: f64, samples: u64) -> ProbeTiming {
        let least = (3.0 * cycle).max(3.0);
        let enough =
            (1.1 * samples as f64 / throughput).clamp(least, MAX_SECONDS_FOR_SAMPLES.max(least));
        ProbeTiming {
            warm_up: seconds((2.0 * cycle).max(1.0)),
            least: seconds(enough),
            most: seconds((2.0 * least).min(least.max(8.0)).max(enough)),
            precision: GOAL_PRECISION,
        }
    }

    /// This timing, cut for an app that answers in `response` seconds: longer would tell no more.
    pub fn answering(self, response: f64) -> ProbeTiming {
        ProbeTiming { most: self.most.min(ProbeTiming::saturating(response).most), ..self }
    }

    /// Seconds that the last requests take after a probe under this load, as a share of the capacity. In an
    /// overload the queue has grown for as long as the probe took, and no request waits longer than that.
    pub fn backlog(&self, load: f64) -> f64 {
        (self.warm_up + self.least).as_secs_f64() * (load - 1.0).clamp(0.0, 1.0)
    }

    /// What the probe costs at least, the last requests in flight (`response` seconds) included.
    pub fn cost(&self, response: f64) -> Duration {
        self.warm_up + self.least + seconds(response)
    }

    /// Parts of the probe in which the number of arrivals is fixed: the warm-up, what is measured at least, and what
    /// may come after it. A probe of arrivals ends where one of them does.
    pub fn strata(&self) -> Vec<Duration> {
        let mut strata = vec![self.warm_up, self.least];
        let mut left = self.most.saturating_sub(self.least);
        while !left.is_zero() {
            let part = left.min((self.least / 2).max(SHORTEST_EXTENSION));
            strata.push(part);
            left -= part;
        }
        strata.retain(|stratum| !stratum.is_zero());
        strata
    }

    /// How long the probe has measured when a stratum ends next, after `elapsed` of it.
    pub fn checkpoint(&self, elapsed: Duration) -> Duration {
        let ends = self.strata().into_iter().scan(Duration::ZERO, |end, stratum| {
            *end += stratum;
            Some(end.saturating_sub(self.warm_up))
        });
        ends.filter(|end| *end >= self.least).find(|end| *end > elapsed).unwrap_or(self.most)
    }

    /// This timing, measured for `each` if that is said.
    pub fn lasting(self, each: Option<Duration>) -> ProbeTiming {
        each.map_or(self, |each| ProbeTiming { least: each, most: each, ..self })
    }

    /// This timing within `left`, of which other probes need `owed`. Their need goes before what this probe
    /// would take beyond its least. Where both cannot have what they need, each gets its part.
    pub fn beside(self, left: Duration, owed: Duration) -> ProbeTiming {
        let needed = self.warm_up + self.least;
        let part = left.mul_f64(needed.as_secs_f64() / (needed + owed).as_secs_f64());
        self.within(left.saturating_sub(owed).max(part))
    }

    /// This timing with no more than `left` in all, a third of it to warm up.
    pub fn within(self, left: Duration) -> ProbeTiming {
        let warm_up = self.warm_up.min(left / 3);
        let most = left.saturating_sub(warm_up).min(self.most);
        ProbeTiming { warm_up, most, least: self.least.min(most), ..self }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_apps_get_longer_probes() {
        let fast = ProbeTiming::saturating(0.02);
        let slow = ProbeTiming::saturating(2.0);
        assert_eq!(
            (fast.warm_up, fast.least),
            (Duration::from_millis(300), Duration::from_secs(1))
        );
        assert_eq!((slow.warm_up, slow.least), (Duration::from_secs(2), Duration::from_secs(4)));
        assert_eq!(slow.cost(2.0), Duration::from_secs(8));
    }

    #[test]
    fn the_first_probe_is_as_long_as_the_app_is_slow() {
        let most = Duration::from_secs(10);
        let first = ProbeTiming { most, ..ProbeTiming::saturating(0.0) };
        let seconds = [0.02, 1.0, 9.0].map(|response| first.answering(response).most.as_secs());
        assert_eq!(seconds, [3, 6, 10]);
    }

    #[test]
    fn a_little_of_the_budget_is_kept_for_what_is_under_way() {
        assert!(Budget::new(Duration::from_secs(60)).left() <= Duration::from_millis(58_800));
    }

    #[test]
    fn probes_of_arrivals_end_where_a_stratum_ends() {
        let ms = Duration::from_millis;
        let timing =
            ProbeTiming { warm_up: ms(1000), least: ms(4000), most: ms(9000), precision: 0.04 };
        assert_eq!(timing.strata(), [1000, 4000, 2000, 2000, 1000].map(ms));
        let checkpoints = [0, 4000, 4003, 7000, 8500, 9100].map(|at| timing.checkpoint(ms(at)));
        assert_eq!(checkpoints, [4000, 6000, 6000, 8000, 9000, 9000].map(ms));
        let short = timing.lasting(Some(ms(500)));
        assert_eq!((short.strata(), short.checkpoint(ms(1))), (vec![ms(1000), ms(500)], ms(500)));
    }

    #[test]
    fn percentiles_get_their_samples() {
        assert_eq!(ProbeTiming::confirming(0.05, 400.0, 59).least, Duration::from_secs(3));
        assert_eq!(ProbeTiming::confirming(0.05, 10.0, 59).least, Duration::from_millis(6490));
        assert_eq!(
            ProbeTiming::confirming(0.05, 1.0, 299).least,
            Duration::from_secs(15),
            "no longer"
        );
    }

    #[test]
    fn half_the_cost_of_a_probe_answers_every_user() {
        for cycle in [0.01, 1.0, 9.0] {
            let timing = ProbeTiming::confirming(cycle, 10.0, 59);
            let cut = timing.within(timing.cost(cycle) / 2);
            assert!(cut.least.as_secs_f64() >= cycle && cut.least.as_secs_f64() > 1.0, "{cut:?}");
        }
    }

    #[test]
    fn the_queue_of_an_overload_takes_its_time() {
        let timing = ProbeTiming::confirming(0.05, 400.0, 59);
        let backlog = [0.9, 1.25, 3.0].map(|load| timing.backlog(load));
        assert_eq!(backlog, [0.0, 1.0, 4.0], "of four seconds");
    }

    #[test]
    fn the_minimum_of_a_probe_is_not_cut() {
        for cycle in [0.02, 2.0] {
            let timing = ProbeTiming::saturating(cycle);
            let held = timing.within(timing.cost(cycle));
            assert_eq!((held.warm_up, held.least), (timing.warm_up, timing.least));
            assert!(held.most < timing.most);
        }
    }

    // One second to warm up, three to six of measuring.
    #[test]
    fn precision_does_not_use_the_time_of_later_probes() {
        let timing = ProbeTiming::confirming(0.05, 30.0, 59);
        let most = |left, owed| {
            timing.beside(Duration::from_secs(left), Duration::from_secs(owed)).most.as_secs_f64()
        };
        assert_eq!([most(20, 4), most(10, 4), most(12, 8)], [6.0, 5.0, 3.0]);
        assert!(
            (2.2..2.4).contains(&most(10, 8)),
            "a third of what there is, one second to warm up"
        );
    }

    #[test]
    fn the_budget_cuts_the_probe() {
        let timing = ProbeTiming::saturating(4.0).within(Duration::from_secs(6));
        assert_eq!(
            (timing.warm_up, timing.least),
            (Duration::from_secs(2), Duration::from_secs(4))
        );
    }
}
