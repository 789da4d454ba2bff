//! Whether an instance serves all waiting requests alike.
//!
//! With `c` requests in flight all the time, the mean response time is `c / X` (Little's law), whatever the
//! order of service. If the median is far below the mean, most requests are answered early and a few wait
//! for all the others. A server that keeps a thread for a busy connection starves the rest.
//!
//! Service times that vary look alike, but they do so even with one request in flight.

use crate::calibration::UNFAIR_MEDIAN_SHARE;

/// Response times (s) of an instance with so many requests in flight all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// Requests in flight.
    pub concurrency: usize,
    /// Completed requests a second.
    pub throughput: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

impl Loaded {
    /// The mean response time (s), by Little's law.
    pub fn mean(&self) -> f64 {
        self.concurrency as f64 / self.throughput
    }

    fn median_share(&self) -> f64 {
        self.p50 / self.mean()
    }
}

/// The concurrency at which service is most unfair, if it is unfair at any. `alone` is the median over the
/// mean with one request in flight.
pub fn most_unfair(alone: f64, loaded: &[Loaded]) -> Option<Loaded> {
    let most = loaded.iter().min_by(|a, b| a.median_share().total_cmp(&b.median_share()))?;
    (most.median_share() < UNFAIR_MEDIAN_SHARE * alone.min(1.0)).then_some(*most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(concurrency: usize, throughput: f64, p50: f64, p95: f64) -> Loaded {
        Loaded { concurrency, throughput, p50: p50 / 1e3, p95: p95 / 1e3 }
    }

    // Puma with five threads, 15 ms of sleep: a thread serves its connection again before one that waits.
    #[test]
    fn a_flat_median_beside_a_growing_mean_is_unfair() {
        let four = loaded(4, 250.0, 15.89, 16.69);
        let eight = loaded(8, 310.8, 15.92, 143.5);
        let sixteen = loaded(16, 310.4, 15.97, 358.4);
        assert_eq!(most_unfair(0.99, &[four]), None);
        assert_eq!(most_unfair(0.99, &[four, eight]), Some(eight));
        assert_eq!(most_unfair(0.99, &[four, eight, sixteen]), Some(sixteen));
        assert!((sixteen.mean() - 0.0515).abs() < 1e-4);
    }

    // gunicorn, Express, and a JVM: all requests wait about as long.
    #[test]
    fn a_queue_in_order_is_fair() {
        let fair = [
            loaded(8, 163.9, 47.04, 58.6),
            loaded(16, 167.7, 93.76, 106.6),
            loaded(32, 3568.3, 8.71, 15.13),
            loaded(4, 2950.3, 1.08, 2.64),
        ];
        assert_eq!(most_unfair(0.85, &fair), None);
    }

    // A request takes 4 ms, and one in ten takes 60 ms. Even alone, the median is far below the mean.
    #[test]
    fn varying_service_times_are_not_unfair() {
        let shared = loaded(4, 400.0, 4.1, 61.0);
        assert_eq!(most_unfair(0.42, &[shared]), None);
        assert_eq!(most_unfair(0.99, &[shared]), Some(shared));
    }
}
