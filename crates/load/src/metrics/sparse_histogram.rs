//! The times of a window, in a fraction of the memory of a histogram.

use std::sync::Arc;
use std::time::Duration;

use crate::metrics::histogram::Histogram;
use crate::metrics::window_histogram::{WindowHistogram, longest_alike};

/// Counts by time, with the resolution of [`Histogram`]. It is cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    /// A part for each thread: times in microseconds and their counts, in order. The longest time, an hour,
    /// fits into 32 bits.
    parts: Vec<Arc<[(u32, u32)]>>,
}

impl SparseHistogram {
    /// The times as a histogram.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        self.add_to(&mut histogram);
        histogram
    }

    /// Adds all times to `histogram`.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (micros, count) in self.parts.iter().flat_map(|part| part.iter()) {
            histogram.record_micros(u64::from(*micros), u64::from(*count));
        }
    }

    /// A percentile, as [`Histogram::percentile`] gives it, without the memory of a histogram.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let mut all: Vec<(u32, u32)> = self.parts.iter().flat_map(|p| p.iter().copied()).collect();
        all.sort_by_key(|(micros, _)| *micros);
        let total: u64 = all.iter().map(|(_, count)| u64::from(*count)).sum();
        if total < Histogram::samples_for(percent) {
            return None;
        }
        let rank = (percent / 100.0 * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |(_, count): &&(u32, u32)| {
            seen += u64::from(*count);
            seen >= rank
        };
        let (micros, _) = all.iter().find(reaches)?;
        // The longest time of the cell, as a histogram would give it.
        let micros = if percent > 0.0 { longest_alike(*micros) } else { *micros };
        Some(Duration::from_micros(u64::from(micros)))
    }

    /// Takes what was counted, and empties the source.
    pub(crate) fn of(counts: &mut WindowHistogram) -> SparseHistogram {
        let part: Arc<[(u32, u32)]> = counts.drain().collect();
        SparseHistogram { parts: if part.is_empty() { Vec::new() } else { vec![part] } }
    }

    /// Adds another thread's part.
    pub(crate) fn merge(&mut self, other: &SparseHistogram) {
        self.parts.extend(other.parts.iter().cloned());
    }

    /// Adds later times into one part, so that memory grows only with the number of different times.
    pub(crate) fn absorb(&mut self, later: &SparseHistogram) {
        if self.parts.is_empty() {
            self.parts.clone_from(&later.parts);
            return;
        }
        let both = self.parts.iter().chain(&later.parts);
        let mut all: Vec<(u32, u32)> = both.flat_map(|part| part.iter().copied()).collect();
        // A stable sort keeps ordered runs as they are.
        all.sort_by_key(|(micros, _)| *micros);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        self.parts = vec![all.into()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::time::MILLISECOND;

    fn distribution(times: &[u64]) -> SparseHistogram {
        let mut counts = WindowHistogram::default();
        times.iter().for_each(|ms| counts.record(ms * MILLISECOND));
        SparseHistogram::of(&mut counts)
    }

    #[test]
    fn parts_add_up_merged_or_absorbed() {
        let (first, second) = (distribution(&[0, 1, 1, 7, 900]), distribution(&[1, 3_599_000]));
        let (mut merged, mut absorbed) = (first.clone(), first);
        merged.merge(&second);
        absorbed.absorb(&second);
        assert_eq!(merged.histogram().counts(), absorbed.histogram().counts());
        assert_eq!(merged.histogram().count(), 7);
        assert_eq!((merged.parts.len(), absorbed.parts.len()), (2, 1));
        assert_eq!(absorbed.parts[0].len(), 5);
        absorbed.absorb(&distribution(&[]));
        assert_eq!(absorbed.histogram().count(), 7, "nothing adds nothing");
    }

    #[test]
    fn percentiles_are_those_of_the_histogram() {
        let mut times = distribution(&(1..=200).collect::<Vec<_>>());
        times.merge(&distribution(&(201..=400).rev().collect::<Vec<_>>()));
        times.merge(&distribution(&[1000, 60_000, 3_600_000]));
        for percent in [0.0, 1.0, 50.0, 95.0, 99.0, 99.9, 100.0] {
            assert_eq!(
                times.percentile(percent),
                times.histogram().percentile(percent),
                "{percent}"
            );
        }
        assert_eq!(distribution(&[1; 58]).percentile(95.0), None);
    }
}
