//! The users of a closed workload: who sends next, and when.

use std::time::Duration;

use crate::agenda::Agenda;
use crate::clock::{Nanos, SECOND, nanos};
use crate::schedule::Share;
use crate::workload::Rate;

/// One thread's share of the users. User `i` has slot `i`; users are dealt out to threads in turn.
#[derive(Debug)]
pub(crate) struct Users {
    states: Vec<UserState>,
    /// Users that should be there now: the first so many.
    wanted: usize,
    due: Agenda,
    share: Share,
    think: Nanos,
    clockwork: Clockwork,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserState {
    /// Not (or no longer) part of the load.
    Absent,
    /// Will send a first request at this time.
    Starting(Nanos),
    /// Thinks, and will send at this time.
    Thinking(Nanos),
    /// Waits for an answer.
    Busy,
    /// Was due while the load was paused.
    Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clockwork {
    Running,
    Paused,
}

/// What a user does after a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Sends the next one at once.
    Send,
    /// Sends it later.
    Later,
    /// Has left.
    Leave,
}

impl Users {
    pub(crate) fn new(
        users: usize,
        ramp: Option<Rate>,
        think: Duration,
        share: Share,
        start: Nanos,
    ) -> Users {
        let mut this = Users {
            states: Vec::new(),
            wanted: 0,
            due: Agenda::default(),
            share,
            think: nanos(think),
            clockwork: Clockwork::Running,
        };
        this.wanted = share.of(users as u64) as usize;
        for user in 0..this.wanted {
            let position = (user * share.threads + share.thread) as f64;
            let delay = ramp.map_or(0, |rate| (position / rate * SECOND as f64) as Nanos);
            let at = start + delay;
            this.states.push(UserState::Starting(at));
            this.due.add(at, user as u32);
        }
        this
    }

    pub(crate) fn next_due(&self) -> Option<Nanos> {
        match self.clockwork {
            Clockwork::Running => self.due.next(),
            Clockwork::Paused => None,
        }
    }

    /// A user who is due, and since when; the user is busy from now on.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(u32, Nanos)> {
        if self.clockwork == Clockwork::Paused {
            return None;
        }
        while let Some((at, user)) = self.due.pop_due(now) {
            let state = &mut self.states[user as usize];
            // An entry that no longer agrees with its user was overtaken by a change.
            if [UserState::Starting(at), UserState::Thinking(at)].contains(state) {
                *state = UserState::Busy;
                return Some((user, at));
            }
        }
        None
    }

    /// A request of `user` has ended; `pause` is the least time before the next one.
    pub(crate) fn ended(&mut self, user: u32, pause: Nanos, now: Nanos) -> Next {
        let index = user as usize;
        let wait = self.think.max(pause);
        let (state, next) = match self.clockwork {
            _ if index >= self.wanted => (UserState::Absent, Next::Leave),
            Clockwork::Paused => (UserState::Held, Next::Later),
            Clockwork::Running if wait == 0 => (UserState::Busy, Next::Send),
            Clockwork::Running => {
                self.due.add(now + wait, user);
                (UserState::Thinking(now + wait), Next::Later)
            }
        };
        self.states[index] = state;
        next
    }

    /// The user sends nothing any more.
    pub(crate) fn dismiss(&mut self, user: u32) {
        self.states[user as usize] = UserState::Absent;
    }

    /// Changes the number of users (of the whole run) at once, ramp or not. Returns those who
    /// leave now; busy ones leave after their request.
    pub(crate) fn set(&mut self, users: u64, now: Nanos) -> Vec<u32> {
        self.wanted = self.share.of(users) as usize;
        if self.states.len() < self.wanted {
            self.states.resize(self.wanted, UserState::Absent);
        }
        let mut leaving = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate() {
            let user = index as u32;
            match *state {
                UserState::Busy => {}
                UserState::Absent if index >= self.wanted => {}
                _ if index >= self.wanted => {
                    *state = UserState::Absent;
                    leaving.push(user);
                }
                UserState::Absent | UserState::Starting(_) => {
                    *state = UserState::Starting(now);
                    self.due.add(now, user);
                }
                UserState::Thinking(_) | UserState::Held => {}
            }
        }
        leaving
    }

