//! Requests that are ready are not held up by connections that are to be opened.

use super::*;

#[test]
fn a_request_goes_before_openings_that_were_due_earlier() {
    let mut sim = Sim::closed(1, ms(100), Server::Parallel(ms(10), OK));
    sim.run_until(ms(105));
    sim.set_users(50);
    assert_eq!(sim.ready_at(ms(110)), (vec![0], (1..50).collect()));
}

#[test]
fn unwanted_connections_are_not_opened() {
    let mut sim = Sim::closed(1, ms(100), Server::Parallel(ms(10), OK));
    sim.run_until(ms(105));
    sim.set_users(50);
    sim.generator.tick(ms(106));
    sim.generator.end(ms(107));
    assert_eq!(sim.generator.next_opening(), None);
}
