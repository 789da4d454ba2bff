//! How sure a mean is: the block bootstrap over windows with Student's t.

use serde::{Deserialize, Serialize};

use crate::stats::bootstrap;

/// A mean with the half-width of its 95 % confidence interval, both in the unit of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the width; infinite with too few windows.
    pub half_width: f64,
}

/// A fixed seed gives the same windows the same interval.
const SEED: u64 = 3;

impl Interval {
    /// The interval of the mean of `windows`. Each is the mean of an equally long stretch. Neighbours may
    /// resemble each other ([`bootstrap`]).
    pub fn of_windows(windows: &[f64]) -> Interval {
        let mean = |drawn: &[usize]| {
            drawn.iter().map(|i| windows[*i]).sum::<f64>() / drawn.len().max(1) as f64
        };
        let [estimate] = bootstrap::estimates(windows.len(), SEED, |drawn| [Some(mean(drawn))]);
        let half_width = estimate
            .map_or(f64::INFINITY, |e| student_t_975(e.degrees as usize) * e.variance.sqrt());
        let all: Vec<usize> = (0..windows.len()).collect();
        Interval { mean: mean(&all), half_width }
    }

    /// The interval in which another value like these will lie, about their mean. A single value has no
    /// width.
    pub fn of_another(values: &[f64]) -> Interval {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Interval { mean, half_width: 0.0 };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0) * (1.0 + 1.0 / n)).sqrt();
        Interval { mean, half_width: student_t_975(values.len() - 1) * deviation }
    }

    /// Half-width as a share of the mean; infinite for a mean of zero.
    pub fn relative(&self) -> f64 {
        if self.mean == 0.0 { f64::INFINITY } else { self.half_width / self.mean.abs() }
    }
}

/// Two-sided 95 % quantile of Student's t. Up to 30 degrees of freedom the values are exact. Beyond, the
/// first term of the expansion around the normal quantile is right to 0.2 %.
pub(crate) fn student_t_975(degrees: usize) -> f64 {
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
    fn independent_windows_have_the_textbooks_interval() {
        // 64 windows that alternate at random between 1 and 3 by a fixed pattern of bits.
        let bits = 0x5AC3_96E1_7B24_D80F_u64;
        let windows: Vec<f64> =
            (0..64).map(|i| if bits >> i & 1 == 1 { 3.0 } else { 1.0 }).collect();
        let interval = Interval::of_windows(&windows);
        let textbook = student_t_975(63) * (1.0 / 64.0_f64).sqrt();
        assert!((interval.mean - 2.0).abs() < 0.1);
        assert!((0.5..1.5).contains(&(interval.half_width / textbook)), "{interval:?}");
    }

    // Student's own: ten differences of sleep, 1.58 hours with a standard deviation of 1.23.
    #[test]
    fn another_value_is_less_sure_than_the_mean() {
        let hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let interval = Interval::of_another(&hours);
        assert!((interval.mean - 1.58).abs() < 1e-9);
        assert!((interval.half_width - 2.262 * 1.230 * 1.1_f64.sqrt()).abs() < 1e-2);
        assert_eq!(Interval::of_another(&[2.0]), Interval { mean: 2.0, half_width: 0.0 });
    }

    #[test]
    fn a_few_windows_say_nothing() {
        assert_eq!(Interval::of_windows(&[7.0]).half_width, f64::INFINITY);
        assert_eq!(Interval::of_windows(&[]).relative(), f64::INFINITY);
    }

    #[test]
    fn t_approaches_the_normal_quantile() {
        assert!((student_t_975(60) - 2.000).abs() < 0.003);
        assert!((student_t_975(1_000_000) - 1.96).abs() < 0.001);
    }
}
