//! Whether the cores kept their speed while instances were measured.

use crate::calibration::CORE_SPEED_WINDOW;

/// How many times longer a fixed piece of work took on the cores at their slowest than at their fastest. `times`
/// are its CPU times, in the order in which they were measured. It is 1 if these are too few to tell.
///
/// The median of some in a row counts, because a single time may be long by chance.
pub fn slowdown(times: &[f64]) -> f64 {
    let medians = || times.windows(CORE_SPEED_WINDOW).map(median);
    let (fastest, slowest) = (medians().reduce(f64::min), medians().reduce(f64::max));
    fastest.zip(slowest).map_or(1.0, |(fastest, slowest)| slowest / fastest)
}

/// The middle one; of an even number the upper.
///
/// # Panics
/// Without any.
pub fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds of the work of a plan on a virtual machine of two cores that were idle and kept their speed. They
    /// were measured a second apart. Four of them are long by chance.
    const STEADY: [f64; 24] = [
        7.11, 7.11, 7.03, 6.99, 7.06, 7.10, 7.09, 8.12, 7.01, 7.08, 7.00, 7.19, 7.10, 7.92, 7.12,
        7.03, 8.00, 7.18, 7.07, 8.11, 7.01, 7.01, 7.01, 7.09,
    ];

    #[test]
    fn single_long_times_are_no_change_of_speed() {
        for plan in STEADY.windows(8) {
            assert!(slowdown(plan) < 1.03, "{plan:?}");
        }
    }

    // The same work took 42 ms and later, within a minute, 68 ms on cores of such a machine.
    #[test]
    fn the_slowest_cores_are_compared_with_the_fastest() {
        let slower = STEADY.map(|time| time * 68.0 / 42.0);
        let later = [&STEADY[..6], &slower[..3]].concat();
        assert!((1.58..1.66).contains(&slowdown(&later)), "{later:?}");
        let earlier = [&slower[..3], &STEADY[..6]].concat();
        assert!((1.58..1.66).contains(&slowdown(&earlier)), "{earlier:?}");
        let between = [&STEADY[..3], &slower[..3], &STEADY[3..6]].concat();
        assert!((1.58..1.66).contains(&slowdown(&between)), "{between:?}");
    }

    #[test]
    fn too_few_times_say_nothing() {
        assert_eq!([slowdown(&[]), slowdown(&[7.0, 14.0]), slowdown(&[7.0, 14.0, 14.0])], [1.0; 3]);
    }
}
