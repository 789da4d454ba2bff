//! Which backend a request goes to, by policy, weight and role.

use super::*;
use crate::config::backend::Role;
use crate::config::policy::Key;
use crate::queue::dispatch::ring::hash;

const SECOND: Duration = Duration::from_secs(1);

fn add_with(d: &mut Plain, name: &'static str, change: impl FnOnce(&mut MemberTerms)) -> BackendId {
    let mut terms = MemberTerms { seed: hash(name.as_bytes()), ..terms() };
    change(&mut terms);
    d.add(name, Slots::Fixed(100), terms).0
}

fn weighted(policy: Policy, weights: &[(&'static str, u32)]) -> Plain {
    let mut d = new(policy, 100);
    for &(name, weight) in weights {
        add_with(&mut d, name, |terms| terms.weight = weight);
    }
    d
}

fn share(names: &[&str], name: &str) -> usize {
    names.iter().filter(|&&other| other == name).count()
}

/// The backends of requests that take no time, or that never end.
fn asked(d: &mut Plain, count: usize, end: bool) -> Vec<&'static str> {
    let one = |_| {
        let grant = granted(ask(d));
        if end {
            release(d, grant.id);
        }
        grant.backend
    };
    (0..count).map(one).collect()
}

fn with_key(key: u64) -> RequestHints {
    RequestHints { key: Some(hash(&key.to_le_bytes())), ..RequestHints::default() }
}

#[test]
fn turns_follow_weights_smoothly() {
    let mut d = weighted(Policy::RoundRobin, &[("a", 5), ("b", 1), ("c", 1)]);
    let health_changes = asked(&mut d, 70, true);
    assert_eq!(["a", "b", "c"].map(|name| share(&health_changes, name)), [50, 10, 10]);
    assert!(health_changes.windows(6).all(|run| share(run, "a") < 6), "{health_changes:?}");
}

/// Who comes back, or comes anew, does not get what it has missed.
#[test]
fn a_newcomer_gets_no_burst_of_turns() {
    let mut d = weighted(Policy::RoundRobin, &[("a", 1), ("b", 1)]);
    asked(&mut d, 100, true);
    add_with(&mut d, "c", |_| ());
    assert_eq!(share(&asked(&mut d, 30, true), "c"), 10);
}

/// Nor does one that had no free slot for a while.
#[test]
fn a_backend_that_hung_gets_no_burst_of_turns() {
    let (mut d, ids) = dispatch(Policy::RoundRobin, &[("hangs", 1), ("a", 9), ("b", 9)]);
    assert_eq!(granted(ask(&mut d)).id, ids[0]);
    assert_eq!(share(&asked(&mut d, 100, true), "a"), 50);
    release(&mut d, ids[0]);
    assert_eq!(share(&asked(&mut d, 30, true), "hangs"), 10);
}

#[test]
fn turns_go_to_backends_with_a_free_slot() {
    let (mut d, ids) = dispatch(Policy::RoundRobin, &[("full", 1), ("a", 2), ("b", 2)]);
    let turns = [(); 5].map(|()| granted(ask(&mut d)).backend);
    assert_eq!(turns, ["full", "a", "b", "a", "b"]);
    let ticket = waiting(ask(&mut d));
    release(&mut d, ids[2]);
    assert_eq!(claim(&mut d, &ticket), Some("b"));
}

/// It holds as many requests as it has slots, and all others go on.
#[test]
fn no_policy_sends_more_to_a_backend_that_hangs_than_it_has_slots() {
    for policy in all() {
        for slots in [1, 4, 16] {
            let (mut d, ids) = dispatch(policy.clone(), &[("hangs", slots), ("a", 4), ("b", 4)]);
            let (mut hung, mut served) = (0, Vec::new());
            for request in 0..2000 {
                let hints = with_key(request % 50);
                // The others are busy now and then, and everybody waits for a moment.
                match d.ask(hints) {
                    Asked::Granted(grant) if grant.id == ids[0] => hung += 1,
                    Asked::Granted(grant) => served.push(grant.id),
                    Asked::Waiting(ticket, ..) => {
                        release(&mut d, served.remove(0));
                        let name = claim(&mut d, &ticket).expect("a slot is free");
                        served.push(ids[usize::from(name == "b") + 1]);
                    }
                    other => panic!("{policy}: {other:?}"),
                }
                if request % 64 == 0 {
                    served.drain(..).for_each(|id| drop(release(&mut d, id)));
                }
            }
            assert!(hung <= slots, "{policy}: {hung} of 2,000 are lost with {slots} slots");
        }
    }
}

#[test]
fn connections_follow_weights() {
    for policy in [Policy::LeastConn, Policy::LeastTime, Policy::Queue] {
        let mut d = weighted(policy.clone(), &[("a", 3), ("b", 1)]);
        assert_eq!(share(&asked(&mut d, 40, false), "a"), 30, "{policy}");
    }
    let mut d = weighted(Policy::RandomTwo, &[("a", 3), ("b", 1), ("c", 3), ("d", 1)]);
    let two = asked(&mut d, 160, false);
    assert!((40..=80).contains(&share(&two, "a")) && (10..=35).contains(&share(&two, "b")));
}

/// The less busy of two random members gets the request. Most and least then differ by little; chance alone
/// would have them 20 and more apart (Azar et al. 1999).
#[test]
fn the_less_busy_of_two_evens_out() {
    let mut d = weighted(Policy::RandomTwo, &["a", "b", "c", "d"].map(|name| (name, 1)));
    let picked = asked(&mut d, 360, false);
    let shares = ["a", "b", "c", "d"].map(|name| share(&picked, name));
    assert!(shares.iter().all(|share| (85..=95).contains(share)), "{shares:?}");
}

#[test]
fn first_fills_the_oldest() {
    let (mut d, ids) = dispatch(Policy::First, &[("a", 2), ("b", 2)]);
    assert_eq!(asked(&mut d, 3, false), ["a", "a", "b"]);
    release(&mut d, ids[0]);
    assert_eq!(asked(&mut d, 2, false), ["a", "b"]);
    let late = waiting(ask(&mut d));
    release(&mut d, ids[1]);
    assert_eq!(claim(&mut d, &late), Some("b"));
}

fn timed(d: &mut Plain, id: BackendId, now: Instant, time: Duration, error: bool) {
    d.release(id, 0, Report::answered(now, now + time, error));
}

#[test]
fn least_time_prefers_the_faster_and_starves_nobody() {
    let (mut d, ids) = dispatch(Policy::LeastTime, &[("slow", 9), ("fast", 9)]);
    let (mut now, mut slow) = (Instant::now(), Vec::new());
    for request in 0..2000 {
        let grant = granted(ask(&mut d));
        let millis = if grant.id == ids[0] { 80 } else { 10 };
        if grant.id == ids[0] {
            slow.push(request);
        }
        timed(&mut d, grant.id, now, Duration::from_millis(millis), false);
        now += Duration::from_millis(10);
    }
    assert!((3..200).contains(&slow.len()), "of 2,000 in 20 s: {}", slow.len());
    assert!(slow.windows(2).all(|two| two[1] - two[0] < 500), "within 5 s again: {slow:?}");
}

/// Two backends of the same kind, whose times differ by noise, share the work.
#[test]
fn least_time_shares_among_equals() {
    let (mut d, ids) = dispatch(Policy::LeastTime, &[("a", 9), ("b", 9)]);
    let (mut now, mut counts) = (Instant::now(), [0; 2]);
    for request in 0..1500_u64 {
        let grant = granted(ask(&mut d));
        counts[usize::from(grant.id == ids[1])] += 1;
        let micros = 10_500 + (request * 7919) % 1000 + 200 * u64::from(grant.id == ids[1]);
        timed(&mut d, grant.id, now, Duration::from_micros(micros), false);
        now += Duration::from_millis(20);
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
}

#[test]
fn least_time_takes_a_quick_failure_for_slow() {
    let (mut d, ids) = dispatch(Policy::LeastTime, &[("broken", 9), ("fine", 9)]);
    let (mut now, mut broken) = (Instant::now(), 0);
    for _ in 0..1000 {
        let grant = granted(ask(&mut d));
        let wrong = grant.id == ids[0];
        broken += u32::from(wrong);
        timed(&mut d, grant.id, now, Duration::from_millis(if wrong { 1 } else { 20 }), wrong);
        now += Duration::from_millis(10);
    }
    assert!(broken < 50, "{broken} of 1,000");
}

/// It fails nobody who waits, and nobody does.
#[test]
fn least_time_avoids_a_backend_that_clients_give_up_on() {
    let (mut d, ids) = dispatch(Policy::LeastTime, &[("hangs", 99), ("fine", 99)]);
    let (mut now, mut hanging, mut hung) = (Instant::now(), Vec::new(), 0);
    for _ in 0..2000 {
        for began in hanging.extract_if(.., |began| now - *began >= SECOND) {
            d.release(ids[0], 0, Report::left(began, now));
        }
        let grant = granted(ask(&mut d));
        if grant.id == ids[0] {
            hung += 1;
            hanging.push(now);
        } else {
            timed(&mut d, grant.id, now, Duration::from_millis(20), false);
        }
        now += Duration::from_millis(10);
    }
    assert!((3..30).contains(&hung), "{hung} of 2,000");
    // Who leaves soon says nothing.
    let (mut d, ids) = dispatch(Policy::LeastTime, &[("slow", 9), ("fine", 9)]);
    for (id, millis) in [(ids[0], 80), (ids[1], 20)] {
        let grant = granted(ask(&mut d));
        assert_eq!(grant.id, id);
        timed(&mut d, id, now, Duration::from_millis(millis), false);
    }
    for _ in 0..100 {
        let grant = granted(ask(&mut d));
        assert_eq!(grant.id, ids[1]);
        d.release(grant.id, 0, Report::left(now, now + Duration::from_millis(1)));
    }
}

#[test]
fn a_key_keeps_its_backend_and_spills_beyond_the_bound() {
    for policy in [Policy::IpHash, Policy::Hash(Key::Path)] {
        let (mut d, ids) = dispatch(policy, &[("a", 50), ("b", 50), ("c", 50), ("d", 50)]);
        let home = |d: &mut Plain, key: u64| {
            let grant = granted(d.ask(with_key(key)));
            release(d, grant.id);
            grant.backend
        };
        let before: Vec<_> = (0..400).map(|key| home(&mut d, key)).collect();
        assert!(["a", "b", "c", "d"].iter().all(|name| share(&before, name) > 40));
        assert_eq!((0..400).map(|key| home(&mut d, key)).collect::<Vec<_>>(), before);
        d.remove(ids[2]);
        for (key, &was) in before.iter().enumerate() {
            assert!(was == "c" || home(&mut d, key as u64) == was);
        }
        // One key for all: nobody has more than a quarter above its share.
        let hot: Vec<_> = (0..90).map(|_| granted(d.ask(with_key(7))).backend).collect();
        for name in ["a", "b", "d"] {
            assert!(share(&hot, name) <= 38, "{name}: {}", share(&hot, name));
        }
        assert!(share(&hot, before[7]) >= 37 || before[7] == "c");
    }
}

#[test]
fn a_key_whose_backend_is_full_goes_on_and_waits_only_when_all_are() {
    let (mut d, _) = dispatch(Policy::Hash(Key::Path), &[("a", 1), ("b", 1)]);
    let first = granted(d.ask(with_key(1))).backend;
    assert_ne!(granted(d.ask(with_key(1))).backend, first);
    waiting(d.ask(with_key(1)));
}

/// Where all are busy for a moment, a key still gets its own backend if others have their own work.
#[test]
fn a_key_that_waits_gets_its_backend_where_that_answers_in_time() {
    let (mut d, ids) = dispatch(Policy::Hash(Key::Path), &[("a", 1), ("b", 1)]);
    let own = |d: &mut Plain, name| {
        (0..).find(|&key| {
            let grant = granted(d.ask(with_key(key)));
            release(d, grant.id);
            grant.backend == name
        })
    };
    let (for_a, for_b) = (own(&mut d, "a").unwrap(), own(&mut d, "b").unwrap());
    let _busy = [granted(d.ask(with_key(for_a))), granted(d.ask(with_key(for_b)))];
    let tickets = [waiting(d.ask(with_key(for_b))), waiting(d.ask(with_key(for_a)))];
    release(&mut d, ids[0]);
    assert_eq!([claim(&mut d, &tickets[0]), claim(&mut d, &tickets[1])], [None, Some("a")]);
    release(&mut d, ids[0]);
    assert_eq!(claim(&mut d, &tickets[0]), Some("a"), "b does not answer");
}

/// A backend may have a quarter more than its share, but where all others are full it has a free slot.
#[test]
fn a_free_backend_above_its_bound_is_better_than_waiting() {
    let (mut d, _) = dispatch(Policy::IpHash, &[("small", 1), ("large", 100)]);
    for key in 0..60 {
        granted(d.ask(with_key(key)));
    }
}

#[test]
fn a_backup_serves_when_no_other_does() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1)]);
        add_with(&mut d, "spare", |terms| terms.role = Role::Backup);
        let busy = granted(ask(&mut d));
        assert_eq!(busy.backend, "a");
        let waits = waiting(ask(&mut d));
        assert_eq!(granted(d.ask(tried(&ids))).backend, "spare", "{policy}: where a failed");
        d.drain(ids[0]);
        assert_eq!(claim(&mut d, &waits), Some("spare"), "{policy}: who waited moves on");
        assert_eq!(granted(ask(&mut d)).backend, "spare", "{policy}");
        add(&mut d, "b", 1);
        assert_eq!(granted(ask(&mut d)).backend, "b", "{policy}: a primary is back");
    }
}

