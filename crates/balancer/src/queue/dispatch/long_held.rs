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
    /// Ordinals, and the ticks at which they were granted.
    held: VecDeque<(u32, i64)>,
    /// The latest request that was answered.
    answered: Option<u32>,
}

impl LongHeld {
    pub(super) fn granted(&mut self, ordinal: u32, tick: i64) {
        self.held.push_back((ordinal, tick));
    }

    pub(super) fn released(&mut self, ordinal: u32, answered: bool) {
        // What is released was mostly granted lately, while the oldest ones stay.
        if let Some(place) = self.held.iter().rposition(|&(held, _)| held == ordinal) {
            self.held.remove(place);
        }
        let later = |known: u32| ordinal.wrapping_sub(known) < u32::MAX / 2;
        if answered && self.answered.is_none_or(later) {
            self.answered = Some(ordinal);
        }
    }

    /// How many were granted at this tick or earlier.
    pub(super) fn since(&self, tick: i64) -> usize {
        self.held.iter().take_while(|&&(_, granted)| granted <= tick).count()
    }

    /// How many of those were overtaken.
    pub(super) fn overtaken_since(&self, tick: i64) -> usize {
        let Some(answered) = self.answered else { return 0 };
        let overtaken =
            |&&(ordinal, _): &&(u32, i64)| answered.wrapping_sub(ordinal) < u32::MAX / 2;
        self.held.iter().take(self.since(tick)).filter(overtaken).count()
    }
}
