//! One run of instances under a quota, from request to request and from period to period.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{PERIOD, Throttled};
use crate::queueing::workload::Workload;

/// Periods in one run of the simulation; the first tenth of them is not counted.
const PERIODS: f64 = 60.0;
const UNCOUNTED: f64 = 0.1 * PERIODS * PERIOD;
/// Answers of a run that are enough for its 99th percentile.
const ANSWERS: usize = 5_000;

/// A time that no clock resolves counts as none.
const RESOLUTION_S: f64 = 1e-10;

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

/// An event, ordered by its time and then by when it was planned.
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
    /// When it last took or gave back a slot. Of instances that hold as many, the one that rested longest
    /// is next.
    last: u64,
    /// The time for which this state holds.
    at: f64,
}

pub(super) struct Simulation<'a> {
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
    /// Seconds of each answer that counts.
    pub(super) responses: Vec<f64>,
}

impl Instance {
    /// Cores of the instance, and of each of its requests.
    fn pace(&self, most: f64) -> (f64, f64) {
        let jobs = self.computing.len() as f64;
        if jobs == 0.0 || self.budget <= 0.0 {
            return (0.0, 0.0);
        }
        let all = jobs.min(most);
        (all, all / jobs)
    }

    /// When its next request is done or its budget is spent, whichever comes first.
    fn next(&self, most: f64) -> f64 {
        let (all, each) = self.pace(most);
        if all == 0.0 {
            return f64::INFINITY;
        }
        let least = self.computing.iter().map(|job| job.1).fold(f64::INFINITY, f64::min);
        self.at + (least / each).min(self.budget / all)
    }

    fn advance(&mut self, now: f64, most: f64) {
        let (all, each) = self.pace(most);
        let passed = now - self.at;
        for job in &mut self.computing {
            job.1 -= each * passed;
        }
        self.budget -= all * passed;
        if self.budget < RESOLUTION_S {
            self.budget = 0.0;
        }
        self.at = now;
    }

    /// The request that is done, if one is.
    fn done(&mut self) -> Option<f64> {
        let at = self.computing.iter().position(|job| job.1 <= RESOLUTION_S)?;
        self.held -= 1;
        Some(self.computing.swap_remove(at).0)
    }
}

impl<'a> Simulation<'a> {
    pub(super) fn new(system: &'a Throttled<'a>, workload: &'a Workload, run: u64) -> Self {
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
        // The periods of the instances do not begin together.
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

    pub(super) fn run(&mut self) {
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
                // An unspent budget is lost.
                self.instances[instance].budget = self.system.quota.cores * PERIOD;
                self.plan(now + PERIOD, Event::Refill(instance));
            }
        }
    }

    /// Sends waiting requests to free slots, each to the instance with the fewest in flight. Instances with
    /// equally many take turns, as in the balancer under a quota.
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
    pub(super) fn measured(&self) -> f64 {
        (self.now - UNCOUNTED).max(PERIOD)
    }
}
