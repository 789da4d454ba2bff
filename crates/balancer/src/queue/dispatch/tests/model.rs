//! Checks the promises of the queue against random sequences of events.

use super::*;
use crate::backends::counters::BackendFault;
use crate::queue::dispatch::stalled::Stall;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::backends::health::BackendHealth;
use crate::config::backend::Role;
use crate::config::health::ActiveHealth;
use crate::net::client_network::ClientNetwork;

/// Numbers stand for one of those that there are.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add {
        slots: usize,
        role: Role,
        slow_start: u64,
        connections: usize,
    },
    Remove(usize),
    Drain(usize),
    SetSlots(usize, usize),
    Ask(Option<u64>, u8),
    /// For a slot to check a backend with.
    AskFirst(usize),
    Checked(usize, bool),
    /// Takes the grant that was promised.
    Claim(usize),
    Cancel(usize),
    Release(usize, End),
    /// It waits for its client from now on, or does not any more.
    Stall(usize),
    Upgrade(usize),
    HangUp(usize),
    /// Time passes, in milliseconds.
    Tick(u64),
}

/// How a request ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Answered,
    Aborted,
    Failed,
    /// Failed, and is sent to another backend.
    Again,
}

struct World {
    dispatch: Dispatch<()>,
    checks: Option<ActiveHealth>,
    now: Instant,
    backends: Vec<BackendId>,
    /// In the order in which they came.
    queue: Vec<Waiting>,
    flights: Vec<Flight>,
    tunnels: Vec<BackendId>,
    arrivals: usize,
    joined: HashMap<Option<ClientNetwork>, usize>,
    /// Several backends may have come since: the last one was not there for who was served first.
    ticked: bool,
}

struct Waiting {
    arrived: usize,
    /// Requests that its client has let wait before it, since it had none that did.
    joined: usize,
    /// Requests that came later and were served before, by client.
    passed: HashMap<Option<ClientNetwork>, usize>,
    ticket: Ticket,
    hints: RequestHints,
    purpose: Purpose,
    bell: Arc<Bell>,
    /// Where it was given a slot that it has not taken yet.
    promised: Option<BackendId>,
    told: bool,
}

struct Flight {
    id: BackendId,
    ordinal: u32,
    hints: RequestHints,
    stall: Option<Stall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Request,
    Check(BackendId),
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Requests that may wait, and backends: few, or nothing would meet.
const LENGTH: usize = 8;

const MOST: usize = 4;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = || 0..usize::MAX;
    let slots = prop_oneof![1 => Just(0usize), 4 => 1..4usize];
    let role = prop_oneof![3 => Just(Role::Primary), 1 => Just(Role::Backup)];
    let end = prop_oneof![
        3 => Just(End::Answered),
        1 => Just(End::Aborted),
        2 => Just(End::Failed),
        2 => Just(End::Again),
    ];
    let slow_start = prop_oneof![3 => Just(0), 1 => Just(1000)];
    let connections = prop_oneof![3 => Just(usize::MAX), 1 => 1..4usize];
    let add = (slots.clone(), role, slow_start, connections);
    let step = prop_oneof![
        3 => add.prop_map(|(slots, role, slow_start, connections)| Step::Add {
            slots,
            role,
            slow_start,
            connections,
        }),
        1 => one().prop_map(Step::Remove),
        1 => one().prop_map(Step::Drain),
        4 => (one(), slots).prop_map(|(backend, slots)| Step::SetSlots(backend, slots)),
        14 => (proptest::option::of(0..99u64), 0..4u8).prop_map(|(key, client)| Step::Ask(key, client)),
        2 => one().prop_map(Step::AskFirst),
        4 => (one(), any::<bool>()).prop_map(|(backend, fit)| Step::Checked(backend, fit)),
        4 => one().prop_map(Step::Claim),
        3 => one().prop_map(Step::Cancel),
        12 => (one(), end).prop_map(|(flight, end)| Step::Release(flight, end)),
        4 => one().prop_map(Step::Stall),
        2 => one().prop_map(Step::Upgrade),
        1 => one().prop_map(Step::HangUp),
        3 => (0..1500u64).prop_map(Step::Tick),
    ];
    vec(step, 1..100)
}

