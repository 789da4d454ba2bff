//! Apps that warm up while they are measured: code is compiled, caches fill, and a request costs less CPU from
//! one probe to the next. An app is warm once two probes of the same workload, apart in time, agree in that.

use std::time::{Duration, Instant};

use capacity::calibration::DEMAND_NOISE;
use capacity::model::warm_up::fall;

use super::Depth;
use super::calibration::{
    MAX_CPU_DROP_OF_WARM_INSTANCES, RUNG_BUDGET_DIVISOR, WARM_UP_BUDGET_DIVISOR,
};
use super::observation::Observation;
use super::probe::{Abort, Probe, WarmUp};
use super::probe_timing::ProbeTiming;
use super::session::{Session, Stage};

impl Session<'_> {
    /// The app warms up while the ladder is climbed. A rung that may have been cold is measured again until
    /// it costs no less. If it had been cold, the other rungs are measured again too, as far as there is
    /// time.
    pub(super) async fn measure_cold_rungs_again(&mut self) -> Result<(), Abort> {
        let Some(doubtful) = self.known.doubtful_rung() else { return Ok(()) };
        let begun = Instant::now();
        let patience = self.patience();
        let mut demands = vec![self.known.facts().rungs[doubtful].app_demand()];
        loop {
            if !self.measure_rung_again(doubtful).await? {
                return Ok(());
            }
            demands.push(self.known.facts().rungs[doubtful].app_demand());
            let falls = fall(&demands);
            if falls <= MAX_CPU_DROP_OF_WARM_INSTANCES {
                break;
            }
            if begun.elapsed() >= patience {
                self.known.learn().rungs[doubtful].warming = Some(falls);
                return Ok(());
            }
        }
        let warm = demands[demands.len() - 1];
        let was_cold = demands[0] > (1.0 + DEMAND_NOISE) * warm;
        for i in 0..self.known.facts().rungs.len() {
            let is_dear = self.known.facts().rungs[i].app_demand() > (1.0 + DEMAND_NOISE) * warm;
            let has_time = begun.elapsed() < patience;
            if i != doubtful && was_cold && is_dear && has_time {
                self.measure_rung_again(i).await?;
            }
        }
        Ok(())
    }

    /// Measures a rung once more, as short as may be; false where that does not count or costs too much.
    async fn measure_rung_again(&mut self, rung: usize) -> Result<bool, Abort> {
        let Some(users) = self.known.facts().rungs[rung].probe.users else { return Ok(false) };
        let cycle = users as f64 / self.known.facts().rungs[rung].throughput();
        let timing = ProbeTiming::saturating(cycle);
        let timing = ProbeTiming { most: timing.least, ..timing };
        if timing.cost(cycle) > self.budget.left() / RUNG_BUDGET_DIVISOR {
            return Ok(false);
        }
        let again = self.saturate(1, users, timing, WarmUp::Time).await?;
        let counts = self.failure_of(&again).is_none();
        if counts {
            self.known.learn().rungs[rung] = again;
        }
        Ok(counts)
    }

    /// For how long new instances are waited for until they are warm.
    fn patience(&self) -> Duration {
        match self.experiment.depth {
            Depth::Confirm | Depth::Capacity => {
                (self.budget.total() / WARM_UP_BUDGET_DIVISOR).min(self.budget.left() / 2)
            }
            Depth::Sweep { .. } => self.budget.total(),
        }
    }

    /// Measures instances of which some are new. While they warm up (code is compiled, caches fill) a
    /// request costs less CPU from one probe to the next. The last probe counts. If the cost still fell
    /// when time was over, they are not warm, and can do more than was measured.
    pub(super) async fn settled(
        &mut self,
        probe: &Probe,
        stage: Stage,
    ) -> Result<Observation, Abort> {
        let patience = self.patience();
        let begun = Instant::now();
        let mut last = self.probe(probe, stage).await?;
        let mut demands = vec![last.app_demand()];
        // Until a drop is seen, treat all extra CPU cost as warm-up.
        let mut falls = self.known.dearer(&last);
        while falls > MAX_CPU_DROP_OF_WARM_INSTANCES
            && begun.elapsed() < patience
            && self.holds(probe)
        {
            last = self.probe(probe, stage).await?;
            demands.push(last.app_demand());
            falls = fall(&demands).min(self.known.dearer(&last));
        }
        last.warming = (falls > MAX_CPU_DROP_OF_WARM_INSTANCES).then_some(falls);
        Ok(last)
    }
}
