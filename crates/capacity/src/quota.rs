//! Instances that the kernel stops once they have used up their CPU of a period.
//!
//! An instance with a quota is no slow server: until its budget is spent it is as fast as any, and then
//! it stands still until the period ends (Turner, Rao and Rao, "CPU bandwidth control for CFS", Linux
//! Symposium 2010). Waits come in lengths of periods, and users whose answers came at the end of one
//! return together, so neither exponential nor fluid queues tell the percentiles. This is simulated,
//! period by period, with a seed; what is stopped is the same whatever else varies.
//!
//! A percentile that lies between two periods jumps with the demand, and how the periods of several
//! instances lie to each other is chance, and lasts. So several runs draw both, what is expected is the mean
//! over them, and the interval holds them all.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::draws;
use crate::interval::Interval;
use crate::response::{Response, Workload};
use crate::shape::ServiceShape;

/// What the kernel allows each instance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    /// Cores on average.
    pub cores: f64,
    /// Seconds that a request takes alone in an instance that is not stopped.
    pub running: f64,
    /// CPU seconds of a request, and what another probe may find them to be.
    pub demand: Interval,
}

/// Requests that came one at a time, while a quota stopped the instance again and again.
#[derive(Clone, Copy, Debug)]
pub struct Halting<'a> {
    /// How long that was watched (s).
    pub seconds: f64,
    /// Of that the instance stood still (s).
    pub still: f64,
    /// How often it was stopped, each time in the middle of a request or before its next.
    pub stops: f64,
    /// How many there were.
    pub requests: f64,
    /// Seconds of a request, on average.
    pub service: f64,
    /// How that varies.
    pub shape: &'a ServiceShape,
}

/// The kernel's period unless somebody chose another (`cpu.max`, `cpu.cfs_period_us`), in seconds.
pub const PERIOD: f64 = 0.1;
/// Periods in one run of the simulation; the first tenth of them is not counted.
const PERIODS: f64 = 60.0;
const UNCOUNTED: f64 = 0.1 * PERIODS * PERIOD;
/// Runs, each with a demand and with periods of its own.
const RUNS: u64 = 8;
/// Answers of a run that are enough for its 99th percentile.
const ANSWERS: usize = 5_000;

/// Stops and requests are counted a moment apart: a stop more may be among the requests.
const EDGE: f64 = 1.0;

/// Instances under a quota, with one queue before them.
pub(crate) struct Throttled<'a> {
    pub(crate) quota: Quota,
    pub(crate) instances: usize,
    /// Of each.
    pub(crate) slots: usize,
    /// How the time of a request varies while nothing is stopped.
    pub(crate) shape: &'a ServiceShape,
}

impl Quota {
    /// From requests that came one at a time, and how they vary without a stop; `demands` are the CPU seconds of
    /// a request in every probe.
    pub fn seen(cores: f64, demands: &[f64], alone: &Halting<'_>) -> (Quota, ServiceShape) {
        let stopped = (alone.stops + EDGE) / alone.requests;
        let (running, shape) = alone.shape.without_longest(stopped).map_or_else(
            || {
                let moving = (alone.seconds - alone.still).max(0.0);
                (moving / alone.requests, ServiceShape::constant())
            },
            |(share, shape)| (share * alone.service, shape),
        );
        (Quota { cores, running, demand: Interval::of_another(demands) }, shape)
    }
}

impl Throttled<'_> {
    /// The most that they answer a second.
    pub(crate) fn capacity(&self) -> f64 {
        self.instances as f64 * self.quota.cores / self.quota.demand.mean
    }

    /// Answers a second and their times; `None` where a request takes longer than what is simulated.
    pub(crate) fn simulate(&self, workload: &Workload) -> Option<Simulated> {
        let run = |seed| {
            let mut simulation = Simulation::new(self, workload, seed);
            simulation.run();
            let rate = simulation.responses.len() as f64 / simulation.measured();
            Some((rate, percentiles(simulation.responses)?))
        };
        let runs: Vec<(f64, Response)> = (0..RUNS).map(run).collect::<Option<_>>()?;
        let responses = || runs.iter().map(|run| run.1);
        Some(Simulated {
            throughput: runs.iter().map(|run| run.0).sum::<f64>() / runs.len() as f64,
            response: Response::mean_of(responses())?,
            fastest: responses().reduce(Response::min)?,
            slowest: responses().reduce(Response::max)?,
        })
    }

    /// The CPU seconds of a request in a run: one of as many equally likely parts of what they may be.
    fn demand(&self, run: u64) -> f64 {
        let Interval { mean, half_width } = self.quota.demand;
        let likely = (run as f64 + 0.5) / RUNS as f64;
        let deviate = Normal::standard().inverse_cdf(likely);
        mean * (draws::deviation(half_width / mean) * deviate).exp()
    }
}

