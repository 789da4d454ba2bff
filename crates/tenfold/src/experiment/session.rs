//! Runs the probes in order and keeps what they found.

use std::time::{Duration, Instant};

use capacity::Failing;
use fleet::MemberStatus;
use observe::Machine;

use super::calibration::{
    IDLE_TEST_BUDGET_DIVISOR, IDLE_TEST_MIN_BUDGET, MAX_CONCURRENCY, MAX_FAILED_SHARE,
    RUNG_BUDGET_DIVISOR, TWO_INSTANCES_BUDGET_DIVISOR, UNLIMITED_SLOTS,
    UNNEEDED_RUNG_BUDGET_DIVISOR,
};
use super::core_speed::time_of_work;
use super::crash::Deaths;
use super::knowledge::Knowledge;
use super::observation::{Observation, of_redirects};
use super::probe::{Abort, Probe, Setting, WarmUp};
use super::probe_timing::{Budget, ProbeTiming};
use super::{Depth, Experiment};
use crate::config::Pattern;
use crate::document::plan::{Purpose, StopReason};
use crate::process::exit_code::misuse;
use crate::process::signal::Stop;
use crate::service::deployment::Deployment;
use crate::service::drivers::Drivers;
use crate::service::idle_test;
use crate::terminal::progress::Progress;
use crate::words;
use crate::words::number::counted;

/// A running experiment.
pub struct Session<'a> {
    pub(super) experiment: &'a Experiment,
    stop: &'a Stop,
    progress: &'a mut Progress,
    pub(super) budget: Budget,
    pub(super) deployment: Deployment,
    /// Seconds that the first instance took to become ready.
    start_up: f64,
    pub(super) known: Knowledge<'a>,
}

