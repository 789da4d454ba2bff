//! The search for the number of slots, against simulated backends in virtual time.

use super::*;
use crate::backends::counters::BackendFault;
use crate::queue::TICK;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::queue::dispatch::auto_slots::{Answer, AutoSlots, Demand};

/// What a simulated backend does with the requests that it has.
#[derive(Clone, Copy)]
enum Server {
    /// Serves so many at once, the others wait inside.
    Pool { workers: usize, micros: u64 },
    /// Each waits for something else, then needs the only processor.
    Async { wait: u64, cpu: u64 },
    /// A connection is served to its end, so the second one never is.
    OneConnection { micros: u64 },
}

/// Backends behind a queue that is never empty, unless there are bursts.
struct Simulation {
    server: fn(u64) -> Server,
    auto: AutoSlots,
    start: Instant,
    now: u64,
    /// When a request of a backend is answered, when it began, its ordinal.
    events: BinaryHeap<Reverse<(u64, usize, u64, u32)>>,
    limits: Vec<usize>,
    in_flight: Vec<usize>,
    waiting: u64,
    /// Requests that come at once, a burst every five seconds, and when the last one came.
    burst: u64,
    burst_at: u64,
    ordinals: Vec<u32>,
    /// Those of each backend that do not count.
    before: Vec<u32>,
    /// How many of a hundred clients leave.
    leave: u64,
    /// Requests at work when each was sent, by backend and ordinal.
    at_start: HashMap<(usize, u32), usize>,
    /// When each backend last answered.
    last: Vec<u64>,
    /// When each worker or the processor is free.
    free: Vec<Vec<u64>>,
    seed: u64,
    answered: usize,
}

/// A request's part of a backend that is stuck.
const NEVER: u64 = u64::MAX / 2;

fn subject(backend: usize) -> BackendId {
    BackendId { app: AppId::FIRST, index: backend as u32, generation: 1 }
}

impl Simulation {
    fn new(backends: usize, server: fn(u64) -> Server) -> Self {
        Simulation {
            server,
            auto: AutoSlots::new(),
            start: Instant::now(),
            now: 0,
            events: BinaryHeap::new(),
            limits: vec![1; backends],
            in_flight: vec![0; backends],
            waiting: NEVER,
            burst: 0,
            burst_at: NEVER,
            ordinals: vec![0; backends],
            before: vec![0; backends],
            leave: 0,
            at_start: HashMap::new(),
            last: vec![0; backends],
            free: vec![Vec::new(); backends],
            seed: 9,
            answered: 0,
        }
    }

    /// 1 on average, from 0.75 to 1.25.
    fn vary(&mut self, micros: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        micros * (768 + (self.seed >> 33) % 512) / 1024
    }

    fn begin(&mut self, backend: usize) {
        let now = self.now;
        let server = (self.server)(now);
        let end = match server {
            Server::Pool { workers, micros } => {
                let time = self.vary(micros);
                self.occupy(backend, workers, now, time)
            }
            Server::Async { wait, cpu } => {
                let (wait, time) = (self.vary(wait), self.vary(cpu));
                self.occupy(backend, 1, now + wait, time)
            }
            Server::OneConnection { .. } if self.serves(backend) => NEVER,
            Server::OneConnection { micros } => now + self.vary(micros),
        };
        self.in_flight[backend] += 1;
        self.at_start.insert((backend, self.ordinals[backend]), self.in_flight[backend]);
        self.events.push(Reverse((end, backend, now, self.ordinals[backend])));
        self.ordinals[backend] += 1;
    }

    fn serves(&self, backend: usize) -> bool {
        self.events.iter().any(|Reverse(event)| event.1 == backend && event.0 != NEVER)
    }

    fn occupy(&mut self, backend: usize, workers: usize, from: u64, time: u64) -> u64 {
        let free = &mut self.free[backend];
        free.resize(workers, 0);
        let earliest = free.iter_mut().min().expect("there is a worker");
        *earliest = (*earliest).max(from) + time;
        *earliest
    }

    fn run(&mut self, seconds: u64) -> &mut Self {
        self.run_for(seconds * 1_000_000)
    }

