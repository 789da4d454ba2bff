//! Instances that warm up: whether they still get faster, and which measurements were cold.

use crate::calibration::DEMAND_NOISE;
use crate::model::saturation::Saturation;

/// The share by which a request costs less CPU from one probe to the next, from the last CPU demands. With
/// fewer than two demands it is 1, because nothing is known.
///
/// It spans two steps if there are two. One step alone is often as large as the error of its probes, and a
/// rise by chance would end the warm-up. So a single step within the noise is no fall.
pub fn fall(demands: &[f64]) -> f64 {
    match *demands {
        [.., first, _, last] => 1.0 - (last / first).sqrt(),
        [first, last] if last * (1.0 + DEMAND_NOISE) > first => 0.0,
        [first, last] => 1.0 - last / first,
        _ => 1.0,
    }
}

/// Whether full instances were still cold at the earlier of two measurements. Then a request cost more CPU
/// than later, and the throughput was no higher beyond the errors of both.
pub fn was_cold(earlier: &Saturation, later: &Saturation) -> bool {
    let chance = earlier.error.hypot(later.error);
    earlier.app_demand > (1.0 + DEMAND_NOISE) * later.app_demand
        && earlier.throughput < (1.0 + chance) * later.throughput
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::saturation;

    #[test]
    fn a_step_at_a_time() {
        assert!((fall(&[0.5, 0.4]) - 0.2).abs() < 1e-9);
        assert!((fall(&[9.0, 0.5, 0.45, 0.405]) - 0.1).abs() < 1e-9);
        assert!(fall(&[0.4, 0.4]).abs() < 1e-9 && fall(&[0.4, 0.5, 0.5]) < 0.0);
        assert!(fall(&[0.4, 0.39]).abs() < 1e-9, "two that differ by the noise");
        assert!((fall(&[0.4]) - 1.0).abs() < 1e-9);
    }

    /// CPU milliseconds a request of a second JVM beside one that has run for half a minute, in steps of
    /// three seconds (examples/threads).
    const SECOND_JVM: [f64; 11] =
        [0.419, 0.276, 0.267, 0.234, 0.218, 0.219, 0.209, 0.207, 0.207, 0.206, 0.207];

    #[test]
    fn a_chance_rise_is_not_the_end_of_it() {
        let steady = (2..=SECOND_JVM.len()).find(|n| fall(&SECOND_JVM[..*n]) <= 0.02);
        assert_eq!(steady, Some(9), "not the sixth, which cost more than the fifth");
    }

    // Two of tests/apps/thread_pool: fresh, after ten seconds, and for a moment beside a build.
    #[test]
    fn a_probe_with_more_cpu_and_less_throughput_than_later_was_cold() {
        let warm = saturation(2, 664.0, 1.39e-3, 1.3);
        assert!(was_cold(&saturation(2, 485.0, 1.95e-3, 1.9), &warm));
        assert!(!was_cold(&saturation(2, 655.0, 1.42e-3, 1.3), &warm), "as exact as a probe is");
        assert!(!was_cold(&warm, &saturation(2, 485.0, 1.95e-3, 1.9)), "it was disturbed later");
    }
}
