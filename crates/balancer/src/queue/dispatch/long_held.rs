//! The requests that a backend holds far longer than usual, such as long polls and streams of events.
//!
//! They wait for something else than the backend, so they must not take the few slots of a search from all
//! others. A request is *overtaken* if it is held for long, and the backend has answered a later one since. It
//! leaves its slot to another request. A backend that hangs answers nothing, so none of its requests is
//! overtaken.

use std::collections::VecDeque;

/// The requests in flight at a backend with `auto` slots, oldest first.
#[derive(Debug, Default)]
pub(super) struct LongHeld {
    held: VecDeque<Held>,
    /// The latest request that was answered.
    answered: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    ordinal: u32,
    /// When it was granted.
    tick: i64,
    /// Requests that were at work then, this one included.
    at_start: usize,
}

impl LongHeld {
    pub(super) fn granted(&mut self, ordinal: u32, tick: i64, at_start: usize) {
        self.held.push_back(Held { ordinal, tick, at_start });
    }

    /// Returns how many requests were at work when this one was granted.
    pub(super) fn released(&mut self, ordinal: u32, answered: bool) -> usize {
        // What is released was mostly granted lately, while the oldest ones stay.
        let place = self.held.iter().rposition(|held| held.ordinal == ordinal);
        let held = place.and_then(|place| self.held.remove(place));
        let later = |known: u32| ordinal.wrapping_sub(known) < u32::MAX / 2;
        if answered && self.answered.is_none_or(later) {
            self.answered = Some(ordinal);
        }
        held.map_or(1, |held| held.at_start)
    }

    /// How many were granted at this tick or earlier.
    pub(super) fn since(&self, tick: i64) -> usize {
        self.held.iter().take_while(|held| held.tick <= tick).count()
    }

    /// How many of those were overtaken.
    pub(super) fn overtaken_since(&self, tick: i64) -> usize {
        let Some(answered) = self.answered else { return 0 };
        let overtaken = |held: &&Held| answered.wrapping_sub(held.ordinal) < u32::MAX / 2;
        self.held.iter().take(self.since(tick)).filter(overtaken).count()
    }
}
