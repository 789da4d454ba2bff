//! Random arrivals whose number in each phase is fixed.
//!
//! n independent uniform times are drawn in rising order: of m that are left, the next one divides what is left of the
//! phase as the smallest of m uniform values does (Devroye, "Non-Uniform Random Variate Generation", 1986, ch. V.3).

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::rate_curve::RateCurve;

/// All arrivals of a rate curve in order, as values of N.
#[derive(Debug)]
pub(super) struct Strata {
    seed: u64,
    /// Phases begun so far.
    begun: u64,
    random: SmallRng,
    /// N at the last arrival, or where its phase began.
    at: f64,
    /// N at the end of the phase.
    end: f64,
    /// Arrivals of the phase that are still to come.
    left: f64,
}

impl Strata {
    pub(super) fn new(seed: u64) -> Strata {
        let random = SmallRng::seed_from_u64(seed);
        Strata { seed, begun: 0, random, at: 0.0, end: 0.0, left: 0.0 }
    }

    /// N at the arrival that is `count` arrivals further; infinite if none is to come.
    pub(super) fn next(&mut self, curve: &RateCurve, count: usize) -> f64 {
        (0..count).for_each(|_| self.step(curve));
        self.at
    }

    /// Another curve, which includes the arrivals so far: what is left of its phase is a phase of its own.
    pub(super) fn follow(&mut self, curve: &RateCurve) {
        if let Some(end) = curve.phase_end_after(self.at) {
            self.left = (end - self.at).round();
            self.end = end;
        }
    }

    fn step(&mut self, curve: &RateCurve) {
        while self.left == 0.0 {
            let Some(end) = curve.phase_end_after(self.end) else {
                self.at = f64::INFINITY;
                return;
            };
            self.begin(end);
        }
        if self.end == f64::INFINITY {
            self.at += exponential(&mut self.random);
            return;
        }
        let least = (1.0 - self.random.random::<f64>()).powf(1.0 / self.left);
        self.at = self.end - (self.end - self.at) * least;
        self.left -= 1.0;
    }

    /// A phase has numbers of its own, so that the length of an earlier one does not change them.
    fn begin(&mut self, end: f64) {
        const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;
        self.random = SmallRng::seed_from_u64(self.seed ^ self.begun.wrapping_mul(STRIDE));
        self.begun += 1;
        self.at = self.end;
        // As many as there would be evenly spaced, at whole values of N.
        self.left = end.ceil() - self.end.ceil();
        self.end = end;
    }
}

