//! The users of a closed workload: who sends next, and when. All times are the load's own.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::clock::time::{Nanos, nanos};
use crate::clock::timer_heap::TimerHeap;
use crate::workload::spec::{Rhythm, Think};
use crate::workload::thread_share::ThreadShare;
use crate::workload::user_count::UserCount;

/// One thread's share of the users. User `i` has slot `i`. Users are dealt out to threads in turn.
#[derive(Debug)]
pub(crate) struct Users {
    states: Vec<UserState>,
    user_count: UserCount,
    due: TimerHeap,
    share: ThreadShare,
    rhythm: Rhythm,
    random: UserRandom,
    present: u64,
    served: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserState {
    /// Not (or no longer) part of the load.
    Absent,
    /// Will send a first request at this time.
    Starting(Nanos),
    /// Thinks, and will send at this time.
    Thinking(Nanos),
    /// Waits for the answer to what was due at this time.
    Busy(Nanos),
    /// Has sent all its requests.
    Served,
}

/// A random generator for each user, seeded by its number over all threads. So the number of threads changes
/// nothing.
#[derive(Debug)]
struct UserRandom {
    seed: u64,
    streams: Vec<SmallRng>,
}

/// What falls due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// A user has to send since this time, and is busy from now on.
    Send(u32, Nanos),
    /// A user has left.
    Leave(u32),
}

/// What a user does after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Sends the next one at once. It was due at this time.
    Send(Nanos),
    /// Sends the next one after this pause.
    Later(Nanos),
    /// Has left.
    Leave,
}

