//! The times of a window, in a fraction of the memory of a histogram.

use std::sync::Arc;

use crate::histogram::Histogram;

/// Counts by time, told apart as [`Histogram`] tells them. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// A part for each thread: time in microseconds and count. An hour, the longest time, is
    /// well within 32 bits.
    parts: Vec<Arc<[(u32, u32)]>>,
}

impl Distribution {
    /// The same as a histogram.
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

    pub(crate) fn add(&mut self, times: &Histogram) {
        if times.count() == 0 {
            return;
        }
        let narrow = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
        let recorded = times.counts().iter_recorded();
        self.parts.push(
            recorded
                .map(|at| (narrow(at.value_iterated_to()), narrow(at.count_at_value())))
                .collect(),
        );
    }

    pub(crate) fn merge(&mut self, other: &Distribution) {
        self.parts.extend(other.parts.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn gives_back_what_it_was_made_of() {
        let mut histogram = Histogram::new();
        for ms in [0, 1, 1, 7, 900, 3_599_000, 9_999_999] {
            histogram.record(Duration::from_millis(ms));
        }
        let mut distribution = Distribution::default();
        distribution.add(&histogram);
        assert_eq!(distribution.histogram().counts(), histogram.counts());
        distribution.merge(&distribution.clone());
        assert_eq!(distribution.histogram().count(), 14);
        distribution.add(&Histogram::new());
        assert_eq!(distribution.parts.len(), 2, "nothing adds nothing");
    }
}
