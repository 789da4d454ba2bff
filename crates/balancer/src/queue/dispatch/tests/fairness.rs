//! One client does not keep the others from slots, nor from places in the queue.

use super::*;
use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::request_hints::Turn;
use crate::queue::dispatch::stalled::Stall;

const GREEDY: u8 = 1;

const MODEST: u8 = 2;

fn from(client: u8) -> RequestHints {
    RequestHints {
        client: Some(ClientNetwork::of([192, 0, 2, client].into())),
        ..RequestHints::default()
    }
}

fn asks(d: &mut Plain, client: u8) -> Ticket {
    waiting(d.ask(from(client)))
}

/// A backend of one slot, taken by the greedy client, of whose requests so many wait.
fn busy(policy: Policy, length: usize, count: usize) -> (Plain, BackendId, Vec<Ticket>) {
    let mut d = new(policy, length);
    let id = add(&mut d, "a", 1);
    granted(d.ask(from(GREEDY)));
    let tickets = (0..count).map(|_| asks(&mut d, GREEDY)).collect();
    (d, id, tickets)
}

#[test]
fn the_next_slot_is_for_a_client_that_has_just_come() {
    for policy in all() {
        let (mut d, id, greedy) = busy(policy.clone(), 100, 50);
        let modest = asks(&mut d, MODEST);
        assert!(claim(&mut d, &greedy[0]).is_none());
        release(&mut d, id);
        assert!(claim(&mut d, &greedy[0]).is_some(), "{policy}: both were first of their client");
        release(&mut d, id);
        assert!(claim(&mut d, &modest).is_some(), "{policy}");
    }
}

#[test]
fn clients_take_turns_whatever_each_of_them_sends() {
    let (mut d, id, greedy) = busy(Policy::Queue, 100, 6);
    let modest: Vec<_> = (0..3).map(|_| asks(&mut d, MODEST)).collect();
    let mut order = Vec::new();
    for _ in 0..9 {
        release(&mut d, id);
        let one = |tickets: &[Ticket], d: &mut Plain| {
            let is_granted = |ticket: &Ticket| {
                matches!(d.waiters[ticket.0 as usize].state, WaiterState::Granted(_))
            };
            tickets.iter().filter(|ticket| is_granted(ticket)).count()
        };
        order.push((one(&greedy, &mut d), one(&modest, &mut d)));
    }
    let expected = [(1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 3), (5, 3), (6, 3)];
    assert_eq!(order, expected);
}

#[test]
fn a_full_queue_has_a_place_for_a_client_that_has_fewer() {
    for policy in all() {
        let (mut d, _, greedy) = busy(policy.clone(), 8, 8);
        assert!(matches!(d.ask(from(GREEDY)), Asked::Full), "{policy}: a client alone fills it");
        for taken in 0..4 {
            let ticket = asks(&mut d, MODEST);
            assert!(claim(&mut d, &ticket).is_none());
            let last = &greedy[7 - taken];
            let told = d.claim(last, Waker::noop());
            assert!(matches!(told, Poll::Ready(Err(Refusal::Displaced))), "{policy} {taken}");
            assert_eq!(d.depth().0, 8);
        }
        assert!(matches!(d.ask(from(MODEST)), Asked::Full), "{policy}: both have half of it");
        assert!(matches!(d.ask(from(GREEDY)), Asked::Full), "{policy}");
        assert_eq!([GREEDY, MODEST].map(|client| d.clients.len(from(client).client)), [4, 4]);
    }
}

#[test]
fn a_client_that_is_soon_in_turn_is_not_refused() {
    let (mut d, id, _) = busy(Policy::Queue, 1000, 500);
    d.limits.wait = Duration::from_secs(1);
    let (mut now, mut refused) = (Instant::now(), 0);
    for _ in 0..20 {
        now += Duration::from_millis(100);
        d.release(id, 0, Report::answered(now, now, false));
        refused += usize::from(matches!(d.ask(from(GREEDY)), Asked::TooLate(_)));
    }
    assert!(refused > 0, "its own requests would wait for most of a minute");
    asks(&mut d, MODEST);
}

