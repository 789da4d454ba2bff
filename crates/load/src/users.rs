//! The users of a closed workload: who sends next, and when. All times are the load's.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::agenda::Agenda;
use crate::clock::{Nanos, nanos};
use crate::headcount::Headcount;
use crate::schedule::Share;
use crate::workload::{Rhythm, Think};

/// One thread's share of the users. User `i` has slot `i`; users are dealt out to threads in turn.
#[derive(Debug)]
pub(crate) struct Users {
    states: Vec<UserState>,
    headcount: Headcount,
    due: Agenda,
    share: Share,
    rhythm: Rhythm,
    chance: Chance,
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
    /// Has sent its share: nothing is left.
    Served,
}

/// A stream of random numbers for each user, by its number over all threads: how many threads
/// there are changes nothing.
#[derive(Debug)]
struct Chance {
    seed: u64,
    streams: Vec<SmallRng>,
}

/// What falls due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// A user is to send, since this time; it is busy from now on.
    Send(u32, Nanos),
    /// A user has left.
    Leave(u32),
}

/// What a user does after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Sends the next one at once; it was due at this time.
    Send(Nanos),
    /// Sends it after so long.
    Later(Nanos),
    /// Has left.
    Leave,
}

impl Users {
    pub(crate) fn new(headcount: Headcount, rhythm: Rhythm, share: Share, seed: u64) -> Users {
        let mut users = Users {
            states: Vec::new(),
            headcount,
            due: Agenda::default(),
            share,
            rhythm,
            chance: Chance { seed, streams: Vec::new() },
            present: 0,
            served: 0,
        };
        users.follow(headcount);
        users
    }

    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.due.next()
    }

    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Due> {
        while let Some((at, user)) = self.due.pop_due(now) {
            let state = self.states[user as usize];
            match state {
                // Who thought during a pause is told only now of a change that came in it. Who was
                // to send before leaving, and is late, does so.
                UserState::Thinking(_)
                    if !self.has(user, now) && !self.has(user, at.max(self.headcount.since())) =>
                {
                    self.part(user);
                    return Some(Due::Leave(user));
                }
                UserState::Starting(due) if due == at => self.present += 1,
                UserState::Thinking(due) if due == at => {}
                // An entry that no longer agrees with its user was overtaken by a change.
                _ => continue,
            }
            self.states[user as usize] = UserState::Busy(at);
            return Some(Due::Send(user, at));
        }
        None
    }

    /// A request of `user` has ended; `pause` is the least time before the next one.
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

    /// A user who was to send at once does so at this time.
    pub(crate) fn wait_until(&mut self, user: u32, due: Nanos) {
        self.states[user as usize] = UserState::Thinking(due);
        // Both: who is to leave before may be called back.
        self.due.add(due, user);
        if let Some(leaves) = self.headcount.leaves_at(self.number(user)) {
            self.due.add(leaves, user);
        }
    }

    /// Nothing is left for the user to send.
    pub(crate) fn dismiss(&mut self, user: u32) {
        self.present -= 1;
        self.served += 1;
        self.states[user as usize] = UserState::Served;
    }

    /// From now on there are so many users. Those who leave finish their request.
    pub(crate) fn follow(&mut self, headcount: Headcount) {
        self.headcount = headcount;
        let wanted = self.share.of(headcount.goal()) as usize;
        if self.states.len() < wanted {
            self.states.resize(wanted, UserState::Absent);
        }
        for user in 0..self.states.len() as u32 {
            let number = self.number(user);
            let joins = headcount.joins_at(number);
            match self.states[user as usize] {
                UserState::Absent | UserState::Starting(_) => self.expect(user, joins),
                UserState::Thinking(_) => {
                    let leaves = headcount.leaves_at(number);
                    self.due.add(leaves.unwrap_or(headcount.since()), user);
                }
                UserState::Busy(_) | UserState::Served => {}
            }
        }
        self.chance.serve(wanted, self.rhythm, self.share);
    }

    /// Users who are part of the load now.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// The same with those who have sent all that there was: a run of so many requests is one of its
    /// users to the end.
    pub(crate) fn seen(&self) -> u64 {
        self.present + self.served
    }

    /// Requests that were due before `end` and for which their users had no time.
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

    /// Whether the load has the user at this time.
    fn has(&self, user: u32, at: Nanos) -> bool {
        let number = self.number(user);
        self.headcount.joins_at(number).is_some_and(|joins| joins <= at)
            || self.headcount.leaves_at(number).is_some_and(|leaves| leaves > at)
    }

    /// The user leaves. One who was called back meanwhile comes again in its turn.
    fn part(&mut self, user: u32) {
        self.present -= 1;
        self.expect(user, self.headcount.joins_at(self.number(user)));
    }

    /// The user, who is not there, comes at this time, if at all.
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
                self.chance.streams[user as usize].random_range(least..=most)
            }
            Think::Exponential { mean } => {
                // 1 - u is never zero, so the logarithm is finite.
                let u: f64 = self.chance.streams[user as usize].random();
                (-(1.0 - u).ln() * nanos(mean) as f64) as Nanos
            }
        }
    }
}

