//! What several instances do to each other beside the cores, decided by the data.
//!
//! A term is in the model only if its Akaike information criterion is the best. With known measurement
//! errors, the criterion is chi-square plus twice the number of parameters. A shortfall that noise explains
//! stays noise. Source: Burnham and Anderson, "Model Selection and Multimodel Inference", 2002, ch. 2.

use serde::Serialize;

use crate::calibration::{CRITERION_TIE, MAX_SLOT_REST};
use crate::queueing::birth_death;

/// How N instances fall short of N times one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Sharing {
    /// Not at all.
    Nothing,
    /// A slot rests between an answer and the next request. Each instance does this share of its own peak.
    Rest {
        /// The share.
        duty: f64,
    },
    /// All use one station, one after the other: a lock, a disk, a database of one writer.
    Queue {
        /// Seconds that a request holds it.
        demand: f64,
    },
    /// All together complete no more than this: a pool, a quota, a rate limit.
    Cap {
        /// Requests a second.
        rate: f64,
    },
    /// Each further instance costs every other one a share, and each pair costs another share. These are
    /// the contention and coherency terms of Gunther's Universal Scalability Law ("Guerrilla Capacity
    /// Planning", 2007, ch. 4).
    Contention {
        /// The share of an instance.
        contention: f64,
        /// The share of a pair; 0 unless the data ask for it.
        coherency: f64,
    },
}

/// What saturated instances completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shortfall {
    pub(crate) instances: usize,
    pub(crate) throughput: f64,
    /// Standard error of the throughput beside that of one instance, as a share.
    pub(crate) error: f64,
    /// Whether it could have been more.
    pub(crate) is_bound: bool,
}

/// One saturated instance: what the shortfall is measured against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alone {
    pub(crate) throughput: f64,
    /// Requests in flight in it.
    pub(crate) slots: f64,
    /// The share by which it falls short of that throughput with one request in each slot.
    pub(crate) rest: f64,
}

impl Sharing {
    /// Share of `groups` times their own throughput that is left, where each of the groups alone
    /// completes `alone` with `jobs` in it.
    pub(crate) fn left(&self, groups: f64, jobs: f64, alone: f64) -> f64 {
        match *self {
            Sharing::Nothing => 1.0,
            Sharing::Rest { duty } => duty,
            Sharing::Queue { demand } => {
                let rate = |_| 1.0 / demand;
                let away = birth_death::away(jobs, alone, rate);
                let one = birth_death::repairman(jobs, away, rate);
                birth_death::repairman(groups * jobs, away, rate) / (groups * one)
            }
            Sharing::Cap { rate } => (rate / (groups * alone)).min(1.0),
            Sharing::Contention { contention, coherency } => {
                let others = (groups - 1.0).max(0.0);
                1.0 / (1.0 + contention * others + coherency * groups * others)
            }
        }
    }

    /// Whether something is shared that would limit a large number of instances.
    pub fn is_shared(&self) -> bool {
        !matches!(self, Sharing::Nothing | Sharing::Rest { .. })
    }

    /// The best explanation of the measurements.
    pub(crate) fn fit(alone: Alone, measured: &[Shortfall]) -> Sharing {
        let explained = explanations(alone, measured);
        // Explanations stand in the order of how common they are. Of equally good ones, the first wins.
        explained
            .into_iter()
            .reduce(|best, next| if next.1 < best.1 - CRITERION_TIE { next } else { best })
            .map_or(Sharing::Nothing, |(sharing, _)| sharing)
    }

    /// One of the explanations, as likely as its Akaike weight; `chance` is in 0..1.
    pub(crate) fn draw(alone: Alone, measured: &[Shortfall], chance: f64) -> Sharing {
        let explained = explanations(alone, measured);
        let best = explained.iter().map(|e| e.1).fold(f64::INFINITY, f64::min);
        let weights = explained.iter().map(|e| (-(e.1 - best) / 2.0).exp());
        let mut left = chance * weights.clone().sum::<f64>();
        let chosen = explained.iter().zip(weights).find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        chosen.map_or(Sharing::Nothing, |((sharing, _), _)| *sharing)
    }
}

