//! The users and arrivals of the generator: who sends next, and when.

use super::{Generator, Traffic};
use crate::clock::time::Nanos;
use crate::engine::request_source::RequestSource;
use crate::http::http1::connection::ConnectionState;
use crate::workload::arrivals::Place;
use crate::workload::users::{Due, Next};

impl Generator {
    pub(super) fn start_users(&mut self, now: Nanos) {
        if !self.load_clock.is_paused() {
            for (user, at, overdue) in std::mem::take(&mut self.returning) {
                self.start_user(user, self.load_clock.real(at).unwrap_or(now), !overdue, now);
            }
        }
        while !self.load_clock.is_paused() {
            let Traffic::Closed(users) = &mut self.traffic else {
                return;
            };
            let present = users.present();
            match users.pop_due(self.load_clock.load_time(now)) {
                Some(Due::Send(user, at)) => {
                    let at = self.load_clock.real(at).unwrap_or(now);
                    if users.present() > present {
                        self.recorder.unnoticed(now.saturating_sub(at));
                    }
                    self.start_user(user, at, true, now);
                }
                Some(Due::Leave(user)) => self.user_left(user),
                None => return,
            }
        }
    }

    pub(super) fn start_user(&mut self, user: u32, due: Nanos, unnoticed: bool, now: Nanos) {
        if self.take_quota() {
            if let RequestSource::Sessions(_) = self.source {
                return self.enter(Some(user), due, !unnoticed, now);
            }
            self.recorder.due(1);
            self.begin(user, due, unnoticed);
        } else if let Traffic::Closed(users) = &mut self.traffic {
            users.dismiss(user);
        }
    }

    pub(super) fn start_arrivals(&mut self, now: Nanos) {
        while !self.load_clock.is_paused()
            && let Traffic::Open(arrivals) = &mut self.traffic
            && let Some((id, intended)) = arrivals.match_up()
        {
            self.begin(id, intended, false);
        }
        while self.quota != Some(0) && !self.load_clock.is_paused() {
            let Traffic::Open(arrivals) = &mut self.traffic else {
                return;
            };
            let Some((due, limit)) = arrivals.pop_due(self.load_clock.load_time(now)) else {
                return;
            };
            let intended = self.load_clock.real(due).unwrap_or(now);
            if let RequestSource::Sessions(_) = self.source {
                self.admit(intended, limit, now);
                continue;
            }
            let place = arrivals.place(intended, limit);
            if place == Place::Dropped {
                self.recorder.dropped();
                continue;
            }
            self.take_quota();
            self.recorder.due(1);
            self.recorder.unnoticed(now.saturating_sub(intended));
            match place {
                Place::Slot(id) => self.begin(id, intended, true),
                Place::Waits | Place::Shed | Place::Dropped => {
                    // The generator noticed it in time. From here on the target or the limit is slow.
                    self.recorder.lag(now - intended);
                    self.recorder.waited();
                }
            }
        }
    }

    pub(super) fn take_quota(&mut self) -> bool {
        match &mut self.quota {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    /// The slot is free. Finds what comes next on it.
    pub(super) fn proceed(&mut self, id: u32, pause: Nanos, now: Nanos) {
        self.busy -= 1;
        match &mut self.traffic {
            Traffic::Closed(users) => {
                match users.ended(id, pause, self.load_clock.load_time(now)) {
                    Next::Send(at) => match self.load_clock.real(at) {
                        Some(at) => {
                            // The target is late, not the generator.
                            let is_late = at < now;
                            if is_late {
                                self.recorder.late();
                            }
                            self.start_user(id, at, !is_late, now);
                        }
                        None => users.wait_until(id, at),
                    },
                    Next::Later(pause) => self.recorder.pauses(pause),
                    Next::Leave => self.user_left(id),
                }
            }
            Traffic::Open(arrivals) => {
                let open = self.slots[id as usize].connection.phase() == ConnectionState::Idle;
                let next = if self.load_clock.is_paused() { None } else { arrivals.pop_backlog() };
                match next {
                    Some(intended) => self.begin(id, intended, false),
                    None if open => arrivals.free_open(id),
                    None => arrivals.free_closed(id),
                }
            }
        }
        self.note_in_system(now);
    }

    pub(super) fn note_in_system(&mut self, now: Nanos) {
        let count = match &self.traffic {
            _ if matches!(self.source, RequestSource::Sessions(_)) => self.busy,
            Traffic::Closed(users) => users.present(),
            Traffic::Open(arrivals) => arrivals.in_system(),
        };
        self.recorder.in_system(count, now);
    }

    /// A user has left. Its connection is closed.
    pub(super) fn user_left(&mut self, user: u32) {
        if let RequestSource::Sessions(_) = self.source {
            // Its last session has closed its connections.
            return;
        }
        if let Some(slot) = self.slots.get_mut(user as usize) {
            slot.connection.close();
            self.actions.close(user);
        }
    }
}
