//! Stalls of the target that the percentiles of users who wait do not show.

use load::Percentiles;
use serde::{Deserialize, Serialize};

/// Times in which nothing was answered although users waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Stalls {
    pub count: u64,
    /// All of them together.
    pub duration_s: f64,
    pub longest_ms: f64,
    /// The p99 of users, who wait for their answers.
    pub p99_ms: f64,
    /// Percentiles of requests that come at the same mean rate without waiting for each other.
    pub corrected_ms: Corrected,
}

/// Percentiles of the response time without coordinated omission.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Corrected {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

impl From<load::Stalls> for Stalls {
    fn from(stalls: load::Stalls) -> Stalls {
        let Percentiles { p50, p95, p99 } = stalls.corrected;
        Stalls {
            count: stalls.count,
            duration_s: stalls.seconds,
            longest_ms: stalls.longest * 1e3,
            p99_ms: stalls.measured.p99 * 1e3,
            corrected_ms: Corrected { p50: p50 * 1e3, p95: p95 * 1e3, p99: p99 * 1e3 },
        }
    }
}
