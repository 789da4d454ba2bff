//! Completion rates of a model's instances by requests in service.

use crate::crowd::Crowd;
use crate::model::Model;

/// Worked out at some numbers of requests, and interpolated between.
pub(crate) struct Rates {
    /// In order of the requests.
    known: Vec<(f64, f64)>,
    /// What the cores do to them, at the same numbers but 0.
    crowds: Vec<Crowd>,
}

impl Rates {
    /// Up to `most` requests in service, or where the rate does not grow any more.
    pub(crate) fn new(model: &Model, instances: usize, most: usize) -> Rates {
        const EACH: usize = 24;
        const STEP: f64 = 1.2;
        let (mut known, mut crowds) = (vec![(0.0, 0.0)], Vec::new());
        let mut held = 1;
        loop {
            let rate = model.rate(instances, held as f64);
            let last = known[known.len() - 1];
            known.push((held as f64, rate));
            crowds.push(model.crowd(instances, held as f64));
            let is_flat = held > 2 * EACH && rate <= last.1 && !model.ladder.is_saturated();
            if held >= most || is_flat {
                return Rates { known, crowds };
            }
            let next = if held < EACH { held + 1 } else { (held as f64 * STEP) as usize };
            held = next.min(most);
        }
    }

    /// What the cores do to `held` requests in service, or to as many as were looked at.
    pub(crate) fn crowd(&self, held: f64) -> Crowd {
        let upto = self.known.partition_point(|(upto, _)| *upto < held).max(1);
        self.crowds[upto.min(self.crowds.len()) - 1]
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
