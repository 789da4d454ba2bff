//! How a service time varies.

use serde::Serialize;

/// How the service time of a request alone in an instance varies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceShape {
    /// Squared coefficient of variation: 0 for a constant, 1 for an exponential time.
    pub scv: f64,
    /// Values as multiples of the mean, each with its weight; the weights sum to 1. Never empty.
    pub points: Vec<(f64, f64)>,
}

impl ServiceShape {
    /// A time that never varies.
    pub fn constant() -> ServiceShape {
        ServiceShape { scv: 0.0, points: vec![(1.0, 1.0)] }
    }

    /// The shape of requests that were not stopped, if `share` of them were, which are the longest; a
    /// constant where that is most of them.
    pub fn without_longest(&self, share: f64) -> ServiceShape {
        let mut left = 1.0 - share;
        let kept: Vec<(f64, f64)> = self
            .points
            .iter()
            .map(|&(x, weight)| {
                let weight = weight.min(left);
                left -= weight;
                (x, weight)
            })
            .take_while(|(_, weight)| *weight > 1e-9)
            .collect();
        let total: f64 = kept.iter().map(|(_, weight)| weight).sum();
        if total < 0.5 {
            return ServiceShape::constant();
        }
        let mean = kept.iter().map(|(x, weight)| x * weight).sum::<f64>() / total;
        let points: Vec<(f64, f64)> =
            kept.into_iter().map(|(x, weight)| (x / mean, weight / total)).collect();
        let scv = points.iter().map(|(x, weight)| weight * (x - 1.0).powi(2)).sum();
        ServiceShape { scv, points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_stopped_is_left_out_of_the_shape() {
        let stopped = ServiceShape { scv: 4.0, points: vec![(0.2, 0.4), (0.3, 0.4), (4.0, 0.2)] };
        let shape = stopped.without_longest(0.2);
        assert_eq!(shape.points.len(), 2);
        assert!((shape.points[0].0 - 0.8).abs() < 1e-9 && (shape.scv - 0.04).abs() < 1e-9);
        assert_eq!(stopped.without_longest(0.7), ServiceShape::constant());
    }
}
