//! Intervals of a prediction, from draws of the models that it rests on.

use crate::calibration::{INTERVAL_TAIL, PROBE_DEVIATION};

/// An end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The lower one.
    Low,
    /// The upper one.
    High,
}

/// Standard deviation of a measurement whose 95 % interval has this relative half-width.
pub(crate) fn deviation(half_width: f64) -> f64 {
    (half_width.min(1.0) / 1.96).hypot(PROBE_DEVIATION)
}

/// The draw at that end of the interval of `figure`.
pub(crate) fn at_bound<T>(draws: &[T], side: Side, figure: impl Fn(&T) -> f64) -> &T {
    let [low, high] = ends(draws, figure);
    match side {
        Side::Low => low.1,
        Side::High => high.1,
    }
}

/// The interval of `figure`.
pub(crate) fn interval<T>(draws: &[T], figure: impl Fn(&T) -> f64) -> (f64, f64) {
    let [low, high] = ends(draws, figure);
    (low.0, high.0)
}

fn ends<T>(draws: &[T], figure: impl Fn(&T) -> f64) -> [(f64, &T); 2] {
    let mut order: Vec<(f64, &T)> = draws.iter().map(|draw| (figure(draw), draw)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rank = (INTERVAL_TAIL * order.len() as f64) as usize;
    [order[rank], order[order.len() - 1 - rank]]
}
