//! Compares the search for slots with fixed numbers of them, over apps of many kinds, in virtual time.

use super::*;
use crate::queue::TICK;
use std::collections::VecDeque;

/// An app: what a request does there, and who sends requests.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    backends: usize,
    station: Station,
    /// Draws how long a request waits for something else, and then how long it works, in microseconds.
    request: fn(&mut Dice, u64) -> (u64, u64),
    traffic: Traffic,
}

/// Where a request works after it has waited.
#[derive(Clone, Copy)]
enum Station {
    /// Each backend has so many workers.
    Pool(usize),
    /// All backends share so many cores.
    Cores(f64),
    /// Each backend has this share of a core, in periods of 100 ms.
    Quota(f64),
}

#[derive(Clone, Copy)]
enum Traffic {
    /// Independent requests, so many a second.
    Open(f64),
    /// Clients that send the next request at once.
    Closed(usize),
    /// Clients that hold a poll open, besides independent requests.
    Polls(usize, f64),
}

struct Dice(u64);

impl Dice {
    /// Of one request: its work is the same with any slots. Mixes the bits as SplitMix64 does.
    fn of(seed: u64, number: u64) -> Dice {
        let mixed = (seed << 32 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Dice((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb))
    }

    fn uniform(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn about(&mut self, micros: u64) -> u64 {
        (micros as f64 * (0.75 + 0.5 * self.uniform())) as u64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

#[derive(Clone, Copy)]
struct Request {
    number: u64,
    asked: u64,
    sender: Sender,
}

/// A client that sends its next request once this one is answered, or nobody in particular.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Anyone,
    Client,
    Poll,
}

struct Flight {
    id: BackendId,
    ordinal: u32,
    began: u64,
    /// When it starts to work.
    from: u64,
    left: f64,
    request: Request,
}

/// What sets the slots of a backend.
#[derive(Clone, Copy)]
enum Rule {
    Slots(Slots),
    Gradient,
}

struct World {
    kind: Kind,
    dispatch: Plain,
    ids: Vec<BackendId>,
    seed: u64,
    /// Of the pauses between independent requests.
    dice: Dice,
    start: Instant,
    now: u64,
    requests: u64,
    arrivals: VecDeque<Sender>,
    waiting: VecDeque<(Ticket, Request)>,
    flights: Vec<Flight>,
    /// What is left of each backend's quota in this period.
    budget: Vec<f64>,
    next_open: u64,
    times: Vec<u64>,
    /// One for each backend.
    gradients: Vec<Gradient>,
}

/// A limiter by the ratio of long and short response times: Gradient2Limit in WindowedLimit of Netflix's
/// concurrency-limits, with their defaults (<https://github.com/Netflix/concurrency-limits>). Only its bounds are
/// those of the table, 1 to 256 in place of 20 to 200.
#[derive(Clone, Copy)]
struct Gradient {
    limit: f64,
    /// The average response time of about [`LONG_WINDOW`] windows, in microseconds.
    long: f64,
    windows: u32,
    /// Of this window.
    total: u64,
    samples: u64,
    most_in_flight: usize,
    ends: u64,
}

const LONG_WINDOW: f64 = 600.0;
const WARM_UP_WINDOWS: u32 = 10;
const TOLERANCE: f64 = 1.5;
const SMOOTHING: f64 = 0.2;
/// Requests that may queue in an app.
const APP_QUEUE: f64 = 4.0;
const MIN_SAMPLES: u64 = 10;
const WINDOW: u64 = 1_000_000;
const FIRST_LIMIT: f64 = 20.0;
const MAX_LIMIT: f64 = 256.0;

impl Gradient {
    fn new() -> Gradient {
        Gradient {
            limit: FIRST_LIMIT,
            long: 0.0,
            windows: 0,
            total: 0,
            samples: 0,
            most_in_flight: 0,
            ends: WINDOW,
        }
    }

    /// The new limit, at the end of a window.
    fn sample(&mut self, now: u64, time: u64, in_flight: usize) -> Option<usize> {
        (self.total, self.samples) = (self.total + time, self.samples + 1);
        self.most_in_flight = self.most_in_flight.max(in_flight);
        if now < self.ends || self.samples < MIN_SAMPLES {
            return None;
        }
        self.ends = now + WINDOW;
        let short = self.total as f64 / self.samples as f64;
        let in_flight = std::mem::take(&mut self.most_in_flight) as f64;
        (self.total, self.samples) = (0, 0);
        self.windows += 1;
        let weight = match self.windows <= WARM_UP_WINDOWS {
            true => 1.0 / f64::from(self.windows),
            false => 2.0 / (LONG_WINDOW + 1.0),
        };
        self.long += (short - self.long) * weight;
        // After an overload, it comes down faster.
        if self.long / short > 2.0 {
            self.long *= 0.95;
        }
        // A limit that is hardly used says nothing.
        if in_flight < self.limit / 2.0 {
            return None;
        }
        let gradient = (TOLERANCE * self.long / short).clamp(0.5, 1.0);
        let next = self.limit * gradient + APP_QUEUE;
        self.limit = (self.limit * (1.0 - SMOOTHING) + next * SMOOTHING).clamp(1.0, MAX_LIMIT);
        Some(self.limit as usize)
    }
}

/// Of the requests. What a search finds depends on chance.
const SEEDS: [u64; 8] = [7, 11, 999, 123_457, 1, 42, 2026, 31_337];

/// What the search had until then does not count.
const SETTLED: u64 = 20_000_000;
const END: u64 = 110_000_000;
const POLL: u64 = 30_000_000;
/// Of a quota.
const PERIOD: u64 = 100_000;

impl World {
    fn new(kind: Kind, rule: Rule, seed: u64) -> World {
        let mut dispatch = new(Policy::Queue, 1024);
        let (rule, gradients) = match rule {
            Rule::Slots(slots) => (slots, Vec::new()),
            Rule::Gradient => {
                (Slots::Fixed(FIRST_LIMIT as usize), vec![Gradient::new(); kind.backends])
            }
        };
        let ids = (0..kind.backends).map(|_| dispatch.add("a", rule, terms()).0).collect();
        World {
            kind,
            dispatch,
            ids,
            seed,
            dice: Dice(seed),
            start: Instant::now(),
            now: 0,
            requests: 0,
            arrivals: VecDeque::new(),
            waiting: VecDeque::new(),
            flights: Vec::new(),
            budget: vec![0.0; kind.backends],
            next_open: u64::MAX,
            times: Vec::new(),
            gradients,
        }
    }

    fn at(&self, micros: u64) -> Instant {
        self.start + Duration::from_micros(micros)
    }

    /// Answers a second, and their 99th percentile in milliseconds, once the search has had its time.
    fn run(mut self) -> (f64, f64) {
        match self.kind.traffic {
            Traffic::Closed(clients) => self.connect(clients, Sender::Client),
            Traffic::Open(_) => self.next_open = 0,
            Traffic::Polls(clients, _) => {
                self.connect(clients, Sender::Poll);
                self.next_open = 0;
            }
        }
        let (mut tick, mut period) = (0, 0);
        while self.now < END {
            while let Some(sender) = self.arrivals.pop_front() {
                self.arrive(sender);
            }
            self.advance(tick.min(period));
            if self.now == period {
                period += PERIOD;
                if let Station::Quota(share) = self.kind.station {
                    self.budget.fill(share * PERIOD as f64);
                }
            }
            let ends = |flight: &mut Flight| flight.from <= self.now && flight.left < 0.5;
            for flight in self.flights.extract_if(.., ends).collect::<Vec<_>>() {
                self.answer(&flight);
            }
            if self.now == self.next_open {
                self.next_open += self.pause();
                self.arrive(Sender::Anyone);
            }
            if self.now == tick {
                tick += TICK.as_micros() as u64;
                let found = self.dispatch.tick(self.at(self.now)).slots;
                self.dispatch.set_found_slots(&found);
                self.claim();
            }
        }
        self.times.sort_unstable();
        let count = self.times.len();
        let p99 = self.times.get(count * 99 / 100).copied().unwrap_or(END) as f64 / 1000.0;
        (count as f64 / ((END - SETTLED) as f64 / 1e6), p99)
    }

    fn connect(&mut self, clients: usize, sender: Sender) {
        self.arrivals.extend(std::iter::repeat_n(sender, clients));
    }

    /// Until the next independent request.
    fn pause(&mut self) -> u64 {
        match self.kind.traffic {
            Traffic::Open(rate) | Traffic::Polls(_, rate) => {
                (self.dice.exponential(1e6 / rate) as u64).max(1)
            }
            Traffic::Closed(_) => u64::MAX,
        }
    }

    /// Works until something happens, at most until then.
    fn advance(&mut self, until: u64) {
        let rates = self.rates();
        let mut next = until.min(self.next_open);
        for (flight, rate) in self.flights.iter().zip(&rates) {
            if flight.from > self.now {
                next = next.min(flight.from);
            } else if *rate > 0.0 {
                next = next.min(self.now + (flight.left / rate).ceil() as u64);
            }
        }
        let spends: Vec<_> = self.ids.iter().map(|&id| self.working(id) > 0).collect();
        if let Station::Quota(_) = self.kind.station {
            for (budget, _) in
                self.budget.iter().zip(&spends).filter(|(b, spends)| **b > 0.0 && **spends)
            {
                next = next.min(self.now + budget.ceil() as u64);
            }
        }
        let passed = (next - self.now) as f64;
        for (budget, _) in self.budget.iter_mut().zip(&spends).filter(|(_, spends)| **spends) {
            *budget = (*budget - passed).max(0.0);
        }
        for (flight, rate) in self.flights.iter_mut().zip(&rates) {
            flight.left -= passed * rate;
        }
        self.now = next;
    }

    fn working(&self, id: BackendId) -> usize {
        let works = |flight: &&Flight| flight.id == id && flight.from <= self.now;
        self.flights.iter().filter(works).count()
    }

    /// How fast each request in flight works.
    fn rates(&self) -> Vec<f64> {
        let working = self.flights.iter().filter(|flight| flight.from <= self.now).count();
        let mut served = vec![0; self.ids.len()];
        let counts: Vec<_> = self.ids.iter().map(|id| self.working(*id)).collect();
        let rate = |flight: &Flight| {
            if flight.from > self.now {
                return 0.0;
            }
            let backend = flight.id.index as usize;
            if flight.request.sender == Sender::Poll {
                return 1.0;
            }
            match self.kind.station {
                Station::Pool(workers) => {
                    served[backend] += 1;
                    if served[backend] <= workers { 1.0 } else { 0.0 }
                }
                Station::Cores(cores) => (cores / working as f64).min(1.0),
                Station::Quota(_) => {
                    if self.budget[backend] > 0.0 {
                        1.0 / counts[backend] as f64
                    } else {
                        0.0
                    }
                }
            }
        };
        self.flights.iter().map(rate).collect()
    }

    fn arrive(&mut self, sender: Sender) {
        self.requests += 1;
        let request = Request { number: self.requests, asked: self.now, sender };
        match ask(&mut self.dispatch) {
            Asked::Granted(grant) => self.begin(&grant, request),
            Asked::Waiting(ticket, ..) => self.waiting.push_back((ticket, request)),
            _ => {
                if self.now >= SETTLED {
                    self.times.push(60_000_000);
                }
            }
        }
    }

    fn begin(&mut self, grant: &Grant<&'static str>, request: Request) {
        let mut dice = Dice::of(self.seed, request.number);
        let (wait, work) = match request.sender {
            Sender::Poll => (dice.about(POLL), 1),
            _ => (self.kind.request)(&mut dice, self.now),
        };
        self.flights.push(Flight {
            id: grant.id,
            ordinal: grant.ordinal,
            began: self.now,
            from: self.now + wait,
            left: work as f64,
            request,
        });
    }

    fn answer(&mut self, flight: &Flight) {
        let report = Report::answered(self.at(flight.began), self.at(self.now), false);
        let backend = self.dispatch.member(flight.id).expect("it stays");
        let in_flight = backend.in_flight;
        let freed = self.dispatch.release(flight.id, flight.ordinal, report);
        if let Some(gradient) = self.gradients.get_mut(flight.id.index as usize)
            && let Some(limit) = gradient.sample(self.now, self.now - flight.began, in_flight)
        {
            self.dispatch.set_slots(flight.id, limit);
        }
        let Request { asked, sender, .. } = flight.request;
        if self.now >= SETTLED && sender != Sender::Poll {
            self.times.push(self.now - asked);
        }
        if sender != Sender::Anyone {
            self.arrivals.push_back(sender);
        }
        if freed.wake.is_some() || !self.waiting.is_empty() {
            self.claim();
        }
    }

    fn claim(&mut self) {
        let mut kept = VecDeque::new();
        for (ticket, request) in std::mem::take(&mut self.waiting) {
            match self.dispatch.claim(&ticket, Waker::noop()) {
                Poll::Ready(Ok(grant)) => self.begin(&grant, request),
                Poll::Ready(Err(refusal)) => panic!("{refusal:?}"),
                Poll::Pending => kept.push_back((ticket, request)),
            }
        }
        self.waiting = kept;
    }
}

fn kinds() -> Vec<Kind> {
    let mut all = Vec::new();
    let mut add =
        |name, backends, station, request: fn(&mut Dice, u64) -> (u64, u64), capacity: f64| {
            for (load, traffic) in [
                ("light", Traffic::Open(0.4 * capacity)),
                ("busy", Traffic::Open(0.8 * capacity)),
                ("overload", Traffic::Closed(200)),
            ] {
                let name = String::leak(format!("{name}, {load}"));
                all.push(Kind { name, backends, station, request, traffic });
            }
        };
    add("serial", 4, Station::Pool(1), |d, _| (0, d.about(20_000)), 200.0);
    add("pool of 4", 4, Station::Pool(4), |d, _| (0, d.about(20_000)), 800.0);
    add("pool of 50", 2, Station::Pool(50), |d, _| (0, d.about(100_000)), 1000.0);
    add("async", 2, Station::Pool(1), |d, _| (d.about(98_000), d.about(2000)), 1000.0);
    add("two cores", 2, Station::Cores(2.0), |d, _| (0, d.about(20_000)), 100.0);
    add("quota", 4, Station::Quota(0.5), |d, _| (0, d.about(5000)), 400.0);
    add(
        "uneven",
        4,
        Station::Pool(4),
        |d, _| (0, if d.uniform() < 0.95 { d.about(5000) } else { d.about(200_000) }),
        16.0 / 0.01475,
    );
    add(
        "cold start",
        4,
        Station::Pool(2),
        |d, now| (0, d.about(if now < 10_000_000 { 30_000 } else { 10_000 })),
        400.0,
    );
    // Relaying takes as long as the server does.
    add("static files", 2, Station::Pool(1), |d, _| (200, d.about(200)), 10_000.0);
    all.push(Kind {
        name: "polls and others",
        backends: 2,
        station: Station::Pool(1),
        request: |d, _| (0, d.about(5000)),
        traffic: Traffic::Polls(100, 50.0),
    });
    for rate in [5, 15, 30, 60] {
        all.push(Kind {
            name: String::leak(format!("pool of 50, {rate}/s")),
            backends: 2,
            station: Station::Pool(50),
            request: |d, _| (0, d.about(100_000)),
            traffic: Traffic::Open(f64::from(rate)),
        });
    }
    all.push(Kind {
        name: "one in 20 s",
        backends: 2,
        station: Station::Pool(1),
        request: |d, _| (0, d.about(5000)),
        traffic: Traffic::Open(1.0 / 20.0),
    });
    all
}

fn kind(name: &str) -> Kind {
    kinds().into_iter().find(|kind| kind.name == name).expect("it is there")
}

#[test]
fn found_slots_serve_as_well_as_the_best_number() {
    for (name, rate, p99) in [
        ("async, busy", 790.0, 130.0),
        ("uneven, busy", 850.0, 250.0),
        ("serial, busy", 155.0, 75.0),
        ("serial, light", 75.0, 32.0),
        ("two cores, overload", 99.0, 2110.0),
        ("quota, light", 155.0, 6.5),
        ("cold start, overload", 795.0, 265.0),
        ("one in 20 s", 0.01, 10.0),
    ] {
        let found = World::new(kind(name), Rule::Slots(Slots::Auto), SEEDS[0]).run();
        assert!(found.0 > rate && found.1 < p99, "{name}: {found:?}");
    }
}

/// A hundred polls would hold all slots that the search has found.
#[test]
fn long_polls_leave_slots_to_others() {
    let (rate, p99) =
        World::new(kind("polls and others"), Rule::Slots(Slots::Auto), SEEDS[0]).run();
    assert!(rate > 45.0 && p99 < 15.0, "{rate} a second, {p99} ms");
}

/// What a number of slots makes of an app: requests a second, and the 99th percentile in milliseconds.
type Outcome = (f64, f64);

/// How an app fares by its slots.
struct Comparison {
    /// With the best of some fixed numbers.
    best: Outcome,
    /// With 256.
    many: Outcome,
    /// With those that the search finds.
    found: Outcome,
    /// With those of the gradient limiter.
    gradient: Outcome,
}

fn compare(kind: Kind, seed: u64) -> Comparison {
    let run = |rule| World::new(kind, rule, seed).run();
    let outcomes = [1, 2, 4, 8, 16, 64, 256].map(|slots| run(Rule::Slots(Slots::Fixed(slots))));
    let many = outcomes[6];
    let most = outcomes.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    // What had waited at the start adds to the rate. Where polls hold all slots, others get next to nothing.
    let good = outcomes.into_iter().filter(|(rate, p99)| *rate > 0.97 * most && *p99 < 1e4);
    let best = good.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(many);
    let (found, gradient) = (run(Rule::Slots(Slots::Auto)), run(Rule::Gradient));
    Comparison { best, many, found, gradient }
}

fn range(figures: [f64; SEEDS.len()]) -> String {
    let low = figures.into_iter().fold(f64::MAX, f64::min);
    let high = figures.into_iter().fold(f64::MIN, f64::max);
    if high < 10.0 { format!("{low:.1}-{high:.1}") } else { format!("{low:.0}-{high:.0}") }
}

#[test]
#[ignore = "a measurement, for `make bench-choosing`"]
fn slots_are_compared() {
    println!("requests/s and p99 in ms, as a range over {} seeds", SEEDS.len());
    let columns = ["best number", "256", "auto", "gradient"];
    println!("{:<20}{}", "", columns.map(|it| format!(" {it:>24}")).concat());
    for kind in kinds() {
        let compared = std::thread::scope(|scope| {
            let begun = SEEDS.map(|seed| scope.spawn(move || compare(kind, seed)));
            begun.map(|thread| thread.join().expect("it does not panic"))
        });
        let [best, many, found, gradient] = [
            |it: &Comparison| it.best,
            |it: &Comparison| it.many,
            |it: &Comparison| it.found,
            |it: &Comparison| it.gradient,
        ];
        print!("{:<20}", kind.name);
        for of in [best, many, found, gradient] {
            let (rates, p99s) =
                (compared.each_ref().map(|it| of(it).0), compared.each_ref().map(|it| of(it).1));
            print!(" {:>12} {:>11}", range(rates), range(p99s));
        }
        let beside = |of: fn(&Comparison) -> Outcome, other: fn(&Comparison) -> Outcome| {
            let more = compared.iter().map(|it| 100.0 * (of(it).1 / other(it).1 - 1.0));
            more.fold(f64::MIN, f64::max)
        };
        let [of_best, of_many] = [best, many].map(|other| beside(found, other));
        let of_gradient = beside(gradient, best);
        println!(
            "  p99 at most {of_best:+.0} % of the best, {of_many:+.0} % of 256; gradient {of_gradient:+.0} % of the best"
        );
    }
}
