//! One thread's sessions and the connections that they hold, without I/O.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use load::{
    ErrorKind, Nanos, OpenSessionTally, Order, PreparedRequest, RequestTimes, ResponseSink,
    SessionAnswer, Sessions, ThreadShare, backoff,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::connection_pool::{ConnectionPool, HeldConnections, Lease};
use super::session::{Act, IDLE_PAUSE, Session, SharedState};
use crate::scenario::data_rows::RowDealer;
use crate::scenario::script::{Connections, Script};
use crate::scenario::steps::{BlockId, RequestStep};
use crate::template::scope::Scope;
use crate::template::text::identifier;

#[derive(Debug)]
pub(crate) struct SessionPool {
    script: Arc<Script>,
    role: Role,
    /// What every session knows at its beginning.
    scope: Scope,
    random: SmallRng,
    dealer: RowDealer,
    scratch: Vec<u8>,
    slots: Vec<SessionSlot>,
    /// Slots without a session.
    free: Vec<u32>,
    connections: ConnectionPool,
    /// Sessions that wait for a connection because the thread has no more: slot and serial.
    starved: VecDeque<(u32, u32)>,
    wakes: BinaryHeap<Reverse<(Nanos, Wake)>>,
    orders: VecDeque<Order>,
    progress: Progress,
    /// Sessions that were answered during a pause, once for each answer: slot and serial.
    paused: Vec<(u32, u32)>,
    /// Sessions in a row that ended without an answer.
    failures: u32,
}

/// What the sessions do.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// The scenarios, by their weights.
    Scenarios,
    /// One block, once. Its outcome is left in the shared place.
    Hook(BlockId, HookOutcome),
}

/// How the single session of a hook ended, and what it knew then.
pub(crate) type HookOutcome = Arc<Mutex<Option<(Result<(), String>, Scope)>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    /// Nothing begins before [`Sessions::resume`].
    Paused,
    /// What is in flight may end. Nothing follows it.
    Ended,
}

/// A place for one session after the other.
#[derive(Debug)]
struct SessionSlot {
    session: Session,
    /// Tells the session from those before it in this slot.
    serial: u32,
    /// The user of a closed workload.
    user: Option<u32>,
    started: Nanos,
    held: HeldConnections,
    /// The session began late because of a slow target, and this is still its first turn.
    overdue: bool,
    waiting: VecDeque<PendingSend>,
}

/// A branch that wants to send.
#[derive(Debug, Clone, Copy)]
struct PendingSend {
    branch: u32,
    since: Nanos,
    /// Nobody has looked for a connection for it.
    unnoticed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    slot: u32,
    serial: u32,
    branch: u32,
}

impl SessionPool {
    /// `limit` is the most connections. `scope` is what sessions know at their beginning.
    pub(crate) fn new(
        script: Arc<Script>,
        role: Role,
        scope: Scope,
        limit: usize,
        share: ThreadShare,
        seed: u64,
    ) -> SessionPool {
        let limit = match script.settings.connections {
            Connections::Own(_) => limit,
            Connections::Shared(all) => (share.of(all as u64) as usize).clamp(1, limit.max(1)),
        };
        let connections = ConnectionPool::new(script.settings.connections, limit);
        SessionPool {
            script,
            role,
            scope,
            random: SmallRng::seed_from_u64(
                seed.wrapping_mul(1009).wrapping_add(share.thread as u64),
            ),
            dealer: RowDealer::new(share),
            scratch: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            connections,
            starved: VecDeque::new(),
            wakes: BinaryHeap::new(),
            orders: VecDeque::new(),
            progress: Progress::Running,
            paused: Vec::new(),
            failures: 0,
        }
    }

    /// The step that a connection's request comes from.
    fn step(&self, connection: u32) -> &RequestStep {
        let connection = self.connections.get(connection);
        let session = &self.slots[connection.session as usize].session;
        session.request_step(connection.branch, &self.script)
    }

    /// The failure that a status reports, unless the script expects it.
    fn failure(&self, connection: u32, status: u16) -> Option<ErrorKind> {
        let kind = ErrorKind::of_status(status)?;
        let expectations = &self.step(connection).expectations;
        let expected = expectations.iter().any(|expectation| expectation.accepts(status));
        (!expected).then_some(kind)
    }

