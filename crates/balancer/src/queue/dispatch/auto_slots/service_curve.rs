//! How the service time of a backend grows with the requests at work in it.

use std::time::Duration;

/// Service times by the number of requests at work when one was sent, for numbers of 1, 2, up to 4, up to 8
/// and so on.
#[derive(Debug, Default)]
pub(super) struct ServiceCurve {
    bins: [Bin; BINS],
    /// Answers in all bins.
    count: f64,
}

/// Service times in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    count: f64,
    at_work: f64,
    sum: f64,
    squares: f64,
    /// The mean of the logarithms of the last times, and of all.
    recent: f64,
    usual: f64,
}

/// The number of requests from which on further ones only wait in the backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Knee {
    At(f64),
    /// It is below all numbers that are known.
    Below,
    /// It is above all numbers that are known: requests do not disturb one another.
    Above,
    Unknown,
}

/// The last one is for more than 512.
const BINS: usize = 11;

/// Answers that tell the service time of a bin.
const MIN_ANSWERS: f64 = 12.0;

/// Half of the answers are forgotten if there are more, because a backend changes.
const MAX_ANSWERS: f64 = 2048.0;

/// All is forgotten if the last service times of a bin differ by this factor from its others.
const CHANGED_RATIO: f64 = 1.5;

const RECENT_ANSWERS: f64 = 16.0;

/// The service time grows if it grows by more than this, beyond chance.
const MIN_GROWTH_RATIO: f64 = 1.05;

/// It does not if it grows by less than this, beyond chance.
const MAX_FLAT_RATIO: f64 = 1.2;

/// A knee is above the fewest known requests if it is so many times their number.
const ABOVE_RATIO: f64 = 1.2;

/// Standard errors by which a growth must exceed chance. It is looked at ten times a second.
const CLEAR_ERRORS: f64 = 3.0;

/// The same for the lack of a growth.
const FLAT_ERRORS: f64 = 2.0;

/// What is added to a knee before it is rounded down.
const ROUNDING: f64 = 0.2;

/// A larger knee is not sharp: the backend is idle at moments when most of its requests wait for something else.
pub(super) const FEW: f64 = 16.0;

impl ServiceCurve {
    pub(super) fn add(&mut self, at_work: usize, time: Duration) {
        let at_work = at_work.max(1);
        let bin = &mut self.bins[(at_work.next_power_of_two().ilog2() as usize).min(BINS - 1)];
        bin.add(at_work, time.as_secs_f64().max(1e-6));
        if bin.has_changed() {
            *self = ServiceCurve::default();
            return;
        }
        self.count += 1.0;
        if self.count > MAX_ANSWERS {
            self.count /= 2.0;
            self.bins.iter_mut().for_each(Bin::forget_half);
        }
    }

    /// The throughput with many requests times the service time with few. This product is where throughput
    /// is highest and nothing waits (Kleinrock 1979); BBR finds it for a network path in the same way.
    pub(super) fn knee(&self) -> Knee {
        let mut known = self.known();
        let (Some(fewest), Some(most)) = (known.next(), known.next_back()) else {
            return Knee::Unknown;
        };
        let (growth, error) = self.growth(fewest, most);
        if growth - CLEAR_ERRORS * error < MIN_GROWTH_RATIO.ln() {
            return if self.is_flat(most) { Knee::Above } else { Knee::Unknown };
        }
        let knee = most.number() / growth.exp();
        if fewest.number() > 1.0 && knee < ABOVE_RATIO * fewest.number() {
            return Knee::Below;
        }
        Knee::At(knee.max(1.0))
    }

    /// Whether no known number has another service time than this one.
    fn is_flat(&self, most: &Bin) -> bool {
        self.known().all(|bin| {
            let (growth, error) = self.growth(bin, most);
            growth.abs() + FLAT_ERRORS * error < MAX_FLAT_RATIO.ln()
        })
    }

    fn known(&self) -> impl DoubleEndedIterator<Item = &Bin> {
        self.bins.iter().filter(|bin| bin.count >= MIN_ANSWERS)
    }

    /// By how much the service time grows, as a logarithm, and the standard error of that.
    fn growth(&self, fewer: &Bin, more: &Bin) -> (f64, f64) {
        // Where one answer in twenty is slow, a bin may have none of these, and seems more exact than it is.
        let variance = self.bins.iter().map(Bin::variance).fold(0.0, f64::max);
        let error = (variance * (1.0 / more.count + 1.0 / fewer.count)).sqrt();
        ((more.mean() / fewer.mean()).ln(), error)
    }
}

impl Knee {
    /// As many whole requests.
    pub(super) fn slots(self) -> Option<usize> {
        match self {
            Knee::At(knee) if knee <= FEW => Some((knee + ROUNDING).floor() as usize),
            _ => None,
        }
    }
}

impl Bin {
    fn add(&mut self, at_work: usize, time: f64) {
        self.count += 1.0;
        self.at_work += at_work as f64;
        self.sum += time;
        self.squares += time * time;
        let log = time.ln();
        self.recent += (log - self.recent) / self.count.min(RECENT_ANSWERS);
        self.usual += (log - self.usual) / self.count;
    }

    /// Whether the backend became slower or faster.
    fn has_changed(&self) -> bool {
        let change = (self.recent - self.usual).abs();
        self.count >= 2.0 * RECENT_ANSWERS && change > CHANGED_RATIO.ln()
    }

    /// Requests at work, on average.
    fn number(&self) -> f64 {
        self.at_work / self.count
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Of the times as shares of their mean.
    fn variance(&self) -> f64 {
        if self.count < MIN_ANSWERS {
            return 0.0;
        }
        (self.squares * self.count / self.sum.powi(2) - 1.0).max(0.0)
    }

    fn forget_half(&mut self) {
        for sum in [&mut self.count, &mut self.at_work, &mut self.sum, &mut self.squares] {
            *sum /= 2.0;
        }
    }
}

#[cfg(test)]
mod tests;
