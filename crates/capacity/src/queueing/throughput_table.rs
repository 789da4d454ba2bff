//! Completion rates by requests in service.

use crate::queueing::core_sharing::CoreSharing;

/// Rates that are computed for some numbers of requests, and interpolated between them.
pub(crate) struct ThroughputTable {
    /// In order of the requests.
    known: Vec<(f64, f64)>,
    /// What the cores do to them, at the same numbers except 0.
    core_sharings: Vec<CoreSharing>,
}

impl ThroughputTable {
    /// Up to `most` requests in service. If no end of growth was seen, up to where the rate no longer
    /// grows.
    pub(crate) fn new(
        most: usize,
        has_end: bool,
        rate: impl Fn(f64) -> f64,
        core_sharing: impl Fn(f64) -> CoreSharing,
    ) -> ThroughputTable {
        const EACH: usize = 24;
        const STEP: f64 = 1.2;
        let (mut known, mut core_sharings) = (vec![(0.0, 0.0)], Vec::new());
        let mut held = 1;
        loop {
            let rate = rate(held as f64);
            let last = known[known.len() - 1];
            known.push((held as f64, rate));
            core_sharings.push(core_sharing(held as f64));
            let is_flat = held > 2 * EACH && rate <= last.1 && !has_end;
            if held >= most || is_flat {
                return ThroughputTable { known, core_sharings };
            }
            let next = if held < EACH { held + 1 } else { (held as f64 * STEP) as usize };
            held = next.min(most);
        }
    }

    /// What the cores do to `held` requests in service, or to the largest number in the table.
    pub(crate) fn core_sharing(&self, held: f64) -> CoreSharing {
        let upto = self.known.partition_point(|(upto, _)| *upto < held).max(1);
        self.core_sharings[upto.min(self.core_sharings.len()) - 1]
    }

    /// The rate with `held` requests in service.
    pub(crate) fn at(&self, held: f64) -> f64 {
        let after = self.known.partition_point(|(upto, _)| *upto < held);
        let Some((upto, high)) = self.known.get(after) else {
            return self.known[self.known.len() - 1].1;
        };
        let Some((from, low)) = after.checked_sub(1).map(|i| self.known[i]) else { return *high };
        low + (high - low) * (held - from) / (upto - from)
    }
}
