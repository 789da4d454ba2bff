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
fn a_target_that_cost_two_backends_gets_an_idle_one_alone_and_never_the_last() {
    for policy in all() {
        let (mut d, ids) = dispatch(policy, &[("a", 4), ("b", 4), ("c", 4), ("d", 4)]);
        let poison = request(&d, POISON, 1);
        kill(&mut d, ids[0], &poison);
        assert!(!d.is_confined(&poison), "once may be chance");
        kill(&mut d, ids[1], &poison);
        assert!(d.is_confined(&request(&d, POISON, 2)), "for everybody");
        assert!(!d.is_confined(&request(&d, "GET /crash?q HTTP/1.1\r\n", 2)), "query");
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
fn a_request_is_repeated_where_its_backend_has_only_closed_the_connection() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4), ("b", 4)]);
    let mut lost = request(&d, POISON, 1);
    lost.tried.push(ids[0]);
    lost.loss = Some(d.on_loss(ids[0], &lost));
    assert!(matches!(d.ask(lost), Asked::Confined));
    (0..3).for_each(|_| drop(d.tick(Instant::now())));
    assert!(matches!(d.ask(lost), Asked::Granted(_)));
}

#[test]
fn answers_acquit_those_that_were_there_by_chance() {
    let names = ["a", "b", "c", "d", "e"].map(|name| (name, 4));
    let (mut d, ids) = dispatch(Policy::Queue, &names);
    let (ordinary, poison) = (request(&d, "GET / HTTP/1.1\r\n", 1), request(&d, POISON, 1));
    for id in &ids[..4] {
        for lost in [ordinary, ordinary, poison] {
            d.on_loss(*id, &lost);
        }
        assert!(d.on_death(*id));
        d.remove(*id);
        // Slow answers, one for each death.
        d.on_answer(&ordinary);
    }
    assert!(!d.is_confined(&ordinary), "although a neighbour's client has had four strikes");
    assert!(d.is_confined(&poison));
}

#[test]
fn what_has_cost_a_backend_before_is_not_repeated() {
    let names = ["a", "b", "c", "d", "e"].map(|name| (name, 4));
    let (mut d, ids) = dispatch(Policy::Queue, &names);
    let mut lose = |client, path: &str, id| {
        let mut lost = request(&d, &format!("GET {path} HTTP/1.1\r\n"), client);
        lost.loss = Some(d.on_loss(id, &lost));
        lost.tried.push(id);
        d.on_death(id);
        let asked = d.ask(lost);
        d.on_answer(&request(&d, "GET /known HTTP/1.1\r\n", 1));
        matches!(asked, Asked::Granted(_))
    };
    assert!(lose(1, "/1", ids[0]), "once may be chance");
    assert!(lose(1, "/2", ids[0]), "it is the same death");
    assert!(!lose(1, "/3", ids[1]), "the client");
    assert!(!lose(2, "/1", ids[2]), "the path");
    assert!(lose(1, "/known", ids[3]), "it was answered since");
}

#[test]
fn a_closed_connection_alone_is_no_death() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4), ("b", 4)]);
    let rude = request(&d, POISON, 1);
    (0..9).for_each(|_| {
        d.on_loss(ids[0], &rude);
    });
    assert!(!d.is_confined(&rude));
    d.tick(Instant::now());
    assert!(d.has_suspects());
    (0..700).for_each(|_| drop(d.tick(Instant::now())));
    assert!(!d.has_suspects(), "a minute later");
}

#[test]
fn a_repeat_may_be_lost_before_the_first_death_is_known() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4), ("b", 4), ("c", 4)]);
    let poison = request(&d, POISON, 1);
    d.on_loss(ids[0], &poison);
    d.on_loss(ids[1], &poison);
    assert!(d.on_death(ids[1]) && d.on_death(ids[0]) && d.on_death(ids[0]));
    assert!(d.is_confined(&poison));
}

#[test]
fn a_client_with_many_deadly_paths_is_confined_itself() {
    let names = ["a", "b", "c", "d", "e"].map(|name| (name, 4));
    let (mut d, ids) = dispatch(Policy::Queue, &names);
    for (n, id) in ids[..3].iter().enumerate() {
        let deadly = request(&d, &format!("GET /{n} HTTP/1.1\r\n"), 1);
        kill(&mut d, *id, &deadly);
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

    lost.route = Some(d.route(b"GET /another HTTP/1.1\r\n"));
    lost.loss = Some(d.on_loss(ids[0], &lost));
    assert!(matches!(d.ask(lost), Asked::Confined));
    add(&mut d, "a", 4);
    assert!(matches!(d.ask(lost), Asked::Granted(_)), "the other one is back");
}

#[test]
fn a_path_is_confined_with_all_its_queries_unless_some_are_answered() {
    let names = ["a", "b", "c", "d", "e"].map(|name| (name, 4));
    let (mut d, ids) = dispatch(Policy::Queue, &names);
    for (n, id) in (1..).zip(&ids[..3]) {
        let deadly = request(&d, &format!("GET /x?{n} HTTP/1.1\r\n"), n);
        kill(&mut d, *id, &deadly);
    }
    let other = request(&d, "GET /x?9 HTTP/1.1\r\n", 9);
    assert!(d.is_confined(&other));
    let harmless = request(&d, "GET /x HTTP/1.1\r\n", 9);
    (0..3).for_each(|_| d.on_answer(&harmless));
    assert!(!d.is_confined(&other));
}

/// An attacker chooses paths and addresses.
#[test]
fn the_memory_is_bounded() {
    let (mut d, ids) = dispatch(Policy::Queue, &[("a", 4)]);
    for n in 0..1000 {
        let hints = request(&d, &format!("GET /{n} HTTP/1.1\r\n"), n as u8);
        d.on_loss(ids[0], &hints);
    }
    assert!(d.suspects.len() <= 128);
}
