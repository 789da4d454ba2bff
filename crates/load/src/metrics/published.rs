//! What a thread has handed over, ready for whoever asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::segments::Segments;
use super::session_tally::SessionTally;
use super::tally::Tally;
use super::time_series::TimeSeries;
use super::usage::Usage;
use super::window_list::WindowList;
use crate::clock::time::Nanos;

/// What a thread has handed over, ready for whoever asks.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) since: Nanos,
    pub(crate) tally: Tally,
    pub(crate) windows: WindowList,
    /// What the thread used since the measuring began.
    pub(crate) usage: Usage,
    pub(crate) state: ThreadState,
    /// What the judgement at the end needs.
    pub(crate) final_record: Option<FinalRecord>,
    pub(crate) handshake_failure: Option<String>,
    pub(crate) sessions: SessionTally,
}

/// The record of a thread whose measuring is over.
#[derive(Debug, Clone)]
pub(crate) struct FinalRecord {
    pub(crate) segments: Segments,
    pub(crate) time_series: TimeSeries,
    /// The ages of requests that were under way at the end, since they were due.
    pub(crate) unanswered: Vec<Nanos>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadState {
    Running,
    Done,
    Failed(String),
}

impl Published {
    pub(crate) fn new(since: Nanos) -> Published {
        Published {
            since,
            tally: Tally::default(),
            windows: WindowList::default(),
            usage: Usage::default(),
            state: ThreadState::Running,
            final_record: None,
            handshake_failure: None,
            sessions: SessionTally::default(),
        }
    }

    pub(super) fn restart(&mut self, since: Nanos) {
        self.since = since;
        self.tally.clear();
        self.sessions = SessionTally::default();
        self.windows = WindowList::default();
        self.usage = Usage::default();
    }
}

/// Locks the place, even if a thread panicked with the lock: its numbers are still of use.
pub(crate) fn lock(place: &Mutex<Published>) -> MutexGuard<'_, Published> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
