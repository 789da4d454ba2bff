//! Users of a closed workload, one request at a time.

use std::time::Duration;

use super::*;
use crate::clock::time::SECOND;
use crate::workload::rate::Rate;

const ALONE: ThreadShare = ThreadShare { thread: 0, threads: 1 };

fn thinking(think: Nanos) -> Rhythm {
    Rhythm::Think(Think::Constant(Duration::from_nanos(think)))
}

fn users(count: u64, ramp: Option<Rate>, rhythm: Rhythm) -> Users {
    Users::new(UserCount::new(count, ramp, 0), rhythm, ALONE, 1)
}

fn all_due(users: &mut Users, now: Nanos) -> Vec<Due> {
    std::iter::from_fn(|| users.pop_due(now)).collect()
}

#[test]
fn ramp_starts_users_one_by_one_over_all_threads() {
    let mut starts: Vec<Nanos> = (0..2)
        .flat_map(|thread| {
            let user_count = UserCount::new(5, Some(10.0), SECOND);
            let share = ThreadShare { thread, threads: 2 };
            let mut users = Users::new(user_count, thinking(0), share, 1);
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
                let share = ThreadShare { thread, threads };
                let user_count = UserCount::new(6, None, 0);
                let mut users = Users::new(user_count, Rhythm::Think(think), share, 9);
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
    users.follow(users.user_count.towards(1, 20));
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
    users.follow(users.user_count.at_ramp(Some(1.0), 0).towards(0, SECOND));
    assert_eq!(all_due(&mut users, SECOND), [Due::Leave(2)]);
    assert_eq!(all_due(&mut users, 2 * SECOND), [Due::Leave(1)]);
    // Called back before it is gone, the last one goes on as if nothing had been.
    users.follow(users.user_count.towards(1, 2 * SECOND + SECOND / 2));
    assert_eq!(all_due(&mut users, 20 * SECOND), [Due::Send(0, 10 * SECOND)]);
    assert_eq!(users.present(), 1);
}

#[test]
fn a_thinking_user_who_is_called_back_sends_again() {
    let mut users = users(2, Some(0.1), thinking(30 * SECOND));
    users.follow(users.user_count.at_ramp(None, 0));
    all_due(&mut users, 0);
    users.follow(users.user_count.at_ramp(Some(0.1), 0).towards(0, 0));
    // User 0 is to leave after 10 s, in the middle of its thoughts.
    assert_eq!(users.ended(0, 0, SECOND), Next::Later(30 * SECOND));
    users.follow(users.user_count.towards(1, 2 * SECOND));
    assert_eq!(all_due(&mut users, 40 * SECOND), [Due::Send(0, 31 * SECOND)]);
}

#[test]
fn more_users_start_at_once_without_a_ramp() {
    let mut users = users(2, Some(1.0), thinking(0));
    assert_eq!(all_due(&mut users, 0).len(), 1);
    users.follow(users.user_count.at_ramp(None, 10).towards(3, 10));
    assert_eq!(all_due(&mut users, 10), [Due::Send(1, 10), Due::Send(2, 10)]);
    assert_eq!(all_due(&mut users, 2 * SECOND), []);
    assert_eq!(users.present(), 3);
}

mod properties;
