//! A second opinion that knows nothing of queues: the Universal Scalability Law over instances,
//! `X(N) = l N / (1 + s (N - 1) + k N (N - 1))`.
//!
//! Source: Gunther, "Guerrilla Capacity Planning", 2007, ch. 4 and 5. All parameters are held at 0 or
//! above, and of a knee that the data do not show nothing is said.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::draws::deviation;

/// What so many instances completed, with all their slots busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Instances.
    pub instances: usize,
    /// Requests a second.
    pub throughput: f64,
    /// Half-width of its interval, as a share.
    pub error: f64,
}

/// The fitted law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// What one instance completes (1/s).
    pub rate: f64,
    /// Share that each further instance costs the others.
    pub contention: Parameter,
    /// Share that each pair of instances costs.
    pub coherency: Parameter,
    /// Instances at which the law has its maximum; `None` where no knee was seen.
    pub knee: Option<Parameter>,
    /// The largest count that was measured.
    pub seen_up_to: usize,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

const DRAWS: usize = 200;
const SEED: u64 = 9;
/// A knee so many times beyond what was measured is a guess.
const REACH: f64 = 2.0;

impl Usl {
    /// Through at least three counts; `None` with fewer.
    pub fn fit(measured: &[Scaling]) -> Option<Usl> {
        let mut counts: Vec<usize> = measured.iter().map(|m| m.instances).collect();
        counts.sort_unstable();
        counts.dedup();
        let seen_up_to = *counts.last().filter(|_| counts.len() >= 3)?;
        let law = Law::fit(measured)?;
        let mut random = StdRng::seed_from_u64(SEED);
        let normal = Normal::standard();
        let draws: Vec<Law> = (0..DRAWS)
            .filter_map(|_| {
                let again: Vec<Scaling> = measured
                    .iter()
                    .map(|m| {
                        let z = normal.inverse_cdf(random.random_range(1e-6..1.0 - 1e-6));
                        Scaling { throughput: m.throughput * (deviation(m.error) * z).exp(), ..*m }
                    })
                    .collect();
                Law::fit(&again)
            })
            .collect();
        let parameter = |of: fn(&Law) -> f64| {
            let mut drawn: Vec<f64> = draws.iter().map(of).collect();
            drawn.sort_by(f64::total_cmp);
            let at = |q: f64| drawn[(q * (drawn.len() - 1) as f64) as usize];
            Parameter { value: of(&law), low: at(0.025), high: at(0.975) }
        };
        let knee = parameter(Law::knee);
        let is_seen = knee.high <= REACH * seen_up_to as f64;
        Some(Usl {
            rate: law.rate,
            contention: parameter(|law| law.contention),
            coherency: parameter(|law| law.coherency),
            knee: is_seen.then_some(knee),
            seen_up_to,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Law {
    rate: f64,
    contention: f64,
    coherency: f64,
}

impl Law {
    /// `N / X` is linear in `1`, `N - 1` and `N (N - 1)`: least squares of relative distances over
    /// every choice of terms, the best of those whose coefficients are all positive.
    fn fit(measured: &[Scaling]) -> Option<Law> {
        let rows: Vec<([f64; 3], f64)> = measured
            .iter()
            .map(|m| {
                let (n, target) = (m.instances as f64, m.instances as f64 / m.throughput);
                let weight = 1.0 / (deviation(m.error) * target);
                ([weight, (n - 1.0) * weight, n * (n - 1.0) * weight], target * weight)
            })
            .collect();
        let choices: [&[usize]; 4] = [&[0], &[0, 1], &[0, 2], &[0, 1, 2]];
        let fits = choices.iter().filter_map(|terms| {
            let found = least_squares(&rows, terms)?;
            let misfit: f64 = rows
                .iter()
                .map(|(row, y)| {
                    (row.iter().zip(&found).map(|(a, b)| a * b).sum::<f64>() - y).powi(2)
                })
                .sum();
            found.iter().all(|value| *value >= 0.0).then_some((found, misfit))
        });
        let (best, _) = fits.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Law {
            rate: 1.0 / best[0],
            contention: best[1] / best[0],
            coherency: best[2] / best[0],
        })
    }

    fn knee(&self) -> f64 {
        if self.coherency > 0.0 {
            ((1.0 - self.contention).max(0.0) / self.coherency).sqrt()
        } else {
            f64::INFINITY
        }
    }
}

/// The normal equations of those terms, by elimination; the other coefficients are 0.
fn least_squares(rows: &[([f64; 3], f64)], terms: &[usize]) -> Option<[f64; 3]> {
    let size = terms.len();
    let mut system = vec![vec![0.0; size + 1]; size];
    for (row, y) in rows {
        for (i, a) in terms.iter().enumerate() {
            for (j, b) in terms.iter().enumerate() {
                system[i][j] += row[*a] * row[*b];
            }
            system[i][size] += row[*a] * y;
        }
    }
    for i in 0..size {
        let pivot = system[i][i];
        if pivot.abs() < 1e-12 {
            return None;
        }
        let line = system[i].clone();
        for (_, other) in system.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[i] / pivot;
            for (value, from) in other.iter_mut().zip(&line) {
                *value -= factor * from;
            }
        }
    }
    let mut found = [0.0; 3];
    for (i, term) in terms.iter().enumerate() {
        found[*term] = system[i][size] / system[i][i];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(points: &[(usize, f64)], error: f64) -> Vec<Scaling> {
        points
            .iter()
            .map(|&(instances, throughput)| Scaling { instances, throughput, error })
            .collect()
    }

    // SPEC SDM91, from Gunther's book. By absolute distances, as R's package usl fits it, s = 0.0277,
    // k = 1.04e-4 and the knee is at 96.5; by relative ones they are 0.0134, 1.15e-4 and 92.5.
    #[test]
    fn specsdm91() {
        let points = [
            (1, 64.9),
            (18, 995.9),
            (36, 1652.4),
            (72, 1853.2),
            (108, 1828.9),
            (144, 1775.0),
            (216, 1702.2),
        ];
        let usl = Usl::fit(&scaling(&points, 0.05)).unwrap();
        let knee = usl.knee.unwrap();
        assert!((knee.value - 92.54).abs() < 0.01, "{usl:?}");
        assert!(knee.low < knee.value && knee.value < knee.high);
        assert!((usl.contention.value - 0.01336).abs() < 1e-5, "{usl:?}");
        assert!((usl.coherency.value - 1.152e-4).abs() < 1e-7, "{usl:?}");
    }

    #[test]
    fn a_straight_line_has_no_knee() {
        let usl = Usl::fit(&scaling(&[(1, 10.0), (2, 20.1), (5, 49.8)], 0.01)).unwrap();
        assert_eq!((usl.knee, usl.seen_up_to), (None, 5));
        assert!(usl.contention.value < 0.01);
    }

    #[test]
    fn two_counts_are_no_opinion() {
        assert_eq!(Usl::fit(&scaling(&[(1, 10.0), (2, 20.0), (2, 20.0)], 0.01)), None);
    }
}
