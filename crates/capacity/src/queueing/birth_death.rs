//! Birth and death in balance: how likely each number of jobs is if jobs come and go one by one.
//!
//! Source: Lazowska et al., "Quantitative System Performance", 1984, ch. 8 and 20: a load-dependent
//! station with a finite population (the machine repairman) is one such chain.

/// Probabilities of a range of states. All other states have none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct States {
    first: usize,
    weights: Vec<f64>,
}

/// States that weigh less than this, relative to the likeliest one, are left out.
const NEGLIGIBLE: f64 = 1e-10;
const MOST_STATES: usize = 200_000;

impl States {
    /// States 0 to `most`, where `ratio(j)` is the weight of state `j` over that of `j - 1` and does
    /// not rise with `j`. Summed outwards from the likeliest, so that neither many states nor
    /// large ratios cost time or precision.
    pub(crate) fn new(most: usize, ratio: impl Fn(usize) -> f64) -> States {
        let (mut mode, mut above) = (0, most + 1);
        while above - mode > 1 {
            let middle = mode.midpoint(above);
            if ratio(middle) >= 1.0 { mode = middle } else { above = middle }
        }
        let mut weights = Vec::new();
        let (mut first, mut weight) = (mode, 1.0);
        while first > 0 && weights.len() < MOST_STATES {
            weight /= ratio(first);
            if !(NEGLIGIBLE..).contains(&weight) {
                break;
            }
            weights.push(weight);
            first -= 1;
        }
        weights.reverse();
        weights.push(1.0);
        weight = 1.0;
        for state in mode + 1..=most {
            weight *= ratio(state);
            if !(NEGLIGIBLE..).contains(&weight) || weights.len() >= MOST_STATES {
                break;
            }
            weights.push(weight);
        }
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        States { first, weights }
    }

    /// Always the same state.
    pub(crate) fn one(state: usize) -> States {
        States { first: state, weights: vec![1.0] }
    }

    /// Every state with its probability.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.first..).zip(self.weights.iter().copied())
    }

    /// The mean of `value` over the states.
    pub(crate) fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        self.iter().map(|(state, p)| p * value(state)).sum()
    }
}

/// Completions a second of `jobs` that are elsewhere for `away` seconds, and then at a station that
/// completes `rate(j)` a second with `j` of them. Fractions of a job are interpolated.
///
/// It is exact for any distribution of the time away. For a processor-sharing station it is also exact for
/// any distribution of the work (Baskett, Chandy, Muntz and Palacios, Journal of the ACM 22, 1975).
pub(crate) fn repairman(jobs: f64, away: f64, rate: impl Fn(usize) -> f64) -> f64 {
    let whole = |jobs: usize| {
        if jobs == 0 {
            return 0.0;
        }
        if away <= 0.0 {
            return rate(jobs);
        }
        let states = States::new(jobs, |j| (jobs - j + 1) as f64 / away / rate(j));
        states.mean(|j| if j == 0 { 0.0 } else { rate(j) })
    };
    let below = jobs.floor();
    let low = whole(below as usize);
    let part = jobs - below;
    if part == 0.0 { low } else { low + part * (whole(below as usize + 1) - low) }
}

/// The time away with which [`repairman`] completes `throughput`; 0 if it cannot.
pub(crate) fn away(jobs: f64, throughput: f64, rate: impl Fn(usize) -> f64) -> f64 {
    if jobs == 1.0 {
        return (1.0 / throughput - 1.0 / rate(1)).max(0.0);
    }
    let (mut low, mut high) = (0.0, jobs / throughput);
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if repairman(jobs, middle, &rate) > throughput { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    // Machine repairman, 2 jobs, both times 1: P(0) = 1/5, X = 0.8.
    #[test]
    fn two_machines_and_one_repairman() {
        assert!((repairman(2.0, 1.0, |_| 1.0) - 0.8).abs() < 1e-9);
        assert!((repairman(1.5, 1.0, |_| 1.0) - 0.65).abs() < 1e-9, "between 0.5 and 0.8");
        assert!((away(2.0, 0.8, |_| 1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn jobs_never_queue_with_as_many_servers() {
        let x = repairman(500.0, 3.0, |j| j as f64);
        assert!((x - 125.0).abs() < 1e-6, "{x}");
    }

    #[test]
    fn thousands_of_jobs_cost_nothing() {
        let x = repairman(100_000.0, 1.0, |j| (j as f64).min(1000.0));
        assert!((x - 1000.0).abs() < 1e-6, "{x}");
    }
}
