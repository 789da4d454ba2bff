//! Simulates users or arrivals, one queue, N instances of k slots, shared cores, and one station that all
//! may share. The model approximates this. It runs event by event, with a seed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use capacity::{Filling, Ladder, Model, Rung, Saturation, ServiceShape, Workload};

/// What is simulated. Times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    pub(crate) instances: usize,
    /// Requests in service at once in each.
    pub(crate) slots: usize,
    pub(crate) service: Service,
    /// Share of the service time that is CPU; the rest is waiting.
    pub(crate) cpu: f64,
    /// The cores of all instances. Each core shares its time among the requests on it. A new request goes
    /// to the core with the fewest. A core that idles takes one from the fullest, as the kernel does.
    pub(crate) cores: f64,
    /// Share of the service time in which the request holds the one shared station.
    pub(crate) shared: f64,
}

/// Service times with a mean of 1 s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Service {
    Constant,
    /// Squared coefficient of variation 1/12.
    Uniform,
    Exponential,
    /// A mixture of two exponentials with balanced means and this squared coefficient of variation.
    Mixed(f64),
}

/// What was seen.
pub(crate) struct Seen {
    pub(crate) throughput: f64,
    /// In order.
    pub(crate) responses: Vec<f64>,
    /// Time in service, in order.
    pub(crate) services: Vec<f64>,
    /// Completed by the end of each hundredth of the time.
    pub(crate) windows: Vec<f64>,
}

impl Seen {
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.responses[(self.responses.len() as f64 * p) as usize]
    }
}

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.next();
        random
    }

    /// In (0, 1); Knuth's MMIX generator.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.next().ln()
    }

    fn service(&mut self, service: Service) -> f64 {
        match service {
            Service::Constant => 1.0,
            Service::Uniform => 0.5 + self.next(),
            Service::Exponential => self.exponential(),
            Service::Mixed(scv) => {
                let p = (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt()) / 2.0;
                let mean = if self.next() < p { 0.5 / p } else { 0.5 / (1.0 - p) };
                mean * self.exponential()
            }
        }
    }
}

/// What happens next in a request's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    /// Waiting is over: to the shared station.
    Waited(usize),
    /// The shared station is free again.
    Released(usize),
}

/// A time that a heap can order.
#[derive(Clone, Copy, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Time) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Time) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Clone, Copy, Default)]
struct Request {
    since: f64,
    begun: f64,
    work: f64,
}

struct Simulation {
    system: System,
    workload: Workload,
    random: Random,
    now: f64,
    events: BinaryHeap<Reverse<(Time, Event)>>,
    queue: VecDeque<usize>,
    at_station: VecDeque<usize>,
    requests: Vec<Request>,
    free: Vec<usize>,
    in_service: usize,
    cores: Vec<Core>,
}

