//! Demands by regression. The slope of busy seconds over requests is what a request costs. The intercept is
//! what else ran meanwhile.
//!
//! Ordinary least squares with Student's t. Source: Rolia and Vetland, "Parameter Estimation for
//! Performance Models of Distributed Application Systems", CASCON 1995.

use serde::Serialize;

use crate::stats::interval::{Interval, student_t_975};

/// A straight line through measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What one request costs, with its 95 % interval.
    pub slope: Interval,
    /// What is used without any request.
    pub intercept: f64,
}

impl Line {
    /// Through pairs of throughput (1/s) and busy cores. `None` with fewer than three pairs, or
    /// throughputs that are all the same.
    pub fn fit(points: &[(f64, f64)]) -> Option<Line> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let xx: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
        if points.len() < 3 || xx <= 1e-6 * n * x * x {
            return None;
        }
        let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / xx;
        let intercept = y - slope * x;
        let residual: f64 = points.iter().map(|p| (p.1 - intercept - slope * p.0).powi(2)).sum();
        let degrees = points.len() - 2;
        let error = (residual / degrees as f64 / xx).sqrt();
        let half_width = student_t_975(degrees) * error;
        Some(Line { slope: Interval { mean: slope, half_width }, intercept })
    }

    /// The slope, if its interval excludes 0. Otherwise there may be no demand.
    pub fn demand(&self) -> Option<f64> {
        (self.slope.mean > self.slope.half_width).then_some(self.slope.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_cpu_is_the_intercept() {
        // 2 ms a request beside 0.3 cores of something else.
        let points = [10.0, 50.0, 100.0, 200.0].map(|x| (x, 0.3 + 0.002 * x));
        let line = Line::fit(&points).unwrap();
        assert!((line.demand().unwrap() - 0.002).abs() < 1e-9);
        assert!((line.intercept - 0.3).abs() < 1e-9);
    }

    #[test]
    fn cpu_that_does_not_follow_the_load_gives_no_demand() {
        let line = Line::fit(&[(10.0, 0.2), (50.0, 0.4), (100.0, 0.1), (200.0, 0.3)]).unwrap();
        assert_eq!(line.demand(), None);
    }

    // Anscombe's first set: slope 0.5 with a standard error of 0.118, t(9) = 2.262.
    #[test]
    fn the_fit_matches_anscombes_published_line() {
        let xs = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let ys = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = xs.into_iter().zip(ys).collect();
        let line = Line::fit(&points).unwrap();
        assert!((line.slope.mean - 0.5001).abs() < 1e-3);
        assert!((line.slope.half_width - 2.262 * 0.1179).abs() < 1e-3);
        assert!((line.intercept - 3.0).abs() < 1e-2);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(Line::fit(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Line::fit(&[(5.0, 1.0); 4]), None);
    }
}
