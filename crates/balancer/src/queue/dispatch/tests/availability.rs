//! Who serves while backends go down and come back.

use super::*;
use crate::backends::counters::BackendFault;
use crate::backends::health::BackendHealth;
use crate::config::backend::Role;
use crate::config::health::ActiveHealth;

const SECOND: Duration = Duration::from_secs(1);

fn refused(d: &mut Plain, id: BackendId, now: Instant) -> Freed {
    d.release(id, 0, Report::failed(BackendFault::Connect, now, now))
}

/// Three requests that could not connect.
fn take_down(d: &mut Plain, id: BackendId, now: Instant) {
    for last in [false, false, true] {
        let index = d.member(id).unwrap().id.index;
        d.grant(index);
        assert_eq!(refused(d, id, now).changes.health_changes.len(), usize::from(last));
    }
}

#[test]
fn a_backend_that_fails_rests_and_is_tried_with_one_request() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 4), ("b", 4)]);
        let now = Instant::now();
        take_down(&mut d, ids[0], now);
        for _ in 0..4 {
            assert_eq!(granted(ask(&mut d)).backend, "b", "{policy}");
        }
        let waits = waiting(ask(&mut d));
        assert!(d.tick(now + SECOND / 2).health_changes.is_empty());
        let health_changes = d.tick(now + SECOND).health_changes;
        assert_eq!(health_changes[0].1.health, BackendHealth::Trial);
        assert_eq!(claim(&mut d, &waits), Some("a"), "{policy}");
        waiting(ask(&mut d));
        let health_changes =
            d.release(ids[0], 0, Report::answered(now, now, false)).changes.health_changes;
        assert_eq!(health_changes[0].1.health, BackendHealth::Up, "{policy}");
        assert_eq!(d.member(ids[0]).unwrap().room(), 4, "{policy}");
    }
}

/// It may never answer.
#[test]
fn no_request_waits_for_a_recovering_backend_while_another_is_free() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 4), ("b", 99)]);
        let now = Instant::now();
        take_down(&mut d, ids[0], now);
        d.tick(now + SECOND);
        d.grant(ids[0].index);
        for key in 0..40 {
            let asked = d.ask(RequestHints { key: Some(key), ..RequestHints::default() });
            assert_eq!(granted(asked).backend, "b", "{policy}");
        }
    }
}

#[test]
fn a_rest_ends_for_who_is_paused_meanwhile_too() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 1)]);
    let now = Instant::now();
    take_down(&mut d, ids[0], now);
    d.set_slots(ids[0], 0);
    d.tick(now);
    d.set_slots(ids[0], 1);
    let waits = waiting(ask(&mut d));
    d.tick(now + SECOND);
    assert_eq!(claim(&mut d, &waits), Some("a"));
}

#[test]
fn requests_that_wait_for_a_failed_backend_move_on() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1), ("b", 1)]);
        granted(ask(&mut d));
        granted(ask(&mut d));
        let tickets = [waiting(ask(&mut d)), waiting(ask(&mut d))];
        let now = Instant::now();
        d.member_mut(ids[0]).unwrap().in_flight = 3;
        for _ in 0..3 {
            refused(&mut d, ids[0], now);
        }
        d.set_slots(ids[1], 9);
        assert!(tickets.iter().all(|ticket| claim(&mut d, ticket).is_some()), "{policy}");
    }
}

#[test]
fn a_backup_serves_for_one_that_is_down() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 1)]);
    d.add("spare", Slots::Fixed(1), MemberTerms { role: Role::Backup, ..terms() });
    take_down(&mut d, ids[0], Instant::now());
    assert_eq!(granted(ask(&mut d)).backend, "spare");
}

