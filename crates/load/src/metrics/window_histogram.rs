//! A histogram for an open window. It is quick to count into, and emptying it costs as much as it holds.
//!
//! A histogram of 23,000 cells takes tens of microseconds to scan and clear, which makes requests late. This one
//! remembers the cells that hold something, a few hundred.

use crate::clock::time::Nanos;
use crate::metrics::histogram::LONGEST_US;

/// The resolution of [`crate::Histogram`], three significant digits: 2048 cells of one microsecond, then 1024
/// for every doubling.
const WHOLE_BITS: u32 = 11;
const HALF: usize = 1 << (WHOLE_BITS - 1);
/// One more than the cell of [`LONGEST_US`].
const CELLS: usize = cell(LONGEST_US) + 1;

/// Counts by time in microseconds.
#[derive(Debug, Clone)]
pub struct WindowHistogram {
    cells: Box<[u32]>,
    /// The cells that are not zero, in the order of their first time.
    used: Vec<u32>,
}

impl Default for WindowHistogram {
    fn default() -> WindowHistogram {
        WindowHistogram { cells: vec![0; CELLS].into_boxed_slice(), used: Vec::with_capacity(HALF) }
    }
}

impl WindowHistogram {
    pub(crate) fn record(&mut self, time: Nanos) {
        let index = cell(((time + 500) / 1000).min(LONGEST_US));
        let count = &mut self.cells[index];
        if *count == 0 {
            self.used.push(index as u32);
        }
        *count += 1;
    }

    /// Takes all times in microseconds, in order, with their counts.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, u32)> {
        self.used.sort_unstable();
        let cells = &mut self.cells;
        self.used.drain(..).map(|index| (micros(index), std::mem::take(&mut cells[index as usize])))
    }
}

const fn cell(micros: u64) -> usize {
    let whole = (1 << WHOLE_BITS) - 1;
    let shift = u64::BITS - (micros | whole).leading_zeros() - WHOLE_BITS;
    shift as usize * HALF + (micros >> shift) as usize
}

/// The longest time, in microseconds, in the cell of this one.
pub(crate) fn longest_alike(micros: u32) -> u32 {
    let shift = (u32::BITS - micros.leading_zeros()).saturating_sub(WHOLE_BITS);
    micros | ((1 << shift) - 1)
}

/// The shortest time of a cell.
fn micros(cell: u32) -> u32 {
    let half = HALF as u32;
    let shift = (cell / half).saturating_sub(1);
    (cell - shift * half) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;
    use crate::metrics::sparse_histogram::SparseHistogram;

    #[test]
    fn times_are_told_apart_as_in_a_histogram() {
        let mut counts = WindowHistogram::default();
        let mut histogram = Histogram::new();
        let mut micros = 1;
        while micros < 2 * LONGEST_US {
            for time in [micros - 1, micros, micros + 1] {
                counts.record(time * 1000);
                histogram.record_micros(time.min(LONGEST_US), 1);
            }
            micros += micros / 700 + 1;
        }
        let distribution = SparseHistogram::of(&mut counts);
        assert_eq!(distribution.histogram().counts(), histogram.counts());
        assert_eq!(counts.drain().count(), 0, "empty again");
        assert!(counts.cells.iter().all(|count| *count == 0));
    }
}
