mod auto_slots;
mod availability;
mod cost;
mod fairness;
mod model;
mod policies;
mod slots_compared;
mod suspects;

use super::*;
use crate::config::backend::{Backend, Cpu, Slots};
use crate::queue::dispatch::member::MemberTerms;
use crate::queue::dispatch::ring::hash;

type Plain = Dispatch<&'static str>;

fn dispatch(policy: Policy, backends: &[(&'static str, usize)]) -> (Plain, Vec<BackendId>) {
    let mut dispatch = new(policy, 100);
    let ids = backends.iter().map(|&(name, slots)| add(&mut dispatch, name, slots)).collect();
    (dispatch, ids)
}

fn new(policy: Policy, length: usize) -> Plain {
    let mut config = AppConfig { policy, ..AppConfig::default() };
    config.queue.length = length;
    Dispatch::new(AppId::FIRST, &config)
}

fn terms() -> MemberTerms {
    MemberTerms::of(&Backend::new("", std::net::SocketAddr::from(([127, 0, 0, 1], 80)), 1), 0)
}

fn add(dispatch: &mut Plain, name: &'static str, slots: usize) -> BackendId {
    dispatch
        .add(name, Slots::Fixed(slots), MemberTerms { seed: hash(name.as_bytes()), ..terms() })
        .0
}

/// Every policy.
fn all() -> Vec<Policy> {
    let even = [Policy::RoundRobin, Policy::LeastConn, Policy::LeastTime, Policy::RandomTwo];
    let keyed = [Policy::IpHash, Policy::Hash(crate::config::policy::Key::Path)];
    [[Policy::Queue, Policy::First].as_slice(), &even, &keyed].concat()
}

fn release(dispatch: &mut Plain, id: BackendId) -> Freed {
    dispatch.release(id, 0, Report::Nothing)
}

fn granted(asked: Asked<&'static str>) -> Grant<&'static str> {
    match asked {
        Asked::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

fn waiting(asked: Asked<&'static str>) -> Ticket {
    match asked {
        Asked::Waiting(ticket, ..) => ticket,
        other => panic!("not waiting: {other:?}"),
    }
}

fn ask(dispatch: &mut Plain) -> Asked<&'static str> {
    dispatch.ask(RequestHints::default())
}

fn claim(dispatch: &mut Plain, ticket: &Ticket) -> Option<&'static str> {
    match dispatch.claim(ticket, Waker::noop()) {
        Poll::Ready(grant) => Some(grant.expect("it has been at every backend").backend),
        Poll::Pending => None,
    }
}

fn tried(ids: &[BackendId]) -> RequestHints {
    let mut hints = RequestHints::default();
    ids.iter().for_each(|&id| hints.tried.push(id));
    hints
}

#[test]
fn queue_picks_fewest_in_flight_then_most_recently_idle() {
    let (mut d, _) = dispatch(Policy::Queue, &[("a", 2), ("b", 2), ("c", 2)]);
    let first: Vec<_> = (0..3).map(|_| granted(ask(&mut d))).collect();
    assert_eq!(first.iter().map(|g| g.backend).collect::<Vec<_>>(), ["a", "b", "c"]);
    release(&mut d, first[0].id);
    release(&mut d, first[1].id);
    assert_eq!(granted(ask(&mut d)).backend, "b");
    assert_eq!(granted(ask(&mut d)).backend, "a");
}

#[test]
fn under_a_quota_idle_backends_take_turns() {
    let mut d = new(Policy::Queue, 100);
    let quota = MemberTerms { cpu: Cpu::Quota, ..terms() };
    for (name, slots) in [("a", 1), ("b", 1), ("c", 2)] {
        d.add(name, Slots::Fixed(slots), quota);
    }
    let first = [(); 3].map(|()| granted(ask(&mut d)));
    assert_eq!(first.each_ref().map(|g| g.backend), ["a", "b", "c"]);
    release(&mut d, first[1].id);
    release(&mut d, first[0].id);
    let second = [(); 3].map(|()| granted(ask(&mut d)));
    assert_eq!(second.each_ref().map(|g| g.backend), ["b", "a", "c"], "c held one");
    release(&mut d, first[2].id);
    for done in second {
        release(&mut d, done.id);
    }
    let one = |d: &mut Plain| {
        let grant = granted(ask(d));
        release(d, grant.id);
        grant.backend
    };
    assert_eq!([(); 4].map(|()| one(&mut d)), ["b", "a", "c", "b"]);
    d.add("free", Slots::Fixed(1), terms());
    assert_eq!([(); 4].map(|()| one(&mut d)), ["a", "c", "b", "free"]);
    assert_eq!([(); 2].map(|()| one(&mut d)), ["free", "free"], "it needs no rest");
}

#[test]
fn freed_slot_goes_to_the_head_and_nobody_barges_in() {
    let (mut d, _) = dispatch(Policy::Queue, &[("a", 1)]);
    let busy = granted(ask(&mut d));
    let (first, second) = (waiting(ask(&mut d)), waiting(ask(&mut d)));
    assert!(release(&mut d, busy.id).wake.is_some());
    let third = waiting(ask(&mut d));
    assert_eq!([claim(&mut d, &second), claim(&mut d, &third)], [None, None]);
    assert_eq!(claim(&mut d, &first), Some("a"));
    assert_eq!(d.depth(), (2, 2));
}

#[test]
fn cancelled_waiter_is_skipped() {
    let (mut d, _) = dispatch(Policy::Queue, &[("a", 1)]);
    let busy = granted(ask(&mut d));
    let tickets: Vec<_> = (0..3).map(|_| waiting(ask(&mut d))).collect();
    d.cancel(&tickets[0]);
    release(&mut d, busy.id);
    assert_eq!([claim(&mut d, &tickets[2]), claim(&mut d, &tickets[1])], [None, Some("a")]);
    assert_eq!(d.depth().0, 1);
}

#[test]
fn queue_is_bounded_over_all_policies() {
    for policy in all() {
        let mut d = new(policy.clone(), 2);
        add(&mut d, "a", 1);
        granted(ask(&mut d));
        waiting(ask(&mut d));
        waiting(ask(&mut d));
        assert!(matches!(ask(&mut d), Asked::Full), "{policy}");
    }
}

#[test]
fn without_backends_requests_wait_for_the_first() {
    for policy in all() {
        let (mut d, _) = dispatch(policy.clone(), &[]);
        let tickets = [waiting(ask(&mut d)), waiting(ask(&mut d))];
        add(&mut d, "a", 1);
        assert_eq!(
            [claim(&mut d, &tickets[0]), claim(&mut d, &tickets[1])],
            [Some("a"), None],
            "{policy}"
        );
        assert_eq!(d.depth().0, 1);
    }
}

#[test]
fn more_slots_wake_that_many() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 1)]);
    granted(ask(&mut d));
    let tickets: Vec<_> = (0..3).map(|_| waiting(ask(&mut d))).collect();
    d.set_slots(ids[0], 3);
    assert_eq!(
        tickets.iter().map(|t| claim(&mut d, t)).collect::<Vec<_>>(),
        [Some("a"), Some("a"), None]
    );
}