/// What the runs gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Simulated {
    /// Answers a second.
    pub(crate) throughput: f64,
    /// The mean of the runs, figure by figure.
    pub(crate) response: Response,
    pub(crate) fastest: Response,
    pub(crate) slowest: Response,
}

/// `None` without any.
fn percentiles(mut responses: Vec<f64>) -> Option<Response> {
    responses.sort_by(f64::total_cmp);
    let last = responses.len().checked_sub(1)?;
    let quantile = |p: f64| responses[((responses.len() as f64 * p) as usize).min(last)];
    let mean = responses.iter().sum::<f64>() / responses.len() as f64;
    Some(Response { mean, p50: quantile(0.50), p95: quantile(0.95), p99: quantile(0.99) })
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Arrival,
    /// A request of an instance needs the CPU now: so many seconds of it.
    Awake {
        instance: usize,
        since: f64,
        work: f64,
    },
    /// An instance gets the budget of its next period.
    Refill(usize),
}

/// Ordered by time, then by the order in which they were planned.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Planned {
    at: f64,
    number: u64,
    event: Event,
}

impl Eq for Planned {}

impl Ord for Planned {
    fn cmp(&self, other: &Planned) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One instance: its requests share as much CPU as it can use at once.
#[derive(Default)]
struct Instance {
    /// Requests in its slots.
    held: usize,
    /// When each was sent, and the CPU seconds that it still needs.
    computing: Vec<(f64, f64)>,
    budget: f64,
    /// Among instances that hold as many, the one that rested longest is next.
    last: u64,
    /// Up to when this is true.
    at: f64,
}

struct Simulation<'a> {
    system: &'a Throttled<'a>,
    workload: &'a Workload,
    /// CPU seconds of a request.
    demand: f64,
    random: StdRng,
    now: f64,
    number: u64,
    events: BinaryHeap<Reverse<Planned>>,
    queue: VecDeque<f64>,
    instances: Vec<Instance>,
    /// Slots taken and given back so far.
    moves: u64,
    responses: Vec<f64>,
}

impl Instance {
    /// Cores of it all, and of each of its requests.
    fn pace(&self, most: f64) -> (f64, f64) {
        let jobs = self.computing.len() as f64;
        if jobs == 0.0 || self.budget <= 0.0 {
            return (0.0, 0.0);
        }
        let all = jobs.min(most);
        (all, all / jobs)
    }

    /// When a request of it is done or its budget spent, whichever comes first.
    fn next(&self, most: f64) -> f64 {
        let (all, each) = self.pace(most);
        if all == 0.0 {
            return f64::INFINITY;
        }
        let least = self.computing.iter().map(|job| job.1).fold(f64::INFINITY, f64::min);
        self.at + (least / each).min(self.budget / all)
    }

    fn advance(&mut self, now: f64, most: f64) {
        /// Less than the clock of any machine tells apart.
        const NOTHING: f64 = 1e-10;
        let (all, each) = self.pace(most);
        let passed = now - self.at;
        for job in &mut self.computing {
            job.1 -= each * passed;
        }
        self.budget -= all * passed;
        if self.budget < NOTHING {
            self.budget = 0.0;
        }
        self.at = now;
    }

    /// The request that is done, if one is.
    fn done(&mut self) -> Option<f64> {
        let at = self.computing.iter().position(|job| job.1 <= 1e-10)?;
        self.held -= 1;
        Some(self.computing.swap_remove(at).0)
    }
}

impl<'a> Simulation<'a> {
    fn new(system: &'a Throttled<'a>, workload: &'a Workload, run: u64) -> Self {
        let mut s = Simulation {
            system,
            workload,
            demand: system.demand(run),
            random: StdRng::seed_from_u64(run),
            now: 0.0,
            number: 0,
            events: BinaryHeap::new(),
            queue: VecDeque::new(),
            instances: (0..system.instances).map(|_| Instance::default()).collect(),
            moves: 0,
            responses: Vec::new(),
        };
        // Nobody's periods begin together.
        for instance in 0..system.instances {
            let at = PERIOD * s.random.random_range(0.0..1.0);
            s.instances[instance].budget = system.quota.cores * PERIOD;
            s.plan(at, Event::Refill(instance));
        }
        match *workload {
            Workload::Closed { users, think } => {
                let cycle = think + system.quota.running;
                (0..users).for_each(|i| s.plan(cycle * i as f64 / users as f64, Event::Arrival));
            }
            Workload::Open { .. } => s.plan(0.0, Event::Arrival),
        }
        s
    }

