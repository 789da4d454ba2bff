//! Users against a plain account of who does what, whatever happens and in whatever order.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::time::{MILLISECOND, SECOND};
use crate::workload::rate::Rate;

#[derive(Debug, Clone, Copy)]
enum Step {
    Pass(Nanos),
    /// The request of one of the busy users ends; the next one begins after this at the earliest.
    End(usize, Nanos),
    Towards(u64),
    Ramp(Option<Rate>),
    Pause,
    Resume,
}

/// What a user does, by all that was said to it and by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// Is to come at this time.
    Called(Nanos),
    Thinks(Nanos),
    Waits,
}

struct Account {
    threads: Vec<Users>,
    user_count: UserCount,
    now: Nanos,
    paused: bool,
    /// By number of user.
    doing: Vec<Doing>,
}

const MOST: u64 = 8;

fn step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![4 => Just(0), 1 => 0..SECOND];
    prop_oneof![
        4 => (0..3 * SECOND).prop_map(Step::Pass),
        8 => (0..MOST as usize, pause).prop_map(|(user, pause)| Step::End(user, pause)),
        2 => (0..=MOST).prop_map(Step::Towards),
        1 => proptest::option::of(0.2..20.0).prop_map(Step::Ramp),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
    ]
}

fn rhythm() -> impl Strategy<Value = Rhythm> {
    let ms = Duration::from_millis;
    prop_oneof![
        Just(Rhythm::Think(Think::Constant(Duration::ZERO))),
        (0..2000_u64).prop_map(move |time| Rhythm::Think(Think::Constant(ms(time)))),
        (0..2000_u64).prop_map(move |most| {
            Rhythm::Think(Think::Uniform { least: Duration::ZERO, most: ms(most) })
        }),
        (1..2000_u64).prop_map(move |mean| Rhythm::Think(Think::Exponential { mean: ms(mean) })),
        (1..2000_u64).prop_map(move |time| Rhythm::Every(ms(time))),
    ]
}

impl Account {
    fn new(users: u64, ramp: Option<Rate>, rhythm: Rhythm, threads: usize) -> Account {
        let user_count = UserCount::new(users, ramp, 0);
        let thread = |thread| Users::new(user_count, rhythm, ThreadShare { thread, threads }, 1);
        let threads = (0..threads).map(thread).collect();
        let doing = vec![Doing::Nothing; MOST as usize];
        let mut account = Account { threads, user_count, now: 0, paused: false, doing };
        account.call();
        account.settle();
        account
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Pass(_) if self.paused => {}
            Step::Pass(time) => self.pass_until(self.now + time),
            Step::End(user, pause) if self.doing[user] == Doing::Waits => self.end(user, pause),
            Step::End(..) => {}
            Step::Towards(users) => self.follow(self.user_count.towards(users, self.now)),
            Step::Ramp(ramp) => self.follow(self.user_count.at_ramp(ramp, self.now)),
            Step::Pause => self.paused = true,
            Step::Resume => self.paused = false,
        }
        self.settle();
    }

    fn pass_until(&mut self, end: Nanos) {
        while let Some(due) = self.threads.iter().filter_map(Users::next_due).min()
            && due <= end
        {
            assert!(due > self.now, "what was due is done");
            self.now = due;
            self.settle();
        }
        self.now = end;
    }

    fn end(&mut self, number: usize, pause: Nanos) {
        let (thread, user) = (number % self.threads.len(), number / self.threads.len());
        let wanted = self.wants(number);
        let later = self.away(number);
        let users = &mut self.threads[thread];
        self.doing[number] = match users.ended(user as u32, pause, self.now) {
            Next::Leave => {
                assert!(!wanted, "{number} leaves, and is wanted");
                later
            }
            _ if !wanted => panic!("{number} stays, and is to leave"),
            Next::Later(time) => {
                assert!(time >= pause.max(1));
                Doing::Thinks(self.now + time)
            }
            // The generator does the same in a pause.
            Next::Send(due) if self.paused => {
                users.wait_until(user as u32, due);
                Doing::Thinks(due)
            }
            Next::Send(due) => {
                assert!(due <= self.now && pause == 0);
                Doing::Waits
            }
        };
    }

    fn follow(&mut self, user_count: UserCount) {
        self.user_count = user_count;
        self.threads.iter_mut().for_each(|users| users.follow(user_count));
        self.call();
    }

    /// Calls everybody who is not there, as the number of users has it now.
    fn call(&mut self) {
        for number in 0..self.doing.len() {
            if let Doing::Nothing | Doing::Called(_) = self.doing[number] {
                self.doing[number] = self.away(number);
            }
        }
    }

    fn away(&self, number: usize) -> Doing {
        self.user_count.joins_at(number as u64).map_or(Doing::Nothing, Doing::Called)
    }

    /// Lets everything happen that is due, and compares.
    fn settle(&mut self) {
        if self.paused {
            return;
        }
        for thread in 0..self.threads.len() {
            while let Some(due) = self.threads[thread].pop_due(self.now) {
                self.happened(thread, due);
            }
        }
        for number in 0..self.doing.len() {
            let fits = match self.doing[number] {
                Doing::Waits => true,
                Doing::Thinks(due) => self.wants(number) && due > self.now,
                Doing::Called(joins) => joins > self.now,
                Doing::Nothing => true,
            };
            assert!(fits, "{number} at {}: {:?}", self.now, self.doing[number]);
        }
        let present: u64 = self.threads.iter().map(Users::present).sum();
        let here = self.doing.iter();
        let here = here.filter(|doing| matches!(doing, Doing::Thinks(_) | Doing::Waits));
        assert_eq!(present, here.count() as u64);
    }

    fn happened(&mut self, thread: usize, due: Due) {
        let number = |user: u32| user as usize * self.threads.len() + thread;
        match due {
            Due::Send(user, at) => {
                let number = number(user);
                assert!(self.wants(number), "{number} sends, and is to leave");
                match self.doing[number] {
                    Doing::Nothing => panic!("{number} comes uncalled"),
                    Doing::Called(due) | Doing::Thinks(due) => assert_eq!(due, at),
                    Doing::Waits => panic!("{number} sends twice"),
                }
                self.doing[number] = Doing::Waits;
            }
            Due::Leave(user) => {
                let number = number(user);
                assert!(!self.wants(number), "{number} leaves, and is wanted");
                assert!(matches!(self.doing[number], Doing::Thinks(_)), "{number} leaves");
                self.doing[number] = self.away(number);
            }
        }
    }

    /// Whether the load has this user now.
    fn wants(&self, number: usize) -> bool {
        let (joins, leaves) =
            (self.user_count.joins_at(number as u64), self.user_count.leaves_at(number as u64));
        joins.is_some_and(|at| at <= self.now) || leaves.is_some_and(|at| at > self.now)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_user_is_lost_and_none_comes_twice(
        users in 0..=MOST,
        ramp in proptest::option::of(0.2..20.0),
        rhythm in rhythm(),
        threads in 1..4_usize,
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut account = Account::new(users, ramp, rhythm, threads);
        steps.into_iter().for_each(|step| account.take(step));
        // Called back to nobody, everybody leaves once the requests have ended.
        account.take(Step::Resume);
        account.take(Step::Towards(0));
        account.take(Step::Pass(100 * SECOND));
        (0..MOST as usize).for_each(|user| account.take(Step::End(user, MILLISECOND)));
        prop_assert!(account.doing.iter().all(|doing| *doing == Doing::Nothing));
    }
}