/// A gap of mean 1. 1 - u is never zero, so the logarithm is finite.
pub(super) fn exponential(random: &mut SmallRng) -> f64 {
    -(1.0 - random.random::<f64>()).ln()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::workload::phase::{Phase, Spacing};
    use crate::workload::spec::Workload;

    fn seconds(workload: &Workload, seed: u64) -> Vec<f64> {
        workload.arrivals(seed).map(|at| at.as_secs_f64()).collect()
    }

    fn between(times: &[f64], from: f64, to: f64) -> usize {
        times.iter().filter(|at| (from..to).contains(*at)).count()
    }

    #[test]
    fn each_phase_has_as_many_arrivals_as_its_rate_says() {
        let length = |seconds| Some(Duration::from_secs(seconds));
        let phases = [
            Phase::constant(150.0, length(4)),
            Phase::constant(0.0, length(1)),
            Phase::ramp(10.0, 30.0, Duration::from_secs(5)),
            // 8.25 and 8.25 arrivals: every whole value of N is one.
            Phase::constant(2.75, length(3)),
            Phase::constant(2.75, length(3)),
        ];
        let workload = Workload::phases(phases, Spacing::Stratified);
        for seed in 0..20 {
            let times = seconds(&workload, seed);
            let counts = [(0.0, 4.0), (4.0, 5.0), (5.0, 10.0), (10.0, 13.0), (13.0, 16.0)]
                .map(|(from, to)| between(&times, from, to));
            assert_eq!((counts, times.len()), ([600, 0, 100, 9, 8], 717), "{seed}");
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn a_window_has_the_same_arrivals_after_any_warm_up() {
        let window = Duration::from_secs(4);
        let of = |warm_up: u64| {
            let strata = [Duration::from_millis(warm_up), window];
            let times = Workload::stratified(150.0, strata).arrivals(1);
            let times = times.map(|at| at.as_secs_f64() - warm_up as f64 / 1e3);
            let within = times.skip_while(|at| *at < 0.0).take_while(|at| *at < 4.0);
            within.map(|at| (at * 1e6).round() as i64).collect::<Vec<_>>()
        };
        let window = of(1000);
        assert_eq!(window.len(), 600);
        for warm_up in [300, 1440, 5000] {
            let other = of(warm_up);
            let is_near = |(a, b): (&i64, &i64)| a.abs_diff(*b) <= 1;
            assert!(window.len() == other.len() && window.iter().zip(&other).all(is_near));
        }
        // Endless, as the steps behind it are.
        assert!(Workload::stratified(150.0, []).arrivals(1).nth(10_000).is_some());
    }

    #[test]
    fn numbers_of_a_second_vary_as_those_of_a_known_total() {
        // n p (1 - p), with n = 600 and p = 1/4: 112.5. Pure Poisson has 150.
        let workload = Workload::stratified(150.0, [Duration::from_secs(4)]);
        let counts: Vec<f64> = (0..2000)
            .map(|seed| {
                let first = workload.arrivals(seed).take_while(|at| at.as_secs_f64() < 1.0);
                first.count() as f64
            })
            .collect();
        let (mean, deviation) = moments(&counts);
        // 4 standard errors.
        assert!((mean - 150.0).abs() < 1.0, "{mean}");
        assert!((deviation.powi(2) / 112.5 - 1.0).abs() < 0.13, "{deviation}");
    }

    /// p95 of the response times of one server whose service times are exponential, in the window after a warm-up.
    fn p95(workload: &Workload, seed: u64, from: f64, to: f64) -> f64 {
        use rand::SeedableRng;
        let mut random = super::SmallRng::seed_from_u64(!seed);
        let (mut free, mut responses) = (0.0f64, Vec::new());
        for at in workload.arrivals(seed).map(|at| at.as_secs_f64()).take_while(|at| *at < to) {
            free = free.max(at) + super::exponential(&mut random);
            if at >= from {
                responses.push(free - at);
            }
        }
        responses.sort_by(f64::total_cmp);
        responses[(responses.len() as f64 * 0.95) as usize]
    }

    /// Mean and standard deviation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }

    #[test]
    fn queues_are_as_long_as_those_of_a_poisson_process() {
        const WINDOWS: u64 = 400;
        for (load, allowed) in [(0.5, 0.03), (0.7, 0.04), (0.85, 0.08)] {
            let (warm_up, window) = (200.0 / load, 600.0 / load);
            let strata = [warm_up, window].map(Duration::from_secs_f64);
            let [(mean, deviation), (poisson, wider)] =
                [Workload::stratified(load, strata), Workload::poisson(load)].map(|workload| {
                    let of = |seed| p95(&workload, seed, warm_up, warm_up + window);
                    moments(&(0..WINDOWS).map(of).collect::<Vec<_>>())
                });
            // M/M/1: the response time is exponential with the rate 1 - load.
            let exact = 20f64.ln() / (1.0 - load);
            println!(
                "load {load}: stratified {mean:.2} +- {deviation:.2}, Poisson {poisson:.2} +- {wider:.2}, exact {exact:.2}"
            );
            assert!((mean / poisson - 1.0).abs() < allowed, "{load}: {mean} {poisson}");
            assert!(deviation < 1.05 * wider, "{load}: {deviation} {wider}");
        }
    }
}