#[derive(Clone, Default)]
struct Core {
    /// Work that each request on it has got, and when theirs will end in those terms.
    attained: f64,
    requests: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Core {
    fn pace(&self) -> f64 {
        1.0 / self.requests.len().max(1) as f64
    }

    /// Seconds until its next request ends.
    fn next(&self) -> f64 {
        let next = self.requests.peek();
        next.map_or(f64::INFINITY, |Reverse((end, _))| (end.0 - self.attained) / self.pace())
    }

    fn take(&mut self, request: usize, work: f64) {
        self.requests.push(Reverse((Time(self.attained + work), request)));
    }

    /// One of its requests, with the work that it still needs.
    fn give(&mut self) -> Option<(usize, f64)> {
        let mut requests = std::mem::take(&mut self.requests).into_vec();
        let Reverse((end, request)) = requests.pop()?;
        self.requests = requests.into();
        Some((request, end.0 - self.attained))
    }
}

/// Runs until `requests` were answered; a tenth of them before is not counted.
pub(crate) fn simulate(system: System, workload: Workload, requests: usize, seed: u64) -> Seen {
    let mut s = Simulation {
        system,
        workload,
        random: Random::new(seed),
        now: 0.0,
        events: BinaryHeap::new(),
        queue: VecDeque::new(),
        at_station: VecDeque::new(),
        requests: Vec::new(),
        free: Vec::new(),
        in_service: 0,
        cores: vec![Core::default(); system.cores as usize],
    };
    match workload {
        Workload::Closed { users, think } => {
            for _ in 0..users {
                let at = think.max(1.0) * s.random.next();
                s.events.push(Reverse((Time(at), Event::Arrival)));
            }
        }
        Workload::Open { .. } => s.events.push(Reverse((Time(0.0), Event::Arrival))),
    }
    s.run(requests)
}

impl Simulation {
    fn run(&mut self, requests: usize) -> Seen {
        let warm_up = requests / 10;
        let (mut count, mut from) = (0, 0.0);
        let mut responses = Vec::with_capacity(requests);
        let mut services = Vec::with_capacity(requests);
        let mut ends = Vec::with_capacity(requests);
        while responses.len() < requests {
            let Some(done) = self.step() else { continue };
            count += 1;
            if count == warm_up {
                from = self.now;
            } else if count > warm_up {
                responses.push(self.now - done.since);
                services.push(self.now - done.begun);
                ends.push(self.now - from);
            }
        }
        let length = self.now - from;
        let mut windows = vec![0.0; 100];
        for end in ends {
            windows[((end / length * 100.0) as usize).min(99)] += 1.0;
        }
        responses.sort_by(f64::total_cmp);
        services.sort_by(f64::total_cmp);
        Seen { throughput: requests as f64 / length, responses, services, windows }
    }

    /// One event; the request that it completed.
    fn step(&mut self) -> Option<Request> {
        let next = self.events.peek().map_or(f64::INFINITY, |Reverse((t, _))| t.0);
        let by_next =
            |a: &usize, b: &usize| self.cores[*a].next().total_cmp(&self.cores[*b].next());
        let first = (0..self.cores.len()).min_by(by_next)?;
        let done = self.now + self.cores[first].next();
        let upto = next.min(done);
        for core in &mut self.cores {
            core.attained += (upto - self.now) * core.pace();
        }
        self.now = upto;
        if done <= next {
            let Reverse((_, request)) = self.cores[first].requests.pop()?;
            let left = self.leave(request);
            self.balance(first);
            return Some(left);
        }
        let Reverse((_, event)) = self.events.pop()?;
        match event {
            Event::Arrival => self.arrive(),
            Event::Waited(request) => {
                self.at_station.push_back(request);
                if self.at_station.len() == 1 {
                    self.hold(request);
                }
            }
            Event::Released(request) => {
                self.at_station.pop_front();
                if let Some(next) = self.at_station.front().copied() {
                    self.hold(next);
                }
                self.compute(request);
            }
        }
        None
    }

    fn arrive(&mut self) {
        let work = self.random.service(self.system.service);
        let request = Request { since: self.now, begun: 0.0, work };
        let id = self.free.pop().unwrap_or_else(|| {
            self.requests.push(Request::default());
            self.requests.len() - 1
        });
        self.requests[id] = request;
        self.queue.push_back(id);
        if let Workload::Open { rate, .. } = self.workload {
            let at = self.now + self.random.exponential() / rate;
            self.events.push(Reverse((Time(at), Event::Arrival)));
        }
        self.fill();
    }

    fn fill(&mut self) {
        while self.in_service < self.system.instances * self.system.slots {
            let Some(id) = self.queue.pop_front() else { return };
            self.in_service += 1;
            self.requests[id].begun = self.now;
            let wait = self.requests[id].work * (1.0 - self.system.cpu - self.system.shared);
            if self.system.shared == 0.0 && wait <= 1e-9 {
                self.compute(id);
            } else {
                self.after(wait, Event::Waited(id));
            }
        }
    }

    fn hold(&mut self, id: usize) {
        if self.system.shared == 0.0 {
            // Nothing is shared: it goes straight on.
            self.at_station.pop_front();
            self.compute(id);
        } else {
            self.after(self.requests[id].work * self.system.shared, Event::Released(id));
        }
    }

    fn compute(&mut self, id: usize) {
        let work = self.requests[id].work * self.system.cpu;
        if let Some(core) = self.cores.iter_mut().min_by_key(|core| core.requests.len()) {
            core.take(id, work);
        }
    }

