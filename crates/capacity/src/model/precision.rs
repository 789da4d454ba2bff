//! Finds the count that is least sure, where one more measurement would tell most.

use crate::calibration::SURE_WITHIN;
use crate::model::network::Model;
use crate::model::prediction::predict;
use crate::queueing::workload::Workload;

/// A count whose prediction is not sure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsure {
    /// Instances.
    pub instances: usize,
    /// The ends of the interval of its throughput (1/s).
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// The count whose interval under the workload is widest in proportion; `None` where all are sure.
pub fn least_sure(
    model: &Model,
    workload: &Workload,
    counts: impl Iterator<Item = usize>,
) -> Option<Unsure> {
    let unsure = |instances| {
        let p = predict(model, workload, instances);
        let half_width = (p.high - p.low) / (2.0 * p.throughput);
        (half_width, Unsure { instances, low: p.low, high: p.high })
    };
    let unsure = counts.map(unsure).filter(|(half_width, _)| *half_width > SURE_WITHIN);
    unsure.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, widest)| widest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::saturation::{Filling, Saturation};
    use crate::testing::{model, saturation};

    const BUSY: Workload = Workload::Closed { users: 100, think: 0.0 };

    // After two instances without a shortfall, a lock is still possible. It matters more with more
    // instances.
    #[test]
    fn the_farthest_is_least_sure_until_it_was_measured() {
        let mut m = model(1, 0.1, 0.001, 2.0);
        let two = saturation(2, 20.0, 0.001, 0.1);
        m.fit(&[two]);
        assert_eq!(least_sure(&m, &BUSY, 1..3), None);
        let unsure = least_sure(&m, &BUSY, 1..13).unwrap();
        assert_eq!(unsure.instances, 12);
        m.fit(&[two, saturation(12, 119.0, 0.001, 0.2)]);
        assert_eq!(least_sure(&m, &BUSY, 1..13), None);
    }

    // What was sent and answered is a bound. The curve goes on at least as far.
    #[test]
    fn a_load_below_the_limit_says_something_too() {
        let mut m = model(1, 0.1, 0.001, 2.0);
        let two = saturation(2, 19.6, 0.001, 0.1);
        m.fit(&[two]);
        let width =
            |m: &Model| least_sure(m, &BUSY, 8..9).map_or(0.0, |u| (u.high - u.low) / u.high);
        let before = width(&m);
        let eight = Saturation { filling: Filling::Partial, ..saturation(8, 76.0, 0.001, 0.2) };
        m.fit(&[two, eight]);
        let after = width(&m);
        assert!(before > 0.1 && after < 0.5 * before, "{before} then {after}");
    }
}
