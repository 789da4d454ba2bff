//! How sure a figure of one run is. The windows of the run are drawn again and again, in blocks, because a
//! window resembles the one before.
//!
//! Source: Kuensch, "The jackknife and the bootstrap for general stationary observations", Annals of
//! Statistics 17 (1989).
//! The length of blocks: Hall, Horowitz and Jing, "On blocking rules for the bootstrap with dependent
//! data", Biometrika 82 (1995).
//! The number of draws: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 6.4.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::calibration::BOOTSTRAP_DRAWS;
use crate::stats::difference::Estimate;

/// Windows in a block, for so many windows: the cube root.
pub fn block_length(windows: usize) -> usize {
    // Rounding may put the cube root of a cube a little above the whole number.
    ((windows as f64).cbrt() - 1e-9).ceil() as usize
}

/// The estimates of `figures` from windows `0..windows`. `figures` computes them for any draw of windows,
/// which may contain a window more than once. A figure that is `None` for all windows, or for a draw, has
/// no estimate.
pub(crate) fn estimates<const N: usize>(
    windows: usize,
    seed: u64,
    figures: impl Fn(&[usize]) -> [Option<f64>; N],
) -> [Option<Estimate>; N] {
    let length = block_length(windows);
    // Fewer than three blocks cannot be told from chance.
    if length == 0 || windows < 3 * length {
        return [None; N];
    }
    let all: Vec<usize> = (0..windows).collect();
    let whole = figures(&all);
    let mut random = StdRng::seed_from_u64(seed);
    let draws: Vec<[Option<f64>; N]> =
        (0..BOOTSTRAP_DRAWS).map(|_| figures(&draw(windows, length, &mut random))).collect();
    let blocks = windows as f64 / length as f64;
    std::array::from_fn(|figure| {
        let drawn: Option<Vec<f64>> = draws.iter().map(|draw| draw[figure]).collect();
        Some(Estimate {
            value: whole[figure]?,
            // Draws from the sample itself show a spread that is too small by one block.
            variance: variance(&drawn?) * blocks / (blocks - 1.0),
            degrees: blocks - 1.0,
        })
    })
}

/// Draws as many windows as were measured, in blocks that begin anywhere.
fn draw(windows: usize, length: usize, random: &mut StdRng) -> Vec<usize> {
    let mut drawn = Vec::with_capacity(windows + length);
    while drawn.len() < windows {
        let first = random.random_range(0..=windows - length);
        drawn.extend(first..first + length);
    }
    drawn.truncate(windows);
    drawn
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_cube_root_long() {
        assert_eq!([1, 8, 9, 27, 28, 1000].map(block_length), [1, 2, 3, 3, 4, 10]);
    }

    #[test]
    fn draws_are_as_long_as_the_run_and_made_of_neighbours() {
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..100 {
            let drawn = draw(10, 3, &mut random);
            assert_eq!(drawn.len(), 10);
            let whole = drawn.chunks(3).all(|b| b.windows(2).all(|pair| pair[1] == pair[0] + 1));
            assert!(whole && drawn.iter().all(|index| *index < 10), "{drawn:?}");
        }
    }

    #[test]
    fn the_error_of_a_mean_is_the_textbooks() {
        // Values are independent and uniform on 0..1. Their variance is 1/12, and that of a mean of 100
        // windows is 1/1200. Each estimate is off by a third or so, and their mean by a tenth of that.
        let mut random = StdRng::seed_from_u64(7);
        let mut sum = 0.0;
        for seed in 0..100 {
            let values: Vec<f64> = (0..100).map(|_| random.random_range(0.0..1.0)).collect();
            let mean = |draw: &[usize]| {
                [Some(draw.iter().map(|i| values[*i]).sum::<f64>() / draw.len() as f64)]
            };
            let [estimate] = estimates(values.len(), seed, mean);
            sum += estimate.unwrap().variance * 1200.0;
        }
        assert!((sum / 100.0 - 1.0).abs() < 0.1, "{}", sum / 100.0);
    }

    #[test]
    fn neighbours_that_resemble_each_other_count_for_less() {
        // First-order autoregression with 0.7: the mean is (1 + 0.7) / (1 - 0.7) = 5.7 times as
        // uncertain as of independent values.
        let mut random = StdRng::seed_from_u64(3);
        let mut last = 0.0;
        let values: Vec<f64> = (0..1000)
            .map(|_| {
                last = 0.7 * last + random.random_range(-1.0..1.0);
                last
            })
            .collect();
        let mean = |draw: &[usize]| {
            [Some(draw.iter().map(|i| values[*i]).sum::<f64>() / draw.len() as f64)]
        };
        let [estimate] = estimates(values.len(), 1, mean);
        let independent = variance(&values) / values.len() as f64;
        let factor = estimate.unwrap().variance / independent;
        assert!((3.0..7.0).contains(&factor), "{factor}");
    }

    #[test]
    fn a_run_of_a_few_windows_says_nothing() {
        assert_eq!(estimates(5, 1, |_| [Some(1.0)]), [None]);
        assert!(estimates(6, 1, |_| [Some(1.0)])[0].is_some());
        assert_eq!(estimates(50, 1, |_| [None]), [None]);
    }
}
