//! The sessions of the generator. They use its slots, and it reports to them what became of requests.

use super::{Exchange, Generator, Traffic};
use crate::clock::pausable_clock::PausableClock;
use crate::clock::time::Nanos;
use crate::engine::request_source::RequestSource;
use crate::error::kind::{ErrorKind, Failed};
use crate::http::http1::connection::ConnectionState;
use crate::metrics::session_tally::RequestTimes;
use crate::session::player::Order;
use crate::workload::users::Next;

impl Generator {
    /// When sessions must be woken at the latest.
    pub(super) fn sessions_wake(&self) -> Option<Nanos> {
        let RequestSource::Sessions(sessions) = &self.source else {
            return None;
        };
        let end = self.arrivals_end_at().filter(|_| self.quota != Some(0));
        [sessions.next_wake(), end].into_iter().flatten().min()
    }

    /// When the last phase is over; `None` if it has no end, or during a pause.
    pub(super) fn arrivals_end_at(&self) -> Option<Nanos> {
        match &self.traffic {
            Traffic::Closed(_) => None,
            Traffic::Open(arrivals) => self.load_clock.real(arrivals.schedule.ends_at()?),
        }
    }

    pub(super) fn wake_sessions(&mut self, now: Nanos) {
        let RequestSource::Sessions(sessions) = &mut self.source else {
            return;
        };
        sessions.wake(now, self.recorder.sessions());
        self.execute_orders(now);
        if self.arrivals_end_at().is_some_and(|end| end <= now) {
            self.quota = Some(0);
        }
    }

    /// Pauses or resumes sessions with the load.
    pub(super) fn hold_sessions(&mut self, load_clock: PausableClock, now: Nanos) {
        let RequestSource::Sessions(sessions) = &mut self.source else {
            return;
        };
        match (self.load_clock.is_paused(), load_clock.is_paused()) {
            (false, true) => sessions.pause(),
            (true, false) => {
                let length = load_clock.held().saturating_sub(self.load_clock.held());
                sessions.resume(length, now, self.recorder.sessions());
                self.execute_orders(now);
            }
            _ => {}
        }
    }

    pub(super) fn end_sessions(&mut self) {
        if let RequestSource::Sessions(sessions) = &mut self.source {
            sessions.end();
        }
    }

    /// A session arrives. It is dropped if the limit of its phase is reached.
    pub(super) fn admit(&mut self, intended: Nanos, limit: Option<usize>, now: Nanos) {
        let (RequestSource::Sessions(sessions), Traffic::Open(arrivals)) =
            (&self.source, &self.traffic)
        else {
            return;
        };
        if limit.is_some_and(|limit| sessions.present() >= arrivals.own(limit)) {
            self.recorder.dropped();
            self.recorder.sessions().skipped += 1;
            return;
        }
        self.take_quota();
        self.recorder.lag(now.saturating_sub(intended));
        self.enter(None, intended, false, now);
    }

    /// A session begins, which was meant to begin at `intended`. It is overdue if the user's session before took
    /// too long.
    pub(super) fn enter(&mut self, user: Option<u32>, intended: Nanos, overdue: bool, now: Nanos) {
        if let RequestSource::Sessions(sessions) = &mut self.source {
            sessions.enter(user, intended, overdue, self.recorder.sessions());
            self.execute_orders(now);
        }
    }

    /// The slot's request is answered.
    pub(super) fn answered_session(&mut self, id: u32, status: u16, now: Nanos) {
        let slot = &mut self.slots[id as usize];
        let RequestSource::Sessions(sessions) = &mut self.source else {
            return;
        };
        let Some(Exchange { intended, sent: Some(sent), first_byte, .. }) = slot.exchange.take()
        else {
            return;
        };
        let first_byte = first_byte.unwrap_or(now);
        // Figures of requests end with the measuring. Those of sessions go on until all have ended.
        let measures = !self.recorder.has_ended();
        let times = RequestTimes { intended, sent: sent.at, first_byte, last_byte: now };
        let answer = sessions.answered(id, status, times, self.recorder.sessions());
        match answer.error {
            None => {
                self.recorder.answered(intended, sent, first_byte, now, status);
                if measures {
                    self.recorder.sessions().succeeded_by_name(answer.name, answer.body, times);
                }
            }
            Some(kind) => {
                self.recorder.failed(intended, Some(sent), now, kind, Some(status));
                if measures {
                    let failed = Failed { kind, status: Some(status) };
                    self.recorder.sessions().failed_by_name(answer.name, failed, answer.body, now);
                }
            }
        }
        self.busy -= 1;
        self.execute_orders(now);
    }

    /// The slot's request has failed.
    pub(super) fn failed_session(&mut self, id: u32, kind: ErrorKind, now: Nanos) {
        let RequestSource::Sessions(sessions) = &mut self.source else {
            return;
        };
        self.busy -= 1;
        let measures = !self.recorder.has_ended();
        let tally = self.recorder.sessions();
        let name = sessions.failed(id, kind, now, tally);
        if measures {
            tally.failed_by_name(name, Failed { kind, status: None }, 0, now);
        }
        self.execute_orders(now);
    }

    fn execute_orders(&mut self, now: Nanos) {
        while let RequestSource::Sessions(sessions) = &mut self.source
            && let Some(order) = sessions.next_order()
        {
            match order {
                Order::Begin { slot, intended, unnoticed } => {
                    self.recorder.due(1);
                    self.recorder.unnoticed(now.saturating_sub(intended));
                    self.begin(slot, intended, unnoticed);
                }
                Order::Wait => self.recorder.waited(),
                Order::Close(slot) => self.close(slot),
                Order::Free(user, pause) => self.next_session(user, pause, now),
            }
        }
        self.note_in_system(now);
    }

    fn close(&mut self, id: u32) {
        // The slot may not exist yet, if its first request could not be written.
        let slot = self.slots.get_mut(id as usize);
        if let Some(slot) = slot.filter(|slot| slot.connection.phase() != ConnectionState::Closed) {
            slot.connection.close();
            self.actions.close(id);
        }
    }

    /// The session of a user of a closed workload has ended.
    fn next_session(&mut self, user: u32, pause: Nanos, now: Nanos) {
        let Traffic::Closed(users) = &mut self.traffic else {
            return;
        };
        let now = self.load_clock.load_time(now);
        if let Next::Send(at) = users.ended(user, pause, now) {
            if at < now {
                self.recorder.late();
            }
            // The next session begins at the next turn, so that sessions that fail at once do not nest.
            self.returning.push((user, at, at < now));
        }
    }
}