#[test]
fn a_slow_start_grows_with_time() {
    let (mut d, start) = (new(Policy::LeastConn, 100), Instant::now());
    add_with(&mut d, "new", |terms| terms.slow_start = 16 * SECOND);
    d.tick(start);
    let ticket = (0..10).map(|_| ask(&mut d)).filter(|asked| matches!(asked, Asked::Waiting(..)));
    assert_eq!(ticket.count(), 4, "a sixteenth of 100 slots");
    assert!(d.tick(start + SECOND).wakers.is_empty());
    assert_eq!(d.tick(start + 8 * SECOND).wakers.len(), 4);
    assert_eq!((d.depth().0, d.members()[0].in_flight), (0, 10));
    d.tick(start + 20 * SECOND);
    assert_eq!(asked(&mut d, 90, false).len(), 90);
    waiting(ask(&mut d));
}

/// Its weight begins with a sixteenth, too: one turn in 17 beside a backend of the same weight.
#[test]
fn a_slow_start_grows_in_weight() {
    let (mut d, start) = (weighted(Policy::RoundRobin, &[("old", 1)]), Instant::now());
    add_with(&mut d, "new", |terms| terms.slow_start = 16 * SECOND);
    d.tick(start);
    let health_changes = |d: &mut Plain| share(&asked(d, 170, true), "new");
    assert!((9..=11).contains(&health_changes(&mut d)));
    d.tick(start + 8 * SECOND);
    // The turn that it waits for was set by the weight of before.
    health_changes(&mut d);
    assert!((55..=58).contains(&health_changes(&mut d)), "a third at half of the time");
    d.tick(start + 16 * SECOND);
    health_changes(&mut d);
    assert!((84..=86).contains(&health_changes(&mut d)));
}

