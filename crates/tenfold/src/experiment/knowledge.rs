//! What is known so far, and what follows from it. No I/O: the science is asked here.

mod cpu_demand;
mod facts;
mod next_count;
mod unfairness;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use capacity::balancing::{Balanced, BalancingCost, CentralQueue};
use capacity::{
    Bounds, Change, CoreTrial, DependencyUse, Failing, Filling, Finding, InFlightLimit,
    InstanceWork, Kind, Ladder, Line, Load, Memory, Model, ModelInputs, Question, Quota,
    RetainedMemory, Rung, Saturation, ServiceShape, Shortage, Trial, Unevenness,
};
use observe::{Machine, fullest};

pub use self::facts::{Facts, Lost};
use super::calibration::{MIN_SHARE_OF_CORES_LEFT, REPEATED_DEATHS, SHORT_REQUEST_S};
use super::observation::Observation;
use super::{Depth, Experiment};
use crate::config::Pattern;
use crate::document::plan::{Stop, StopReason};
use crate::document::verdict::Verdict;
use crate::words;

/// What an experiment measured, and what follows from it.
pub struct Knowledge<'a> {
    pub experiment: &'a Experiment,
    pub machine: Machine,
    pub in_flight_limit: InFlightLimit,
    facts: Facts,
    /// The model of these facts, once somebody asked for it.
    fitted: OnceCell<Option<(Model, Bounds)>>,
    /// How often the model had been wrong about a count.
    pub misses: usize,
    /// What was measured otherwise than predicted, by count: a later measurement stands for an earlier one.
    surprises: BTreeMap<usize, String>,
}

