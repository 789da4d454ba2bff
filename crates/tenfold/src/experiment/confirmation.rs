//! The goal's own workload: the answer is measured, then what is least sure.

use std::time::Duration;

use capacity::Unsure;

use super::Depth;
use super::balancer_comparison::Instances;
use super::probe::{Abort, Probe, Setting, WarmUp};
use super::probe_timing::ProbeTiming;
use super::session::{Session, Stage, bound, longest_wait};
use crate::config::Pattern;
use crate::document::plan::{Purpose, StopReason};
use crate::words::number::{counted, rate};

impl Session<'_> {
    /// Measures the recommended count and the one below, until both stand, then what is least sure, and
    /// whether one more would help.
    pub(super) async fn confirm(&mut self) -> Result<(), Abort> {
        // What runs already goes first: an instance that is stopped would have to warm up again.
        let running = self.deployment.fleet().members().len();
        let all = self.confirmation(running) + self.confirmations(running);
        if self.known.one_more() == Some(running) && all <= self.budget.left() {
            self.attempt(running).await?;
            self.compare_balancers(Instances::AsTheyRun).await?;
        }
        let (mut beside, mut was_answered) = (Vec::new(), false);
        loop {
            while let Some(instances) = self.known.unconfirmed() {
                // What runs already may have taken a little of the answer's time, whose probe is cut then.
                let is_answer = self.known.recommended() == Some(instances);
                was_answered |= !is_answer;
                if was_answered && !self.has_time_to_tell(instances) {
                    self.give_up(instances);
                    return Ok(());
                }
                self.require(instances).await?;
                was_answered = true;
                self.compare_balancers(Instances::AsTheyRun).await?;
            }
            let unsure = self.known.least_sure();
            let has_time = |instances: &usize| self.has_time_for(*instances);
            if let Some(next) = unsure.map(|unsure| unsure.instances).filter(has_time) {
                self.attempt(next).await?;
                if self.known.confirmed_at(next).is_some() {
                    beside.push(next);
                }
            } else if let Some(next) = self.known.one_more().filter(has_time) {
                self.attempt(next).await?;
            } else {
                self.compare_balancers(Instances::Scaled).await?;
                self.conclude(&beside, unsure);
                return Ok(());
            }
        }
    }

    /// Measures a count that the plan rests on. Once there is any, it can do without another.
    async fn require(&mut self, instances: usize) -> Result<(), Abort> {
        match self.known.facts().confirmed.is_empty() {
            true => self.confirm_at(instances).await,
            false => self.attempt(instances).await,
        }
    }

    /// Measures a count if it can be: instances that do not start, or die, cost none of what is known.
    async fn attempt(&mut self, instances: usize) -> Result<(), Abort> {
        match self.confirm_at(instances).await {
            Err(Abort::Failed(why)) => {
                self.known.lose(instances, &why);
                Ok(())
            }
            done => done,
        }
    }

    fn has_time_for(&self, instances: usize) -> bool {
        self.confirmation(instances) + self.comparison() <= self.budget.left()
    }

    /// Whether a probe of half the length can be made, which answers every user once: enough to tell whether one
    /// instance less holds the goal.
    fn has_time_to_tell(&self, instances: usize) -> bool {
        self.confirmation(instances) / 2 <= self.budget.left()
    }

    /// The budget ended before the answer stood.
    fn give_up(&mut self, instances: usize) {
        let n = counted(instances, "instance");
        let why = match self.known.confirmed_at(instances) {
            None => format!("the time budget was used up before {n} could be measured"),
            Some(_) => format!("the time budget was used up before {n} could be measured again"),
        };
        self.known.end(StopReason::Budget, format!("{why}; raise --budget to confirm the answer"));
    }

    /// Nothing is left that a measurement would change, or that there is time for. What was measured
    /// `beside` the answer was less sure.
    fn conclude(&mut self, beside: &[usize], unsure: Option<Unsure>) {
        let Some(instances) = self.known.recommended() else { return };
        let last = self.known.confirmed_at(instances);
        let (reason, mut why) = if last.is_some_and(|last| self.known.is_usable(last)) {
            let is_known = |n: &usize| self.known.confirmed_at(*n).is_some() && !beside.contains(n);
            let around = [instances - 1, instances, instances + 1];
            let counts: Vec<usize> = around.into_iter().filter(is_known).collect();
            (StopReason::Confirmed, format!("{} were measured", listed(&counts)))
        } else if self.known.lost().any(|lost| lost == instances) {
            (StopReason::Unmeasurable, "the answer could not be measured".to_owned())
        } else {
            let why = "the answer was measured twice, and something spoke against it both times";
            (StopReason::Unsteady, why.to_owned())
        };
        if !beside.is_empty() {
            why += &format!(", then {}, where the model was least sure", listed(beside));
        }
        let lost: Vec<usize> = self.known.lost().filter(|lost| *lost != instances).collect();
        if !lost.is_empty() {
            why += &format!("; {} could not be measured", listed(&lost));
        }
        if let Some(Unsure { instances, low, high }) = unsure {
            why += &format!(
                "; the time budget was used up before {instances}, for which {} to {} requests/s are predicted",
                rate(low),
                rate(high)
            );
        }
        self.known.end(reason, why);
    }

    /// `counts` from the largest down: then instances are new once, and all others are measured as they are
    /// once they have run for a while.
    pub(super) async fn sweep(&mut self, counts: &[usize]) -> Result<(), Abort> {
        for instances in counts {
            self.require(*instances).await?;
        }
        let lost: Vec<usize> = self.known.lost().collect();
        self.compare_balancers(Instances::Scaled).await?;
        let (reason, but) = match lost.is_empty() {
            true => (StopReason::Swept, String::new()),
            false => (StopReason::Unmeasurable, format!(" but {}", listed(&lost))),
        };
        self.known.end(reason, format!("{}{but}", swept(counts)));
        Ok(())
    }

    async fn confirm_at(&mut self, instances: usize) -> Result<(), Abort> {
        let are_new = instances > self.deployment.fleet().members().len();
        // New ones are waited for past the budget only where nothing else is known.
        let patience = match self.experiment.depth {
            Depth::Confirm if are_new && !self.known.facts().confirmed.is_empty() => {
                self.budget.left()
            }
            _ => Duration::MAX,
        };
        tokio::select! {
            scaled = self.scale(instances) => scaled?,
            () = tokio::time::sleep(patience) => {
                let why = "they were not ready when the budget was over; raise --budget";
                return Err(Abort::Failed(anyhow::anyhow!(why)));
            }
        }
        let timing = self.confirming(instances);
        let response = self.known.response(instances);
        let timing = match self.experiment.depth {
            // A probe that ends before its requests do says nothing: past the budget rather than that.
            Depth::Confirm | Depth::Capacity => {
                let last = Duration::from_secs_f64(self.last_answers(instances, &timing));
                let left = self.budget.left().saturating_sub(last).max(timing.cost(response) / 2);
                timing.beside(left, self.confirmations(instances))
            }
            Depth::Sweep { .. } => timing,
        };
        let probe = self.of_the_goal(instances, timing);
        let observation = if are_new {
            self.settled(&probe, Stage::Goal).await?
        } else {
            self.probe(&probe, Stage::Goal).await?
        };
        self.known.confirm(&observation);
        Ok(())
    }

    /// The goal's workload on so many instances.
    pub(super) fn of_the_goal(&self, instances: usize, timing: ProbeTiming) -> Probe {
        let response = self.known.response(instances);
        let workload = match self.experiment.workload.pattern {
            Pattern::Closed { users, think } => {
                // Everybody at once would be an artefact; they arrive over one cycle.
                let cycle = (response + think.as_secs_f64()).max(0.001);
                let rhythm = load::Rhythm::Think(load::Think::Constant(think));
                load::Workload::Closed { users, ramp: Some(users as f64 / cycle), rhythm }
            }
            Pattern::Open { rate } => load::Workload::stratified(rate, timing.strata()),
        };
        Probe {
            purpose: Purpose::Goal,
            instances,
            workload,
            timeout: self.timeout(response),
            timing,
            warm_up: WarmUp::Time,
            max_errors: self.experiment.goal.max_errors,
            setting: Setting::default(),
        }
    }

    /// How long the goal's workload takes to be measured, whatever the budget.
    pub(super) fn confirming(&self, instances: usize) -> ProbeTiming {
        let response = self.known.response(instances);
        let (cycle, throughput) = match self.experiment.workload.pattern {
            Pattern::Closed { users, think } => {
                let cycle = response + think.as_secs_f64();
                (cycle, users as f64 / cycle)
            }
            Pattern::Open { rate } => (response, rate),
        };
        let goal = self.experiment.goal;
        let percent = if goal.p99.is_some() { 99.0 } else { 95.0 };
        let timing =
            ProbeTiming::confirming(cycle, throughput, load::Histogram::samples_for(percent));
        match self.experiment.depth {
            Depth::Confirm | Depth::Capacity => timing,
            Depth::Sweep { each, .. } => timing.lasting(each),
        }
    }

    /// Seconds until the last requests of a probe are answered, or refused.
    pub(super) fn last_answers(&self, instances: usize, timing: &ProbeTiming) -> f64 {
        let response = self.known.response(instances);
        match (self.experiment.workload.pattern, self.known.model()) {
            (Pattern::Open { rate }, Some((model, _))) => {
                let backlog = timing.backlog(rate / model.capacity(instances));
                response + backlog.min(longest_wait(self.experiment).as_secs_f64())
            }
            _ => response,
        }
    }

    /// Open workloads may overload the app: then the answers of a backlog are not waited for.
    fn timeout(&self, response: f64) -> Duration {
        let patience = match self.experiment.workload.pattern {
            Pattern::Closed { .. } => 10.0 + 4.0 * response,
            Pattern::Open { .. } if bound(self.experiment).is_some() => {
                let wait = longest_wait(self.experiment).as_secs_f64();
                (wait + 10.0 * response).clamp(2.0, 30.0)
            }
            Pattern::Open { .. } => (10.0 * response).clamp(2.0, 30.0),
        };
        Duration::from_secs_f64(patience)
    }
}

/// What was measured of `counts`, the largest first.
fn swept(counts: &[usize]) -> String {
    match counts {
        [1] => "1 instance was measured".to_owned(),
        [most, ..] if counts.len() == *most => format!("every count up to {most} was measured"),
        counts => {
            let upwards: Vec<usize> = counts.iter().rev().copied().collect();
            format!("{} were measured", listed(&upwards))
        }
    }
}

/// "3, 4 and 5".
fn listed(counts: &[usize]) -> String {
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    match counts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::swept;

    #[test]
    fn a_sweep_names_the_counts_that_it_measured() {
        assert_eq!(swept(&[3, 2, 1]), "every count up to 3 was measured");
        assert_eq!(swept(&[30, 10, 1]), "1, 10 and 30 were measured");
        assert_eq!(swept(&[1]), "1 instance was measured");
    }
}
