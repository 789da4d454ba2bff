//! How a service time varies.

use serde::{Deserialize, Serialize};

/// How the service time of a request alone in an instance varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    /// The shape without the longest times, which are at least this share of all. Also returns the mean of
    /// the kept times as a share of the whole mean. `None` if less than half is kept.
    pub fn without_longest(&self, share: f64) -> Option<(f64, ServiceShape)> {
        let (mut kept, mut total) = (Vec::new(), 0.0);
        for &(x, weight) in &self.points {
            // A point that also stands for some of the longest times is left out.
            if total + weight > 1.0 - share + 1e-9 {
                break;
            }
            total += weight;
            kept.push((x, weight));
        }
        if total < 0.5 {
            return None;
        }
        let mean = kept.iter().map(|(x, weight)| x * weight).sum::<f64>() / total;
        let points: Vec<(f64, f64)> =
            kept.into_iter().map(|(x, weight)| (x / mean, weight / total)).collect();
        let scv = points.iter().map(|(x, weight)| weight * (x - 1.0).powi(2)).sum();
        Some((mean, ServiceShape { scv, points }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttled_requests_are_left_out_of_the_shape() {
        let stopped = ServiceShape { scv: 4.0, points: vec![(0.2, 0.6), (0.4, 0.2), (4.0, 0.2)] };
        let (mean, shape) = stopped.without_longest(0.2).unwrap();
        assert!((mean - 0.25).abs() < 1e-9 && shape.points.len() == 2);
        assert!((shape.points[0].0 - 0.8).abs() < 1e-9 && (shape.scv - 0.12).abs() < 1e-9);
        // One of the longest times may be in the point before.
        let (mean, shape) = stopped.without_longest(0.21).unwrap();
        assert!((mean - 0.2).abs() < 1e-9 && shape == ServiceShape::constant());
        assert_eq!(stopped.without_longest(0.5), None);
    }
}
