//! Connections that end, by the server or by their silence, and where their requests go.

use super::*;

#[test]
fn a_connection_that_the_server_winds_up_is_replaced_without_an_error() {
    let mut sim = Sim::new(2, 2, good);
    sim.answer(0, b"a");
    sim.server(0).connection().graceful_shutdown();
    sim.turn();
    sim.pass(THINK);
    assert_eq!((sim.opens, sim.asked()), (2, 2), "one is still under way, the next is elsewhere");
    sim.answer(0, b"b");
    assert_eq!(sim.peers.len(), 1, "the first connection has ended");
    sim.pass(THINK);
    assert_eq!((sim.opens, sim.asked()), (2, 2));
    let tally = sim.tally();
    assert_eq!((tally.requests, tally.reconnects, tally.errors.iter().sum::<u64>()), (2, 1, 0));
}

#[test]
fn unprocessed_requests_go_out_at_once_on_a_new_connection() {
    let mut sim = Sim::new(2, 2, good);
    sim.answer(0, b"a");
    sim.pass(THINK);
    // The first request was stream 1; the second one, 3, is under way, and 5 is refused.
    let last = 3_u32.to_be_bytes();
    sim.load.received(0, &frame(GO_AWAY, 0, 0, &[last, [0; 4]].concat()), sim.now);
    sim.turn();
    assert_eq!((sim.opens, sim.server(1).asked.len()), (2, 1));
    sim.answer(1, b"b");
    assert_eq!(sim.peers.len(), 2, "the stream of the first connection is still under way");
    let tally = sim.tally();
    assert_eq!((tally.requests, tally.errors.iter().sum::<u64>(), tally.repeated), (2, 0, 1));
    // What is under way there has a time of its own.
    sim.pass(TIMEOUT);
    assert_eq!(sim.errors(), [(ErrorKind::Timeout, 1)]);
    assert!(!sim.peers.contains_key(&0));
}

#[test]
fn links_of_connections_that_have_ended_are_used_again() {
    let mut sim = Sim::new(2, 2, good);
    for _ in 0..5 {
        let oldest = *sim.peers.keys().min().unwrap();
        sim.answer(oldest, b"a");
        sim.server(oldest).connection().graceful_shutdown();
        sim.turn();
        sim.pass(THINK);
        sim.answer(oldest, b"b");
        sim.pass(THINK);
    }
    assert_eq!((sim.opens, sim.load.links.len()), (6, 2));
    assert_eq!(sim.errors(), []);
}

#[test]
fn a_connection_that_the_server_gives_up_fails_its_streams_by_name() {
    let mut sim = Sim::new(2, 2, good);
    sim.server(0).connection().abrupt_shutdown(Reason::INTERNAL_ERROR);
    sim.turn();
    sim.load.lost(0, Disconnect::Close, 0);
    assert_eq!(sim.errors(), [(ErrorKind::GoAway, 2)]);
    sim.pass(THINK);
    assert_eq!((sim.opens, sim.asked()), (2, 2));
}

#[test]
fn a_server_that_closes_every_connection_at_once_is_not_tried_for_ever() {
    let closing = |_| Peer::Says([&SETTINGS[..], &frame(GO_AWAY, 0, 0, &[0; 8])].concat());
    let mut sim = Sim::new(1, 1, closing);
    sim.pass(10 * THINK);
    let failed = sim.errors();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, ErrorKind::GoAway);
    assert!(sim.opens <= 11, "{} connections", sim.opens);
}

#[test]
fn only_goaway_says_that_a_stream_was_not_processed() {
    let mut sim = Sim::new(2, 2, good);
    sim.load.lost(0, Disconnect::Reset, 0);
    sim.pass(THINK);
    assert_eq!(sim.errors(), [(ErrorKind::Reset, 2)]);
    sim.answer(0, b"a");
    sim.load.lost(0, Disconnect::ClosedBefore, sim.now);
    assert_eq!(sim.errors(), [(ErrorKind::ClosedEarly, 1)]);
    assert_eq!(sim.tally().repeated, 0);
}

#[test]
fn a_silent_server_is_left_for_a_new_connection() {
    let mut sim = Sim::new(2, 2, good);
    sim.pass(TIMEOUT);
    assert_eq!(sim.errors(), [(ErrorKind::Timeout, 2)]);
    sim.pass(THINK);
    assert_eq!(sim.opens, 2);
}