#[test]
fn a_backup_serves_while_another_one_is_on_trial() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 4)]);
        d.add("spare", Slots::Fixed(1), MemberTerms { role: Role::Backup, ..terms() });
        let now = Instant::now();
        take_down(&mut d, ids[0], now);
        d.tick(now + SECOND);
        assert_eq!(granted(ask(&mut d)).backend, "a", "{policy}");
        let spare = granted(ask(&mut d));
        assert_eq!(spare.backend, "spare", "{policy}");
        let tickets = [waiting(ask(&mut d)), waiting(ask(&mut d))];
        release(&mut d, spare.id);
        assert_eq!(claim(&mut d, &tickets[0]), Some("spare"), "{policy}");
        // Once it is over, all wait for the one that serves again.
        d.release(ids[0], 0, Report::answered(now, now, false));
        assert_eq!(claim(&mut d, &tickets[1]), Some("a"), "{policy}");
        assert_eq!(granted(ask(&mut d)).backend, "a", "{policy}");
    }
}

#[test]
fn with_all_backends_down_requests_wait_or_are_refused() {
    for wait in [SECOND, Duration::ZERO] {
        let (mut d, ids) = dispatch(Policy::Queue, &[("a", 1)]);
        d.health.all_down_wait = wait;
        let now = Instant::now();
        take_down(&mut d, ids[0], now);
        let down = d.all_down().unwrap();
        assert_eq!((down.backends, down.until), (1, Some(now + SECOND)));
        assert!(down.reason.contains("cannot be reached"), "{}", down.reason);
        match ask(&mut d) {
            Asked::Waiting(ticket, WaitReason::Recovery, _) if !wait.is_zero() => {
                d.tick(now + SECOND);
                assert_eq!(claim(&mut d, &ticket), Some("a"));
            }
            Asked::AllDown if wait.is_zero() => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_check_goes_first_and_takes_a_slot() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1)]);
        let Some(Asked::Granted(grant)) = d.ask_first(ids[0]) else { panic!("not granted") };
        let waits = waiting(ask(&mut d));
        let check = waiting(d.ask_first(ids[0]).unwrap());
        assert_eq!(d.depth().0, 1, "a check is no request");
        release(&mut d, grant.id);
        assert_eq!([claim(&mut d, &waits), claim(&mut d, &check)], [None, Some("a")], "{policy}");
        release(&mut d, ids[0]);
        assert_eq!(claim(&mut d, &waits), Some("a"));
        let stops: [fn(&mut Plain, BackendId); 2] =
            [|d, id| drop(d.set_slots(id, 0)), |d, id| drop(d.drain(id))];
        for stop in stops {
            d.set_slots(ids[0], 1);
            let late = waiting(d.ask_first(ids[0]).unwrap());
            stop(&mut d, ids[0]);
            assert!(
                matches!(d.claim(&late, Waker::noop()), Poll::Ready(Err(Refusal::AllTried))),
                "{policy}"
            );
            assert!(d.ask_first(ids[0]).is_none());
        }
    }
}

#[test]
fn a_check_goes_first_also_where_its_backend_comes_back() {
    let rules = ActiveHealth { rise: 1, fall: 1, ..ActiveHealth::of("/") };
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 2)]);
        granted(ask(&mut d));
        d.on_check(ids[0], &rules, Err("status 500".into()));
        let check = waiting(d.ask_first(ids[0]).unwrap());
        d.on_check(ids[0], &rules, Ok(()));
        assert_eq!(claim(&mut d, &check), Some("a"), "{policy}");
    }
}

/// Only a check brings back what is checked.
#[test]
fn checks_take_a_backend_out_and_bring_it_back() {
    let rules = ActiveHealth { rise: 1, fall: 1, ..ActiveHealth::of("/") };
    let mut config = AppConfig::default();
    config.health.active = Some(rules.clone());
    let mut d: Plain = Dispatch::new(AppId::FIRST, &config);
    let id = add(&mut d, "a", 1);
    assert_eq!(d.on_check(id, &rules, Err("status 500".into())).health_changes.len(), 1);
    let ticket = waiting(ask(&mut d));
    assert!(d.tick(Instant::now() + 99 * SECOND).health_changes.is_empty());
    let Some(Asked::Granted(check)) = d.ask_first(id) else { panic!("not granted") };
    release(&mut d, check.id);
    assert_eq!(claim(&mut d, &ticket), None, "the slot of a check is for nobody else");
    d.on_check(id, &rules, Ok(()));
    assert_eq!(claim(&mut d, &ticket), Some("a"));
}