    fn draw_scenario(&mut self) -> usize {
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

    fn take_slot(&mut self, block: BlockId) -> u32 {
        if let Some(id) = self.free.pop() {
            let slot = &mut self.slots[id as usize];
            slot.session.restart(&self.scope, block);
            slot.serial = slot.serial.wrapping_add(1);
            return id;
        }
        self.slots.push(SessionSlot {
            session: Session::new(self.scope.clone(), block),
            serial: 0,
            user: None,
            started: 0,
            overdue: false,
            held: HeldConnections::default(),
            waiting: VecDeque::new(),
        });
        self.slots.len() as u32 - 1
    }

    /// Does what the session wants until it waits or has ended.
    fn drive(&mut self, id: u32, now: Nanos, tally: &mut OpenSessionTally) {
        while self.progress == Progress::Running {
            self.send_waiting(id, tally);
            let slot = &mut self.slots[id as usize];
            let mut shared = SharedState {
                script: &self.script,
                random: &mut self.random,
                tally,
                scratch: &mut self.scratch,
            };
            match slot.session.poll(&mut shared) {
                Act::Send(branch) => {
                    let unnoticed = !slot.overdue;
                    slot.waiting.push_back(PendingSend { branch, since: now, unnoticed });
                }
                Act::Pause(branch, length) => {
                    let wake = Wake { slot: id, serial: slot.serial, branch };
                    self.wakes.push(Reverse((now.saturating_add(length), wake)));
                }
                // A closed standard error does not end a run.
                Act::Log(text) => drop(writeln!(std::io::stderr(), "{text}")),
                Act::Wait => return,
                Act::Ended(outcome) => return self.leave(id, outcome, now, tally),
            }
        }
        if self.progress == Progress::Paused {
            self.paused.push((id, self.slots[id as usize].serial));
        }
    }

    /// Sends what the session wants to send, as far as there are connections.
    fn send_waiting(&mut self, id: u32, tally: &mut OpenSessionTally) {
        let slot = &mut self.slots[id as usize];
        if slot.session.has_failed() {
            slot.waiting.clear();
        }
        while let Some(send) = self.slots[id as usize].waiting.front().copied() {
            let PendingSend { branch, since, unnoticed } = send;
            let slot = &mut self.slots[id as usize];
            let lease = self.connections.acquire(&mut slot.held);
            let Lease::Connection(connection) = lease else {
                // The generator noticed it in time. From here on the target or the limit is slow.
                slot.waiting.iter_mut().for_each(|send| send.unnoticed = false);
                let entry = (id, slot.serial);
                if lease == Lease::ThreadFull && !self.starved.contains(&entry) {
                    self.starved.push_back(entry);
                    self.orders.push_back(Order::Wait);
                }
                return;
            };
            slot.waiting.pop_front();
            let mut shared = SharedState {
                script: &self.script,
                random: &mut self.random,
                tally,
                scratch: &mut self.scratch,
            };
            let leased = self.connections.get_mut(connection);
            (leased.session, leased.branch) = (id, branch);
            match slot.session.write_request(branch, &mut shared, &mut leased.request) {
                Ok(recording) => {
                    leased.response.restart(recording);
                    slot.session.sent();
                    tally.requests += 1;
                    let order = Order::Begin { slot: connection, intended: since, unnoticed };
                    self.orders.push_back(order);
                }
                Err(error) => {
                    slot.session.fail(error);
                    self.connections.release(connection, &mut slot.held);
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
        let slot = &mut self.slots[id as usize];
        match &self.role {
            Role::Hook(_, place) => {
                let result = (outcome, slot.session.scope().clone());
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
            Role::Scenarios => match outcome {
                Ok(()) => {
                    tally.completed += 1;
                    tally.session_length.record(now.saturating_sub(slot.started));
                }
                Err(error) => {
                    tally.failed += 1;
                    tally.error(&error);
                }
            },
        }
        slot.serial = slot.serial.wrapping_add(1);
        slot.waiting.clear();
        let closed = self.connections.give_up(&mut slot.held);
        self.orders.extend(closed.map(Order::Close));
        if let Some(user) = slot.user.take() {
            let pause = match self.failures {
                // A session that takes no time and sends nothing must not take the thread.
                0 if now <= slot.started => IDLE_PAUSE,
                0 => 0,
                failures => backoff(failures),
            };
            self.orders.push_back(Order::Free(user, pause));
        }
        self.free.push(id);
    }

    /// Resumes sessions that waited for a connection, while there is one.
    fn feed_starved(&mut self, now: Nanos, tally: &mut OpenSessionTally) {
        while self.connections.has_room() {
            let Some((id, serial)) = self.starved.pop_front() else {
                return;
            };
            self.drive_if_same(id, serial, now, tally);
        }
    }

    /// Drives the session of this serial, unless it has ended.
    fn drive_if_same(&mut self, id: u32, serial: u32, now: Nanos, tally: &mut OpenSessionTally) {
        if self.slots[id as usize].serial == serial {
            self.drive(id, now, tally);
        }
    }
}

impl Sessions for SessionPool {
    fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    fn present(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    fn waiting(&self) -> u64 {
        self.starved.len() as u64
    }

    fn next_wake(&self) -> Option<Nanos> {
        let running = self.progress == Progress::Running;
        self.wakes.peek().filter(|_| running).map(|Reverse((at, _))| *at)
    }

    fn request(&self, slot: u32) -> &PreparedRequest {
        &self.connections.get(slot).request
    }

    fn exchange(&mut self, slot: u32) -> (&PreparedRequest, &mut dyn ResponseSink) {
        let connection = self.connections.get_mut(slot);
        (&connection.request, &mut connection.response)
    }

    fn enter(
        &mut self,
        user: Option<u32>,
        now: Nanos,
        overdue: bool,
        tally: &mut OpenSessionTally,
    ) {
        let block = match &self.role {
            Role::Hook(block, _) => *block,
            Role::Scenarios => {
                let scenario = self.draw_scenario();
                tally.created(scenario);
                self.script.scenarios[scenario].body
            }
        };
        let id = self.take_slot(block);
        let slot = &mut self.slots[id as usize];
        (slot.user, slot.started, slot.overdue) = (user, now, overdue);
        let scope = slot.session.scope_mut();
        self.dealer.deal(&self.script.data_rows, scope, &mut self.random);
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
        self.slots[id as usize].overdue = false;
        self.feed_starved(now, tally);
    }

    fn wake(&mut self, now: Nanos, tally: &mut OpenSessionTally) {
        while self.next_wake().is_some_and(|at| at <= now) {
            let Some(Reverse((at, wake))) = self.wakes.pop() else {
                return;
            };
            let slot = &mut self.slots[wake.slot as usize];
            if slot.serial == wake.serial {
                slot.session.resume(wake.branch);
                // Late wake-ups are the generator's lag, not the session's.
                self.drive(wake.slot, at, tally);
                self.feed_starved(at, tally);
            }
        }
    }

    fn answered(
        &mut self,
        slot: u32,
        status: u16,
        times: RequestTimes,
        tally: &mut OpenSessionTally,
    ) -> SessionAnswer {
        let connection = self.connections.get(slot);
        let body = connection.response.received();
        let step = self.step(slot);
        let answer = SessionAnswer { name: step.name, body, error: self.failure(slot, status) };
        tally.answered(status, body, times);
        tally.answered_by_endpoint(step.endpoint, status, times);
        if let Some(threshold) = self.script.settings.apdex {
            tally.judged(threshold, times);
        }
        let (id, branch, path) = (connection.session, connection.branch, connection.path());
        let mut shared = SharedState {
            script: &self.script,
            random: &mut self.random,
            tally,
            scratch: &mut self.scratch,
        };
        let session = &mut self.slots[id as usize].session;
        session.answered(branch, status, path, &connection.response, &mut shared);
        self.failures = 0;
        self.connections.release(slot, &mut self.slots[id as usize].held);
        self.drive(id, times.last_byte, tally);
        self.feed_starved(times.last_byte, tally);
        answer
    }

    fn failed(
        &mut self,
        slot: u32,
        kind: ErrorKind,
        now: Nanos,
        tally: &mut OpenSessionTally,
    ) -> u32 {
        let step = self.step(slot);
        let name = step.name;
        tally.failed_by_endpoint(step.endpoint, code(kind));
        let id = self.connections.get(slot).session;
        self.slots[id as usize].session.request_failed(code(kind));
        self.failures = self.failures.saturating_add(1);
        self.connections.release(slot, &mut self.slots[id as usize].held);
        self.drive(id, now, tally);
        self.feed_starved(now, tally);
        name
    }

    fn pause(&mut self) {
        if self.progress == Progress::Running {
            self.progress = Progress::Paused;
        }
    }

    fn resume(&mut self, length: Nanos, now: Nanos, tally: &mut OpenSessionTally) {
        if self.progress != Progress::Paused {
            return;
        }
        self.progress = Progress::Running;
        let wakes = std::mem::take(&mut self.wakes).into_iter();
        self.wakes =
            wakes.map(|Reverse((at, wake))| Reverse((at.saturating_add(length), wake))).collect();
        let waiting = self.slots.iter_mut().flat_map(|slot| &mut slot.waiting);
        waiting.for_each(|send| send.since = send.since.saturating_add(length));
        for (id, serial) in std::mem::take(&mut self.paused) {
            self.drive_if_same(id, serial, now, tally);
        }
        self.feed_starved(now, tally);
    }

    fn end(&mut self) {
        self.progress = Progress::Ended;
        self.wakes.clear();
        self.starved.clear();
        self.orders.clear();
    }
}

/// The names under which scripts know what went wrong.
fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "ECONNREFUSED",
        ErrorKind::ConnectTimeout | ErrorKind::Timeout => "ETIMEDOUT",
        ErrorKind::Reset | ErrorKind::ClosedEarly => "ECONNRESET",
        ErrorKind::Resources => "EMFILE",
        ErrorKind::Malformed => "HPE_INVALID",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests;
