//! How sure a prediction is: the probes are drawn again with the errors that the bootstrap over their
//! windows gave them, the model is fitted to each draw, and the spread of the answers is the interval.
//!
//! An explanation of a shortfall is drawn by its weight too, so that the interval also holds what is
//! not known of the model's form (Burnham and Anderson, "Model Selection and Multimodel Inference",
//! 2002, ch. 4).

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::model::{Model, Side};
use crate::saturation::Saturation;
use crate::sharing::Sharing;

/// So many that one in forty is one whole draw.
const DRAWS: usize = 80;
/// The interval holds all but this share of the draws on either side.
const TAIL: f64 = 0.025;
const SEED: u64 = 5;
/// No measurement is surer: a machine differs from itself by about this standard deviation from one
/// probe to the next, which windows of one probe cannot show.
const WANDER: f64 = 0.01;
/// Before a second instance was measured, all may share a station for some such share of a request.
const UNKNOWN_SHARE: f64 = 0.25;

/// Standard deviation of a measurement whose 95 % interval has this relative half-width.
pub(crate) fn deviation(half_width: f64) -> f64 {
    (half_width.min(1.0) / 1.96).hypot(WANDER)
}

/// Models of the same probes, measured again and again.
pub(crate) fn all(model: &Model, one: &Saturation) -> Vec<Model> {
    let mut random = StdRng::seed_from_u64(SEED);
    let normal = Normal::standard();
    let draw = |_| {
        let mut deviate = || normal.inverse_cdf(random.random_range(1e-6..1.0 - 1e-6));
        let mut again = model.measured_again(|error| (deviation(error) * deviate()).exp());
        if model.knows_several() {
            again.fit_by_chance(random.random_range(0.0..1.0));
        } else {
            let demand = UNKNOWN_SHARE * deviate().abs() / one.throughput;
            again.sharing = Sharing::Queue { demand };
        }
        again
    };
    (0..DRAWS).map(draw).collect()
}

/// The draw at that end of the interval of `figure`.
pub(crate) fn at_bound(draws: &[Model], side: Side, figure: impl Fn(&Model) -> f64) -> &Model {
    let [low, high] = ends(draws, figure);
    match side {
        Side::Low => low.1,
        Side::High => high.1,
    }
}

/// The interval of `figure`.
pub(crate) fn interval(draws: &[Model], figure: impl Fn(&Model) -> f64) -> (f64, f64) {
    let [low, high] = ends(draws, figure);
    (low.0, high.0)
}

fn ends(draws: &[Model], figure: impl Fn(&Model) -> f64) -> [(f64, &Model); 2] {
    let mut order: Vec<(f64, &Model)> = draws.iter().map(|model| (figure(model), model)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rank = (TAIL * order.len() as f64) as usize;
    [order[rank], order[order.len() - 1 - rank]]
}