/// Every explanation with its criterion: the smaller, the better.
fn explanations(alone: Alone, measured: &[Shortfall]) -> Vec<(Sharing, f64)> {
    let mut all = vec![(Sharing::Nothing, 0)];
    let full: Vec<&Shortfall> = measured.iter().filter(|m| !m.is_bound).collect();
    if !full.is_empty() {
        all.extend(rest(alone, &full).map(|s| (s, 1)));
        all.extend(queue(alone, measured).map(|s| (s, 1)));
        all.extend(cap(alone, &full).map(|s| (s, 1)));
        all.extend(contention(alone, &full).map(|s| (s, 1)));
        all.extend(coherency(alone, &full).map(|s| (s, 2)));
    }
    all.into_iter()
        .map(|(s, parameters)| (s, misfit(&s, alone, measured) + 2.0 * f64::from(parameters)))
        .collect()
}

/// Chi-square: squared distances in standard errors.
fn misfit(sharing: &Sharing, alone: Alone, measured: &[Shortfall]) -> f64 {
    let distance = |m: &Shortfall| {
        let n = m.instances as f64;
        let predicted = n * alone.throughput * sharing.left(n, alone.slots, alone.throughput);
        let ratio = m.throughput / predicted;
        let distance = ratio.ln() / m.error;
        if m.is_bound { distance.max(0.0) } else { distance }
    };
    measured.iter().map(|m| distance(m).powi(2)).sum()
}

/// `N x1 / X - 1`, with its weight in least squares.
fn shortfalls<'a>(
    alone: Alone,
    full: &'a [&Shortfall],
) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    full.iter().map(move |m| {
        let n = m.instances as f64;
        let ratio = n * alone.throughput / m.throughput;
        (n, ratio - 1.0, (ratio * m.error).powi(-2))
    })
}

fn rest(alone: Alone, full: &[&Shortfall]) -> Option<Sharing> {
    let (mut sum, mut weights, mut worst) = (0.0, 0.0, 0.0_f64);
    for (_, shortfall, weight) in shortfalls(alone, full) {
        sum += shortfall * weight;
        weights += weight;
        worst = worst.max(shortfall);
    }
    let mean = sum / weights;
    (mean > 0.0 && worst <= alone.rest.max(MAX_SLOT_REST))
        .then(|| Sharing::Rest { duty: 1.0 / (1.0 + mean) })
}

fn cap(alone: Alone, full: &[&Shortfall]) -> Option<Sharing> {
    // Every count that falls short is at the cap. The least-squares cap is the mean of these.
    let short = full
        .iter()
        .filter(|m| m.throughput < m.instances as f64 * alone.throughput * (1.0 - 2.0 * m.error));
    let (sum, count) =
        short.fold((0.0, 0.0), |(sum, count), m| (sum + m.throughput.ln(), count + 1.0));
    (count > 0.0).then(|| Sharing::Cap { rate: (sum / count).exp() })
}

fn queue(alone: Alone, measured: &[Shortfall]) -> Option<Sharing> {
    // The misfit has one minimum, and a golden-section search finds it.
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let at = |demand: f64| misfit(&Sharing::Queue { demand }, alone, measured);
    let (mut low, mut high) = (0.0, 1.0 / alone.throughput);
    for _ in 0..24 {
        let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if at(left) < at(right) { high = right } else { low = left }
    }
    let demand = f64::midpoint(low, high);
    (demand * alone.throughput > 0.01).then_some(Sharing::Queue { demand })
}

fn contention(alone: Alone, full: &[&Shortfall]) -> Option<Sharing> {
    let (mut xy, mut xx) = (0.0, 0.0);
    for (n, shortfall, weight) in shortfalls(alone, full) {
        xy += weight * (n - 1.0) * shortfall;
        xx += weight * (n - 1.0).powi(2);
    }
    (xy > 0.0).then(|| Sharing::Contention { contention: xy / xx, coherency: 0.0 })
}

