//! Response times, as figures that are taken together.

use serde::Serialize;

/// Response time as the client sees it, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Response {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Response {
    /// What `of` makes of its figures and those of another.
    pub(crate) fn each(self, other: Response, of: impl Fn(f64, f64) -> f64) -> Response {
        Response {
            mean: of(self.mean, other.mean),
            p50: of(self.p50, other.p50),
            p95: of(self.p95, other.p95),
            p99: of(self.p99, other.p99),
        }
    }

    pub(crate) fn min(self, other: Response) -> Response {
        self.each(other, f64::min)
    }

    pub(crate) fn max(self, other: Response) -> Response {
        self.each(other, f64::max)
    }

    /// Figure by figure; `None` without any.
    pub(crate) fn mean_of(all: impl ExactSizeIterator<Item = Response>) -> Option<Response> {
        let count = all.len() as f64;
        let sum = all.reduce(|a, b| a.each(b, |a, b| a + b))?;
        Some(sum.each(sum, |sum, _| sum / count))
    }
}
