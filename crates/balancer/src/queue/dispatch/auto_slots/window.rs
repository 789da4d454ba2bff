//! What the search knows of a number of slots: service times and throughput.

use std::time::{Duration, Instant};

/// An answered request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Its number since the backend's slots last changed.
    pub(crate) ordinal: u32,
    /// Requests at work in the backend when this one was sent, and now. Both include this one.
    pub(crate) at_start: usize,
    pub(crate) at_work: usize,
    /// Whether the backend had no free slot and somebody waited.
    pub(crate) full: bool,
    pub(crate) time: Duration,
    /// The part of the time after the backend's previous answer.
    pub(crate) interval: Duration,
    pub(crate) ended: Instant,
}

/// The load of the backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Nothing,
    /// The members have requests, and nobody waits.
    Met,
    /// Somebody waits for a slot.
    Waits,
}

/// Service times while all slots were taken, or of all requests if there are many slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// Requests that began earlier belong to another number of slots.
    pub(super) began: Option<Instant>,
    pub(super) count: u32,
    /// The sum of the logarithms of the times, and the sum of the squares of these.
    sum: f64,
    squares: f64,
    /// The sum of the requests at work.
    pub(super) at_work: f64,
    /// Counts requests that began earlier, too.
    pub(super) pace: Pace,
    pub(super) longest: Duration,
    /// How long there was work, up to the last tick.
    pub(super) busy: Duration,
    last: Option<Instant>,
    /// Ticks with work, and those of them at which nobody waited.
    ticks: u32,
    calm: u32,
}

/// Answers of backends, and the time between them in seconds, while there were requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    count: f64,
    intervals: f64,
}

/// The logarithm of the service time, on average over the last answers.
#[derive(Debug, Default)]
pub(super) struct UsualTime {
    pub(super) count: u32,
    mean: f64,
}

/// Answers that are enough for a clear result, and the most that are waited for if it is unclear.
pub(super) const MIN_ANSWERS: u32 = 32;

/// Of the logarithms of service times. It is 0.65 if one request in twenty takes forty times as long.
const MAX_EVEN_VARIANCE: f64 = 0.3;

pub(super) const MAX_ANSWERS: u32 = 8 * MIN_ANSWERS;

/// So many answers within the time of the slowest one tell something each. This was chosen by
/// `make bench-choosing`.
const INDEPENDENT_ANSWERS: f64 = 8.0;

impl Window {
    pub(super) fn new(began: Option<Instant>) -> Self {
        Window { began, last: began, ..Window::default() }
    }

    pub(super) fn add(&mut self, answer: Answer) {
        let Answer { time, ended, .. } = answer;
        if self.began.is_some_and(|began| ended < began + time) {
            return;
        }
        let log = (time.as_micros().max(1) as f64).ln();
        self.count += 1;
        self.sum += log;
        self.squares += log * log;
        self.at_work += answer.at_work as f64;
        self.longest = self.longest.max(time);
    }

    pub(super) fn tick(&mut self, now: Instant, demand: Demand) {
        self.began.get_or_insert(now);
        let last = self.last.replace(now).unwrap_or(now);
        if demand != Demand::Nothing {
            self.busy += now - last;
            self.ticks += 1;
            self.calm += u32::from(demand == Demand::Met);
        }
    }

    /// Whether nobody waits most of the time.
    pub(super) fn is_calm(&self) -> bool {
        2 * self.calm > self.ticks
    }

    /// Forgets half of the answers beyond the needed ones.
    pub(super) fn keep_recent(&mut self) {
        if self.count > MAX_ANSWERS {
            let before = f64::from(self.count);
            for count in [&mut self.count, &mut self.ticks, &mut self.calm] {
                *count /= 2;
            }
            let kept = f64::from(self.count) / before;
            let Pace { count, intervals } = &mut self.pace;
            let times = [&mut self.sum, &mut self.squares, &mut self.at_work];
            for sum in times.into_iter().chain([count, intervals]) {
                *sum *= kept;
            }
        }
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }

    /// Answers of a backend a second, while it has requests.
    pub(super) fn rate(&self) -> f64 {
        self.pace.count / self.pace.intervals.max(1e-6)
    }

    /// Requests at work in a backend, on average over the answers.
    pub(super) fn at_work(&self) -> f64 {
        self.at_work / f64::from(self.count.max(1))
    }

    /// The square of the standard error of the difference between the means of both. `count` says how many of a
    /// window's answers tell something each.
    pub(super) fn squared_error(&self, other: &Window, count: fn(&Window) -> f64) -> f64 {
        // Where one answer in twenty is slow, a short window may have none of these, and then seems more exact
        // than it is. So both have the larger variance.
        let variance = self.variance().max(other.variance());
        [self, other].iter().map(|it| variance / count(it)).sum()
    }

    pub(super) fn answers_but_one(&self) -> f64 {
        f64::from(self.count.max(2) - 1)
    }

    /// Fewer, if requests wait behind one another: all behind a slow one are slow.
    pub(super) fn independent_answers(&self) -> f64 {
        let slowest = self.longest.as_secs_f64().max(1e-6);
        let most = INDEPENDENT_ANSWERS * self.busy.as_secs_f64() / slowest;
        self.answers_but_one().min(most.max(1.0))
    }

    /// Whether no request takes far longer than others.
    pub(super) fn is_even(&self) -> bool {
        self.variance() < MAX_EVEN_VARIANCE
    }

    fn variance(&self) -> f64 {
        let count = f64::from(self.count.max(1));
        (self.squares / count - self.mean().powi(2)).max(0.0)
    }
}

impl Pace {
    pub(super) fn add(&mut self, interval: Duration) {
        self.count += 1.0;
        self.intervals += interval.as_secs_f64();
    }
}

impl UsualTime {
    pub(super) fn add(&mut self, time: Duration) {
        self.count = (self.count + 1).min(MIN_ANSWERS);
        self.mean += ((time.as_micros().max(1) as f64).ln() - self.mean) / f64::from(self.count);
    }

    pub(super) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.mean.exp() / 1e6)
    }
}
