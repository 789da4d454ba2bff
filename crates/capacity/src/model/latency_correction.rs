//! Corrects predicted response times by measured ones.
//!
//! A core serves the requests in its own queue while the next core idles. A sleeping core takes time to
//! wake. What the model leaves out at one count, it leaves out at other counts, too. So they take over the
//! difference of the logarithms, less the part that is chance.
//!
//! Instances with little to do are another reason. Cores sleep, caches are cold, and timers fire late. So a
//! request takes several times as long as in a ladder that never rests. This is not chance, and all counts
//! with as little to do share it. For them the whole difference counts.

use serde::Serialize;

use crate::calibration::{LATENCY_CORRECTION_MAX, REPEATABLE_SHARE};
use crate::goal::Measured;
use crate::queueing::response::Response;

/// Percentiles that were measured at a count, over those that the model predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct LatencyCorrection {
    /// The count at which it was measured.
    pub instances: usize,
    /// Ratio of the medians.
    pub p50: f64,
    /// Ratio of the 95th percentiles.
    pub p95: f64,
    /// Ratio of the 99th percentiles.
    pub p99: f64,
    /// Whether the instances had little to do.
    pub is_idle: bool,
}

impl LatencyCorrection {
    /// From one measurement and what was predicted of it; `None` where too little was measured.
    pub(crate) fn new(
        measured: &Measured,
        predicted: Response,
        is_idle: bool,
    ) -> Option<LatencyCorrection> {
        let ratio = |measured: Option<f64>, predicted: f64| {
            measured.filter(|time| *time > 0.0).map(|time| time / predicted)
        };
        let p50 = ratio(measured.p50, predicted.p50);
        // A probe at a low rate may be too short for a p95.
        let p95 = ratio(measured.p95, predicted.p95).or(p50.filter(|_| is_idle))?;
        let p99 = ratio(measured.p99, predicted.p99).unwrap_or(p95);
        let p50 = p50.unwrap_or(p95);
        Some(LatencyCorrection { instances: measured.instances, p50, p95, p99, is_idle })
    }

    /// The correction that was measured nearest to a count.
    pub(crate) fn nearest(
        all: &[LatencyCorrection],
        instances: usize,
    ) -> Option<&LatencyCorrection> {
        all.iter().min_by_key(|c| (c.instances.abs_diff(instances), c.instances))
    }

    /// Applies the whole difference, or the part of it that another count shares.
    pub(crate) fn applied(&self, response: Response, is_whole: bool) -> Response {
        let factor = |ratio: f64| match is_whole {
            true => ratio,
            false => ratio
                .clamp(1.0 / LATENCY_CORRECTION_MAX, LATENCY_CORRECTION_MAX)
                .powf(REPEATABLE_SHARE),
        };
        let p50 = factor(self.p50) * response.p50;
        let p95 = (factor(self.p95) * response.p95).max(p50);
        let p99 = (factor(self.p99) * response.p99).max(p95);
        Response { p50, p95, p99, ..response }
    }
}

#[cfg(test)]
mod tests;