    /// A core that has nothing to do takes from one that has more than it can do.
    fn balance(&mut self, idle: usize) {
        let fullest = (0..self.cores.len()).max_by_key(|core| self.cores[*core].requests.len());
        let fullest = fullest.filter(|core| self.cores[*core].requests.len() > 1);
        if !self.cores[idle].requests.is_empty() {
            return;
        }
        if let Some((request, work)) = fullest.and_then(|core| self.cores[core].give()) {
            self.cores[idle].take(request, work);
        }
    }

    fn leave(&mut self, id: usize) -> Request {
        self.in_service -= 1;
        self.free.push(id);
        if let Workload::Closed { think, .. } = self.workload {
            self.after(think, Event::Arrival);
        }
        self.fill();
        self.requests[id]
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.events.push(Reverse((Time(self.now + seconds), event)));
    }
}

/// CPU of balancer and generator: far below the service time of 1 s.
const RELAY: f64 = 1e-6;
/// Quantiles from, their distance, how many: as the experiment keeps the shape of a service time.
const SHAPE: [(f64, f64, i32); 3] = [(0.0, 0.025, 38), (0.95, 0.01, 4), (0.99, 0.002, 5)];

/// All slots busy for so many requests, with the interval of what was seen.
pub(crate) fn saturate(system: System, users: usize, requests: usize, seed: u64) -> Saturation {
    let seen = simulate(system, Workload::Closed { users, think: 0.0 }, requests, seed);
    let throughput = seen.throughput;
    Saturation {
        instances: system.instances,
        filling: Filling::Full,
        throughput,
        error: capacity::Interval::of_windows(&seen.windows).relative(),
        app_demand: system.cpu,
        dependency_demand: 0.0,
        relay_demand: RELAY,
        relay_thread: RELAY,
        generator_thread: 0.0,
        busy_cores: throughput * (system.cpu + RELAY),
    }
}

/// The model that a plan would fit: one instance under doubling concurrency, then two.
pub(crate) fn fitted(system: System, requests: usize, seed: u64) -> Model {
    let one = System { instances: 1, ..system };
    let concurrencies = (0..).map(|i| 1 << i).take_while(|c| *c <= 4 * system.slots);
    let steps: Vec<(usize, Saturation)> =
        concurrencies.map(|c| (c, saturate(one, c, requests, seed + c as u64))).collect();
    let rung = |(concurrency, s): &(usize, Saturation)| Rung {
        concurrency: *concurrency,
        throughput: s.throughput,
        error: s.error,
        inside: None,
        cores: None,
    };
    let ladder = Ladder::new(steps.iter().map(rung).collect()).expect("something was completed");
    let peak = steps.iter().map(|(_, s)| s).max_by(|a, b| a.throughput.total_cmp(&b.throughput));
    let shape = shape(one, requests, seed);
    let one = ladder.at_peak(*peak.expect("a step"));
    let mut model = Model::new(ladder, one, shape, system.cores);
    let two = System { instances: 2, slots: model.slots, ..system };
    model.fit(&[saturate(two, 4 * model.slots, requests, seed + 100)]);
    model
}

fn shape(one: System, requests: usize, seed: u64) -> ServiceShape {
    let alone = simulate(one, Workload::Closed { users: 1, think: 0.0 }, requests, seed).services;
    let count = alone.len() as f64;
    let mean = alone.iter().sum::<f64>() / count;
    let scv = alone.iter().map(|t| (t / mean - 1.0).powi(2)).sum::<f64>() / count;
    let steps = SHAPE.iter().flat_map(|&(from, step, n)| {
        (0..n).map(move |i| (from + step * (f64::from(i) + 0.5), step))
    });
    let points: Vec<(f64, f64)> =
        steps.map(|(q, weight)| (alone[(q * count) as usize], weight)).collect();
    let total: f64 = points.iter().map(|(x, weight)| x * weight).sum();
    ServiceShape { scv, points: points.into_iter().map(|(x, w)| (x / total, w)).collect() }
}
