//! The time series of a run: throughput and response time in short ticks. They show whether and when the run
//! became steady.

use crate::clock::time::{MILLISECOND, Nanos, SECOND};

/// One thread's time series. In a long run its ticks become wider, so that there are a few thousand at most.
#[derive(Debug, Clone)]
pub(crate) struct TimeSeries {
    since: Nanos,
    width: Nanos,
    ticks: Vec<Tick>,
    /// Where the last tick ends.
    until: Nanos,
}

/// The successful answers of a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tick {
    pub(crate) answered: u64,
    /// Sum of the logarithms of the response times.
    logs: u64,
}

/// A twentieth of a batch of MSER-5 that lasts half a second.
const WIDTH: Nanos = 100 * MILLISECOND;
const MOST: usize = 4096;

impl TimeSeries {
    pub(crate) fn new(since: Nanos) -> TimeSeries {
        let mut ticks = Vec::with_capacity(MOST);
        ticks.push(Tick::default());
        TimeSeries { since, width: WIDTH, ticks, until: since + WIDTH }
    }

    pub(crate) fn answered(&mut self, at: Nanos, response: Nanos) {
        self.go_to(at);
        if let Some(tick) = self.ticks.last_mut() {
            tick.answered += 1;
            tick.logs += log(response);
        }
    }

    /// The measuring ends. An incomplete tick is left out.
    pub(crate) fn end(&mut self, at: Nanos) {
        self.go_to(at);
        self.ticks.pop();
    }

    /// The time series of all threads as one; `None` if there is none.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a TimeSeries>) -> Option<TimeSeries> {
        let mut all: Vec<TimeSeries> = all.cloned().collect();
        let width = all.iter().map(|time_series| time_series.width).max()?;
        for time_series in &mut all {
            while time_series.width < width {
                time_series.widen();
            }
        }
        let length = all.iter().map(|time_series| time_series.ticks.len()).min()?;
        let (sum, others) = all.split_first_mut()?;
        sum.ticks.truncate(length);
        for other in others {
            for (mine, theirs) in sum.ticks.iter_mut().zip(&other.ticks) {
                mine.add(*theirs);
            }
        }
        Some(all.swap_remove(0))
    }

    pub(crate) fn width(&self) -> Nanos {
        self.width
    }

    /// The ticks from `at` on.
    pub(crate) fn ticks_from(&self, at: Nanos) -> &[Tick] {
        let passed = at.saturating_sub(self.since).div_ceil(self.width) as usize;
        &self.ticks[passed.min(self.ticks.len())..]
    }

    fn go_to(&mut self, at: Nanos) {
        while at >= self.until {
            if self.ticks.len() == MOST {
                self.widen();
            }
            self.ticks.push(Tick::default());
            self.until += self.width;
        }
    }

    /// Merges each two ticks into one. A remaining tick is the open one, or incomplete.
    fn widen(&mut self) {
        let whole = self.ticks.len() / 2;
        for index in 0..whole {
            let mut both = self.ticks[2 * index];
            both.add(self.ticks[2 * index + 1]);
            self.ticks[index] = both;
        }
        self.ticks.truncate(whole);
        self.width *= 2;
        self.until = self.since + self.width * whole as Nanos;
    }
}

impl Tick {
    pub(crate) fn add(&mut self, other: Tick) {
        self.answered += other.answered;
        self.logs += other.logs;
    }

    /// The typical response time in seconds: about the geometric mean, which a single slow answer hardly changes.
    /// `None` without an answer.
    pub(crate) fn typical(&self) -> Option<f64> {
        let mean = self.logs.checked_div(self.answered)?;
        Some(f64::from_bits(mean << LOG_SHIFT) / SECOND as f64)
    }
}

/// The bits of a float approximate its logarithm, linearly between powers of two, at no cost.
/// Half of the bits leave room for billions of answers in a sum.
const LOG_SHIFT: u32 = 32;

fn log(time: Nanos) -> u64 {
    (time.max(1) as f64).to_bits() >> LOG_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_fits_and_threads_add_up() {
        let time_series = |length: Nanos, each: u64| {
            let mut time_series = TimeSeries::new(SECOND);
            for second in 0..length {
                (0..each).for_each(|_| time_series.answered((1 + second) * SECOND, 7));
            }
            time_series.end((1 + length) * SECOND);
            time_series
        };
        let day = time_series(86_400, 1);
        assert!(day.ticks.len() <= MOST && day.ticks.len() > MOST / 3, "{}", day.ticks.len());
        let short = time_series(100, 2);
        assert_eq!((short.width, short.ticks.len()), (WIDTH, 1000));
        assert_eq!(short.ticks_from(3 * SECOND).len(), 980);
        let both = TimeSeries::sum([&short, &time_series(1000, 1)].into_iter()).unwrap();
        assert_eq!(both.width, 4 * WIDTH);
        let answered: u64 = both.ticks.iter().map(|tick| tick.answered).sum();
        assert_eq!(answered, 3 * 100);
        assert_eq!(TimeSeries::sum(std::iter::empty()).map(|c| c.width), None);
    }

    #[test]
    fn one_slow_answer_does_not_make_many_untypical() {
        let mut time_series = TimeSeries::new(0);
        (0..99).for_each(|_| time_series.answered(0, 10 * MILLISECOND));
        let typical = |time_series: &TimeSeries| time_series.ticks[0].typical().unwrap() * 1e3;
        assert!((typical(&time_series) - 10.0).abs() < 0.01, "{}", typical(&time_series));
        time_series.answered(0, SECOND);
        assert!(typical(&time_series) < 10.6, "{}", typical(&time_series));
        assert_eq!(Tick::default().typical(), None);
    }
}