impl World {
    fn new(policy: Policy, checks: Option<ActiveHealth>) -> Self {
        let mut config = AppConfig { policy, ..AppConfig::default() };
        config.queue.length = LENGTH;
        config.health.active = checks.clone();
        config.health.passive.failures = 2;
        World {
            dispatch: Dispatch::new(AppId::FIRST, &config),
            checks,
            now: Instant::now(),
            backends: Vec::new(),
            queue: Vec::new(),
            flights: Vec::new(),
            tunnels: Vec::new(),
            arrivals: 0,
            joined: HashMap::new(),
            ticked: false,
        }
    }

    fn take(&mut self, step: Step) {
        self.ticked = matches!(step, Step::Tick(_));
        let pick = |number: usize, len: usize| (len > 0).then(|| number % len);
        let backend = |number| pick(number, self.backends.len()).map(|at| self.backends[at]);
        match step {
            Step::Add { .. } if self.backends.len() == MOST => {}
            Step::Add { slots, role, slow_start, connections } => {
                let slow_start = Duration::from_millis(slow_start);
                let seed = self.backends.len() as u64;
                let terms =
                    MemberTerms { role, slow_start, connections, tunnels: 2, seed, ..terms() };
                let (id, wakers) = self.dispatch.add((), Slots::Fixed(slots), terms);
                self.backends.push(id);
                ring(wakers);
            }
            Step::Remove(number) => {
                let Some(id) = backend(number) else { return };
                let (member, wakers) = self.dispatch.remove(id);
                let gone = member.expect("it was there");
                assert_eq!((gone.in_flight, gone.tunnels), self.held(id));
                self.backends.retain(|&other| other != id);
                ring(wakers);
            }
            Step::Drain(number) => {
                let Some(id) = backend(number) else { return };
                let (held, wakers) = self.dispatch.drain(id);
                let (flights, tunnels) = self.held(id);
                assert_eq!(held, Some(flights + tunnels));
                ring(wakers);
            }
            Step::SetSlots(number, slots) => {
                let Some(id) = backend(number) else { return };
                ring(self.dispatch.set_slots(id, slots));
            }
            Step::Ask(key, client) => {
                self.ask(RequestHints {
                    client: client_of(client),
                    key,
                    ..RequestHints::default()
                });
            }
            Step::AskFirst(number) => {
                let Some(id) = backend(number) else { return };
                let Some(asked) = self.dispatch.ask_first(id) else { return };
                self.asked(asked, RequestHints::default(), Purpose::Check(id));
            }
            Step::Checked(number, fit) => {
                let (Some(id), Some(rules)) = (backend(number), &self.checks) else { return };
                let result = if fit { Ok(()) } else { Err("status 500".into()) };
                ring(self.dispatch.on_check(id, rules, result).wakers);
            }
            Step::Claim(number) => {
                let Some(at) = pick(number, self.queue.len()) else { return };
                self.claim(at);
            }
            Step::Cancel(number) => {
                let Some(at) = pick(number, self.queue.len()) else { return };
                let flights = self.flights.len();
                if !self.claim(at) {
                    self.dispatch.cancel(&self.queue.remove(at).ticket);
                } else if self.flights.len() > flights {
                    self.release(flights, End::Aborted);
                }
            }
            Step::Release(number, end) => {
                let Some(at) = pick(number, self.flights.len()) else { return };
                self.release(at, end);
            }
            Step::Stall(number) => {
                let Some(at) = pick(number, self.flights.len()) else { return };
                let Flight { id, hints, ref mut stall, .. } = self.flights[at];
                match stall.take() {
                    Some(before) => self.dispatch.resume(&before),
                    None => {
                        let (new, woken) = self.dispatch.stall(id, hints.client, Waker::noop());
                        *stall = Some(new);
                        ring(woken);
                    }
                }
            }
            Step::Upgrade(number) => {
                let Some(at) = pick(number, self.flights.len()) else { return };
                if let Some(stall) = self.flights[at].stall.take() {
                    self.dispatch.resume(&stall);
                }
                let &Flight { id, ordinal, .. } = &self.flights[at];
                let report = Report::answered(self.now, self.now, false);
                if let Some(freed) = self.dispatch.upgrade(id, ordinal, report) {
                    self.flights.swap_remove(at);
                    self.tunnels.push(id);
                    self.freed(id, freed);
                }
            }
            Step::HangUp(number) => {
                let Some(at) = pick(number, self.tunnels.len()) else { return };
                let id = self.tunnels.swap_remove(at);
                let freed = self.dispatch.end_upgraded(id);
                self.freed(id, freed);
            }
            Step::Tick(millis) => {
                self.now += Duration::from_millis(millis);
                ring(self.dispatch.tick(self.now).wakers);
            }
        }
    }