    fn run_for(&mut self, micros: u64) -> &mut Self {
        let end = self.now + micros;
        let mut tick = self.now;
        while self.now < end {
            for backend in 0..self.limits.len() {
                while self.in_flight[backend] < self.limits[backend] && self.waiting > 0 {
                    self.waiting -= 1;
                    self.begin(backend);
                }
            }
            let next = self.events.peek().map_or(NEVER, |Reverse(event)| event.0);
            if next > tick {
                self.now = tick;
                self.tick();
                tick += TICK.as_micros() as u64;
                continue;
            }
            let Some(Reverse((at, backend, began, ordinal))) = self.events.pop() else { continue };
            self.now = at;
            let full = self.in_flight[backend] >= self.limits[backend] && self.waiting > 0;
            let (at_work, last) = (self.in_flight[backend], self.last[backend]);
            (self.in_flight[backend], self.last[backend]) = (at_work - 1, at);
            self.answered += 1;
            let (time, ended) = (Duration::from_micros(at - began), self.at(at));
            let at_start = self.at_start.remove(&(backend, ordinal)).expect("it was sent");
            let interval = Duration::from_micros(at - began.max(last));
            let (id, ordinal) = (subject(backend), ordinal.wrapping_sub(self.before[backend]));
            if self.leave == 0 || self.vary(1 << 20) / 7 % 100 >= self.leave {
                self.auto.answered(
                    id,
                    Answer { ordinal, at_start, at_work, full, time, interval, ended },
                );
            } else if self.auto.left(id, ordinal) {
                self.before[backend] = self.ordinals[backend];
            }
        }
        self
    }

    fn at(&self, micros: u64) -> Instant {
        self.start + Duration::from_micros(micros)
    }

    fn tick(&mut self) {
        let subjects: Vec<_> = (0..self.limits.len()).map(subject).collect();
        let demand = match self.in_flight.iter().any(|&count| count > 0) {
            _ if self.waiting > 0 => Demand::Waits,
            true => Demand::Met,
            false => Demand::Nothing,
        };
        if self.now.is_multiple_of(5_000_000) && self.burst_at != self.now {
            self.waiting += self.burst;
            self.burst_at = self.now;
        }
        let decision = self.auto.tick(self.at(self.now), demand, false, &subjects);
        let Some(decision) = decision else { return };
        for backend in 0..self.limits.len() {
            if !decision.scope.has(subject(backend)) {
                continue;
            }
            let fewer = decision.slots < self.limits[backend];
            self.limits[backend] = decision.slots;
            self.before[backend] = self.ordinals[backend];
            // The connection that is given up makes room for the one that waited.
            if fewer && matches!((self.server)(0), Server::OneConnection { .. }) {
                let stuck = self.in_flight[backend].saturating_sub(1);
                self.in_flight[backend] -= stuck;
                self.events.retain(|Reverse(event)| event.0 != NEVER || event.1 != backend);
            }
        }
    }

    /// Answers a second over so many seconds from now on.
    fn throughput(&mut self, seconds: u64) -> f64 {
        let before = self.answered;
        self.run(seconds);
        (self.answered - before) as f64 / seconds as f64
    }
}

#[test]
fn a_serial_backend_gets_one_slot() {
    for backends in [1, 4] {
        let mut it = Simulation::new(backends, |_| Server::Pool { workers: 1, micros: 20_000 });
        assert_eq!(it.run(30).auto.slots(), 1);
        let rate = it.throughput(60);
        assert!(rate > 48.0 * backends as f64, "{rate}");
    }
}

#[test]
fn a_pool_gets_about_its_size() {
    for (backends, workers) in [(1, 5), (4, 5), (1, 16), (2, 40)] {
        let server = match workers {
            5 => |_| Server::Pool { workers: 5, micros: 20_000 },
            16 => |_| Server::Pool { workers: 16, micros: 20_000 },
            _ => |_| Server::Pool { workers: 40, micros: 20_000 },
        };
        let mut it = Simulation::new(backends, server);
        let slots = it.run(60).auto.slots();
        let most = workers + (workers / 4).max(1);
        assert!((workers * 7 / 8..=most).contains(&slots), "{slots} for {workers} workers");
        let (rate, best) = (it.throughput(60), (50 * workers * backends) as f64);
        assert!(rate > 0.85 * best, "{rate} of {best} a second");
    }
}

/// One of twenty does.
#[test]
fn clients_that_leave_hold_nothing_back() {
    for (backends, seed) in [(1, 1), (1, 2), (4, 1), (4, 2)] {
        let mut it = Simulation::new(backends, |_| Server::Pool { workers: 40, micros: 20_000 });
        (it.leave, it.seed) = (5, seed);
        let slots = it.run(60).auto.slots();
        assert!((35..=50).contains(&slots), "{slots} for 40 workers");
    }
}

