//! What another balancer costs: the answer's count is measured behind Tenfold's own queue, too. The instances and
//! the workload are the same, and both measurements follow each other where they can.

use std::net::SocketAddr;
use std::time::Duration;

use super::Depth;
use super::probe::{Abort, Probe, Setting};
use super::session::{Session, Stage};
use crate::config::BalancerProgram;
use crate::words::number::counted;

/// Whether instances are started or stopped for the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instances {
    /// Those that run are the answer's count, or there is none yet.
    AsTheyRun,
    /// The answer's count is made to run.
    Scaled,
}

impl Session<'_> {
    /// Measures the answer behind Tenfold's own queue, if another balancer is measured, the answer was, and time is
    /// left beside what the answer itself needs.
    pub(super) async fn compare_balancers(&mut self, instances: Instances) -> Result<(), Abort> {
        let (Some(own), Some(answer)) = (
            self.deployment.own_address(),
            self.comparable().filter(|n| self.can_run(*n, instances)),
        ) else {
            return Ok(());
        };
        let owed = self.confirmations(answer);
        let left = self.budget.left().saturating_sub(owed);
        if self.experiment.depth.is_bounded() && self.confirmation(answer) > left {
            return Ok(());
        }
        match self.measure_behind_own_queue(answer, own).await {
            // What the plan is about is known; only the comparison is lost.
            Err(Abort::Failed(why)) => {
                let n = counted(answer, "instance");
                self.known
                    .learn()
                    .notes
                    .push(format!("Behind the built-in queue {n} could not be measured: {why:#}."));
                Ok(())
            }
            done => done,
        }
    }

    /// The time that the comparison still needs.
    pub(super) fn comparison(&self) -> Duration {
        let open = self.deployment.own_address().and_then(|_| self.comparable());
        open.map_or_else(Duration::default, |answer| self.confirmation(answer))
    }

    /// The answer, once it was measured and before it is compared.
    fn comparable(&self) -> Option<usize> {
        let answer = self.known.recommended()?;
        let facts = self.known.facts();
        let is_compared = facts.behind_own_queue.iter().any(|o| o.instances() == answer);
        let is_measured = self.known.confirmed_at(answer).is_some();
        // A sweep measures each count once, well or not.
        let is_final = self.known.is_confirmed(answer) || !self.experiment.depth.is_bounded();
        let stands = is_final && is_measured && !is_compared;
        (stands && self.experiment.depth != Depth::Capacity).then_some(answer)
    }

    fn can_run(&self, answer: usize, instances: Instances) -> bool {
        instances == Instances::Scaled || self.deployment.fleet().members().len() == answer
    }

    async fn measure_behind_own_queue(
        &mut self,
        answer: usize,
        own: SocketAddr,
    ) -> Result<(), Abort> {
        let are_new = answer > self.deployment.fleet().members().len();
        self.scale(answer).await?;
        self.close_idle_connections().await?;
        let timing = self.confirming(answer).within(self.budget.left().max(Duration::from_secs(1)));
        let setting = Setting { target: Some(own), ..Setting::default() };
        let probe = Probe { setting, ..self.of_the_goal(answer, timing) };
        self.deployment.watch_balancer(BalancerProgram::Tenfold);
        let observed = if are_new {
            self.settled(&probe, Stage::Goal).await
        } else {
            self.probe(&probe, Stage::Goal).await
        };
        self.deployment.watch_balancer(self.experiment.balancer.program);
        self.known.learn().behind_own_queue.push(observed?);
        Ok(())
    }

    /// Ends connections that the other balancer keeps idle. Many apps bound their connections, idle ones included,
    /// and would close those of Tenfold's own queue after each request. The queue keeps no more than its slots.
    async fn close_idle_connections(&self) -> Result<(), Abort> {
        let Some(external) = self.deployment.external() else { return Ok(()) };
        external.restart().await.map_err(|why| Abort::Failed(anyhow::Error::msg(why)))
    }
}