impl<'a> Session<'a> {
    pub async fn new(
        experiment: &'a Experiment,
        stop: &'a Stop,
        progress: &'a mut Progress,
    ) -> anyhow::Result<Session<'a>> {
        let (wait, patience) = (longest_wait(experiment), experiment.budget);
        let room = Deployment::room();
        anyhow::ensure!(
            room.requests > 0,
            "this process may open {} files, which is too few to measure anything: raise the limit \
             (ulimit -n 1024)",
            room.files
        );
        let runnable = experiment.runnable.clone();
        let behind = &experiment.balancer;
        let drivers = Drivers::new()?;
        let deployment = Deployment::to_measure(
            runnable,
            &drivers,
            behind,
            UNLIMITED_SLOTS,
            wait,
            patience,
            stop,
        )
        .await?;
        // An image that is built before, or a stack that is started, is not measured.
        let budget = Budget::new(experiment.budget);
        let mut known = Knowledge::new(experiment, Machine::read(), room);
        known.learn().balancer = deployment.external().map(|external| external.name().to_owned());
        Ok(Session { experiment, stop, progress, budget, deployment, start_up: 0.0, known })
    }

    /// Ends the instances.
    pub async fn close(&mut self) {
        self.deployment.close().await;
    }

    /// What was found out.
    pub fn known(&self) -> &Knowledge<'a> {
        &self.known
    }

    /// How long it took so far.
    pub fn elapsed(&self) -> Duration {
        self.budget.elapsed()
    }

    /// All probes, in order.
    pub async fn measure(&mut self) -> Result<(), Abort> {
        let begun = Instant::now();
        self.progress.step("starting the app".to_owned(), self.budget.left());
        self.scale(1).await?;
        self.start_up = begun.elapsed().as_secs_f64();
        self.find_idle_connections().await?;
        self.measure_ladder().await?;
        if let Some(failing) = self.known.failing() {
            let why = match failing {
                Failing::Requests(_) => {
                    "requests fail with one in flight, and more instances would fail as often"
                }
                Failing::Deaths(_) => {
                    "the instance dies again and again, and more instances would die as often"
                }
            };
            self.known.end(StopReason::Failing, why.to_owned());
            return Ok(());
        }
        self.intervene_at_one().await?;
        let slots = self.known.balancer_slots().unwrap_or(UNLIMITED_SLOTS);
        self.deployment.apps[0].set_slots(slots).await.map_err(Abort::Failed)?;
        if self.known.has_room_for_two() {
            self.measure_two().await?;
            self.intervene_at_two().await?;
        }
        if let Some(shortage) = self.known.shortage() {
            let (needed, possible) = (shortage.needed, shortage.limit.requests);
            let why = format!(
                "the goal's workload holds {needed} requests at once, and only {possible} can be in flight here"
            );
            self.known.end(StopReason::GeneratorBound, why);
            return Ok(());
        }
        match &self.experiment.depth {
            Depth::Confirm => self.confirm().await,
            Depth::Capacity => {
                let why = "no workload was given for which more would be measured";
                self.known.end(StopReason::Capacity, why.to_owned());
                Ok(())
            }
            Depth::Sweep { counts, .. } => self.sweep(counts).await,
        }
    }

    // === one instance ===

    /// Before a balancer keeps any: asks the instance itself, which answers others meanwhile or does not.
    async fn find_idle_connections(&mut self) -> Result<(), Abort> {
        if self.budget.total() < IDLE_TEST_MIN_BUDGET {
            return Ok(());
        }
        let app = &self.deployment.apps[0];
        let Some(first) = app.roster().seen().into_iter().next() else { return Ok(()) };
        let target = self.experiment.workload.request.target(first.address);
        let patience = self.budget.total() / IDLE_TEST_BUDGET_DIVISOR;
        let found = tokio::select! {
            signal = self.stop.wait() => return Err(Abort::Stopped(signal)),
            found = idle_test::with_requests(&target, patience) => found,
        };
        if let Some(found) = found {
            app.set_idle_connections(found).await.map_err(Abort::Failed)?;
            self.known.learn().idle_connections = Some(found);
        }
        Ok(())
    }

    /// Doubles concurrency until throughput stops growing.
    async fn measure_ladder(&mut self) -> Result<(), Abort> {
        let patience = self.budget.total() / 3;
        let timing = ProbeTiming { most: self.budget.total() / 6, ..ProbeTiming::saturating(0.0) };
        let warm_up = WarmUp::Answers { least: 2, patience };
        let mut first = self.saturate(1, 1, timing, warm_up).await?;
        self.check_first(&first)?;
        // An instance that dies once may do so by chance; one that fails by itself will die again.
        if !self.known.facts().deaths.is_empty() && first.fails(self.experiment.goal.max_errors) {
            first = self.saturate(1, 1, timing, warm_up).await?;
            self.check_first(&first)?;
        }
        if let Some(status) = first.redirect {
            self.known.learn().notes.push(of_redirects(status, "this is a plan"));
        }
        self.known.learn().rungs.push(first);
        if self.known.failing().is_some() {
            return Ok(());
        }
        self.check_budget()?;
        let mut flat = 0;
        let mut concurrency = 2;
        let most = MAX_CONCURRENCY.min(self.known.in_flight_limit.requests);
        while concurrency <= most && self.known.failing().is_none() {
            let Some(timing) = self.rung_timing(concurrency, flat) else { break };
            let Some(rung) = self.rung(concurrency, timing).await? else { break };
            self.known.learn().rungs.push(rung);
            flat = if self.known.ladder().is_some_and(|l| l.is_last_step_flat()) {
                flat + 1
            } else {
                0
            };
            if flat == 2 {
                break;
            }
            concurrency *= 2;
        }
        self.measure_cold_rungs_again().await
    }

    /// A rung above the first; `None` where the app or this machine gives up.
    async fn rung(
        &mut self,
        concurrency: usize,
        timing: ProbeTiming,
    ) -> Result<Option<Observation>, Abort> {
        let rung = match self.saturate(1, concurrency, timing, WarmUp::Time).await {
            Err(Abort::Failed(error)) if error.is::<load::StartError>() => {
                self.known
                    .learn()
                    .notes
                    .push(format!("The ladder ends below {concurrency} at once: {error}."));
                return Ok(None);
            }
            rung => rung?,
        };
        let Some(what) = self.failure_of(&rung) else { return Ok(Some(rung)) };
        self.known.learn().notes.push(format!(
            "With {concurrency} requests at once one instance {what}; the plan stays below."
        ));
        Ok(None)
    }

    /// Describes the failures if too many requests failed to judge the instances.
    pub(super) fn failure_of(&self, o: &Observation) -> Option<String> {
        let allowed = self.experiment.goal.max_errors.max(MAX_FAILED_SHARE);
        (o.slowest.is_none() || o.fails(allowed)).then(|| match &o.top_error {
            Some(error) => format!("failed {:.0} % of them ({error})", o.error_ratio() * 100.0),
            None => "answered none of them".to_owned(),
        })
    }

    /// The timing of the next rung; `None` where it would take too long.
    ///
    /// A rung that the goal needs may take a third of the budget left. Any other rung is measured as short as may
    /// be, and may take a thirtieth of the whole. The first two are always measured.
    fn rung_timing(&self, concurrency: usize, flat: usize) -> Option<ProbeTiming> {
        let cycle = concurrency as f64 / self.known.peak();
        let timing = ProbeTiming::saturating(cycle);
        let cost = timing.cost(cycle);
        // A step after a flat one only makes sure.
        let is_needed = flat == 0 && self.known.is_goal_near();
        let allowed = if is_needed {
            self.budget.left() / RUNG_BUDGET_DIVISOR
        } else {
            self.budget.total() / UNNEEDED_RUNG_BUDGET_DIVISOR
        };
        if concurrency > 2 && cost > allowed {
            return None;
        }
        Some(timing.within(if is_needed { allowed.max(cost) } else { cost }))
    }

    /// A probe whose interval stays wide takes no more than its part of what is left, or what it needs.
    fn cap_to_budget(&self, timing: ProbeTiming, response: f64, part: u32) -> ProbeTiming {
        timing.within((self.budget.left() / part).max(timing.cost(response)))
    }

    fn check_first(&self, first: &Observation) -> Result<(), Abort> {
        if first.slowest.is_some() && first.error_ratio() < 0.5 {
            return Ok(());
        }
        let request = &self.experiment.workload.request;
        let (errors, requests) = (first.probe.errors, first.probe.requests);
        let failed = format!(
            "{} {} {}",
            request.method,
            load::without_secrets(&request.path),
            match &first.top_error {
                Some(error) => format!("failed {errors} times of {requests} with: {error}"),
                None => "was not answered".to_owned(),
            }
        );
        let works = "give a request that works (--path, --method, --body)";
        Err(Abort::Failed(match self.known.facts().deaths.values().next() {
            Some(deaths) => {
                let past = &deaths.past;
                let death = words::crash::describe(&deaths.crashes(past.restarts));
                anyhow::anyhow!(
                    "{failed}; {death}: mend what ends it, or {works}{}",
                    past.last_output
                )
            }
            None => anyhow::anyhow!("{failed}; {works}"),
        }))
    }

    /// What is left must hold the rest of the ladder, two instances and one confirmation.
    fn check_budget(&self) -> Result<(), Abort> {
        let cycle = 2.0 / self.known.peak();
        let think = match self.experiment.workload.pattern {
            Pattern::Closed { think, .. } => think,
            Pattern::Open { .. } => Duration::ZERO,
        };
        // Without the ladder's end the count is a guess: two cycles of a user are the least.
        let confirming = 2 * (think + Duration::from_secs_f64(cycle / 2.0));
        let needed = 2 * ProbeTiming::saturating(cycle).cost(cycle) + confirming;
        if !self.experiment.depth.is_bounded() || needed <= self.budget.left() {
            return Ok(());
        }
        let total = (self.budget.elapsed() + needed).as_secs_f64();
        let thinks = match think {
            Duration::ZERO => String::new(),
            think => format!(" and a user thinks for {} s", think.as_secs_f64()),
        };
        Err(Abort::Failed(misuse(format!(
            "the budget of {} s is too short: a request takes {:.2} s here{thinks}, so that a plan needs about \
             {:.0} s; give --budget {:.0}s",
            self.budget.total().as_secs_f64(),
            1.0 / self.known.peak(),
            total.ceil(),
            (total * 1.5).ceil()
        ))))
    }

    // === two instances ===

    async fn measure_two(&mut self) -> Result<(), Abort> {
        let Some(ladder) = self.known.ladder() else { return Ok(()) };
        // With known slots twice as many users: one in each slot, and one that waits to take its place.
        let per_slot = if self.known.balancer_slots().is_some() { 2 } else { 1 };
        let least = 2 * ladder.slots();
        let users = (least * per_slot).min(self.known.in_flight_limit.requests);
        if users < least {
            return Ok(());
        }
        self.scale(2).await?;
        let cycle = users as f64 / (2.0 * self.known.peak());
        let timing = ProbeTiming::saturating(cycle);
        let timing = if self.known.is_goal_near() {
            self.cap_to_budget(timing, cycle, TWO_INSTANCES_BUDGET_DIVISOR)
        } else {
            timing.within(timing.cost(cycle))
        };
        let probe = self.saturating(2, users, timing);
        let second = self.settled(&probe, Stage::TwoInstances).await?;
        match self.failure_of(&second) {
            Some(what) => self.known.learn().notes.push(format!(
                "With {users} requests at once two instances {what}; what they do together is not known from that."
            )),
            None => self.known.learn().second = Some(second),
        }
        Ok(())
    }

    // === carrying out ===

    pub(super) async fn scale(&mut self, instances: usize) -> Result<(), Abort> {
        tokio::select! {
            signal = self.stop.wait() => Err(Abort::Stopped(signal)),
            scaled = self.deployment.fleet().scale(instances) => scaled.map_err(|error| {
                Abort::Failed(Deployment::late(error, &self.experiment.runnable.app, "--budget").into())
            }),
        }
    }

    pub(super) async fn saturate(
        &mut self,
        instances: usize,
        users: usize,
        timing: ProbeTiming,
        warm_up: WarmUp,
    ) -> Result<Observation, Abort> {
        let stage = if instances == 1 { Stage::Ladder } else { Stage::TwoInstances };
        let probe = self.saturating(instances, users, timing);
        self.probe(&Probe { warm_up, ..probe }, stage).await
    }

    fn saturating(&self, instances: usize, users: usize, timing: ProbeTiming) -> Probe {
        Probe {
            purpose: if instances == 1 { Purpose::Ladder } else { Purpose::Saturation },
            instances,
            workload: load::Workload::closed(users, Duration::ZERO),
            timeout: self.budget.total(),
            timing,
            warm_up: WarmUp::Time,
            max_errors: self.experiment.goal.max_errors,
            setting: Setting::default(),
        }
    }

    /// Whether the budget, where there is one, holds another such probe.
    pub(super) fn holds(&self, probe: &Probe) -> bool {
        let cost = probe.timing.cost(self.known.response(probe.instances));
        !self.experiment.depth.is_bounded() || cost <= self.budget.left()
    }

    /// Measures saturated instances with something changed.
    pub(super) async fn measure_saturated_with(
        &mut self,
        instances: usize,
        users: usize,
        timing: ProbeTiming,
        setting: Setting,
    ) -> Result<Observation, Abort> {
        let probe = self.saturating(instances, users, timing);
        self.probe(&Probe { setting, ..probe }, Stage::TwoInstances).await
    }

    pub(super) async fn probe(
        &mut self,
        probe: &Probe,
        stage: Stage,
    ) -> Result<Observation, Abort> {
        self.progress.step(describe(probe), self.forecast(stage).min(self.budget.left()));
        let time_of_work = time_of_work(&self.deployment.recorder).await;
        let request = &self.experiment.workload.request;
        let mut observed = tokio::select! {
            observed = probe.measure(&self.deployment, request, self.stop, self.progress, &self.known.machine) => observed,
            failed = self.deployment.fleet().crash_loop() => Err(Abort::Failed(failed.into())),
        };
        for MemberStatus { member, past, .. } in self.deployment.fleet().members() {
            if past.restarts > 0 {
                let name = member.display_name().to_owned();
                self.known.learn().deaths.insert(member.index, Deaths { name, past });
            }
        }
        if let Ok(observed) = &mut observed {
            observed.time_of_work = time_of_work;
            if !probe.is_comparison() {
                self.progress.measured(&observed.probe);
            }
        }
        observed
    }

    fn start_up_of(&self, instances: usize) -> Duration {
        let running = self.deployment.fleet().members().len();
        let new = instances.saturating_sub(running) as f64;
        Duration::from_secs_f64(self.start_up * (new / self.known.cores()).ceil())
    }

    /// About how long everything from `stage` on will take.
    fn forecast(&self, stage: Stage) -> Duration {
        if self.known.facts().rungs.is_empty() {
            return self.budget.left();
        }
        let cycle = 2.0 / self.known.peak();
        let step = ProbeTiming::saturating(cycle).cost(cycle);
        match stage {
            Stage::Ladder => 2 * step + self.confirmations(0),
            Stage::TwoInstances => step + self.confirmations(0),
            Stage::Goal => self.confirmations(0),
        }
    }

    /// About how long a confirmation takes, including the start of instances.
    pub(super) fn confirmation(&self, instances: usize) -> Duration {
        let timing = self.confirming(instances);
        timing.cost(self.last_answers(instances, &timing)) + self.start_up_of(instances)
    }

    /// The recommended count and the one below, as far as they are still to be measured beside another.
    pub(super) fn confirmations(&self, another: usize) -> Duration {
        if self.experiment.depth == Depth::Capacity {
            return Duration::ZERO;
        }
        let Some(instances) = self.known.recommended() else { return Duration::ZERO };
        let is_left = |n: &usize| *n > 0 && *n != another && !self.known.is_confirmed(*n);
        [instances, instances - 1].into_iter().filter(is_left).map(|n| self.confirmation(n)).sum()
    }
}

