//! One thread's sessions and the connections that they hold, without I/O.
//!
//! The generator tells of answers and of time, and carries out [`Order`]s.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::answer::Kept;
use super::lines::{Holdings, Lines, Place};
use super::payload::Dealer;
use super::session::{Act, IDLE_PAUSE, Session, World};
use super::steps::{BlockId, RequestStep};
use super::template::{Scope, identifier};
use super::{Connections, Script};
use crate::clock::time::Nanos;
use crate::engine::generator::{FIRST_BACKOFF, LONGEST_BACKOFF};
use crate::error::kind::ErrorKind;
use crate::http::request::PreparedRequest;
use crate::metrics::session_tally::{OpenSessionTally, RequestTimes, code};
use crate::workload::thread_share::ThreadShare;

#[derive(Debug)]
pub(crate) struct Cast {
    script: Arc<Script>,
    part: Part,
    /// What every session knows at its beginning.
    scope: Scope,
    random: SmallRng,
    dealer: Dealer,
    scratch: Vec<u8>,
    actors: Vec<Actor>,
    /// Actors without a session.
    resting: Vec<u32>,
    lines: Lines,
    /// Actors that wait for a connection beyond the limit.
    starved: VecDeque<(u32, u32)>,
    wakes: BinaryHeap<Reverse<(Nanos, Wake)>>,
    orders: VecDeque<Order>,
    progress: Progress,
    /// Actors that could have gone on while it was paused, once for each answer, with their serials.
    held: Vec<(u32, u32)>,
    /// Sessions in a row that ended without an answer.
    fruitless: u32,
}

/// What the sessions do.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// The scenarios, by their weights.
    Scenarios,
    /// One block; what becomes of it is left here.
    Solo(BlockId, Outcome),
}

/// How a lone session ended, and what it knew then.
pub(crate) type Outcome = Arc<Mutex<Option<(Result<(), String>, Scope)>>>;

/// What the generator is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Sends the request of a slot, which was meant to go out at this time; whether what it is late
    /// by now is the generator's lag.
    Begin(u32, Nanos, bool),
    /// Notes that a session waits for a connection: there may be no more.
    Wait,
    /// Closes the connection of a slot.
    Close(u32),
    /// A user's session has ended; the next one begins after this time at the earliest.
    Free(u32, Nanos),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    /// Nothing is begun before it goes on.
    Paused,
    /// What is in flight may end; nothing follows it.
    Over,
}

#[derive(Debug)]
struct Actor {
    session: Session,
    /// Told from those who had this place before.
    serial: u32,
    /// The user of a closed workload.
    user: Option<u32>,
    scenario: usize,
    started: Nanos,
    holdings: Holdings,
    /// The session itself was late, by the target's slowness, and this is still its first turn.
    overdue: bool,
    waiting: VecDeque<Wish>,
}

/// A strand wants to send.
#[derive(Debug, Clone, Copy)]
struct Wish {
    strand: u32,
    since: Nanos,
    /// Nobody has looked for a connection for it.
    unnoticed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    actor: u32,
    serial: u32,
    strand: u32,
}

impl Cast {
    /// `limit` is of connections; `scope` is what sessions know besides what the script says.
    pub(crate) fn new(
        script: Arc<Script>,
        part: Part,
        scope: Scope,
        limit: usize,
        share: ThreadShare,
        seed: u64,
    ) -> Cast {
        let limit = match script.settings.connections {
            Connections::Own(_) => limit,
            Connections::Shared(all) => (share.of(all as u64) as usize).clamp(1, limit.max(1)),
        };
        let lines = Lines::new(script.settings.connections, limit);
        Cast {
            script,
            part,
            scope,
            random: SmallRng::seed_from_u64(
                seed.wrapping_mul(1009).wrapping_add(share.thread as u64),
            ),
            dealer: Dealer::new(share),
            scratch: Vec::new(),
            actors: Vec::new(),
            resting: Vec::new(),
            lines,
            starved: VecDeque::new(),
            wakes: BinaryHeap::new(),
            orders: VecDeque::new(),
            progress: Progress::Running,
            held: Vec::new(),
            fruitless: 0,
        }
    }