#[test]
fn an_upgraded_connection_frees_its_slot() {
    let mut d = new(Policy::Queue, 100);
    let id = d.add("a", Slots::Fixed(1), MemberTerms { tunnels: 2, connections: 2, ..terms() }).0;
    granted(ask(&mut d));
    let next = waiting(ask(&mut d));
    assert!(d.upgrade(id, 0, Report::Nothing).is_some());
    assert_eq!(claim(&mut d, &next), Some("a"), "the slot goes on");
    d.upgrade(id, 0, Report::Nothing).unwrap();
    let third = waiting(ask(&mut d));
    d.end_upgraded(id);
    assert_eq!(claim(&mut d, &third), Some("a"), "only so many connections");
    d.upgrade(id, 0, Report::Nothing).unwrap();
    d.end_upgraded(id);
    granted(ask(&mut d));
    d.upgrade(id, 0, Report::Nothing);
    assert_eq!((d.members()[0].tunnels, d.members()[0].in_flight), (2, 0));
    assert_eq!(d.drain(id).0, Some(2));
    assert!(!d.end_upgraded(id).drained);
    assert!(d.end_upgraded(id).drained);
}

#[test]
fn beyond_its_class_an_upgraded_connection_keeps_its_slot() {
    let mut d = new(Policy::Queue, 100);
    let id = d.add("a", Slots::Fixed(1), MemberTerms { tunnels: 0, ..terms() }).0;
    granted(ask(&mut d));
    assert!(d.upgrade(id, 0, Report::Nothing).is_none());
    waiting(ask(&mut d));
}