impl Users {
    pub(crate) fn new(
        user_count: UserCount,
        rhythm: Rhythm,
        share: ThreadShare,
        seed: u64,
    ) -> Users {
        let mut users = Users {
            states: Vec::new(),
            user_count,
            due: TimerHeap::default(),
            share,
            rhythm,
            random: UserRandom { seed, streams: Vec::new() },
            present: 0,
            served: 0,
        };
        users.follow(user_count);
        users
    }

    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.due.next()
    }

    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Due> {
        while let Some((at, user)) = self.due.pop_due(now) {
            let state = self.states[user as usize];
            match state {
                // A user who thought during a pause learns only now of a change in it. A user who had to
                // send before leaving still does so.
                UserState::Thinking(_)
                    if !self.has(user, now) && !self.has(user, at.max(self.user_count.since())) =>
                {
                    self.part(user);
                    return Some(Due::Leave(user));
                }
                UserState::Starting(due) if due == at => self.present += 1,
                UserState::Thinking(due) if due == at => {}
                // A change has overtaken an entry that does not agree with its user.
                _ => continue,
            }
            self.states[user as usize] = UserState::Busy(at);
            return Some(Due::Send(user, at));
        }
        None
    }

    /// A request of `user` has ended. The next one begins after `pause` at the earliest.
    pub(crate) fn ended(&mut self, user: u32, pause: Nanos, now: Nanos) -> Next {
        if !self.has(user, now) {
            self.part(user);
            return Next::Leave;
        }
        let due = match (self.rhythm, self.states[user as usize]) {
            (Rhythm::Think(think), _) => now + self.think(think, user).max(pause),
            (Rhythm::Every(time), UserState::Busy(last)) => {
                (last + nanos(time)).max(if pause > 0 { now + pause } else { 0 })
            }
            (Rhythm::Every(time), _) => now + nanos(time),
        };
        if due <= now {
            self.states[user as usize] = UserState::Busy(due);
            return Next::Send(due);
        }
        self.wait_until(user, due);
        Next::Later(due - now)
    }

    /// A user who should have sent at once does so at this time.
    pub(crate) fn wait_until(&mut self, user: u32, due: Nanos) {
        self.states[user as usize] = UserState::Thinking(due);
        // Both times are needed: a user who leaves before may be called back.
        self.due.add(due, user);
        if let Some(leaves) = self.user_count.leaves_at(self.number(user)) {
            self.due.add(leaves, user);
        }
    }

    /// The user has nothing left to send.
    pub(crate) fn dismiss(&mut self, user: u32) {
        self.present -= 1;
        self.served += 1;
        self.states[user as usize] = UserState::Served;
    }

    /// Follows another number of users. Those who leave finish their request.
    pub(crate) fn follow(&mut self, user_count: UserCount) {
        self.user_count = user_count;
        let wanted = self.share.of(user_count.goal()) as usize;
        if self.states.len() < wanted {
            self.states.resize(wanted, UserState::Absent);
        }
        for user in 0..self.states.len() as u32 {
            let number = self.number(user);
            let joins = user_count.joins_at(number);
            match self.states[user as usize] {
                UserState::Absent | UserState::Starting(_) => self.expect(user, joins),
                UserState::Thinking(_) => {
                    let leaves = user_count.leaves_at(number);
                    self.due.add(leaves.unwrap_or(user_count.since()), user);
                }
                UserState::Busy(_) | UserState::Served => {}
            }
        }
        self.random.serve(wanted, self.rhythm, self.share);
    }

    /// Users who are part of the load now.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// Users for the report. It includes those who have sent all their requests, because a run of a number of
    /// requests has its users to the end.
    pub(crate) fn seen(&self) -> u64 {
        self.present + self.served
    }

    /// Requests that were due before `end`, but that their users had no time to send.
    pub(crate) fn overdue(&self, end: Nanos) -> u64 {
        let missed = |since: Nanos| match self.rhythm {
            Rhythm::Every(time) => end.saturating_sub(since + 1) / nanos(time).max(1),
            Rhythm::Think(_) => 0,
        };
        let of = |state: &UserState| match *state {
            UserState::Absent | UserState::Served => 0,
            UserState::Starting(at) | UserState::Thinking(at) => {
                if at < end {
                    1 + missed(at)
                } else {
                    0
                }
            }
            UserState::Busy(since) => missed(since),
        };
        self.states.iter().map(of).sum()
    }

    /// Whether the user is part of the load at this time.
    fn has(&self, user: u32, at: Nanos) -> bool {
        let number = self.number(user);
        self.user_count.joins_at(number).is_some_and(|joins| joins <= at)
            || self.user_count.leaves_at(number).is_some_and(|leaves| leaves > at)
    }

    /// The user leaves. A user who was called back meanwhile comes again in its turn.
    fn part(&mut self, user: u32) {
        self.present -= 1;
        self.expect(user, self.user_count.joins_at(self.number(user)));
    }

    /// When an absent user comes, if at all.
    fn expect(&mut self, user: u32, joins: Option<Nanos>) {
        self.states[user as usize] = joins.map_or(UserState::Absent, UserState::Starting);
        if let Some(joins) = joins {
            self.due.add(joins, user);
        }
    }

    fn number(&self, user: u32) -> u64 {
        u64::from(user) * self.share.threads as u64 + self.share.thread as u64
    }

    fn think(&mut self, think: Think, user: u32) -> Nanos {
        match think {
            Think::Constant(time) => nanos(time),
            Think::Uniform { least, most } => {
                let (least, most) = (nanos(least), nanos(most));
                self.random.streams[user as usize].random_range(least..=most)
            }
            Think::Exponential { mean } => {
                // 1 - u is never zero, so the logarithm is finite.
                let u: f64 = self.random.streams[user as usize].random();
                (-(1.0 - u).ln() * nanos(mean) as f64) as Nanos
            }
        }
    }
}

impl UserRandom {
    /// Makes the missing random generators, if the rhythm is random.
    fn serve(&mut self, users: usize, rhythm: Rhythm, share: ThreadShare) {
        if matches!(rhythm, Rhythm::Think(Think::Constant(_)) | Rhythm::Every(_)) {
            return;
        }
        for user in self.streams.len()..users {
            let number = (user * share.threads + share.thread) as u64;
            // The seeding spreads neighbouring seeds (SplitMix64).
            let seed = self.seed.rotate_left(32).wrapping_add(number);
            self.streams.push(SmallRng::seed_from_u64(seed));
        }
    }
}

#[cfg(test)]
mod tests;