#[test]
fn fewer_slots_hold_until_enough_are_back() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 2)]);
    let grants = [granted(ask(&mut d)), granted(ask(&mut d))];
    let ticket = waiting(ask(&mut d));
    d.set_slots(ids[0], 1);
    release(&mut d, grants[0].id);
    assert_eq!(claim(&mut d, &ticket), None);
    release(&mut d, grants[1].id);
    assert_eq!(claim(&mut d, &ticket), Some("a"));
}

#[test]
fn a_waiting_request_gets_the_first_free_backend() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1), ("b", 1)]);
        let mut first = [granted(ask(&mut d)).backend, granted(ask(&mut d)).backend];
        first.sort_unstable();
        assert_eq!(first, ["a", "b"], "{policy}");
        let tickets = [(); 3].map(|()| waiting(ask(&mut d)));
        for ticket in &tickets {
            release(&mut d, ids[1]);
            assert_eq!(claim(&mut d, ticket), Some("b"), "{policy}: a hangs");
        }
        assert_eq!(d.depth().0, 0);
    }
}

#[test]
fn waiters_move_when_their_backend_leaves() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1), ("b", 1)]);
        let _busy = [granted(ask(&mut d)), granted(ask(&mut d))];
        let (for_a, for_b) = (waiting(ask(&mut d)), waiting(ask(&mut d)));
        d.remove(ids[0]);
        assert!(release(&mut d, ids[0]).wake.is_none(), "a removed backend serves nobody");
        d.set_slots(ids[1], 3);
        assert_eq!(
            [claim(&mut d, &for_a), claim(&mut d, &for_b)],
            [Some("b"), Some("b")],
            "{policy}"
        );
    }
}

#[test]
fn drain_tells_when_the_last_request_ends() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 2)]);
    let grants = [granted(ask(&mut d)), granted(ask(&mut d))];
    assert_eq!(d.drain(ids[0]).0, Some(2));
    waiting(ask(&mut d));
    assert!(!release(&mut d, grants[0].id).drained);
    let last = release(&mut d, grants[1].id);
    assert!(last.drained && last.wake.is_none());
}

