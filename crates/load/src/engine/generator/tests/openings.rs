//! What is ready is not held up by connections that are to be opened.

use super::sessions::{TWO, play, script};
use super::*;

/// Many users come at once, and then the first one's next request is due. No action is carried out.
fn in_system(mut sim: Sim, before: Nanos, due: Nanos) -> Sim {
    sim.run_until(before);
    sim.set_users(50);
    sim.generator.tick(due);
    sim
}

fn assert_sends_first(sim: &mut Sim) {
    assert_eq!(sim.generator.next_action(), Some(Action::Send(0)));
    assert_eq!(sim.generator.next_action(), None);
    let openings = std::iter::from_fn(|| sim.generator.next_opening());
    assert_eq!(openings.collect::<Vec<u32>>(), (1..50).collect::<Vec<u32>>());
}

#[test]
fn a_request_goes_before_openings_that_were_due_earlier() {
    let sim = Sim::closed(1, ms(100), Server::Parallel(ms(10), OK));
    assert_sends_first(&mut in_system(sim, ms(105), ms(110)));
}

#[test]
fn so_does_a_step_of_a_session() {
    let sim = Sim::closed(1, 0, Server::Parallel(ms(100), OK));
    let sim = play(&script("", TWO), sim, None);
    assert_sends_first(&mut in_system(sim, ms(550), ms(600)));
}

#[test]
fn what_is_wanted_no_more_is_not_opened() {
    let sim = Sim::closed(1, ms(100), Server::Parallel(ms(10), OK));
    let mut sim = in_system(sim, ms(105), ms(106));
    sim.generator.end(ms(107));
    assert_eq!(sim.generator.next_opening(), None);
}
