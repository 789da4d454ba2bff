//! What requests may do that have just cost backends.

use super::*;
use crate::net::client_network::ClientNetwork;

fn request(d: &Plain, head: &str, client: u8) -> RequestHints {
    RequestHints {
        client: Some(ClientNetwork::of([192, 0, 2, client].into())),
        route: Some(d.route(head.as_bytes())),
        ..RequestHints::default()
    }
}

/// The backend closed the connection of this request, and is gone.
fn kill(d: &mut Plain, id: BackendId, hints: &RequestHints) {
    let loss = d.on_loss(id, hints);
    assert!(d.on_death(id), "{loss:?}");
    d.remove(id);
}

const POISON: &str = "GET /crash HTTP/1.1\r\n";

#[test]
fn a_route_that_cost_two_backends_gets_an_idle_one_alone_and_never_the_last() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy, &[("a", 4), ("b", 4), ("c", 4), ("d", 4)]);
        let poison = request(&d, POISON, 1);
        kill(&mut d, ids[0], &poison);
        assert!(!d.is_confined(&poison), "once may be chance");
        kill(&mut d, ids[1], &poison);
        assert!(d.is_confined(&request(&d, "GET /crash?again=1 HTTP/1.1\r\n", 2)), "path");
        let ordinary = request(&d, "GET / HTTP/1.1\r\n", 1);
        assert!(!d.is_confined(&ordinary), "a neighbour");
        assert!(!d.is_confined(&request(&d, "POST /crash HTTP/1.1\r\n", 2)), "method");

        let alone = granted(d.ask(poison));
        assert!(matches!(d.ask(poison), Asked::Confined), "the last one is kept from it");
        for _ in 0..4 {
            assert_ne!(granted(d.ask(ordinary)).id, alone.id, "nobody shares its backend");
        }
        d.release(alone.id, alone.ordinal, Report::Nothing);
        assert_eq!(granted(d.ask(ordinary)).id, alone.id);
        assert!(matches!(d.ask(poison), Asked::Confined), "none is idle");
    }
}

#[test]
fn answers_acquit_those_that_were_there_by_chance() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4), ("b", 4), ("c", 4)]);
    let ordinary = request(&d, "GET / HTTP/1.1\r\n", 1);
    kill(&mut d, ids[0], &ordinary);
    (0..10).for_each(|_| d.on_answer(&ordinary));
    assert!(!d.has_suspects());
    kill(&mut d, ids[1], &ordinary);
    assert!(!d.is_confined(&ordinary));
}

#[test]
fn a_closed_connection_alone_is_no_death() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4), ("b", 4)]);
    let rude = request(&d, POISON, 1);
    (0..9).for_each(|_| drop(d.on_loss(ids[0], &rude)));
    assert!(!d.is_confined(&rude));
    d.tick(Instant::now());
    assert!(d.has_suspects());
    (0..700).for_each(|_| drop(d.tick(Instant::now())));
    assert!(!d.has_suspects(), "a minute later");
}

#[test]
fn a_client_with_many_deadly_paths_is_confined_itself() {
    let names = ["a", "b", "c", "d", "e"].map(|name| (name, 4));
    let (mut d, ids) = dispatch(Policy::Queue, &names);
    for (n, id) in ids[..3].iter().enumerate() {
        kill(&mut d, *id, &request(&d, &format!("GET /{n} HTTP/1.1\r\n"), 1));
    }
    assert!(d.is_confined(&request(&d, "GET /new HTTP/1.1\r\n", 1)));
    assert!(!d.is_confined(&request(&d, "GET /new HTTP/1.1\r\n", 2)));
}

#[test]
fn the_last_backend_is_kept_from_what_may_have_ended_the_other() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4), ("b", 4)]);
    let mut lost = request(&d, POISON, 1);
    lost.tried.push(ids[0]);
    lost.loss = Some(d.on_loss(ids[0], &lost));
    d.on_death(ids[0]);
    d.remove(ids[0]);
    assert!(matches!(d.ask(lost), Asked::Confined));
    d.on_answer(&request(&d, POISON, 2));
    assert!(matches!(d.ask(lost), Asked::Granted(_)), "its kind is harmless");

    lost.loss = Some(d.on_loss(ids[0], &lost));
    assert!(matches!(d.ask(lost), Asked::Confined));
    add(&mut d, "a", 4);
    assert!(matches!(d.ask(lost), Asked::Granted(_)), "the other one is back");
}

/// An attacker chooses paths and addresses.
#[test]
fn the_memory_is_bounded() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4)]);
    for n in 0..1000 {
        let hints = request(&d, &format!("GET /{n} HTTP/1.1\r\n"), n as u8);
        d.on_loss(ids[0], &hints);
    }
    assert!(d.suspects.len() <= 64);
}
