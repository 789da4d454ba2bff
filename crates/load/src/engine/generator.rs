//! One thread's load without I/O: what it sends when, and what became of it. This is the hot loop.
//!
//! A driver owns the sockets. It asks for [`Action`]s, carries them out, and reports what happened. Time is an
//! argument of every call, so that tests run the whole load on virtual time.

mod demand;
mod sessions;
mod streams;

use std::sync::Arc;

use crate::clock::pausable_clock::PausableClock;
use crate::clock::time::Nanos;
use crate::clock::timer_heap::TimerHeap;
use crate::engine::actions::{Action, Actions};
use crate::engine::request_source::RequestSource;
use crate::error::kind::ErrorKind;
use crate::http::http1::connection::{Connection, ConnectionState, Disconnect, Event};
use crate::http::http1::head::Answer;
use crate::http::request::KeepAlive;
use crate::metrics::recorder::{Recorder, Sent};
use crate::metrics::window::Gauges;
use crate::workload::arrivals::Arrivals;
use crate::workload::backoff::backoff;
use crate::workload::plan::Plan;
use crate::workload::users::Users;

#[derive(Debug)]
pub(crate) struct Generator {
    terms: Terms,
    traffic: Traffic,
    load_clock: PausableClock,
    pub(crate) source: RequestSource,
    slots: Vec<Slot>,
    actions: Actions,
    deadlines: TimerHeap,
    pub(crate) recorder: Recorder,
    /// Users whose next session is due, since when in the load's own time, and whether it is late because the
    /// session before took too long.
    returning: Vec<(u32, Nanos, bool)>,
    /// How many requests may still begin; `None` for any number.
    pub(crate) quota: Option<u64>,
    /// Slots with a request, sent or not.
    busy: u64,
}

/// What every request of a run has in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) keep_alive: KeepAlive,
    pub(crate) timeout: Nanos,
    pub(crate) connect_timeout: Nanos,
}

/// What makes requests due, in the load's own time.
#[derive(Debug)]
pub(crate) enum Traffic {
    Closed(Users),
    Open(Arrivals),
}

/// A place for a connection, and the request that it carries.
#[derive(Debug)]
struct Slot {
    connection: Connection,
    exchange: Option<Exchange>,
    /// The earliest entry for this slot among the deadlines.
    watched: Nanos,
    /// Connections in a row that failed or ended without an answer.
    failures: u32,
}

#[derive(Debug, Clone, Copy)]
struct Exchange {
    intended: Nanos,
    /// Set until the driver acts on it for the first time. How late that is counts as lag.
    unnoticed: bool,
    /// When its connection began to be opened. Empty once the request goes out.
    opening: Option<Nanos>,
    sent: Option<Sent>,
    /// When the first bytes of the answer arrived.
    first_byte: Option<Nanos>,
}

impl Generator {
    pub(crate) fn new(
        terms: Terms,
        traffic: Traffic,
        source: RequestSource,
        recorder: Recorder,
        quota: Option<u64>,
    ) -> Generator {
        Generator {
            terms,
            traffic,
            load_clock: PausableClock::default(),
            source,
            slots: Vec::new(),
            actions: Actions::default(),
            deadlines: TimerHeap::default(),
            recorder,
            returning: Vec::new(),
            quota,
            busy: 0,
        }
    }

    // What the driver asks.

