//! Corrects predicted response times by measured ones.
//!
//! A core serves the requests in its own queue while the next core idles. A sleeping core takes time to
//! wake. What the model leaves out at one count, it leaves out at other counts, too. So they take over the
//! difference of the logarithms, less the part that is chance.
//!
//! A measured count also has its own reasons, so it keeps more. Chance explains the square of itself in the
//! square of the difference (Efron and Morris 1973), and the rest stays.
//!
//! Instances with little to do are another reason. Cores sleep, caches are cold, and timers fire late. So a
//! request takes several times as long as in a ladder that never rests. This is not chance, and all counts
//! with as little to do share it. For them the whole difference counts.

use serde::Serialize;

use crate::calibration::{LATENCY_CORRECTION_MAX, PERCENTILE_DEVIATION, REPEATABLE_SHARE};
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
    /// By how much the logarithm of a percentile may be off by chance, 95 %.
    pub chance: f64,
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
        let (instances, chance) = (measured.instances, chance(measured));
        Some(LatencyCorrection { instances, p50, p95, p99, chance, is_idle })
    }

    /// The correction that was measured nearest to a count.
    pub(crate) fn nearest(
        all: &[LatencyCorrection],
        instances: usize,
    ) -> Option<&LatencyCorrection> {
        all.iter().min_by_key(|c| (c.instances.abs_diff(instances), c.instances))
    }

    /// Applies the part of the difference that so many instances have. It is the whole one where all have
    /// little to do.
    pub(crate) fn applied(&self, response: Response, instances: usize, is_whole: bool) -> Response {
        let factor = |ratio: f64| {
            if is_whole {
                ratio
            } else if instances == self.instances {
                ratio.powf(self.own_share(ratio))
            } else {
                ratio
                    .clamp(1.0 / LATENCY_CORRECTION_MAX, LATENCY_CORRECTION_MAX)
                    .powf(REPEATABLE_SHARE)
            }
        };
        let p50 = factor(self.p50) * response.p50;
        let p95 = (factor(self.p95) * response.p95).max(p50);
        let p99 = (factor(self.p99) * response.p99).max(p95);
        Response { p50, p95, p99, ..response }
    }

    /// The share of a difference that is no chance, at the count where it was measured.
    fn own_share(&self, ratio: f64) -> f64 {
        (1.0 - (self.chance / ratio.ln()).powi(2)).max(REPEATABLE_SHARE)
    }
}

/// How far the logarithm of a measured p95 may be from that of another run, 95 %: runs vary, the sample is
/// finite, and a disturbance may have made all of it slower.
fn chance(measured: &Measured) -> f64 {
    // The slowest twentieth as an exponential tail, of which p99 leaves a fifth.
    let tail = match (measured.p95, measured.p99) {
        (Some(p95), Some(p99)) => (p99 / p95 - 1.0) / 5_f64.ln(),
        _ => 1.0,
    };
    let requests = measured.throughput * measured.duration;
    let sampling = tail * (0.95 / 0.05 / requests).sqrt();
    (1.96 * PERCENTILE_DEVIATION).hypot(1.96 * sampling).hypot(measured.slowdown.ln())
}

#[cfg(test)]
mod tests;