#[test]
fn retry_avoids_what_it_tried_and_goes_first() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 1), ("b", 1)]);
    assert_eq!(granted(d.ask(tried(&ids[..1]))).backend, "b");
    let busy = granted(ask(&mut d));
    let newcomer = waiting(ask(&mut d));
    let retry = waiting(d.ask(tried(&ids[..1])));
    release(&mut d, busy.id);
    assert_eq!([claim(&mut d, &retry), claim(&mut d, &newcomer)], [None, Some("a")]);
    release(&mut d, ids[1]);
    assert_eq!(claim(&mut d, &retry), Some("b"));
    assert!(matches!(d.ask(tried(&ids)), Asked::AllTried));
}

#[test]
fn a_paused_backend_gets_nothing_and_its_waiters_move() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1), ("b", 0)]);
        let busy = granted(ask(&mut d));
        let first = waiting(ask(&mut d));
        release(&mut d, busy.id);
        assert_eq!(claim(&mut d, &first), Some("a"), "{policy}");

        d.set_slots(ids[1], 1);
        granted(ask(&mut d));
        let tickets = [waiting(ask(&mut d)), waiting(ask(&mut d))];
        d.set_slots(ids[1], 0);
        release(&mut d, ids[1]);
        d.set_slots(ids[0], 3);
        assert_eq!(tickets.map(|t| claim(&mut d, &t)), [Some("a"), Some("a")], "{policy}");

        let last = waiting(ask(&mut d));
        d.set_slots(ids[0], 0);
        assert_eq!(claim(&mut d, &last), None);
        d.set_slots(ids[1], 1);
        assert_eq!(claim(&mut d, &last), Some("b"), "{policy}");
    }
}

#[test]
fn a_retry_is_told_when_the_last_new_backend_leaves() {
    for policy in all() {
        for pause in [false, true] {
            let (mut d, ids) = dispatch(policy.clone(), &[("a", 1), ("b", 1)]);
            let _busy = [granted(ask(&mut d)), granted(ask(&mut d))];
            let retry = waiting(d.ask(tried(&ids[..1])));
            let wakers = if pause { d.set_slots(ids[1], 0) } else { d.remove(ids[1]).1 };
            // It has not been polled, so nobody is to be woken.
            assert!(wakers.is_empty());
            let told = d.claim(&retry, Waker::noop());
            assert!(
                matches!(told, Poll::Ready(Err(Refusal::AllTried))),
                "{policy}, pause {pause}: {told:?}"
            );
            assert_eq!(d.depth().0, 0);
        }
    }
}

/// Random operations against the invariants. Slots are never exceeded, and nobody waits while a backend is
/// free. Every waiter is served in the end, in order of arrival.
#[test]
fn random_operations_keep_the_invariants() {
    for policy in all() {
        let (mut d, mut ids) = dispatch(policy.clone(), &[("x", 2), ("x", 1)]);
        let (mut held, mut tickets): (Vec<BackendId>, Vec<Ticket>) = (Vec::new(), Vec::new());
        let mut seed = 7_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let roll = (seed >> 33) as usize;
            match roll % 16 {
                0..=5 => match ask(&mut d) {
                    Asked::Granted(grant) => held.push(grant.id),
                    Asked::Waiting(ticket, ..) => tickets.push(ticket),
                    other => assert!(matches!(other, Asked::Full), "{other:?}"),
                },
                6..=11 if !held.is_empty() => {
                    release(&mut d, held.swap_remove(roll % held.len()));
                }
                12 if !tickets.is_empty() => {
                    d.cancel(&tickets.remove(roll % tickets.len()));
                }
                13 if ids.len() < 6 => ids.push(add(&mut d, "x", 1 + roll % 3)),
                14 if ids.len() > 1 => {
                    let gone = ids.swap_remove(roll % ids.len());
                    d.remove(gone);
                    held.retain(|&id| id != gone);
                }
                15 => drop(d.set_slots(ids[roll % ids.len()], roll / 16 % 4)),
                _ => {}
            }
            let mut left = Vec::new();
            for ticket in tickets.drain(..) {
                match d.claim(&ticket, Waker::noop()) {
                    Poll::Ready(Ok(grant)) if d.member(grant.id).is_some() => held.push(grant.id),
                    Poll::Ready(_) => {}
                    Poll::Pending => left.push(ticket),
                }
            }
            tickets = left;
            check(&d, &policy, &held, tickets.len());
        }
    }
}

fn check(d: &Plain, policy: &Policy, held: &[BackendId], tickets: usize) {
    assert_eq!(d.depth().0, tickets);
    for member in d.members() {
        let mine = held.iter().filter(|&&id| id == member.id).count();
        assert_eq!(member.in_flight, mine);
        let free = member.in_flight < member.slots;
        assert!(!free || member.bound.is_empty(), "{policy}: bound waiters beside a free slot");
        assert!(!free || d.unbound.is_empty(), "{policy}: waiters beside a free slot");
    }
}
