//! Counts in segments, so that the warm-up can be cut at the end of the run.
//!
//! A segment is at most a 32nd as long as all before it, and at least half of that. So any cut is met within 3 %,
//! and a run of a day has a few hundred segments. Their lengths are powers of two, like those of old windows, so
//! that both begin together.

use crate::clock::time::Nanos;
use crate::metrics::tally::{ClosedTally, Tally};

/// One thread's tallies, in order, without gaps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments {
    list: Vec<Segment>,
    windows: u64,
}

#[derive(Debug, Clone)]
struct Segment {
    start: Nanos,
    /// The number of its windows, and the most that it may have.
    windows: u64,
    room: u64,
    tally: ClosedTally,
}

const RESOLUTION: u64 = 32;

impl Segments {
    /// Adds what was counted in a window that began at `start`.
    pub(crate) fn add(&mut self, start: Nanos, tally: &ClosedTally) {
        self.windows += 1;
        match self.list.last_mut().filter(|last| last.windows < last.room) {
            Some(last) => {
                last.windows += 1;
                last.tally.count(tally);
                for (mine, later) in last.tally.times_mut().into_iter().zip(tally.times()) {
                    mine.absorb(later);
                }
            }
            None => {
                let before = self.windows - 1;
                let room = 1 << (before / RESOLUTION).max(1).ilog2();
                self.list.push(Segment { start, windows: 1, room, tally: tally.clone() });
            }
        }
    }

    /// The beginnings of segments. All counts from there on are separate from those before.
    pub(crate) fn seams(&self) -> impl Iterator<Item = Nanos> {
        self.list.iter().map(|segment| segment.start)
    }

    /// The counts from a seam on.
    pub(crate) fn from(&self, seam: Nanos) -> Tally {
        let mut sum = Tally::default();
        for segment in self.list.iter().filter(|segment| segment.start >= seam) {
            sum.add(&segment.tally);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tally::OpenTally;

    #[test]
    fn the_beginning_can_be_taken_away_and_hours_are_few() {
        let mut segments = Segments::default();
        let mut open = OpenTally::default();
        let day = 20_000;
        for window in 0..day {
            open.requests += 1;
            open.response.record(window % 100 * 1000);
            segments.add(window, &open.take());
        }
        assert!(segments.list.len() < 350, "{}", segments.list.len());
        assert_eq!(segments.seams().take(40).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
        for wanted in [0, 1, 17, 3000, 9_700] {
            let seam = segments.seams().find(|seam| *seam >= wanted).unwrap();
            assert!(seam <= wanted + wanted / RESOLUTION + 1, "{wanted} {seam}");
            let tally = segments.from(seam);
            assert_eq!((tally.requests, tally.response.count()), (day - seam, day - seam));
        }
    }
}