    pub(crate) fn pause(&mut self) {
        self.clockwork = Clockwork::Paused;
    }

    pub(crate) fn resume(&mut self, now: Nanos) {
        self.clockwork = Clockwork::Running;
        for (index, state) in self.states.iter_mut().enumerate() {
            let overdue = match *state {
                UserState::Held => true,
                UserState::Starting(at) | UserState::Thinking(at) => at < now,
                UserState::Absent | UserState::Busy => false,
            };
            if overdue {
                // Due from now: nobody meant to send during the pause.
                *state = UserState::Thinking(now);
                self.due.add(now, index as u32);
            }
        }
    }

    /// Users who are part of the load now.
    pub(crate) fn present(&self) -> u64 {
        let absent =
            |state: &&UserState| !matches!(state, UserState::Absent | UserState::Starting(_));
        self.states.iter().filter(absent).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Share = Share { thread: 0, threads: 1 };

    fn users(count: usize, ramp: Option<Rate>, think: Nanos) -> Users {
        Users::new(count, ramp, Duration::from_nanos(think), ALONE, 0)
    }

    fn all_due(users: &mut Users, now: Nanos) -> Vec<(u32, Nanos)> {
        std::iter::from_fn(|| users.pop_due(now)).collect()
    }

    #[test]
    fn ramp_starts_users_one_by_one_over_all_threads() {
        let mut starts: Vec<Nanos> = (0..2)
            .flat_map(|thread| {
                let share = Share { thread, threads: 2 };
                let mut users = Users::new(5, Some(10.0), Duration::ZERO, share, SECOND);
                all_due(&mut users, 10 * SECOND)
            })
            .map(|(_, at)| at)
            .collect();
        starts.sort_unstable();
        let wanted = [10, 11, 12, 13, 14].map(|tenth| tenth * SECOND / 10);
        assert_eq!(starts, wanted);
    }

    #[test]
    fn users_think_between_requests() {
        let mut users = users(1, None, 100);
        assert_eq!(users.pop_due(0), Some((0, 0)));
        assert_eq!(users.ended(0, 0, 50), Next::Later);
        assert_eq!(users.next_due(), Some(150));
        assert_eq!(users.pop_due(149), None);
        assert_eq!(users.pop_due(160), Some((0, 150)));
        assert_eq!(users.ended(0, 1000, 200), Next::Later);
        assert_eq!(users.next_due(), Some(1200));
    }

    #[test]
    fn fewer_users_leave_at_once_or_after_their_request() {
        let mut users = users(4, None, 100);
        all_due(&mut users, 0);
        users.ended(3, 0, 10);
        assert_eq!(users.set(1, 20), [3]);
        assert_eq!(users.ended(2, 0, 30), Next::Leave);
        assert_eq!(users.ended(0, 0, 30), Next::Later);
        assert_eq!(users.present(), 2, "user 1 is still busy");
        assert_eq!(all_due(&mut users, 1000), [(0, 130)]);
    }

    #[test]
    fn more_users_start_at_once_even_within_a_ramp() {
        let mut users = users(2, Some(1.0), 0);
        assert_eq!(all_due(&mut users, 0).len(), 1);
        assert!(users.set(3, 10).is_empty());
        assert_eq!(all_due(&mut users, 10), [(1, 10), (2, 10)]);
        assert_eq!(all_due(&mut users, 2 * SECOND), []);
        assert_eq!(users.present(), 3);
    }

    #[test]
    fn a_pause_holds_everybody_and_hides_no_lateness() {
        let mut users = users(2, None, 100);
        all_due(&mut users, 0);
        users.ended(0, 0, 0);
        users.pause();
        assert_eq!(users.next_due(), None);
        assert_eq!(users.pop_due(500), None);
        assert_eq!(users.ended(1, 0, 500), Next::Later);
        users.resume(900);
        assert_eq!(all_due(&mut users, 900), [(0, 900), (1, 900)]);
    }
}
