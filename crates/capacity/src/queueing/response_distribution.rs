//! The distribution of response times: a service time, and for some of the requests a wait before it.

use statrs::function::gamma::gamma_lr;

use crate::queueing::response::Response;
use crate::queueing::service_shape::ServiceShape;

/// The response times of requests whose service times depend on what they find in the system.
pub(crate) struct Mixture<'a> {
    shape: &'a ServiceShape,
    /// The middle between each point of the shape and the one before. The weight of a point is spread from
    /// its middle to the next.
    halves: Vec<f64>,
    /// Weights and mean service times (s), in order of the times.
    services: Vec<(f64, f64)>,
    /// The wait before the service.
    pub(crate) wait: Wait,
}

/// Waits of the requests that wait at all. They have the gamma distribution of two moments (Whitt, 1993,
/// "Approximations for the GI/G/m queue").
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wait {
    /// The share of requests that wait.
    pub(crate) share: f64,
    /// Seconds.
    pub(crate) mean: f64,
    /// Seconds squared.
    pub(crate) variance: f64,
}

/// Service times that differ by a smaller share are treated as one.
const SAME: f64 = 0.02;

impl<'a> Mixture<'a> {
    pub(crate) fn new(shape: &'a ServiceShape) -> Mixture<'a> {
        let x = |i: usize| shape.points[i.min(shape.points.len() - 1)].0;
        let halves =
            (0..=shape.points.len()).map(|i| f64::midpoint(x(i.saturating_sub(1)), x(i))).collect();
        Mixture { shape, halves, services: Vec::new(), wait: Wait::default() }
    }

    /// Requests of this weight are served within `mean` seconds on average.
    pub(crate) fn add(&mut self, weight: f64, mean: f64) {
        match self.services.last_mut() {
            Some((sum, known)) if (mean / *known - 1.0).abs() < SAME => *sum += weight,
            _ => self.services.push((weight, mean)),
        }
    }

    /// The mean response time (s).
    pub(crate) fn mean(&self) -> f64 {
        let total: f64 = self.services.iter().map(|s| s.0).sum();
        let service: f64 = self.services.iter().map(|(weight, mean)| weight * mean).sum();
        service / total + self.wait.share * self.wait.mean
    }

    /// Percentiles, with a mean that is known better than the mixture's.
    pub(crate) fn response(&self, mean: f64) -> Response {
        let quantile = |p| self.quantile(p);
        Response { mean, p50: quantile(0.50), p95: quantile(0.95), p99: quantile(0.99) }
    }

    fn quantile(&self, p: f64) -> f64 {
        let longest = self.shape.points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        let slowest = self.services.iter().map(|s| s.1).fold(0.0, f64::max);
        let (mut low, mut high) = (0.0, longest * slowest + 1e-9);
        while self.share_within(high) < p && high < 1e9 {
            high *= 2.0;
        }
        for _ in 0..36 {
            let middle = f64::midpoint(low, high);
            if self.share_within(middle) < p { low = middle } else { high = middle }
        }
        high
    }

    /// Share of requests that are answered within `time` seconds.
    fn share_within(&self, time: f64) -> f64 {
        // A request that waits found every slot busy, so it has one of the slowest services.
        let mut waiting = self.wait.share;
        let mut sum = 0.0;
        for (weight, mean) in self.services.iter().rev() {
            let late = weight.min(waiting);
            waiting -= late;
            for ((x, w), half) in self.shape.points.iter().zip(self.halves.windows(2)) {
                let (from, upto) = (half[0] * mean, half[1] * mean);
                if time < from {
                    break;
                }
                let served = ((time - from) / (upto - from).max(1e-12)).min(1.0);
                let within = if late > 0.0 { self.wait.within(time - x * mean) } else { 0.0 };
                sum += w * ((weight - late) * served + late * within);
            }
        }
        sum / self.services.iter().map(|s| s.0).sum::<f64>()
    }
}

impl Wait {
    /// Share of the waits that end within `time` seconds.
    fn within(&self, time: f64) -> f64 {
        if self.variance <= 1e-6 * self.mean.powi(2) {
            return if time >= self.mean * (1.0 - 1e-9) { 1.0 } else { 0.0 };
        }
        let shape = self.mean.powi(2) / self.variance;
        if time <= 0.0 { 0.0 } else { gamma_lr(shape, time * self.mean / self.variance) }
    }
}