    fn ask(&mut self, hints: RequestHints) {
        let asked = self.dispatch.ask(hints);
        self.asked(asked, hints, Purpose::Request);
    }

    fn asked(&mut self, asked: Asked<()>, hints: RequestHints, purpose: Purpose) {
        match asked {
            Asked::Granted(Grant { id, ordinal, .. }) => {
                self.flights.push(Flight { id, ordinal, hints, stall: None });
                self.check_grant(id, &hints, purpose);
                if purpose == Purpose::Request && !self.dispatch.policy.is_keyed() {
                    let member = self.dispatch.member(id).expect("it serves");
                    let open = self.queue.iter().filter(|other| other.is_open());
                    open.for_each(|other| {
                        assert!(!self.is_due(member, &other.hints), "nobody barges in");
                    });
                }
            }
            Asked::Waiting(ticket, _, displaced) => {
                ring(displaced);
                let bell = Arc::new(Bell::default());
                assert!(self.dispatch.claim(&ticket, &Waker::from(Arc::clone(&bell))).is_pending());
                self.arrivals += 1;
                let joined = self.joined.entry(hints.client).or_default();
                self.queue.push(Waiting {
                    arrived: self.arrivals,
                    joined: *joined,
                    passed: HashMap::new(),
                    ticket,
                    hints,
                    purpose,
                    bell,
                    promised: None,
                    told: false,
                });
                *joined += 1;
            }
            Asked::Full => assert!(self.dispatch.depth().0 >= LENGTH),
            Asked::AllTried => assert_eq!(self.dispatch.tier_for(&hints.tried), None),
            Asked::AllDown | Asked::TooLate(_) | Asked::Overspent | Asked::Confined => {}
        }
    }

    /// Ends a wait if something has come of it.
    fn claim(&mut self, at: usize) -> bool {
        let Waiting { ticket, hints, promised, bell, .. } = &self.queue[at];
        match self.dispatch.claim(ticket, &Waker::from(Arc::clone(bell))) {
            Poll::Pending => return false,
            Poll::Ready(Ok(Grant { id, ordinal, .. })) => {
                assert_eq!(*promised, Some(id));
                self.flights.push(Flight { id, ordinal, hints: *hints, stall: None });
            }
            Poll::Ready(Err(_)) => assert_eq!(*promised, None),
        }
        self.queue.remove(at);
        true
    }

    fn release(&mut self, at: usize, end: End) {
        let Flight { id, ordinal, mut hints, stall } = self.flights.swap_remove(at);
        if let Some(stall) = stall {
            self.dispatch.resume(&stall);
        }
        let report = match end {
            End::Answered => Report::answered(self.now, self.now, false),
            End::Aborted => Report::left(self.now, self.now),
            End::Failed | End::Again => Report::failed(BackendFault::Connect, self.now, self.now),
        };
        let freed = self.dispatch.release(id, ordinal, report);
        self.freed(id, freed);
        if let End::Again = end {
            self.settle();
            hints.tried.push(id);
            if hints.tried.len() < AppConfig::MAX_ATTEMPTS {
                self.ask(hints);
            }
        }
    }

    fn freed(&self, id: BackendId, freed: Freed) {
        ring(freed.wake);
        ring(freed.changes.wakers);
        let drains = self.dispatch.member(id).is_some_and(|m| m.standing == Standing::Draining);
        assert_eq!(freed.drained, drains && self.held(id) == (0, 0));
    }