/// Lets a slot wait for its client. Returns the bell that asks for it back.
fn stall(d: &mut Plain, grant: &Grant<&'static str>, client: u8) -> (Stall, Vec<Waker>) {
    let (stall, woken) = d.stall(grant.id, from(client).client, Waker::noop());
    (stall, woken.into_iter().collect())
}

fn woken(asked: Asked<&'static str>) -> usize {
    match asked {
        Asked::Waiting(_, _, woken) => woken.len(),
        other => panic!("not waiting: {other:?}"),
    }
}

#[test]
fn slots_that_a_client_does_not_use_go_to_others_down_to_a_quarter() {
    for policy in [Policy::Queue, Policy::RoundRobin] {
        let mut d = new(policy.clone(), 100);
        add(&mut d, "a", 8);
        let grants: Vec<_> = (0..8).map(|_| granted(d.ask(from(GREEDY)))).collect();
        let mut stalls = Vec::new();
        for grant in &grants {
            stalls.push(stall(&mut d, grant, GREEDY).0);
        }
        assert_eq!(woken(d.ask(from(GREEDY))), 0, "{policy}: nobody else wants them");
        for taken in 0..6 {
            assert_eq!(woken(d.ask(from(MODEST))), 1, "{policy}, {taken}");
            assert!(d.is_revoked(&stalls[taken]) && !d.is_revoked(&stalls[taken + 1]));
        }
        assert_eq!(woken(d.ask(from(MODEST))), 0, "{policy}: two of eight are its share");
        for (stall, grant) in stalls.into_iter().zip(grants).take(3) {
            d.resume(&stall);
            release(&mut d, grant.id);
        }
        assert_eq!(woken(d.ask(from(MODEST))), 0, "{policy}: as many are on their way");
    }
}

#[test]
fn a_slot_that_stalls_while_others_wait_is_given_back() {
    let (mut d, _) = dispatch(Policy::Queue, &[("a", 2)]);
    let grants = [(); 2].map(|()| granted(d.ask(from(GREEDY))));
    let ticket = asks(&mut d, MODEST);
    let (first, none) = stall(&mut d, &grants[0], GREEDY);
    let (second, one) = stall(&mut d, &grants[1], GREEDY);
    assert_eq!((none.len(), one.len()), (0, 1), "one is its share");
    assert!(d.is_revoked(&first) && !d.is_revoked(&second));
    d.resume(&first);
    release(&mut d, grants[0].id);
    assert!(claim(&mut d, &ticket).is_some());
}

#[test]
fn the_only_slot_is_never_revoked() {
    let (mut d, _) = dispatch(Policy::Queue, &[("a", 1)]);
    let grant = granted(d.ask(from(GREEDY)));
    let (held, _) = stall(&mut d, &grant, GREEDY);
    assert_eq!(woken(d.ask(from(MODEST))), 0);
    assert!(!d.is_revoked(&held));
}

/// Eight slots that the greedy client holds without using them, and its waiting requests; the modest one has
/// taken one of the slots.
fn curbed(policy: Policy) -> (Plain, BackendId, Vec<Stall>, Vec<Ticket>) {
    let mut d = new(policy, 100);
    let id = add(&mut d, "a", 8);
    let grants: Vec<_> = (0..8).map(|_| granted(d.ask(from(GREEDY)))).collect();
    let mut stalls: Vec<_> = grants.iter().map(|grant| stall(&mut d, grant, GREEDY).0).collect();
    let greedy = (0..20).map(|_| asks(&mut d, GREEDY)).collect();
    let modest = asks(&mut d, MODEST);
    d.resume(&stalls.remove(0));
    release(&mut d, id);
    assert!(claim(&mut d, &modest).is_some());
    (d, id, stalls, greedy)
}

