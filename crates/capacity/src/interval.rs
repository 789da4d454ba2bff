//! How sure a mean is: batch means with Student's t.
//!
//! Source: Law, "Simulation Modeling and Analysis", 5th ed., section 9.5.3.

use serde::Serialize;

/// A mean with the half-width of its 95 % confidence interval, both in the unit of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the width; infinite with fewer than two batches.
    pub half_width: f64,
}

impl Interval {
    /// The interval of the mean of `batches`, each the mean of an equally long stretch.
    pub fn of_batches(batches: &[f64]) -> Interval {
        let n = batches.len();
        let mean = batches.iter().sum::<f64>() / n.max(1) as f64;
        if n < 2 {
            return Interval { mean, half_width: f64::INFINITY };
        }
        let variance = batches.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        Interval { mean, half_width: student_t_975(n - 1) * (variance / n as f64).sqrt() }
    }

    /// Half-width as a share of the mean; infinite for a mean of zero.
    pub fn relative(&self) -> f64 {
        if self.mean == 0.0 { f64::INFINITY } else { self.half_width / self.mean.abs() }
    }
}

/// Two-sided 95 % quantile of Student's t: exact values up to 30 degrees of freedom, then
/// the first term of the expansion around the normal quantile, which is right to 0.2 % from there on.
fn student_t_975(degrees: usize) -> f64 {
    const EXACT: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    EXACT
        .get(degrees.wrapping_sub(1))
        .copied()
        .unwrap_or_else(|| NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * degrees as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_width_of_a_known_sample() {
        // Mean 3, standard deviation sqrt(2.5), t(4) = 2.776.
        let i = Interval::of_batches(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(i.mean, 3.0);
        assert!((i.half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn one_batch_says_nothing() {
        assert_eq!(Interval::of_batches(&[7.0]).half_width, f64::INFINITY);
        assert_eq!(Interval::of_batches(&[]).relative(), f64::INFINITY);
    }

    #[test]
    fn t_approaches_the_normal_quantile() {
        assert!((student_t_975(60) - 2.000).abs() < 0.003);
        assert!((student_t_975(1_000_000) - 1.96).abs() < 0.001);
    }
}
