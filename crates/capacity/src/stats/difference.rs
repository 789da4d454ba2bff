//! How much two means differ, and how sure that is.
//!
//! Sources:
//! Welch, "The generalization of 'Student's' problem when several different population variances are
//! involved", Biometrika 34 (1947).
//! Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2
//! (1946).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimated difference with its confidence interval, in the unit of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The second minus the first.
    pub estimate: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

/// An estimate, the variance of the estimate itself, and the degrees of freedom behind that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) variance: f64,
    pub(crate) degrees: f64,
}

impl Difference {
    /// Whether the interval excludes 0.
    pub fn is_significant(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The difference of two estimates with unequal variances. `confidence` is a share, as in 0.95.
    pub(crate) fn between(a: Estimate, b: Estimate, confidence: f64) -> Difference {
        let estimate = b.value - a.value;
        let variance = a.variance + b.variance;
        if variance == 0.0 {
            return Difference { estimate, low: estimate, high: estimate };
        }
        let part = |side: Estimate| side.variance.powi(2) / side.degrees;
        let degrees = variance.powi(2) / (part(a) + part(b));
        let half = student_t(degrees, confidence) * variance.sqrt();
        Difference { estimate, low: estimate - half, high: estimate + half }
    }
}

impl Estimate {
    /// The estimate of a mean, each value a repetition; `None` with fewer than two.
    pub(crate) fn of_mean(values: &[f64]) -> Option<Estimate> {
        let n = values.len() as f64;
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        Some(Estimate { value: mean, variance: squares / (n - 1.0) / n, degrees: n - 1.0 })
    }

    /// The estimate for values that were rounded to a step. Equal values may differ by one step. With half
    /// of its square as the least variance, a difference has a standard error of at least one step.
    pub(crate) fn rounded_to(self, step: f64) -> Estimate {
        Estimate { variance: self.variance.max(step * step / 2.0), ..self }
    }
}

/// The two-sided quantile of Student's t; infinite without degrees of freedom.
fn student_t(degrees: f64, confidence: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, degrees);
    distribution.map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_means(a: &[f64], b: &[f64], confidence: f64) -> Difference {
        let mean = |values| Estimate::of_mean(values).unwrap();
        Difference::between(mean(a), mean(b), confidence)
    }

    #[test]
    fn quantiles_as_tabled() {
        for (degrees, confidence, t) in
            [(1.0, 0.95, 12.706), (4.0, 0.95, 2.776), (10.0, 0.99, 3.169), (1e6, 0.95, 1.960)]
        {
            assert!((student_t(degrees, confidence) - t).abs() < 1e-3, "{degrees}");
        }
        assert_eq!(student_t(0.0, 0.95), f64::INFINITY);
    }

    #[test]
    fn a_known_pair_of_samples() {
        // Student's own data on sleep (1908), as R's `t.test` compares them: t = 1.8608, 17.776
        // degrees of freedom, interval -0.2054832 .. 3.3654832.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let d = of_means(&a, &b, 0.95);
        assert!((d.estimate - 1.58).abs() < 1e-9);
        assert!((d.low + 0.205_483_2).abs() < 1e-6 && (d.high - 3.365_483_2).abs() < 1e-6, "{d:?}");
        assert!(!d.is_significant());
        assert!(of_means(&a, &b, 0.9).is_significant(), "p is 0.079");
    }

    #[test]
    fn too_few_say_nothing_and_the_same_does_not_differ() {
        assert_eq!(Estimate::of_mean(&[1.0]), None);
        let same = of_means(&[3.0, 3.0], &[3.0, 3.0], 0.95);
        assert!(!same.is_significant());
        let other = of_means(&[3.0, 3.0], &[4.0, 4.0], 0.95);
        assert!(other.is_significant() && other.estimate == 1.0);
    }
}