#[test]
fn a_slot_that_was_taken_back_stays_with_the_others() {
    for policy in all() {
        let (mut d, id, _, _) = curbed(policy.clone());
        for _ in 0..3 {
            release(&mut d, id);
            assert!(matches!(d.ask(from(GREEDY)), Asked::Waiting(..)), "{policy}");
            granted(d.ask(from(MODEST)));
        }
    }
}

#[test]
fn a_curbed_client_that_resumes_is_served() {
    for policy in all() {
        let (mut d, id, stalls, mut greedy) = curbed(policy.clone());
        release(&mut d, id);
        assert!(claim(&mut d, &greedy[0]).is_none(), "{policy}");
        stalls.iter().skip(1).for_each(|stall| d.resume(stall));
        d.tick(Instant::now());
        assert!(claim(&mut d, &greedy.remove(0)).is_some(), "{policy}");
    }
}

#[test]
fn once_nobody_else_comes_a_client_has_all_slots() {
    let (mut d, id, _, mut greedy) = curbed(Policy::Queue);
    release(&mut d, id);
    let now = Instant::now();
    (0..5).for_each(|_| drop(d.tick(now)));
    comes_and_goes(&mut d);
    (0..9).for_each(|_| drop(d.tick(now)));
    assert!(claim(&mut d, &greedy[0]).is_none(), "somebody came less than a second ago");
    d.tick(now);
    assert!(claim(&mut d, &greedy.remove(0)).is_some());
}

/// The modest client comes and is served.
fn comes_and_goes(d: &mut Plain) {
    let grant = granted(d.ask(from(MODEST)));
    release(d, grant.id);
}

fn in_turn(d: &mut Plain, turn: Turn) -> Ticket {
    waiting(d.ask(RequestHints { turn, ..from(GREEDY) }))
}

#[test]
fn connections_of_one_client_take_turns_and_other_clients_wait_no_longer() {
    for policy in all() {
        let (mut d, id, _) = busy(policy.clone(), 100, 0);
        let [a, b, c] = [0, 1, 2].map(|before| in_turn(&mut d, Turn::After(before)));
        let slow = in_turn(&mut d, Turn::Shared);
        let neighbour = asks(&mut d, GREEDY);
        let [x, y, z] = [(); 3].map(|()| asks(&mut d, MODEST));
        for next in [a, x, slow, y, neighbour, z, b, c] {
            release(&mut d, id);
            assert!(claim(&mut d, &next).is_some(), "{policy}: {next:?}");
        }
    }
}

#[test]
fn a_neighbour_waits_for_one_of_many_connections_that_take_little_and_they_are_served_too() {
    let (mut d, id, _) = busy(Policy::Queue, 100, 0);
    let slow: Vec<_> = (0..50).map(|_| in_turn(&mut d, Turn::Shared)).collect();
    for slow in &slow {
        let neighbour = asks(&mut d, GREEDY);
        release(&mut d, id);
        assert!(claim(&mut d, slow).is_some());
        release(&mut d, id);
        assert!(claim(&mut d, &neighbour).is_some());
    }
}

#[test]
fn in_a_full_queue_a_neighbour_gets_the_place_of_who_would_be_served_last() {
    for policy in all() {
        let (mut d, id, _) = busy(policy.clone(), 4, 0);
        let slow = [(); 4].map(|()| in_turn(&mut d, Turn::Shared));
        assert!(matches!(d.ask(RequestHints { turn: Turn::Shared, ..from(GREEDY) }), Asked::Full));
        let neighbour = asks(&mut d, GREEDY);
        let other = asks(&mut d, MODEST);
        for displaced in &slow[2..] {
            let told = d.claim(displaced, Waker::noop());
            assert!(matches!(told, Poll::Ready(Err(Refusal::Displaced))), "{policy}");
        }
        for next in [&slow[0], &other, &neighbour, &slow[1]] {
            release(&mut d, id);
            assert!(claim(&mut d, next).is_some(), "{policy}: {next:?}");
        }
    }
}