impl<'a> Knowledge<'a> {
    pub fn new(
        experiment: &'a Experiment,
        machine: Machine,
        in_flight_limit: InFlightLimit,
    ) -> Knowledge<'a> {
        Knowledge {
            experiment,
            machine,
            in_flight_limit,
            facts: Facts::default(),
            fitted: OnceCell::new(),
            misses: 0,
            surprises: BTreeMap::new(),
        }
    }

    /// What was measured so far.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Takes in what was measured: the model is fitted again when somebody asks for it.
    pub fn learn(&mut self) -> &mut Facts {
        self.fitted.take();
        &mut self.facts
    }

    /// What was measured without a change to it.
    fn all(&self) -> impl Iterator<Item = &Observation> {
        self.facts.rungs.iter().chain(&self.facts.second).chain(&self.facts.confirmed)
    }

    /// The most that one instance did.
    pub fn peak(&self) -> f64 {
        self.facts.rungs.iter().map(Observation::throughput).fold(0.0, f64::max)
    }

    /// Requests a second with one in flight.
    pub fn light_rate(&self) -> f64 {
        self.ladder().map_or(1.0, |ladder| 1.0 / ladder.light_service())
    }

    /// Whether the goal needs to know exactly what instances do beyond what was seen of one. It does until one has
    /// completed twice what the goal asks for.
    pub fn is_goal_near(&self) -> bool {
        let asked = match self.experiment.workload.pattern {
            _ if self.experiment.depth == Depth::Capacity => f64::INFINITY,
            Pattern::Closed { users, think } => {
                users as f64 / (think.as_secs_f64() + 1.0 / self.light_rate())
            }
            Pattern::Open { rate } => rate,
        };
        self.peak() < 2.0 * asked
    }

    /// The rung at which one instance did most.
    pub fn peak_rung(&self) -> Option<&Observation> {
        self.facts.rungs.iter().max_by(|a, b| a.throughput().total_cmp(&b.throughput()))
    }

    pub fn ladder(&self) -> Option<Ladder> {
        let rung = |o: &Observation| {
            let concurrency = o.probe.users?;
            let inside = o.admission().map(|admission| admission.inside());
            let (throughput, error, cores) = (o.throughput(), self.error(o), Some(o.app_cores));
            Some(Rung { concurrency, throughput, error, inside, cores })
        };
        Ladder::new(self.facts.rungs.iter().filter_map(rung).collect())
    }

    /// One full instance.
    fn one(&self) -> Option<Saturation> {
        Some(self.ladder()?.at_peak(self.saturation(self.peak_rung()?)))
    }

    /// What stops each instance, and how the time of a request varies that it did not stop.
    fn quota(&self) -> Option<(Quota, ServiceShape)> {
        let whole = self.all().filter(|o| !o.is_interrupted);
        let demands: Vec<f64> =
            whole.map(Observation::app_demand).filter(|demand| *demand > 0.0).collect();
        self.facts.rungs.first()?.quota(&demands)
    }

    /// Half-width of the interval of a throughput, as a share. The count of `n` requests, each of which makes
    /// room for the next, varies by their scv times `n` (Cox, "Renewal Theory", 1962, ch. 3): windows that
    /// are shorter than a request do not show it. A quota lets through what it does, however they vary.
    fn error(&self, o: &Observation) -> f64 {
        let (Some(users), Some(first), None) =
            (o.probe.users, self.facts.rungs.first(), self.quota())
        else {
            return o.error;
        };
        // One that was cold made the first ones vary; of those that queue, each waits for all before it.
        let scv = first.shape.scv.min(users as f64 * o.shape.scv);
        o.error.max(1.96 * (scv / o.probe.requests.max(1) as f64).sqrt())
    }

    /// What the model is fitted to, once one instance was measured.
    pub fn basis(&self) -> Option<ModelInputs> {
        let first = self.facts.rungs.first()?;
        let (quota, unstopped) = self.quota().unzip();
        let telling = self.facts.confirmed.iter().filter(|o| self.tells_times(o));
        Some(ModelInputs {
            cores: self.cores(),
            rungs: self.ladder()?.rungs().to_vec(),
            one: self.one()?,
            shape: unstopped.unwrap_or_else(|| first.shape.clone()),
            quota,
            several: self.several(),
            core_trial: self.core_trial(),
            goal: self.goal(),
            confirmed: telling.map(Observation::measured).collect(),
        })
    }

    /// The model and the bounds of the search, once one instance was measured.
    pub fn model(&self) -> Option<&(Model, Bounds)> {
        self.fitted.get_or_init(|| self.fit()).as_ref()
    }

    fn fit(&self) -> Option<(Model, Bounds)> {
        let model = self.basis()?.model()?;
        let instance_limit = capacity::instance_limit(&model, &self.evidence()?);
        let bounds = Bounds {
            max_instances: self.experiment.max_instances,
            memory: self.memory_bound(),
            instance_limit,
            failing: self.failing(),
            slowdown: self
                .facts
                .rungs
                .iter()
                .chain(&self.facts.second)
                .map(|o| self.slowdown(o))
                .fold(self.slowdown_by_cores(), f64::max),
        };
        Some((model, bounds))
    }

    /// What the model may rely on beside the ladder: the second instance, and the measurements of the goal
    /// that count. A valid measurement counts. One that other programs disturbed counts if a second one of
    /// the same count was disturbed, too. One instance counts if it fills the cores. On full cores a
    /// generator that had to wait is no objection. Two instances also count if they are no worse than their
    /// first measurement, because they had longer to warm up. One in which an instance died never counts.
    fn several(&self) -> Vec<Saturation> {
        let is_best = |o: &Observation| {
            let n = o.instances();
            self.is_valid(o) || (self.is_confirmed(n) && !self.has_valid(n))
        };
        let fills_cores = |o: &Observation| self.saturation(o).is_cpu_full(self.cores());
        let fills_the_cores_alone =
            |o: &Observation| o.instances() == 1 && fills_cores(o) && self.is_confirmed(1);
        // Full cores complete no less where the generator had to wait for them, too.
        let shares_full_cores = |o: &Observation| self.is_only_crowded(o) && fills_cores(o);
        let is_no_worse = |o: &Observation| {
            let second =
                self.facts.second.as_ref().filter(|second| second.instances() == o.instances());
            second.is_some_and(|second| self.verdict(o) <= self.verdict(second))
        };
        let counts = |o: &&Observation| {
            let is_sound = o.probe.verdict == Verdict::Valid && is_best(o);
            is_sound || fills_the_cores_alone(o) || is_no_worse(o) || shares_full_cores(o)
        };
        let later = self.facts.confirmed.iter().filter(counts);
        // What a slow instance lacks would look as if all of them shared something.
        let tells = |o: &&Observation| o.instances() == 1 || !self.is_slowed_by_one();
        let measured = self.second().into_iter().chain(later).filter(tells);
        measured.filter(|o| !o.is_interrupted).map(|o| self.saturation(o)).collect()
    }

    /// Two saturated instances. `None` also where they were cold, and the goal's workload filled them later
    /// when they were warm: that measurement replaces this one.
    pub fn second(&self) -> Option<&Observation> {
        let is_full = |o: &Observation| self.saturation(o).filling == Filling::Full;
        let replaces = |o: &Observation| self.is_valid(o) && is_full(o);
        self.facts.second.as_ref().filter(|second| {
            let later = self.confirmed_at(second.instances());
            second.warming.is_none() || !later.is_some_and(replaces)
        })
    }

    /// What two did on a core less, and how busy they had kept the cores.
    fn core_trial(&self) -> Option<CoreTrial> {
        let trial = self.facts.trials.iter().find(|trial| trial.change == Change::OneCoreLess)?;
        let own_cores = self.saturation(self.facts.second.as_ref()?).own_cores();
        Some(CoreTrial { own_cores, shows: trial.shows })
    }

    /// Two saturated instances as they are when warm: the first measurement of them, or a later one that
    /// shows that it was none.
    fn two(&self) -> Option<Saturation> {
        let several = self.several();
        let is_full = |s: &&Saturation| s.instances == 2 && s.filling == Filling::Full;
        let full: Vec<_> = several.iter().filter(is_full).collect();
        let (first, last) = (full.first()?, full.last()?);
        Some(if capacity::model::warm_up::was_cold(first, last) { **last } else { **first })
    }

    fn saturation(&self, o: &Observation) -> Saturation {
        let seen = Saturation {
            dependency_demand: self.dependency_demand(),
            error: self.error(o),
            ..o.saturation(self.kept_slots())
        };
        o.warming.map_or(seen, |fall| seen.once_warm(fall, self.cores()))
    }

    /// CPU seconds in one request of all that works for the app.
    fn dependency_demand(&self) -> f64 {
        let watched =
            self.peak_rung().map_or(0.0, |peak| peak.dependency_cores() / peak.throughput());
        self.unwatched_demand() + if watched.is_finite() { watched } else { 0.0 }
    }

    /// CPU seconds of other programs in one request, where their use follows the load, as that of an
    /// unwatched database does. Whatever else runs is the intercept of that line. It is 0 where no slope is
    /// sure.
    pub fn unwatched_demand(&self) -> f64 {
        let point = |o: &Observation| (o.throughput(), o.other_cores());
        let points: Vec<_> = self.facts.rungs.iter().chain(&self.facts.second).map(point).collect();
        Line::fit(&points).and_then(|line| line.demand()).unwrap_or(0.0)
    }

    fn evidence(&self) -> Option<capacity::Evidence> {
        let peak = self.peak_rung()?;
        let worst = |value: &dyn Fn(&Observation) -> f64| self.all().map(value).fold(0.0, f64::max);
        let per_request = |o: &Observation| o.run_wait.map(|wait| wait / o.throughput());
        let failing = self
            .facts
            .confirmed
            .iter()
            .filter(|o| !o.is_overloaded())
            .chain(&self.facts.rungs)
            .filter(|o| o.fails(self.experiment.goal.max_errors))
            .max_by(|a, b| a.error_ratio().total_cmp(&b.error_ratio()));
        Some(capacity::Evidence {
            one: self.one()?,
            two: self.two(),
            busiest_thread: peak.busiest_thread,
            run_wait: self
                .facts
                .second
                .as_ref()
                .and_then(|two| Some((per_request(peak)?, per_request(two)?))),
            errors: failing.map(|o| (o.error_ratio(), o.top_error.clone().unwrap_or_default())),
            error_limit: self.experiment.goal.max_errors,
            failing: self.failing(),
            uneven: self.uneven(),
            crashes: self
                .facts
                .deaths
                .values()
                .next()
                .map(|deaths| deaths.crashes(deaths.past.restarts)),
            generator_thread: worst(&|o| o.generator_thread),
            shortage: self.shortage(),
            balancer_thread: worst(&|o| o.balancer_thread),
            throttled: self.all().filter_map(|o| o.throttled).reduce(f64::max),
            memory: self.memory(),
            load: None,
            connect_failures: self.all().map(|o| o.connect_failures).sum(),
            open_files: fullest(self.all().filter_map(Observation::open_files)),
            admission: self.facts.rungs.last().and_then(Observation::admission),
            trials: self.facts.trials.clone(),
            dependencies: self.facts.second.as_ref().unwrap_or(peak).dependencies.clone(),
        })
    }

    /// The instance that is unlike its peers each time that several ran. What was measured of cold ones says nothing, nor
    /// what other programs disturbed: they may have used one instance's core.
    pub fn uneven(&self) -> Option<Unevenness> {
        let tells =
            |o: &&Observation| !o.is_interrupted && o.warming.is_none() && self.is_undisturbed(o);
        let several: Vec<&[InstanceWork]> =
            self.all().filter(tells).map(|o| o.by_instance.as_slice()).collect();
        capacity::finding::uneven::lasting(&several, self.experiment.goal.max_errors)
    }

    /// Whether several instances say nothing of how equal ones would do together.
    fn is_slowed_by_one(&self) -> bool {
        self.uneven().is_some_and(|uneven| uneven.costs_throughput())
    }

    /// The last measurement of the goal's workload with so many instances.
    pub fn confirmed_at(&self, instances: usize) -> Option<&Observation> {
        self.facts.confirmed.iter().rfind(|o| o.instances() == instances)
    }

    /// Everything that the numbers show, in the light of the answer: so many, limited by that.
    pub fn findings(
        &self,
        model: &Model,
        instances: usize,
        limited_by: Kind,
        goal_met: bool,
    ) -> Vec<Finding> {
        let Some(evidence) = self.evidence() else { return Vec::new() };
        let confirmed = self.confirmed_at(instances).filter(|_| goal_met);
        let load = confirmed.map(|o| Load {
            share: o.throughput() / model.capacity(instances),
            instances,
            outcome: self.goal().outcome(model, &o.measured()),
        });
        let evidence = capacity::Evidence { load, ..evidence };
        capacity::explain(model, &evidence, instances, limited_by, &self.interventions(model))
    }

    /// What instances share, where it is watched and at its limit.
    pub fn full_dependency(&self) -> Option<DependencyUse> {
        let evidence = self.evidence()?;
        capacity::finding::dependency::full(&evidence.dependencies).cloned()
    }

    /// What one saturated instance leaves open.
    pub fn questions_of_one(&self) -> Vec<Question> {
        let known = self.model().zip(self.evidence());
        known.map_or_else(Vec::new, |((model, _), evidence)| Question::of_one(model, &evidence))
    }

    /// What the second one leaves open.
    pub fn question_of_two(&self) -> Option<Question> {
        let (model, _) = self.model()?;
        Question::of_two(model, &self.evidence()?)
    }

    /// All that was tried; the second instance is a trial as well.
    pub fn interventions(&self, model: &Model) -> Vec<Trial> {
        let second = self.evidence().and_then(|evidence| Trial::second_instance(model, &evidence));
        self.facts.trials.iter().cloned().chain(second).collect()
    }

    fn memory(&self) -> Memory {
        let room = |o: &Observation| o.memory_left.into_iter().chain(o.memory_available).min();
        let retained = |o: &Observation| RetainedMemory {
            bytes: o.growth * o.probe.duration_s,
            allocated: o.asked * o.probe.duration_s,
            requests: o.throughput() * o.probe.duration_s,
        };
        let left = |o: &Observation| {
            Some(o.memory_available? as f64 / self.machine.memory_bytes?.max(1) as f64)
        };
        Memory {
            stalled: self.all().filter_map(|o| o.memory_pressure).reduce(f64::max),
            left: self.all().filter_map(left).reduce(f64::min),
            limited: fullest(self.all().filter_map(Observation::limited_memory)),
            faults: self.all().map(|o| o.faults / o.throughput().max(1e-9)).fold(0.0, f64::max),
            kills: self.memory_kills(),
            retained: self.all().map(retained).collect(),
            room: self.all().filter_map(room).min(),
        }
    }

    /// Processes that were killed at a memory limit: those of a probe, and instances also between two probes.
    fn memory_kills(&self) -> u64 {
        let within: u64 = self.all().map(|o| o.probe.memory_kills).sum();
        let deaths = self.facts.deaths.values();
        within.max(deaths.map(|deaths| u64::from(deaths.past.memory_kills)).sum())
    }

    /// What fails by the app's own fault. Requests do, if an instance with only one at a time fails more of
    /// them than the goal allows. The first instance does, if it died more than once, because further ones
    /// cannot disturb it. An end at the memory limit is a finding of its own.
    pub fn failing(&self) -> Option<Failing> {
        let alone = self.facts.rungs.first()?;
        if alone.fails(self.experiment.goal.max_errors) {
            return Some(Failing::Requests(alone.error_ratio()));
        }
        let past = &self.facts.deaths.get(&1)?.past;
        let deaths = past.restarts.saturating_sub(past.memory_kills);
        (deaths >= REPEATED_DEATHS).then_some(Failing::Deaths(deaths))
    }

    /// What the goal's workload lacks to be sent from here.
    pub fn shortage(&self) -> Option<Shortage> {
        self.in_flight_limit.shortage(&self.goal().workload, 1.0 / self.light_rate())
    }

    /// Slots for the balancer: what an instance can use, once that is known.
    pub fn balancer_slots(&self) -> Option<usize> {
        let ladder = self.ladder().filter(Ladder::is_saturated)?;
        let rests = ladder.light_service() < SHORT_REQUEST_S || ladder.rests();
        Some(ladder.slots() + usize::from(rests))
    }

    /// Slots that the measured balancer keeps to.
    fn kept_slots(&self) -> Option<usize> {
        self.balancer_slots().filter(|_| self.experiment.balancer.program.has_queue())
    }

    /// What the measured balancer costs beside Tenfold's own queue. Without an `answer` it is that of one instance at
    /// its most. Otherwise it is that of the answer's count, or of the nearest that was compared, or was measured: the
    /// answer may have changed since.
    pub fn balancing_cost(&self, answer: Option<usize>) -> Option<BalancingCost> {
        let balanced = |o: &Observation| Balanced {
            measured: o.measured(),
            cpu: o.balancer_cores.map(|cores| cores / o.throughput().max(1e-9)),
            is_valid: self.is_valid(o) || self.is_only_crowded(o),
        };
        let of_one = |queue| Some(BalancingCost { behind: balanced(self.peak_rung()?), queue });
        let Some(answer) = answer else { return of_one(CentralQueue::NoWorkload) };
        let distance = |o: &&Observation| o.instances().abs_diff(answer);
        let own = self.facts.behind_own_queue.iter();
        let compared = own.filter(|o| self.confirmed_at(o.instances()).is_some());
        let measured = compared.min_by_key(distance);
        let nearest = measured.or_else(|| self.facts.confirmed.iter().min_by_key(distance));
        let Some(behind) = nearest.and_then(|o| self.confirmed_at(o.instances())) else {
            return of_one(CentralQueue::NotMeasured);
        };
        let queue =
            measured.map_or(CentralQueue::NotMeasured, |o| CentralQueue::Measured(balanced(o)));
        Some(BalancingCost { behind: balanced(behind), queue })
    }

    pub fn measurements(&self) -> Vec<capacity::Measured> {
        // Where by chance nobody came there is nothing to conclude from.
        let counts = |o: &&Observation| o.probe.rate.is_none() || o.offered > 0.0;
        let by_cores = self.slowdown_by_cores();
        let slowed = |o: &Observation| capacity::Measured {
            slowdown: self.slowdown(o).max(by_cores),
            ..o.measured()
        };
        self.facts.confirmed.iter().filter(counts).map(slowed).collect()
    }

    /// Measurements of the goal that may be relied on, and that equal instances would have given.
    pub fn valid_measurements(&self) -> Vec<capacity::Measured> {
        let tells = |o: &&Observation| o.instances() == 1 || !self.is_slowed_by_one();
        let valid = self.facts.confirmed.iter().filter(|o| self.is_valid(o)).filter(tells);
        valid.map(Observation::measured).collect()
    }

    /// Two saturated instances as they are when warm, if the measurement may be relied on.
    pub fn valid_saturation(&self) -> Option<Saturation> {
        let second = self.facts.second.as_ref().filter(|second| self.is_valid(second));
        second.filter(|_| !self.is_slowed_by_one())?;
        self.two()
    }

    pub fn goal(&self) -> capacity::Goal {
        let goal = self.experiment.goal;
        capacity::Goal {
            workload: match self.experiment.workload.pattern {
                Pattern::Closed { users, think } => {
                    capacity::Workload::Closed { users, think: think.as_secs_f64() }
                }
                Pattern::Open { rate } => capacity::Workload::Open { rate, arrival_scv: 1.0 },
            },
            p95: goal.p95.map(|t| t.as_secs_f64()),
            p99: goal.p99.map(|t| t.as_secs_f64()),
            max_errors: goal.max_errors,
        }
    }

    pub fn cores(&self) -> f64 {
        self.machine.cores as f64
    }

    /// Whether a second instance may run. Where one fills the memory it would take the first one's.
    pub fn has_room_for_two(&self) -> bool {
        self.experiment.max_instances > 1 && self.memory_bound() != Some(1)
    }

    /// How many instances fit into what memory was free when one ran, and into all that may be used here.
    fn memory_bound(&self) -> Option<usize> {
        let peak = self.peak_rung()?;
        let (rss, available) = (peak.rss?.max(1), peak.memory_available?);
        // The kernel tells what the machine has left, not what a limit on Tenfold itself leaves of it.
        let all = self.machine.memory_bytes.map_or(u64::MAX, |all| (all / rss).max(1));
        Some((1 + available / rss).min(all) as usize)
    }

    /// Predicted mean response time (s) under the goal's workload; where the queue would grow without
    /// end, what the first instance needs alone.
    pub fn response(&self, instances: usize) -> f64 {
        let light = 1.0 / self.light_rate();
        let Some((model, _)) = self.model() else { return light };
        let predicted = capacity::expect(model, &self.goal().workload, instances);
        predicted.response.map_or(light, |r| r.mean)
    }

    /// The count that is recommended as things stand.
    pub fn recommended(&self) -> Option<usize> {
        let (model, bounds) = self.model()?;
        Some(capacity::recommended_count(model, &self.goal(), bounds, &self.measurements()))
    }

    /// Notes a count that could not be measured.
    pub fn lose(&mut self, instances: usize, why: &anyhow::Error) {
        self.learn().lost.push(Lost { instances, why: format!("{why:#}") });
    }

    /// The counts that could not be measured.
    pub fn lost(&self) -> impl Iterator<Item = usize> {
        self.facts.lost.iter().map(|lost| lost.instances)
    }

    /// Everything that was noticed, with the last output of instances that died.
    pub fn notes(&self) -> Vec<String> {
        let told = |Lost { instances, why }: &Lost| {
            format!("With {instances} running nothing could be measured: {why}")
        };
        let noticed = self.facts.notes.iter().chain(self.surprises.values()).cloned();
        let words = self
            .facts
            .deaths
            .values()
            .filter_map(|deaths| words::crash::last_words(&deaths.name, &deaths.past));
        noticed
            .chain(self.unfairness())
            .chain(self.facts.lost.iter().map(told))
            .chain(words)
            .collect()
    }

    /// Whether a measurement may be relied on; other programs that work for the app do not disturb it.
    pub fn is_valid(&self, o: &Observation) -> bool {
        self.verdict(o) == Verdict::Valid
    }

    fn has_valid(&self, instances: usize) -> bool {
        self.facts.confirmed.iter().any(|o| o.instances() == instances && self.is_valid(o))
    }

    /// Whether the times of a measurement correct what is predicted. A generator that waited for a core among
    /// the app's is nearer to the truth than the model, where its count was not measured better.
    fn tells_times(&self, o: &Observation) -> bool {
        self.is_valid(o) || (self.is_only_crowded(o) && !self.has_valid(o.instances()))
    }

    /// How many times longer everything may have taken than on an undisturbed machine.
    fn slowdown(&self, o: &Observation) -> f64 {
        let foreign = o.foreign_cores(self.unwatched_demand());
        let left = (self.cores() - foreign).max(MIN_SHARE_OF_CORES_LEFT * self.cores());
        let is_disturbed = o.disturbance(self.unwatched_demand()).is_some();
        let beside = if is_disturbed { self.cores() / left } else { 1.0 };
        beside.max(if self.is_only_crowded(o) { o.crowding } else { 1.0 })
    }

    /// Whether a measurement is as good as can be had here. It is valid, or the cores were full and the
    /// only doubt is that the generator waited for one of them.
    pub fn is_usable(&self, o: &Observation) -> bool {
        let fills_cores = || self.saturation(o).is_cpu_full(self.cores());
        self.is_valid(o) || (self.is_only_crowded(o) && fills_cores())
    }

    /// Whether a trial shows what its change did. What other programs did meanwhile would look the same.
    pub fn is_undisturbed(&self, trial: &Observation) -> bool {
        trial.disturbance(self.unwatched_demand()).is_none()
    }

    /// Whether it is suspect for nothing but a generator that waited.
    pub fn is_only_crowded(&self, o: &Observation) -> bool {
        let others = o.disturbance(self.unwatched_demand());
        let is_alone = others.is_none() && o.warming.is_none();
        o.is_crowded && o.probe.verdict == Verdict::Suspect && is_alone
    }

    fn verdict(&self, o: &Observation) -> Verdict {
        o.judged(self.unwatched_demand()).verdict
    }

    /// The measuring ends, for this reason.
    pub fn end(&mut self, reason: StopReason, explanation: String) {
        self.learn().stop = Some(Stop { reason, explanation });
    }

    /// The goal's workload was measured. Where the model disagrees, the measurement wins.
    pub fn confirm(&mut self, last: &Observation) {
        let known = self.model();
        let outcome = known.map(|(model, _)| self.goal().outcome(model, &last.measured()));
        self.learn().confirmed.push(last.clone());
        let n = last.instances();
        self.surprises.remove(&n);
        let Some(outcome) = outcome else { return };
        if outcome.agrees() || !self.is_valid(last) || (n > 1 && self.is_slowed_by_one()) {
            return;
        }
        let fitted = n > 1;
        self.misses += 1;
        let note = format!(
            "With {n} running, {:.2} requests/s were measured where {:.2} had been predicted: the \
             measurement counts{}.",
            outcome.measured,
            outcome.predicted,
            if fitted { ", and the model was fitted to it" } else { "" }
        );
        self.surprises.insert(n, note);
    }
}

#[cfg(test)]
pub mod tests;
