//! Instances that the kernel stops once they have used up their CPU of a period.
//!
//! An instance with a quota is no slow server: until its budget is spent it is as fast as any, and then
//! it stands still until the period ends (Turner, Rao and Rao, "CPU bandwidth control for CFS", Linux
//! Symposium 2010). Waits come in lengths of periods, and users whose answers came at the end of one
//! return together, so neither exponential nor fluid queues tell the percentiles. This is simulated,
//! period by period, with a seed; what is stopped is the same whatever else varies.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use crate::response::{Response, Workload};
use crate::shape::ServiceShape;

/// What the kernel allows each instance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quota {
    /// Cores on average.
    pub cores: f64,
    /// Seconds that a request takes alone in an instance that is not stopped.
    pub running: f64,
}

/// The kernel's period unless somebody chose another (`cpu.max`, `cpu.cfs_period_us`), in seconds.
pub const PERIOD: f64 = 0.1;
/// Simulated periods; the first tenth of them is not counted.
const PERIODS: f64 = 120.0;
/// Answers that are enough for a 99th percentile.
const ANSWERS: usize = 40_000;
const SEED: u64 = 7;

/// Instances under a quota, with one queue before them.
pub(crate) struct Throttled<'a> {
    pub(crate) quota: Quota,
    /// CPU seconds of a request.
    pub(crate) demand: f64,
    pub(crate) instances: usize,
    /// Of each.
    pub(crate) slots: usize,
    /// How the time of a request varies while nothing is stopped.
    pub(crate) shape: &'a ServiceShape,
}

impl Quota {
    /// From requests that came one at a time, `rate` of them a second, at an instance that stood still
    /// for the share `stopped` of the time.
    pub fn seen(cores: f64, rate: f64, stopped: f64) -> Quota {
        Quota { cores, running: (1.0 - stopped.clamp(0.0, 1.0)) / rate }
    }
}

impl Throttled<'_> {
    /// Answers a second and their times.
    pub(crate) fn simulate(&self, workload: &Workload) -> (f64, Response) {
        let mut simulation = Simulation::new(self, workload);
        simulation.run();
        simulation.seen()
    }
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
    /// Up to when this is true.
    at: f64,
}

struct Simulation<'a> {
    system: &'a Throttled<'a>,
    workload: &'a Workload,
    random: StdRng,
    now: f64,
    number: u64,
    events: BinaryHeap<Reverse<Planned>>,
    queue: VecDeque<f64>,
    instances: Vec<Instance>,
    /// Where the search for a free slot begins.
    turn: usize,
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
    fn new(system: &'a Throttled<'a>, workload: &'a Workload) -> Self {
        let mut s = Simulation {
            system,
            workload,
            random: StdRng::seed_from_u64(SEED),
            now: 0.0,
            number: 0,
            events: BinaryHeap::new(),
            queue: VecDeque::new(),
            instances: (0..system.instances).map(|_| Instance::default()).collect(),
            turn: 0,
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

    /// As many of the queue as there are free slots, to the instance that holds least.
    fn dispatch(&mut self) {
        while !self.queue.is_empty() {
            let count = self.instances.len();
            let from = self.turn;
            let order = (0..count).map(|i| (from + i) % count);
            let Some(chosen) = order.min_by_key(|i| self.instances[*i].held) else { return };
            if self.instances[chosen].held >= self.system.slots {
                return;
            }
            let Some(since) = self.queue.pop_front() else { return };
            self.turn = chosen + 1;
            self.instances[chosen].held += 1;
            let factor = self.factor();
            let away = (self.system.quota.running - self.system.demand).max(0.0);
            let work = factor * self.system.demand;
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
        if self.now > 0.1 * PERIODS * PERIOD {
            self.responses.push(self.now - since);
        }
        if let Workload::Closed { think, .. } = *self.workload {
            self.plan(self.now + think, Event::Arrival);
        }
    }

    fn seen(mut self) -> (f64, Response) {
        self.responses.sort_by(f64::total_cmp);
        let count = self.responses.len();
        let measured = (self.now - 0.1 * PERIODS * PERIOD).max(PERIOD);
        let quantile = |p: f64| {
            let last = count.saturating_sub(1);
            self.responses.get(((count as f64 * p) as usize).min(last)).copied().unwrap_or(measured)
        };
        let mean = self.responses.iter().sum::<f64>() / count.max(1) as f64;
        let response =
            Response { mean, p50: quantile(0.50), p95: quantile(0.95), p99: quantile(0.99) };
        (count as f64 / measured, response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: Workload = Workload::Closed { users: 20, think: 0.1 };

    fn at(instances: usize, workload: &Workload) -> (f64, Response) {
        let shape = ServiceShape::constant();
        let quota = Quota { cores: 0.2, running: 0.0044 };
        Throttled { quota, demand: 0.0041, instances, slots: 1, shape: &shape }.simulate(workload)
    }

    // tests/apps/quota: a fifth of a core, 4.1 ms of CPU in 4.4 ms; requests/s and p95 as measured, of one
    // instance twice. Four use nine tenths of their budgets, where a percentile hangs by less than is known.
    #[test]
    fn as_a_real_quota_was_measured() {
        let measured = [
            (1, 49.5, Some(0.305..0.384)),
            (2, 97.8, Some(0.159..0.161)),
            (3, 146.8, Some(0.092..0.092)),
            (4, 178.6, None),
        ];
        for (instances, throughput, p95) in measured {
            let (predicted, response) = at(instances, &USERS);
            assert!((predicted / throughput - 1.0).abs() < 0.07, "{instances}: {predicted}");
            let Some(p95) = p95 else { continue };
            let near = 0.9 * p95.start..1.1 * p95.end;
            assert!(near.contains(&response.p95), "{instances}: {}", response.p95);
        }
    }

    // One arrival a period never meets the end of its budget.
    #[test]
    fn what_stays_within_its_budget_is_not_stopped() {
        let (_, response) = at(4, &Workload::Closed { users: 1, think: 0.1 });
        assert!((response.p99 - 0.0044).abs() < 1e-6, "{response:?}");
    }

    // 20 ms of CPU in every 100 ms.
    #[test]
    fn no_load_gets_more_than_the_quota() {
        let (throughput, _) = at(2, &Workload::Closed { users: 50, think: 0.0 });
        assert!((throughput - 2.0 * 0.2 / 0.0041).abs() < 2.0, "{throughput}");
    }
}