    pub(crate) fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Sessions under way.
    pub(crate) fn present(&self) -> u64 {
        (self.actors.len() - self.resting.len()) as u64
    }

    /// Sessions that wait for a connection.
    pub(crate) fn waiting(&self) -> u64 {
        self.starved.len() as u64
    }

    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let running = self.progress == Progress::Running;
        self.wakes.peek().filter(|_| running).map(|Reverse((at, _))| *at)
    }

    pub(crate) fn request(&self, slot: u32) -> &PreparedRequest {
        &self.lines.get(slot).request
    }

    /// The request of a slot, and where its answer is kept.
    pub(crate) fn exchange(&mut self, slot: u32) -> (&PreparedRequest, &mut Kept) {
        let line = self.lines.get_mut(slot);
        (&line.request, &mut line.kept)
    }

    /// The step that a slot's request comes from.
    pub(crate) fn step(&self, slot: u32) -> &RequestStep {
        let line = self.lines.get(slot);
        let session = &self.actors[line.actor as usize].session;
        session.request_step(line.strand, &self.script)
    }

    /// Bytes of the body of a slot's answer.
    pub(crate) fn body_bytes(&self, slot: u32) -> u64 {
        self.lines.get(slot).kept.received()
    }

    /// What an answer with this status counts as: an error, unless the script expects it.
    pub(crate) fn judge(&self, slot: u32, status: u16) -> Option<ErrorKind> {
        let kind = ErrorKind::of_status(status)?;
        let wanted = self.step(slot).checks.iter().any(|check| check.accepts(status));
        (!wanted).then_some(kind)
    }

    /// A session begins; whether it is overdue, because the one before took so long.
    pub(crate) fn enter(
        &mut self,
        user: Option<u32>,
        now: Nanos,
        overdue: bool,
        tally: &mut OpenSessionTally,
    ) {
        let (block, scenario) = match &self.part {
            Part::Solo(block, _) => (*block, 0),
            Part::Scenarios => {
                let scenario = self.pick();
                tally.created(scenario);
                (self.script.scenarios[scenario].body, scenario)
            }
        };
        let id = self.take_actor(block);
        let actor = &mut self.actors[id as usize];
        (actor.user, actor.scenario, actor.started) = (user, scenario, now);
        actor.overdue = overdue;
        let scope = actor.session.scope_mut();
        self.dealer.deal(&self.script.payloads, scope, &mut self.random);
        for (variable, values) in &self.script.choices {
            if !values.is_empty() {
                let chosen = self.random.random_range(0..values.len());
                scope.set(*variable, values[chosen].clone());
            }
        }
        if let Some(variable) = self.script.identifier {
            scope.set(variable, Value::String(identifier(&mut self.random)));
        }
        self.drive(id, now, tally);
        self.actors[id as usize].overdue = false;
        self.feed(now, tally);
    }

    /// Goes on with the sessions whose pauses are over.
    pub(crate) fn wake(&mut self, now: Nanos, tally: &mut OpenSessionTally) {
        while self.next_wake().is_some_and(|at| at <= now) {
            let Some(Reverse((at, wake))) = self.wakes.pop() else {
                return;
            };
            let actor = &mut self.actors[wake.actor as usize];
            if actor.serial == wake.serial {
                actor.session.resume(wake.strand);
                // Late wake-ups are the generator's lag, not the session's.
                self.drive(wake.actor, at, tally);
                self.feed(at, tally);
            }
        }
    }

    /// A request is answered.
    pub(crate) fn answered(
        &mut self,
        slot: u32,
        status: u16,
        times: RequestTimes,
        tally: &mut OpenSessionTally,
    ) {
        let line = self.lines.get(slot);
        tally.answered(status, line.kept.received(), times);
        tally.answered_by_endpoint(self.step(slot).endpoint, status, times);
        if let Some(threshold) = self.script.settings.apdex {
            tally.judged(threshold, times);
        }
        let (id, strand) = (line.actor, line.strand);
        let mut world = World {
            script: &self.script,
            random: &mut self.random,
            tally,
            scratch: &mut self.scratch,
        };
        let path = line.path();
        let session = &mut self.actors[id as usize].session;
        session.answered(strand, status, path, &line.kept, &mut world);
        self.fruitless = 0;
        self.lines.release(slot, &mut self.actors[id as usize].holdings);
        self.drive(id, times.last_byte, tally);
        self.feed(times.last_byte, tally);
    }

    /// A request has failed without an answer.
    pub(crate) fn failed(
        &mut self,
        slot: u32,
        kind: ErrorKind,
        now: Nanos,
        tally: &mut OpenSessionTally,
    ) {
        tally.failed_by_endpoint(self.step(slot).endpoint, code(kind));
        let id = self.lines.get(slot).actor;
        self.actors[id as usize].session.broke(code(kind));
        self.fruitless = self.fruitless.saturating_add(1);
        self.lines.release(slot, &mut self.actors[id as usize].holdings);
        self.drive(id, now, tally);
        self.feed(now, tally);
    }

    /// Nothing is begun before [`Cast::resume`].
    pub(crate) fn pause(&mut self) {
        if self.progress == Progress::Running {
            self.progress = Progress::Paused;
        }
    }

    /// Goes on after a pause of this length: what sessions waited for is due so much later.
    pub(crate) fn resume(&mut self, length: Nanos, now: Nanos, tally: &mut OpenSessionTally) {
        if self.progress != Progress::Paused {
            return;
        }
        self.progress = Progress::Running;
        let wakes = std::mem::take(&mut self.wakes).into_iter();
        self.wakes =
            wakes.map(|Reverse((at, wake))| Reverse((at.saturating_add(length), wake))).collect();
        let waiting = self.actors.iter_mut().flat_map(|actor| &mut actor.waiting);
        waiting.for_each(|wish| wish.since = wish.since.saturating_add(length));
        for (id, serial) in std::mem::take(&mut self.held) {
            self.go_on(id, serial, now, tally);
        }
        self.feed(now, tally);
    }

    /// Nothing more is begun.
    pub(crate) fn end(&mut self) {
        self.progress = Progress::Over;
        self.wakes.clear();
        self.starved.clear();
        self.orders.clear();
    }

    fn pick(&mut self) -> usize {
        let scenarios = &self.script.scenarios;
        let all: u64 = scenarios.iter().map(|scenario| u64::from(scenario.weight)).sum();
        let mut drawn = self.random.random_range(0..all.max(1));
        for (index, scenario) in scenarios.iter().enumerate() {
            match drawn.checked_sub(u64::from(scenario.weight)) {
                Some(left) => drawn = left,
                None => return index,
            }
        }
        0
    }

    fn take_actor(&mut self, block: BlockId) -> u32 {
        if let Some(id) = self.resting.pop() {
            let actor = &mut self.actors[id as usize];
            actor.session.restart(&self.scope, block);
            actor.serial = actor.serial.wrapping_add(1);
            return id;
        }
        self.actors.push(Actor {
            session: Session::new(self.scope.clone(), block),
            serial: 0,
            user: None,
            scenario: 0,
            started: 0,
            overdue: false,
            holdings: Holdings::default(),
            waiting: VecDeque::new(),
        });
        self.actors.len() as u32 - 1
    }

    /// Does what the session wants until it waits or has ended.
    fn drive(&mut self, id: u32, now: Nanos, tally: &mut OpenSessionTally) {
        while self.progress == Progress::Running {
            self.serve(id, tally);
            let actor = &mut self.actors[id as usize];
            let mut world = World {
                script: &self.script,
                random: &mut self.random,
                tally,
                scratch: &mut self.scratch,
            };
            match actor.session.poll(&mut world) {
                Act::Send(strand) => {
                    let unnoticed = !actor.overdue;
                    actor.waiting.push_back(Wish { strand, since: now, unnoticed });
                }
                Act::Pause(strand, length) => {
                    let wake = Wake { actor: id, serial: actor.serial, strand };
                    self.wakes.push(Reverse((now.saturating_add(length), wake)));
                }
                // A reader who went away ends no run.
                Act::Log(text) => drop(writeln!(std::io::stderr(), "{text}")),
                Act::Wait => return,
                Act::Ended(outcome) => return self.leave(id, outcome, now, tally),
            }
        }
        if self.progress == Progress::Paused {
            self.held.push((id, self.actors[id as usize].serial));
        }
    }

    /// Gives the session connections for what it wants to send, as far as there are any.
    fn serve(&mut self, id: u32, tally: &mut OpenSessionTally) {
        let actor = &mut self.actors[id as usize];
        if actor.session.has_failed() {
            actor.waiting.clear();
        }
        while let Some(wish) = self.actors[id as usize].waiting.front().copied() {
            let Wish { strand, since, unnoticed } = wish;
            let actor = &mut self.actors[id as usize];
            let place = self.lines.acquire(&mut actor.holdings);
            let Place::Slot(slot) = place else {
                // Noticed in time; what follows is the target's slowness or the limit's.
                actor.waiting.iter_mut().for_each(|wish| wish.unnoticed = false);
                let entry = (id, actor.serial);
                if place == Place::Starved && !self.starved.contains(&entry) {
                    self.starved.push_back(entry);
                    self.orders.push_back(Order::Wait);
                }
                return;
            };
            actor.waiting.pop_front();
            let mut world = World {
                script: &self.script,
                random: &mut self.random,
                tally,
                scratch: &mut self.scratch,
            };
            let line = self.lines.get_mut(slot);
            (line.actor, line.strand) = (id, strand);
            match actor.session.write_request(strand, &mut world, &mut line.request) {
                Ok(interest) => {
                    line.kept.restart(interest);
                    actor.session.sent();
                    tally.requests += 1;
                    self.orders.push_back(Order::Begin(slot, since, unnoticed));
                }
                Err(error) => {
                    actor.session.fail(error);
                    self.lines.release(slot, &mut actor.holdings);
                }
            }
        }
    }

    fn leave(
        &mut self,
        id: u32,
        outcome: Result<(), String>,
        now: Nanos,
        tally: &mut OpenSessionTally,
    ) {
        let actor = &mut self.actors[id as usize];
        match &self.part {
            Part::Solo(_, place) => {
                let result = (outcome, actor.session.scope().clone());
                *place.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
            }
            Part::Scenarios => match outcome {
                Ok(()) => {
                    tally.completed += 1;
                    tally.session_length.record(now.saturating_sub(actor.started));
                }
                Err(error) => {
                    tally.failed += 1;
                    tally.error(&error);
                }
            },
        }
        actor.serial = actor.serial.wrapping_add(1);
        actor.waiting.clear();
        let closed = self.lines.give_up(&mut actor.holdings);
        self.orders.extend(closed.map(Order::Close));
        if let Some(user) = actor.user.take() {
            let pause = match self.fruitless {
                // One that takes no time, sending nothing, must not take the thread.
                0 if now <= actor.started => IDLE_PAUSE,
                0 => 0,
                times => (FIRST_BACKOFF << times.min(20)).min(LONGEST_BACKOFF),
            };
            self.orders.push_back(Order::Free(user, pause));
        }
        self.resting.push(id);
    }

    /// Lets those go on who waited for a connection.
    fn feed(&mut self, now: Nanos, tally: &mut OpenSessionTally) {
        while self.lines.has_room() {
            let Some((id, serial)) = self.starved.pop_front() else {
                return;
            };
            self.go_on(id, serial, now, tally);
        }
    }

    /// Drives the session of this serial, unless it has ended.
    fn go_on(&mut self, id: u32, serial: u32, now: Nanos, tally: &mut OpenSessionTally) {
        if self.actors[id as usize].serial == serial {
            self.drive(id, now, tally);
        }
    }
}
