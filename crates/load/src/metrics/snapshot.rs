//! A copy of what the threads have handed over.

use super::published::{FinalRecord, Published, ThreadState};
use super::session_tally::SessionTally;
use super::tally::Tally;
use super::usage::Usage;
use super::window::WindowTally;
use super::window_list::{Folding, WindowList};
use crate::clock::time::Nanos;

/// A copy of what one thread has handed over.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) since: Nanos,
    pub(crate) tally: Tally,
    pub(crate) windows: WindowList,
    pub(crate) usage: Usage,
    pub(crate) state: ThreadState,
    pub(crate) final_record: Option<FinalRecord>,
    pub(crate) handshake_failure: Option<String>,
    pub(crate) sessions: SessionTally,
}

impl Snapshot {
    /// `None` while the thread has no record since the mark, unless the thread failed.
    pub(crate) fn of(published: &Published, since: Nanos) -> Option<Snapshot> {
        let copy = |known: &Published| Snapshot {
            since: known.since,
            tally: known.tally.clone(),
            windows: known.windows.clone(),
            usage: known.usage,
            state: published.state.clone(),
            final_record: known.final_record.clone(),
            handshake_failure: known.handshake_failure.clone(),
            sessions: known.sessions.clone(),
        };
        match (published.since == since, &published.state) {
            (true, _) => Some(copy(published)),
            (false, ThreadState::Failed(_)) => Some(copy(&Published::new(since))),
            (false, ThreadState::Running | ThreadState::Done) => None,
        }
    }

    pub(crate) fn starts_window_at(&self, at: Nanos) -> bool {
        self.windows.list().binary_search_by_key(&at, |window| window.start).is_ok()
    }

    /// The usage of the thread after a seam.
    pub(crate) fn usage_from(&self, seam: Nanos) -> Usage {
        let before = self.windows.list().iter().take_while(|window| window.end <= seam).last();
        before.map_or(self.usage, |window| self.usage.since(window.gauges.usage))
    }
}

/// The windows that all running threads have closed, added up over the threads.
pub(crate) fn merge_windows(threads: &[Snapshot]) -> Vec<WindowTally> {
    let folding = threads.iter().map(|t| t.windows.folding()).reduce(Folding::coarser);
    let folded: Vec<(WindowList, &ThreadState)> = threads
        .iter()
        .map(|thread| {
            let mut windows = thread.windows.clone();
            windows.fold(folding.unwrap_or_default());
            (windows, &thread.state)
        })
        .collect();
    let length = |(windows, _): &(WindowList, _)| windows.list().len();
    let running = folded.iter().filter(|(_, state)| **state == ThreadState::Running);
    let closed_by_all = running.map(length).min();
    let count = closed_by_all.or(folded.iter().map(length).max()).unwrap_or(0);
    let mut merged: Vec<WindowTally> = Vec::with_capacity(count);
    for (windows, _) in &folded {
        for (index, window) in windows.list().iter().take(count).enumerate() {
            match merged.get_mut(index) {
                Some(sum) => sum.merge(window),
                None => merged.push(window.clone()),
            }
        }
    }
    merged
}

/// The counts from a seam of all threads on, or all counts.
pub(crate) fn sum(threads: &[Snapshot], from: Nanos) -> Tally {
    let mut sum = Tally::default();
    for thread in threads {
        match &thread.final_record {
            Some(whole) if from > thread.since => sum.merge(&whole.segments.from(from)),
            _ => sum.merge(&thread.tally),
        }
    }
    sum
}