impl Chance {
    /// Makes the streams of users who have none, if there is anything random about them.
    fn serve(&mut self, users: usize, rhythm: Rhythm, share: Share) {
        if matches!(rhythm, Rhythm::Think(Think::Constant(_)) | Rhythm::Every(_)) {
            return;
        }
        for user in self.streams.len()..users {
            let number = (user * share.threads + share.thread) as u64;
            // The seeding itself spreads neighbouring seeds (SplitMix64).
            let seed = self.seed.rotate_left(32).wrapping_add(number);
            self.streams.push(SmallRng::seed_from_u64(seed));
        }
    }
}

#[cfg(test)]
#[path = "users_tests.rs"]
mod account;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::SECOND;
    use crate::workload::Rate;

    const ALONE: Share = Share { thread: 0, threads: 1 };

    fn thinking(think: Nanos) -> Rhythm {
        Rhythm::Think(Think::Constant(Duration::from_nanos(think)))
    }

    fn users(count: u64, ramp: Option<Rate>, rhythm: Rhythm) -> Users {
        Users::new(Headcount::new(count, ramp, 0), rhythm, ALONE, 1)
    }

    fn all_due(users: &mut Users, now: Nanos) -> Vec<Due> {
        std::iter::from_fn(|| users.pop_due(now)).collect()
    }

    #[test]
    fn ramp_starts_users_one_by_one_over_all_threads() {
        let mut starts: Vec<Nanos> = (0..2)
            .flat_map(|thread| {
                let headcount = Headcount::new(5, Some(10.0), SECOND);
                let share = Share { thread, threads: 2 };
                let mut users = Users::new(headcount, thinking(0), share, 1);
                all_due(&mut users, 10 * SECOND)
            })
            .map(|due| match due {
                Due::Send(_, at) => at,
                Due::Leave(_) => panic!("nobody leaves"),
            })
            .collect();
        starts.sort_unstable();
        assert_eq!(starts, [10, 11, 12, 13, 14].map(|tenth| tenth * SECOND / 10));
    }

    #[test]
    fn users_think_between_requests() {
        let mut users = users(1, None, thinking(100));
        assert_eq!(users.pop_due(0), Some(Due::Send(0, 0)));
        assert_eq!(users.ended(0, 0, 50), Next::Later(100));
        assert_eq!(users.next_due(), Some(150));
        assert_eq!(users.pop_due(149), None);
        assert_eq!(users.pop_due(160), Some(Due::Send(0, 150)));
        assert_eq!(users.ended(0, 1000, 200), Next::Later(1000));
        assert_eq!(users.next_due(), Some(1200));
    }

    #[test]
    fn thinking_has_its_distribution_whatever_the_threads() {
        let ms = Duration::from_millis;
        let uniform = Think::Uniform { least: ms(100), most: ms(300) };
        for (think, deviation) in
            [(uniform, 200.0 / 12_f64.sqrt()), (Think::Exponential { mean: ms(200) }, 200.0)]
        {
            let drawn = |threads: usize| {
                let mut drawn = vec![Vec::new(); 6];
                for thread in 0..threads {
                    let share = Share { thread, threads };
                    let headcount = Headcount::new(6, None, 0);
                    let mut users = Users::new(headcount, Rhythm::Think(think), share, 9);
                    for user in 0..share.of(6) as u32 {
                        let mine = &mut drawn[user as usize * threads + thread];
                        mine.extend((0..5000).map(|_| users.think(think, user)));
                    }
                }
                drawn
            };
            let alone = drawn(1);
            assert_eq!(alone, drawn(4));
            assert_ne!(alone[0], alone[1]);
            let all: Vec<f64> = alone.iter().flatten().map(|t| *t as f64 / 1e6).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / all.len() as f64;
            assert!((mean / 200.0 - 1.0).abs() < 0.03, "{think:?} {mean}");
            assert!((variance.sqrt() / deviation - 1.0).abs() < 0.05, "{think:?}");
        }
    }

    #[test]
    fn paced_users_keep_time_and_what_they_miss_is_known() {
        let mut users = users(1, None, Rhythm::Every(Duration::from_nanos(100)));
        assert_eq!(users.pop_due(0), Some(Due::Send(0, 0)));
        assert_eq!(users.ended(0, 0, 30), Next::Later(70));
        assert_eq!(users.pop_due(110), Some(Due::Send(0, 100)), "the lateness is the generator's");
        assert_eq!(users.ended(0, 0, 350), Next::Send(200), "at once, but due long ago");
        assert_eq!(users.ended(0, 0, 360), Next::Send(300));
        assert_eq!(users.overdue(350), 0);
        assert_eq!(users.overdue(650), 3, "those of 400, 500 and 600");
        assert_eq!(users.ended(0, 0, 390), Next::Later(10));
        assert_eq!(users.overdue(401), 1);
    }

    #[test]
    fn fewer_users_leave_at_once_or_after_their_request() {
        let mut users = users(4, None, thinking(100));
        all_due(&mut users, 0);
        users.ended(3, 0, 10);
        users.follow(users.headcount.towards(1, 20));
        assert_eq!(all_due(&mut users, 20), [Due::Leave(3)]);
        assert_eq!(users.ended(2, 0, 30), Next::Leave);
        assert_eq!(users.ended(0, 0, 30), Next::Later(100));
        assert_eq!(users.present(), 2, "user 1 is still busy");
        assert_eq!(all_due(&mut users, 1000), [Due::Send(0, 130)]);
    }

    #[test]
    fn users_leave_one_by_one_down_a_ramp() {
        let mut users = users(3, None, thinking(10 * SECOND));
        all_due(&mut users, 0);
        (0..3).for_each(|user| assert_eq!(users.ended(user, 0, 0), Next::Later(10 * SECOND)));
        users.follow(users.headcount.at_ramp(Some(1.0), 0).towards(0, SECOND));
        assert_eq!(all_due(&mut users, SECOND), [Due::Leave(2)]);
        assert_eq!(all_due(&mut users, 2 * SECOND), [Due::Leave(1)]);
        // Called back before it is gone, the last one goes on as if nothing had been.
        users.follow(users.headcount.towards(1, 2 * SECOND + SECOND / 2));
        assert_eq!(all_due(&mut users, 20 * SECOND), [Due::Send(0, 10 * SECOND)]);
        assert_eq!(users.present(), 1);
    }

    #[test]
    fn who_was_to_leave_while_thinking_and_stays_after_all_sends_again() {
        let mut users = users(2, Some(0.1), thinking(30 * SECOND));
        users.follow(users.headcount.at_ramp(None, 0));
        all_due(&mut users, 0);
        users.follow(users.headcount.at_ramp(Some(0.1), 0).towards(0, 0));
        // User 0 is to leave after 10 s, in the middle of its thoughts.
        assert_eq!(users.ended(0, 0, SECOND), Next::Later(30 * SECOND));
        users.follow(users.headcount.towards(1, 2 * SECOND));
        assert_eq!(all_due(&mut users, 40 * SECOND), [Due::Send(0, 31 * SECOND)]);
    }

    #[test]
    fn more_users_start_at_once_without_a_ramp() {
        let mut users = users(2, Some(1.0), thinking(0));
        assert_eq!(all_due(&mut users, 0).len(), 1);
        users.follow(users.headcount.at_ramp(None, 10).towards(3, 10));
        assert_eq!(all_due(&mut users, 10), [Due::Send(1, 10), Due::Send(2, 10)]);
        assert_eq!(all_due(&mut users, 2 * SECOND), []);
        assert_eq!(users.present(), 3);
    }
}