/// Both terms, by the normal equations. `None` unless both are positive.
fn coherency(alone: Alone, full: &[&Shortfall]) -> Option<Sharing> {
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (n, shortfall, weight) in shortfalls(alone, full) {
        let (a, b) = (n - 1.0, n * (n - 1.0));
        aa += weight * a * a;
        ab += weight * a * b;
        bb += weight * b * b;
        ay += weight * a * shortfall;
        by += weight * b * shortfall;
    }
    let determinant = aa * bb - ab * ab;
    if full.len() < 2 || determinant <= 1e-9 * aa * bb {
        return None;
    }
    let contention = (ay * bb - by * ab) / determinant;
    let coherency = (by * aa - ay * ab) / determinant;
    (coherency > 0.0).then(|| Sharing::Contention { contention: contention.max(0.0), coherency })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Alone = Alone { throughput: 10.0, slots: 1.0, rest: 0.0 };

    fn fit(measured: &[(usize, f64)]) -> Sharing {
        fit_to(ONE, measured)
    }

    fn fit_to(alone: Alone, measured: &[(usize, f64)]) -> Sharing {
        let shortfall = |&(instances, throughput)| Shortfall {
            instances,
            throughput,
            error: 0.01,
            is_bound: false,
        };
        Sharing::fit(alone, &measured.iter().map(shortfall).collect::<Vec<_>>())
    }

    #[test]
    fn a_gap_within_the_noise_is_not_sharing() {
        assert_eq!(fit(&[(2, 20.1)]), Sharing::Nothing);
        assert_eq!(fit(&[(2, 19.8), (4, 39.9)]), Sharing::Nothing);
    }

    #[test]
    fn a_little_for_all_is_rest() {
        let Sharing::Rest { duty } = fit(&[(2, 19.2), (8, 77.0)]) else { panic!() };
        assert!((duty - 0.96).abs() < 0.01, "{duty}");
    }

    #[test]
    fn a_shortfall_seen_at_one_instance_is_idle_time_of_slots() {
        let far = Alone { rest: 0.12, ..ONE };
        let Sharing::Rest { duty } = fit_to(far, &[(2, 18.6)]) else { panic!() };
        assert!((duty - 0.93).abs() < 1e-9, "{duty}");
        assert!(fit(&[(2, 18.6)]).is_shared(), "where one alone shows none");
    }

    // One station of 50 ms in requests of 100 ms: X(2) = 16, and never more than 20.
    #[test]
    fn a_lock_is_a_queue() {
        let x = |jobs| birth_death::repairman(jobs, 0.05, |_| 20.0);
        let Sharing::Queue { demand } = fit(&[(2, x(2.0)), (4, x(4.0))]) else { panic!() };
        assert!((demand - 0.05).abs() < 0.001, "{demand}");
    }

    #[test]
    fn a_pool_is_a_cap() {
        let Sharing::Cap { rate } = fit(&[(2, 20.0), (4, 40.0), (8, 50.0)]) else { panic!() };
        assert!((rate - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_law_of_two_terms_is_found() {
        let law = Sharing::Contention { contention: 0.05, coherency: 0.02 };
        let at = |n: usize| (n, n as f64 * 10.0 * law.left(n as f64, 1.0, 10.0));
        let Sharing::Contention { contention, coherency } = fit(&[2, 4, 8, 12].map(at)) else {
            panic!()
        };
        assert!((contention - 0.05).abs() < 1e-6 && (coherency - 0.02).abs() < 1e-6);
    }

    #[test]
    fn throughput_above_a_cap_rules_it_out() {
        let bound = Shortfall { instances: 8, throughput: 78.0, error: 0.01, is_bound: true };
        let two = Shortfall { instances: 2, throughput: 19.6, error: 0.01, is_bound: false };
        let left = Sharing::fit(ONE, &[two, bound]).left(8.0, 1.0, 10.0);
        assert!(left > 0.95, "{left}");
    }

    // Two instances of eight threads that slept 20 ms (tests/apps/thread_pool), measured twice. Slots that
    // rest explain them as well as a lock does, except for rounding.
    #[test]
    fn of_two_equal_explanations_the_weaker_one_is_taken() {
        let alone = Alone { throughput: 364.8, slots: 8.0, rest: 0.15 };
        let two =
            |throughput, error| Shortfall { instances: 2, throughput, error, is_bound: false };
        let three = Shortfall { instances: 3, throughput: 802.3, error: 0.01, is_bound: true };
        let fitted = Sharing::fit(alone, &[two(682.0, 0.022), three, two(692.0, 0.017)]);
        assert!(matches!(fitted, Sharing::Rest { .. }), "{fitted:?}");
    }
}