    fn plan(&mut self, at: f64, event: Event) {
        self.number += 1;
        self.events.push(Reverse(Planned { at, number: self.number, event }));
    }

    /// Cores that an instance can use at once: one, unless it is allowed more.
    fn most(&self) -> f64 {
        self.system.quota.cores.max(1.0)
    }

    fn run(&mut self) {
        let most = self.most();
        while self.now < PERIODS * PERIOD && self.responses.len() < ANSWERS {
            let soonest = |(i, instance): (usize, &Instance)| (instance.next(most), i);
            let next = self.instances.iter().enumerate().map(soonest);
            let (at, instance) =
                next.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0));
            let Some(Reverse(planned)) = self.events.peek().copied() else { return };
            if at <= planned.at {
                self.now = at;
                self.instances[instance].advance(at, most);
                while let Some(since) = self.instances[instance].done() {
                    self.moves += 1;
                    self.instances[instance].last = self.moves;
                    self.answer(since);
                }
            } else {
                self.events.pop();
                self.now = planned.at;
                self.happen(planned.event);
            }
            self.dispatch();
        }
    }

    fn happen(&mut self, event: Event) {
        let (now, most) = (self.now, self.most());
        match event {
            Event::Arrival => {
                self.queue.push_back(now);
                if let Workload::Open { rate, .. } = *self.workload {
                    let gap = -self.random.random_range(1e-12..1.0_f64).ln() / rate;
                    self.plan(now + gap, Event::Arrival);
                }
            }
            Event::Awake { instance, since, work } => {
                self.instances[instance].advance(now, most);
                self.instances[instance].computing.push((since, work));
            }
            Event::Refill(instance) => {
                self.instances[instance].advance(now, most);
                // What was left is lost.
                self.instances[instance].budget = self.system.quota.cores * PERIOD;
                self.plan(now + PERIOD, Event::Refill(instance));
            }
        }
    }

    /// As many of the queue as there are free slots, to the instance that holds least; they
    /// take turns, as the balancer has it under a quota.
    fn dispatch(&mut self) {
        while !self.queue.is_empty() {
            let rank = |i: &usize| (self.instances[*i].held, self.instances[*i].last);
            let Some(chosen) = (0..self.instances.len()).min_by_key(rank) else { return };
            if self.instances[chosen].held >= self.system.slots {
                return;
            }
            let Some(since) = self.queue.pop_front() else { return };
            self.moves += 1;
            self.instances[chosen].held += 1;
            self.instances[chosen].last = self.moves;
            let factor = self.factor();
            let quota = self.system.quota;
            let away = (quota.running - quota.demand.mean).max(0.0);
            let work = factor * self.demand;
            let event = Event::Awake { instance: chosen, since, work };
            self.plan(self.now + factor * away, event);
        }
    }

    /// A service time as a multiple of the mean.
    fn factor(&mut self) -> f64 {
        let mut left = self.random.random_range(0.0..1.0);
        let points = &self.system.shape.points;
        let drawn = points.iter().find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        drawn.or(points.last()).map_or(1.0, |point| point.0)
    }

    fn answer(&mut self, since: f64) {
        if self.now > UNCOUNTED {
            self.responses.push(self.now - since);
        }
        if let Workload::Closed { think, .. } = *self.workload {
            self.plan(self.now + think, Event::Arrival);
        }
    }

    /// Seconds whose answers count.
    fn measured(&self) -> f64 {
        (self.now - UNCOUNTED).max(PERIOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tests/apps/quota: a fifth of a core, 4.1 ms of CPU in 4.4 ms, 20 users.
    const QUOTA: Quota = Quota { cores: 0.2, running: 0.0044, demand: exactly(DEMAND) };
    const DEMAND: f64 = 0.0041;
    const USERS: Workload = Workload::Closed { users: 20, think: 0.1 };

    const fn exactly(mean: f64) -> Interval {
        Interval { mean, half_width: 0.0 }
    }

    fn simulated(quota: Quota, instances: usize, workload: &Workload) -> Simulated {
        let shape = ServiceShape::constant();
        Throttled { quota, instances, slots: 1, shape: &shape }.simulate(workload).unwrap()
    }

    fn at(quota: Quota, instances: usize, workload: &Workload) -> (f64, Response) {
        let simulated = simulated(quota, instances, workload);
        (simulated.throughput, simulated.response)
    }

    // Requests/s and p95 as measured, two or three times. Four use nine tenths of their budgets.
    #[test]
    fn as_a_real_quota_was_measured() {
        let measured = [
            (1, 48.1, 0.381..0.386),
            (2, 97.0, 0.159..0.174),
            (3, 145.6, 0.092..0.093),
            (4, 182.2, 0.023..0.028),
        ];
        for (instances, throughput, p95) in measured {
            let (predicted, response) = at(QUOTA, instances, &USERS);
            assert!((predicted / throughput - 1.0).abs() < 0.03, "{instances}: {predicted}");
            let near = 0.9 * p95.start..1.1 * p95.end;
            assert!(near.contains(&response.p95), "{instances}: {}", response.p95);
        }
    }

    // 4.0 ms give a p95 of 301 ms, 4.1 give 381: probes between the two do not tell which it will be.
    #[test]
    fn a_percentile_on_a_jump_is_expected_between_its_sides() {
        let demand = Interval { mean: 0.00404, half_width: 0.00015 };
        let all = simulated(Quota { demand, ..QUOTA }, 1, &USERS);
        let [fast, middle, slow] = [all.fastest, all.response, all.slowest].map(|r| r.p95);
        assert!(fast < 0.31 && slow > 0.37, "{all:?}");
        assert!((0.32..0.36).contains(&middle), "{middle}");
    }

    // Of four instances, at the same CPU of a request.
    #[test]
    fn how_periods_lie_to_each_other_is_in_the_interval() {
        let all = simulated(QUOTA, 4, &USERS);
        assert!(all.slowest.p95 > 1.5 * all.fastest.p95, "{all:?}");
        let one = simulated(QUOTA, 1, &USERS);
        assert!(one.slowest.p50 < 1.05 * one.fastest.p50, "nothing to lie to: {one:?}");
    }

    // examples/static-cost: a tenth of a core, 0.65 ms of CPU in 0.71 ms, 245 arrivals a second. Two use four
    // fifths of their budgets. While the one that answered last came first, p99 was 20 to 34 ms however many
    // idled: it was stopped, with a request in it.
    #[test]
    fn taking_turns_nobody_spends_a_budget_that_others_have_left() {
        let quota = Quota { cores: 0.1, running: 0.00071, demand: exactly(0.00065) };
        let workload = Workload::Open { rate: 245.0, arrival_scv: 1.0 };
        for (instances, p99) in [(2, 0.015), (3, 0.001), (4, 0.001)] {
            let (_, response) = at(quota, instances, &workload);
            assert!(response.p99 < p99, "{instances}: {response:?}");
        }
    }

    // One arrival a period never meets the end of its budget.
    #[test]
    fn what_stays_within_its_budget_is_not_stopped() {
        let (_, response) = at(QUOTA, 4, &Workload::Closed { users: 1, think: 0.1 });
        assert!((response.p99 - 0.0044).abs() < 1e-6, "{response:?}");
    }

    // 20 ms of CPU in every 100 ms.
    #[test]
    fn no_load_gets_more_than_the_quota() {
        let (throughput, _) = at(QUOTA, 2, &Workload::Closed { users: 50, think: 0.0 });
        assert!((throughput - 2.0 * 0.2 / DEMAND).abs() < 2.0, "{throughput}");
    }

    #[test]
    fn a_request_of_minutes_is_not_simulated() {
        let shape = ServiceShape::constant();
        let quota = Quota { demand: exactly(30.0), ..QUOTA };
        let slow = Throttled { quota, instances: 1, slots: 1, shape: &shape };
        assert_eq!(slow.simulate(&USERS), None);
    }

    // Five requests of 4 ms in each period; the fifth is stopped, and waits for the next.
    #[test]
    fn requests_that_were_stopped_tell_nothing_of_the_time_of_one() {
        let shape = ServiceShape {
            scv: 2.0,
            points: (0..40).map(|i| (if i < 32 { 0.2 } else { 4.2 }, 0.025)).collect(),
        };
        let alone = Halting {
            seconds: 3.0,
            still: 2.37,
            stops: 30.0,
            requests: 150.0,
            service: 0.02,
            shape: &shape,
        };
        let (quota, shape) = Quota::seen(0.2, &[0.004], &alone);
        assert!((quota.running - 0.004).abs() < 1e-9 && shape.scv < 1e-9, "{quota:?}");
        let (quota, shape) = Quota::seen(0.2, &[0.004], &Halting { requests: 15.0, ..alone });
        assert!((quota.running - 0.042).abs() < 1e-9, "every one was stopped: {quota:?}");
        assert_eq!(shape, ServiceShape::constant());
    }
}
