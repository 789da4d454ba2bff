//! Mean, percentiles and maximum of a distribution of times, in milliseconds.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A distribution of times; a percentile is absent where the sample cannot carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Times {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Milliseconds to three digits after the point: microseconds are what was measured.
pub fn to_ms(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

/// Mean, percentiles and maximum of a histogram in microseconds; a percentile is absent where the
/// sample cannot carry it.
pub fn times(micros: &Histogram<u64>) -> Times {
    if micros.is_empty() {
        return Times::default();
    }
    let ms = |us: u64| to_ms(Duration::from_micros(us).as_secs_f64());
    let at = |percent: f64| {
        let carried = micros.len() >= load::Histogram::samples_for(percent);
        carried.then(|| ms(micros.value_at_percentile(percent)))
    };
    Times {
        mean: Some(to_ms(micros.mean() / 1e6)),
        p50: at(50.0),
        p75: at(75.0),
        p90: at(90.0),
        p95: at(95.0),
        p99: at(99.0),
        p999: at(99.9),
        max: Some(ms(micros.max())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_samples_give_no_percentile() {
        let mut micros = Histogram::new(3).unwrap();
        assert_eq!(times(&micros), Times::default());
        micros.record_n(2000, 10).unwrap();
        let times = times(&micros);
        assert_eq!((times.p50, times.p95, times.max.map(f64::round)), (Some(2.0), None, Some(2.0)));
    }
}