#[test]
fn an_async_backend_gets_as_many_as_its_processor_can_feed() {
    let mut it = Simulation::new(1, |_| Server::Async { wait: 98_000, cpu: 2_000 });
    let slots = it.run(60).auto.slots();
    assert!((35..=80).contains(&slots), "50 would do: {slots}");
    let rate = it.throughput(30);
    assert!(rate > 350.0, "{rate} of 500 a second");
}

#[test]
fn a_fast_backend_gets_what_it_answers_within_two_milliseconds() {
    let mut it = Simulation::new(2, |_| Server::Pool { workers: 1, micros: 50 });
    assert!((35..=45).contains(&it.run(30).auto.slots()), "{}", it.auto.slots());
    assert!((35..=45).contains(&it.run(30).auto.slots()), "{}", it.auto.slots());
    let mut it = Simulation::new(2, |_| Server::Pool { workers: 1, micros: 700 });
    assert_eq!(it.run(30).auto.slots(), 3);
    assert_eq!(it.run(120).auto.slots(), 3);
}

#[test]
fn auto_slots_follow_a_backend_that_changes() {
    let server = |now| {
        let workers = if (60_000_000..160_000_000).contains(&now) { 12 } else { 3 };
        Server::Pool { workers, micros: 20_000 }
    };
    let mut it = Simulation::new(2, server);
    for (seconds, expected) in [(50, 3..=4), (100, 10..=16), (180, 3..=4)] {
        let slots = it.run(seconds).auto.slots();
        assert!(expected.contains(&slots), "{slots} after {} s", it.now / 1_000_000);
    }
}

/// Its backend serves many requests at once.
#[test]
fn a_burst_after_others_is_served_at_once() {
    let mut it = Simulation::new(1, |_| Server::Pool { workers: 64, micros: 100_000 });
    (it.waiting, it.burst) = (0, 20);
    for (seconds, micros) in [(0, 700_000), (59, 200_000), (199, 200_000)] {
        it.run(seconds);
        assert_eq!(it.now % 5_000_000, 0, "a burst comes now");
        it.run_for(micros);
        assert_eq!((it.waiting, it.in_flight[0]), (0, 0), "{micros} us after {seconds} s");
        it.run_for(1_000_000 - micros);
    }
}

/// The next burst starts at once.
#[test]
fn backends_have_many_slots_again_when_nobody_waits() {
    let mut it = Simulation::new(4, |_| Server::Pool { workers: 1, micros: 20_000 });
    assert_eq!(it.run(30).auto.slots(), 1);
    it.waiting = 0;
    assert_eq!(it.run(9).auto.slots(), 1);
    assert!(it.run(3).auto.slots() >= 4);
}

/// Each has too few requests to tell anything, and seconds without any follow.
#[test]
fn bursts_add_up() {
    for (backends, burst) in [(1, 10), (1, 25), (3, 30)] {
        let found = |server| {
            let mut it = Simulation::new(backends, server);
            (it.waiting, it.burst) = (0, burst);
            it.run(900).auto.slots()
        };
        let slots = found(|_| Server::Pool { workers: 16, micros: 50_000 });
        assert!((3..=20).contains(&slots), "{slots} for bursts of {burst} at {backends}");
        assert_eq!(found(|_| Server::Pool { workers: 1, micros: 50_000 }), 1);
        assert_eq!(found(|_| Server::OneConnection { micros: 50_000 }), 1);
    }
}

/// Its second connection is served when we give the first one up, and soon.
#[test]
fn a_backend_of_one_connection_is_not_stalled() {
    for backends in [1, 3] {
        let server = |_| Server::OneConnection { micros: 10_000 };
        let mut it = Simulation::new(backends, server);
        assert_eq!(it.run(60).auto.slots(), 1, "{backends} backends");
        let rate = it.throughput(60);
        assert!(rate > 95.0 * backends as f64, "{rate}");
    }
}

#[test]
fn one_slot_stays_without_demand() {
    let (mut auto, mut now) = (AutoSlots::new(), Instant::now());
    for _ in 0..1000 {
        now += TICK;
        let time = Duration::from_millis(5);
        let (ordinal, at_work, full, interval, ended) = (0, 1, false, time, now);
        auto.answered(
            subject(0),
            Answer { ordinal, at_start: at_work, at_work, full, time, interval, ended },
        );
        assert_eq!(auto.tick(now, Demand::Met, false, &[subject(0)]), None);
    }
    assert_eq!(auto.slots(), 1);
}

/// Backends that leave their slots to the search, and are all full while others wait.
struct Fleet {
    dispatch: Plain,
    ids: Vec<BackendId>,
    flights: Vec<(BackendId, u32)>,
    now: Instant,
}