    /// Requests and upgraded connections at a backend.
    fn held(&self, id: BackendId) -> (usize, usize) {
        let flights = self.flights.iter().map(|flight| flight.id);
        let promised = self.queue.iter().filter_map(|waiting| waiting.promised);
        let flights = flights.chain(promised).filter(|&other| other == id).count();
        (flights, self.tunnels.iter().filter(|&&other| other == id).count())
    }

    /// Whether a backend may serve a request as things are.
    fn may(&self, member: &Member<()>, hints: &RequestHints) -> bool {
        self.fits(member, hints) && self.dispatch.tier_for(&hints.tried) == Some(member.tier())
    }

    /// Whether it may be sent there, and nothing holds its client back.
    fn is_due(&self, member: &Member<()>, hints: &RequestHints) -> bool {
        self.may(member, hints) && !self.dispatch.is_curbed(hints.client)
    }

    /// Whether it may stay where it was bound, be that a backup.
    fn fits(&self, member: &Member<()>, hints: &RequestHints) -> bool {
        member.takes() && !hints.tried.contains(member.id)
    }

    fn check_grant(&self, id: BackendId, hints: &RequestHints, purpose: Purpose) {
        let member = self.dispatch.member(id).expect("nobody is sent to who is gone");
        assert!(member.in_flight <= member.room() && member.room() <= member.slots);
        if let Purpose::Check(of) = purpose {
            return assert!(of == id && member.standing == Standing::Serving);
        }
        // The grant itself may have taken the last room that there is for long.
        let bound = self.dispatch.policy.is_keyed() && self.fits(member, hints);
        assert!(self.ticked || member.is_stuck() || bound || self.may(member, hints));
    }

    /// Who was served in this place had its turn.
    fn check_turn(&mut self, place: usize) {
        let Waiting { arrived, hints, purpose, promised, .. } = self.queue[place];
        let member = promised.and_then(|id| self.dispatch.member(id)).expect("it serves");
        if self.dispatch.policy.is_keyed()
            || purpose != Purpose::Request
            // It has waited before.
            || hints.tried.len() > 0
        {
            return;
        }
        let passed = (0..self.queue.len()).filter(|&other| {
            let other = &self.queue[other];
            other.is_open() && other.arrived < arrived && self.is_due(member, &other.hints)
        });
        for other in passed.collect::<Vec<_>>() {
            let other = &mut self.queue[other];
            assert!(other.hints.client != hints.client, "first come, first served");
            assert!(other.hints.tried.len() == 0, "who has waited before goes first");
            let passed = other.passed.entry(hints.client).or_default();
            *passed += 1;
            assert!(*passed <= other.joined, "clients take health_changes");
        }
    }

    /// Sees who got a slot, and holds all promises against what is.
    fn settle(&mut self) {
        let mut granted = Vec::new();
        for (place, waiting) in self.queue.iter_mut().enumerate() {
            let rung = waiting.bell.0.load(Ordering::Relaxed);
            match &self.dispatch.waiters[waiting.ticket.0 as usize].state {
                WaiterState::Vacant => panic!("a request is lost"),
                WaiterState::Waiting { .. } => assert!(!rung),
                WaiterState::Granted(grant) if waiting.promised.is_none() => {
                    assert!(rung);
                    waiting.promised = Some(grant.id);
                    granted.push(place);
                }
                WaiterState::Granted(_) => {}
                WaiterState::Refused(_) => {
                    assert!(rung);
                    waiting.told = true;
                }
            }
        }
        // The last ones first: those before them were served by then.
        for place in granted {
            let Waiting { promised, hints, purpose, .. } = &self.queue[place];
            self.check_grant(promised.expect("it was granted"), hints, *purpose);
            self.check_turn(place);
        }
        let waits =
            |client| self.queue.iter().any(|other| other.is_open() && other.hints.client == client);
        let idle: Vec<_> = self.joined.keys().copied().filter(|&client| !waits(client)).collect();
        self.joined.retain(|client, _| !idle.contains(client));
        self.check_members();
        self.check_queue();
    }