    pub(crate) fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.next()
    }

    /// A slot whose connection has to be opened.
    pub(crate) fn next_opening(&mut self) -> Option<u32> {
        loop {
            let id = self.actions.next_opening()?;
            let slot = &self.slots[id as usize];
            if slot.exchange.is_some() && slot.connection.phase() == ConnectionState::Closed {
                return Some(id);
            }
        }
    }

    /// When [`Generator::tick`] must be called at the latest.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let due = match &self.traffic {
            Traffic::Closed(users) => {
                let returning = self.returning.iter().map(|(_, at, _)| *at).min();
                returning.into_iter().chain(users.next_due()).min()
            }
            Traffic::Open(arrivals) => arrivals.schedule.next_due(),
        };
        let due = due.filter(|_| self.quota != Some(0));
        let due = due.and_then(|due| self.load_clock.real(due));
        [due, self.deadlines.next(), self.sessions_wake()].into_iter().flatten().min()
    }

    /// Begins what is due and gives up what is overdue.
    pub(crate) fn tick(&mut self, now: Nanos) {
        while let Some((at, slot)) = self.deadlines.pop_due(now) {
            self.check_deadline(slot, at, now);
        }
        if matches!(self.traffic, Traffic::Closed(_)) {
            self.start_users(now);
        } else {
            self.start_arrivals(now);
        }
        self.wake_sessions(now);
        self.note_in_system(now);
    }

    // What the driver reports.

    /// The driver begins to connect.
    pub(crate) fn opening(&mut self, id: u32, now: Nanos) {
        self.notice(id, now);
        let deadline = now + self.terms.connect_timeout;
        let slot = &mut self.slots[id as usize];
        slot.connection.connecting(deadline);
        if let Some(exchange) = &mut slot.exchange {
            exchange.opening = Some(now);
        }
        self.watch(id, deadline);
    }

    pub(crate) fn opened(&mut self, id: u32) {
        self.recorder.connection_opened();
        self.slots[id as usize].connection.connected();
        self.actions.send(id);
    }

    pub(crate) fn open_failed(&mut self, id: u32, kind: ErrorKind, now: Nanos) {
        self.slots[id as usize].connection.close();
        self.actions.close(id);
        self.fail(id, kind, None, now);
    }

    /// The driver begins to send. From here on the target is measured. Returns whether there is still something to
    /// send.
    pub(crate) fn sending(&mut self, id: u32, now: Nanos) -> bool {
        let slot = &mut self.slots[id as usize];
        let Some(exchange) = &mut slot.exchange else {
            return false;
        };
        if slot.connection.phase() != ConnectionState::Idle {
            return false;
        }
        if let Some(then) = exchange.opening.take() {
            self.recorder.connected(now.saturating_sub(then));
        }
        exchange.sent = Some(self.recorder.sent(now));
        let deadline = now + self.terms.timeout;
        slot.connection.sending(deadline);
        self.notice(id, now);
        self.watch(id, deadline);
        true
    }

    /// Bytes that have to be written.
    pub(crate) fn unsent(&self, id: u32) -> &[u8] {
        self.slots[id as usize].connection.unsent(self.source.request(id))
    }

    pub(crate) fn wrote(&mut self, id: u32, count: usize) {
        self.slots[id as usize].connection.wrote(count, self.source.request(id));
    }

    pub(crate) fn received(&mut self, id: u32, bytes: &[u8], now: Nanos) {
        self.recorder.bytes(bytes.len() as u64);
        let slot = &mut self.slots[id as usize];
        if let Some(exchange) = &mut slot.exchange {
            exchange.first_byte.get_or_insert(now);
        }
        let event = self.source.read(id, &mut slot.connection, bytes);
        self.handle(id, event, now);
    }

    pub(crate) fn lost(&mut self, id: u32, loss: Disconnect, now: Nanos) {
        let connection = &mut self.slots[id as usize].connection;
        let event = connection.lost(loss, self.source.request(id));
        self.handle(id, event, now);
    }

    pub(crate) fn phase(&self, id: u32) -> ConnectionState {
        self.slots[id as usize].connection.phase()
    }

    // What the control asks for.

    /// Follows a changed plan, after everything that was due until now.
    pub(crate) fn follow(&mut self, plan: &Plan, load_clock: PausableClock, now: Nanos) {
        self.tick(now);
        self.hold_sessions(load_clock, now);
        if let Traffic::Open(arrivals) = &mut self.traffic {
            arrivals.delay_backlog(load_clock.held().saturating_sub(self.load_clock.held()));
        }
        self.load_clock = load_clock;
        match (&mut self.traffic, plan) {
            (Traffic::Closed(users), Plan::Closed(user_count)) => users.follow(*user_count),
            (Traffic::Open(arrivals), Plan::Open(curve)) => {
                arrivals.schedule.follow(Arc::clone(curve));
            }
            _ => {}
        }
    }

    /// The clock's time at a time of the load; `None` during a pause.
    pub(crate) fn real(&self, at: Nanos) -> Option<Nanos> {
        self.load_clock.real(at)
    }

    /// When the workload is over; `None` if it has no end, or during a pause.
    pub(crate) fn ends_at(&self) -> Option<Nanos> {
        match self.source {
            // Sessions under way go on to their end.
            RequestSource::Sessions(_) => None,
            RequestSource::Single(..) => self.arrivals_end_at(),
        }
    }

    /// Measuring ends at `at`. Nothing more is sent, and requests in flight may finish.
    pub(crate) fn end(&mut self, at: Nanos) {
        // Requests that were due before the end and did not begin lower the achieved ratio.
        let overdue = match &mut self.traffic {
            Traffic::Open(arrivals) => arrivals.skip_due(self.load_clock.load_time(at)),
            Traffic::Closed(users) => users.overdue(self.load_clock.load_time(at)),
        };
        self.recorder.due(overdue.min(self.quota.unwrap_or(u64::MAX)));
        if let RequestSource::Sessions(sessions) = &self.source {
            // Requests are due when their sessions come to them.
            self.recorder.due(sessions.waiting());
        }
        self.quota = Some(0);
        let gauges = self.gauges();
        self.recorder.end(at, gauges);
        self.end_sessions();
        if let Traffic::Open(arrivals) = &mut self.traffic {
            for intended in arrivals.take_backlog() {
                self.recorder.unanswered(at.saturating_sub(intended));
            }
        }
        for id in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[id as usize];
            let Some(exchange) = slot.exchange else {
                continue;
            };
            self.recorder.unanswered(at.saturating_sub(exchange.intended));
            if exchange.sent.is_none() {
                slot.exchange = None;
                slot.connection.close();
                self.busy -= 1;
                self.actions.close(id);
            }
        }
    }

    pub(crate) fn gauges(&self) -> Gauges {
        let (users, waiting) = match (&self.traffic, &self.source) {
            (Traffic::Closed(users), RequestSource::Sessions(sessions)) => {
                (users.seen(), sessions.waiting())
            }
            (Traffic::Open(_), RequestSource::Sessions(sessions)) => {
                (sessions.present(), sessions.waiting())
            }
            (Traffic::Closed(users), RequestSource::Single(..)) => (users.seen(), 0),
            (Traffic::Open(arrivals), RequestSource::Single(..)) => (0, arrivals.waiting()),
        };
        Gauges { users, waiting, ..Gauges::default() }
    }

    /// Every request of the quota has begun, and has ended.
    pub(crate) fn is_spent(&self) -> bool {
        let in_session =
            matches!(&self.source, RequestSource::Sessions(sessions) if sessions.present() > 0);
        self.quota == Some(0) && self.busy == 0 && !in_session && self.gauges().waiting == 0
    }

    // Requests begin.

    fn begin(&mut self, id: u32, intended: Nanos, unnoticed: bool) {
        while self.slots.len() <= id as usize {
            self.slots.push(Slot {
                connection: Connection::new(),
                exchange: None,
                watched: Nanos::MAX,
                failures: 0,
            });
        }
        self.recorder.taken_up();
        self.busy += 1;
        let slot = &mut self.slots[id as usize];
        slot.exchange =
            Some(Exchange { intended, unnoticed, opening: None, sent: None, first_byte: None });
        match slot.connection.phase() {
            ConnectionState::Idle => self.actions.send(id),
            _ => self.actions.open(id),
        }
    }

    fn notice(&mut self, id: u32, now: Nanos) {
        if let Some(exchange) = &mut self.slots[id as usize].exchange
            && std::mem::take(&mut exchange.unnoticed)
        {
            self.recorder.lag(now.saturating_sub(exchange.intended));
        }
    }

    // Requests end.

    fn handle(&mut self, id: u32, event: Event, now: Nanos) {
        match event {
            Event::None => {}
            Event::Answered(answer) => self.answered(id, answer, now),
            Event::Failed(kind) => {
                self.actions.close(id);
                self.fail(id, kind, None, now);
            }
            Event::Repeat => {
                self.recorder.reconnected();
                self.actions.close(id);
                self.repeat(id, now);
            }
            Event::LostIdle => {
                self.recorder.reconnected();
                self.actions.close(id);
                // A request that was about to go out here needs a new connection.
                if self.slots[id as usize].exchange.is_some() {
                    self.actions.open(id);
                }
            }
        }
    }

    fn answered(&mut self, id: u32, answer: Answer, now: Nanos) {
        let slot = &mut self.slots[id as usize];
        slot.failures = 0;
        self.recorder.body(slot.connection.body_bytes());
        if self.terms.keep_alive == KeepAlive::ClosePerRequest {
            slot.connection.close();
        }
        if slot.connection.phase() == ConnectionState::Closed {
            self.actions.close(id);
        }
        if let RequestSource::Sessions(_) = self.source {
            return self.answered_session(id, answer.status, now);
        }
        if let Some(kind) = ErrorKind::of_status(answer.status) {
            self.fail(id, kind, Some(answer.status), now);
            return;
        }
        let Some(exchange) = slot.exchange.take() else {
            return;
        };
        if let Some(sent) = exchange.sent {
            let first_byte = exchange.first_byte.unwrap_or(now);
            self.recorder.answered(exchange.intended, sent, first_byte, now, answer.status);
        }
        self.proceed(id, 0, now);
    }

    fn fail(&mut self, id: u32, kind: ErrorKind, status: Option<u16>, now: Nanos) {
        let slot = &mut self.slots[id as usize];
        let Some(exchange) = slot.exchange.take() else {
            return;
        };
        let mut pause = 0;
        let fruitless = kind.is_broken_connection() && !slot.connection.has_answered();
        if kind.is_connect_failure() || fruitless {
            pause = backoff(slot.failures);
            slot.failures += 1;
        }
        self.recorder.failed(exchange.intended, exchange.sent, now, kind, status);
        match self.source {
            RequestSource::Sessions(_) => self.failed_session(id, kind, now),
            RequestSource::Single(..) => self.proceed(id, pause, now),
        }
    }

    /// The request goes out again on a new connection, with its intended time. After the end nothing goes out.
    fn repeat(&mut self, id: u32, now: Nanos) {
        if self.recorder.has_ended() {
            return self.fail(id, ErrorKind::ClosedEarly, None, now);
        }
        let slot = &mut self.slots[id as usize];
        let sent = slot.exchange.as_mut().and_then(|exchange| {
            exchange.first_byte = None;
            exchange.sent.take()
        });
        if let Some(sent) = sent {
            self.recorder.recalled(sent);
        }
        self.recorder.repeated();
        self.actions.open(id);
    }

    // Deadlines.

    fn watch(&mut self, id: u32, deadline: Nanos) {
        let slot = &mut self.slots[id as usize];
        if deadline < slot.watched {
            slot.watched = deadline;
            self.deadlines.add(deadline, id);
        }
    }

    /// Looks at a slot whose entry is due. Mostly the request that the entry was made for was answered long ago. So
    /// a connection costs one entry for each timeout, not one for each request.
    fn check_deadline(&mut self, id: u32, at: Nanos, now: Nanos) {
        let slot = &mut self.slots[id as usize];
        if slot.watched == at {
            slot.watched = Nanos::MAX;
        }
        match slot.connection.deadline() {
            Some(deadline) if deadline <= now => {
                let kind = slot.connection.expire();
                self.actions.close(id);
                self.fail(id, kind, None, now);
            }
            Some(deadline) => self.watch(id, deadline),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