/// With a service of a second and one slot, who would wait for more than 30 s is told at once.
#[test]
fn a_request_that_would_wait_too_long_is_refused_at_once() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1)]);
        let mut now = Instant::now();
        granted(ask(&mut d));
        // The last one who waited did so an hour ago.
        let before = waiting(ask(&mut d));
        d.release(ids[0], 0, Report::answered(now, now, false));
        assert!(claim(&mut d, &before).is_some());
        now += 3600 * SECOND;
        let mut tickets: Vec<_> = (0..50).map(|_| waiting(ask(&mut d))).collect();
        for served in 0..20 {
            now += SECOND;
            d.release(ids[0], 0, Report::answered(now, now, false));
            assert!(claim(&mut d, &tickets.remove(0)).is_some());
            let asked = ask(&mut d);
            match asked {
                // Little is known.
                Asked::Waiting(ticket, ..) if served < 8 => tickets.push(ticket),
                Asked::TooLate(wait) if served >= 8 => assert!(wait > 30 * SECOND, "{wait:?}"),
                other => panic!("{policy}: {other:?} after {served} with {}", tickets.len()),
            }
        }
        while tickets.len() > 28 {
            d.cancel(&tickets.pop().unwrap());
        }
        waiting(ask(&mut d));
    }
}

/// The next one gets its slot as any other.
#[test]
fn a_client_that_leaves_delays_no_other() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 1)]);
    let mut now = Instant::now();
    granted(ask(&mut d));
    for _ in 0..44 {
        waiting(ask(&mut d));
    }
    for served in 0..20 {
        now += SECOND;
        let answered = Report::answered(now, now, false);
        d.release(ids[0], 0, if served % 2 == 0 { answered } else { Report::left(now, now) });
    }
    // For 25 s.
    waiting(ask(&mut d));
}