    fn check_members(&self) {
        let d = &self.dispatch;
        assert_eq!(d.members().len(), self.backends.len());
        for member in d.members() {
            assert_eq!((member.in_flight, member.tunnels), self.held(member.id));
            let index = member.id.index;
            for (tier, candidates) in d.candidates.iter().enumerate() {
                let listed = candidates.eligible.iter().filter(|&&taker| taker == index).count();
                assert_eq!(listed == 1, member.takes() && tier == member.tier());
            }
            let down = member.health_state.health == BackendHealth::Down;
            assert!(!down || self.checks.is_some() || d.resting.contains(&index));
            assert!(!member.takes() || member.ramp.is_over() || d.starting.contains(&index));
        }
        for (tier, candidates) in d.candidates.iter().enumerate() {
            let serving = d.members().into_iter().filter(|m| m.takes() && m.tier() == tier);
            let (load, weight) =
                serving.fold((0, 0), |(load, weight), m| (load + m.load(), weight + m.weight()));
            assert_eq!((candidates.load, candidates.weight), (load, weight));
        }
    }

    /// Nobody waits who could be served.
    fn check_queue(&self) {
        let d = &self.dispatch;
        let mut requests = 0;
        for waiting in &self.queue {
            let WaiterState::Waiting { line, .. } = d.waiters[waiting.ticket.0 as usize].state
            else {
                continue;
            };
            requests += usize::from(waiting.purpose == Purpose::Request);
            let serves = |member: &&Member<()>| match line {
                Line::First(index) => member.id.index == index,
                Line::Of(_) | Line::Any => self.is_due(member, &waiting.hints),
            };
            for member in d.members().into_iter().filter(serves) {
                assert!(member.in_flight >= member.room(), "a slot is free: {line:?}");
                if let Line::First(_) = line {
                    assert!(member.standing == Standing::Serving && member.slots > 0);
                }
            }
            if let Line::Of(index) = line {
                let own = d.at(index).expect("nobody waits for who is gone");
                assert!(own.takes() && !waiting.hints.tried.contains(own.id));
            }
        }
        assert_eq!(d.depth().0, requests);
    }

    /// All changes are taken back, and all that was held is given back.
    fn end(mut self) {
        for id in self.backends.clone() {
            ring(self.dispatch.set_slots(id, 1));
            self.settle();
            for _ in 0..2 {
                let Some(rules) = &self.checks else { break };
                ring(self.dispatch.on_check(id, rules, Ok(())).wakers);
                self.settle();
            }
        }
        for _ in 0..3 {
            self.take(Step::Tick(3_600_000));
            self.settle();
        }
        for member in self.dispatch.members() {
            assert!(member.takes() || member.standing == Standing::Draining);
            assert!(!member.takes() || member.ramp.is_over());
        }
        while !self.queue.is_empty() || !self.flights.is_empty() {
            for step in [Step::Cancel(0), Step::Release(0, End::Answered)] {
                self.take(step);
                self.settle();
            }
        }
        while !self.tunnels.is_empty() {
            self.take(Step::HangUp(0));
            self.settle();
        }
        let d = &self.dispatch;
        assert_eq!((d.depth().0, d.vacant_waiters.len()), (0, d.waiters.len()));
        assert!(d.stalled.is_empty());
        while !self.backends.is_empty() {
            self.take(Step::Remove(0));
            self.settle();
        }
        let d = &self.dispatch;
        assert!(d.ages.is_empty() && d.vacant.len() == d.members.len());
    }
}

impl Waiting {
    /// A request that nothing has come of yet.
    fn is_open(&self) -> bool {
        self.promised.is_none() && !self.told && self.purpose == Purpose::Request
    }
}

fn client_of(number: u8) -> Option<ClientNetwork> {
    (number > 0).then(|| ClientNetwork::of([192, 0, 2, number].into()))
}

fn ring(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

proptest! {
    #![proptest_config(Config {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn no_request_is_lost_or_overtaken_or_left_waiting(
        policy in proptest::sample::select(all()),
        checked in any::<bool>(),
        steps in steps(),
    ) {
        let checks = checked.then(|| ActiveHealth { rise: 2, fall: 2, ..ActiveHealth::of("/") });
        let mut world = World::new(policy, checks);
        for step in steps {
            world.take(step);
            world.settle();
        }
        world.end();
    }
}