impl Fleet {
    /// Up to the trial of four slots at the first one.
    fn trying(backends: usize) -> Self {
        let mut dispatch = new(Policy::Queue, 1000);
        let ids = (0..backends).map(|_| dispatch.add("a", Slots::Auto, terms()).0).collect();
        let mut it = Fleet { dispatch, ids, flights: Vec::new(), now: Instant::now() };
        assert_eq!(it.tick(), []);
        assert_eq!(it.serve(40).tick(), [(it.ids[0], 4)]);
        it
    }

    /// Lets each backend answer so many requests, a millisecond each.
    fn serve(&mut self, rounds: usize) -> &mut Self {
        for _ in 0..rounds {
            self.fill();
            let began = self.now;
            self.now += Duration::from_millis(1);
            for (id, ordinal) in std::mem::take(&mut self.flights) {
                self.dispatch.release(id, ordinal, Report::answered(began, self.now, false));
            }
        }
        self
    }

    /// Somebody waits for each slot. Who was handed one is in flight.
    fn fill(&mut self) {
        while self.dispatch.depth().0 < 20 {
            if let Asked::Granted(grant) = ask(&mut self.dispatch) {
                self.flights.push((grant.id, grant.ordinal));
            }
        }
        for waiter in &mut self.dispatch.waiters {
            let state = std::mem::replace(&mut waiter.state, WaiterState::Vacant);
            match state {
                WaiterState::Granted(grant) => self.flights.push((grant.id, grant.ordinal)),
                state => waiter.state = state,
            }
        }
    }

    fn take_down(&mut self, id: BackendId) {
        for _ in 0..3 {
            let report = Report::failed(BackendFault::Connect, self.now, self.now);
            self.dispatch.member_mut(id).unwrap().in_flight += 1;
            self.dispatch.release(id, 0, report);
        }
    }

    fn tick(&mut self) -> Vec<(BackendId, usize)> {
        self.now += TICK;
        let slots = self.dispatch.tick(self.now).slots;
        self.dispatch.set_found_slots(&slots);
        slots
    }
}

#[test]
fn a_backend_that_fails_in_a_trial_returns_without_it() {
    for backends in [1, 2] {
        let mut it = Fleet::trying(backends);
        let subject = it.ids[0];
        it.take_down(subject);
        assert_eq!(it.tick(), [(subject, 1)], "of {backends}");
    }
}

#[test]
fn a_backend_that_is_down_learns_the_found_slots() {
    let mut it = Fleet::trying(2);
    let [subject, other] = it.ids[..] else { unreachable!() };
    it.take_down(other);
    assert_eq!(it.serve(40).tick(), [(subject, 4), (other, 4)]);
}

/// It has the place of the one before it, but not its slots.
#[test]
fn a_trial_ends_with_the_backend_that_it_is_for() {
    let mut it = Fleet::trying(1);
    it.dispatch.remove(it.ids[0]);
    it.flights.clear();
    let id = it.dispatch.add("b", Slots::Auto, terms()).0;
    assert_eq!(id.index, it.ids[0].index);
    it.serve(40).tick();
    assert_eq!(it.dispatch.auto.slots(), 1);
}

#[test]
fn setting_the_same_rule_keeps_the_trial() {
    let mut it = Fleet::trying(2);
    for (id, slots) in [(it.ids[0], 4), (it.ids[1], 1)] {
        assert_eq!(it.dispatch.set_rule(id, Slots::Auto), slots);
    }
}

/// A server of one connection at a time does not get to that of the check before the trial is over.
#[test]
fn a_late_check_ends_a_trial_of_more_slots() {
    let mut it = Fleet::trying(2);
    let [subject, other] = it.ids[..] else { unreachable!() };
    assert!(it.dispatch.tries_more_slots(subject) && !it.dispatch.tries_more_slots(other));
    assert_eq!(it.dispatch.end_trial(other, it.now), []);
    assert_eq!(it.dispatch.end_trial(subject, it.now), [(subject, 1)]);
    assert!(!it.dispatch.tries_more_slots(subject), "the next late check counts");
}

#[test]
fn a_check_is_none_of_the_requests_that_a_trial_waits_for() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 2)]);
    let check = |d: &mut Plain| d.ask_first(ids[0]).expect("it is there");
    granted(check(&mut d));
    assert_eq!(granted(ask(&mut d)).ordinal, 0);
    let next = waiting(check(&mut d));
    release(&mut d, ids[0]);
    assert_eq!(claim(&mut d, &next), Some("a"));
    release(&mut d, ids[0]);
    assert_eq!(granted(ask(&mut d)).ordinal, 1);
}