/// The time that the goal allows an answer, if it names one.
pub(super) fn bound(experiment: &Experiment) -> Option<Duration> {
    experiment.goal.p99.or(experiment.goal.p95)
}

/// How long a request may wait for a slot. Arrivals beyond the capacity are refused early. Otherwise nearly
/// all are served after their clients have left, and the throughput says nothing about the capacity.
/// The limit is four times the goal, so that hardly any request reaches it where the goal is met.
pub(super) fn longest_wait(experiment: &Experiment) -> Duration {
    match (experiment.workload.pattern, bound(experiment)) {
        (Pattern::Open { .. }, Some(bound)) => {
            (4 * bound).clamp(Duration::from_secs(1), Duration::from_secs(20))
        }
        _ => experiment.budget,
    }
}

/// The parts of a session, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Ladder,
    TwoInstances,
    Goal,
}

fn describe(probe: &Probe) -> String {
    let behind = if probe.is_comparison() { ", behind the built-in queue" } else { "" };
    describe_load(probe) + behind
}

fn describe_load(probe: &Probe) -> String {
    let instances = counted(probe.instances, "instance");
    match (&probe.workload, probe.purpose) {
        (load::Workload::Closed { users: 1, .. }, Purpose::Goal) => {
            format!("measuring {instances} under the goal's 1 user")
        }
        (load::Workload::Closed { users, .. }, Purpose::Goal) => {
            format!("measuring {instances} under the goal's {users} users")
        }
        (load::Workload::Closed { users, .. }, _) => {
            format!("measuring {instances} with {users} in flight")
        }
        (open @ load::Workload::Open { .. }, _) => {
            let rate = open.rate().unwrap_or_default();
            format!("measuring {instances} under the goal's {rate} requests/s")
        }
    }
}