#[test]
fn retries_have_a_budget() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 500), ("b", 500)]);
    let retried = |d: &mut Plain| {
        let asked = (0..300).map(|_| d.ask(tried(&ids[..1])));
        asked.filter(|asked| matches!(asked, Asked::Granted(_))).count()
    };
    assert_eq!(retried(&mut d), 100, "the few");
    asked(&mut d, 200, false);
    assert_eq!(retried(&mut d), 40, "and a fifth");
    assert_eq!(d.retries(), RetryCounts { sent: 140, refused: 460 });
}

#[test]
fn a_wait_before_a_pause_says_nothing_of_one_after_it() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy.clone(), &[("a", 1)]);
        d.limits.wait = Duration::from_secs(1);
        granted(ask(&mut d));
        for _ in 0..20 {
            waiting(ask(&mut d));
        }
        let start = Instant::now();
        for handed in 1..=10 {
            let ended = start + Duration::from_secs(9) * handed;
            d.release(ids[0], 0, Report::answered(start, ended, false));
        }
        assert!(matches!(ask(&mut d), Asked::TooLate(_)), "{policy}");
        d.set_slots(ids[0], 0);
        d.set_slots(ids[0], 1);
        waiting(ask(&mut d));
    }
}

/// An upgraded connection may last for days.
#[test]
fn no_request_waits_behind_upgraded_connections() {
    for policy in all() {
        let mut d = new(policy.clone(), 100);
        let full = d.add("a", Slots::Fixed(4), MemberTerms { connections: 2, ..terms() }).0;
        for _ in 0..2 {
            let grant = d.grant(full.index);
            d.upgrade(full, grant.ordinal, Report::Nothing).unwrap();
        }
        add(&mut d, "b", 99);
        for key in 0..40 {
            let asked = d.ask(RequestHints { key: Some(key), ..RequestHints::default() });
            assert_eq!(granted(asked).backend, "b", "{policy}");
        }
    }
}

#[test]
fn requests_move_on_from_a_backend_that_an_upgrade_filled() {
    for (policy, role) in all()
        .into_iter()
        .flat_map(|policy| [Role::Primary, Role::Backup].map(|r| (policy.clone(), r)))
    {
        let mut d = new(policy.clone(), 100);
        let full = d.add("a", Slots::Fixed(1), MemberTerms { connections: 1, ..terms() }).0;
        let grant = granted(ask(&mut d));
        let waits = waiting(ask(&mut d));
        d.add("b", Slots::Fixed(1), MemberTerms { role, ..terms() });
        d.upgrade(full, grant.ordinal, Report::Nothing).unwrap();
        assert_eq!(claim(&mut d, &waits), Some("b"), "{policy}, {role:?}");
    }
}
