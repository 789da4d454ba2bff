//! Exponential backoff, and when crashes are a loop.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How instances that die by themselves are restarted.
///
/// The wait before a restart doubles from `first` to `max`. An instance that was ready for `window`
/// starts over. `crash_limit` crashes within `window`, or as many starts in a row that never became
/// ready, are a crash loop: the instance is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartPolicy {
    first: Duration,
    max: Duration,
    crash_limit: u32,
    window: Duration,
}

/// Why a [`RestartPolicy`] was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRestartPolicy {
    /// A restart without a wait would take a core for itself.
    #[error("the first wait before a restart is 0; use at least 1 ms")]
    NoWait,
    /// The waits cannot grow from `first` to `max`.
    #[error(
        "the longest wait before a restart, {max:?}, is shorter than the first, {first:?}; swap or raise it"
    )]
    MaxBelowFirst {
        /// The first wait.
        first: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// No crash would be allowed to happen.
    #[error("the crash limit is 0; use 1 to give up at the first crash")]
    NoCrash,
    /// Nothing can happen within no time.
    #[error("the window of the crash limit is 0; use a minute or so")]
    NoWindow,
}

/// The crashes of one instance that still count.
#[derive(Debug)]
pub(crate) struct Crashes {
    policy: RestartPolicy,
    times: VecDeque<Instant>,
    /// Since it was last healthy; sets the wait.
    streak: u32,
    /// Starts in a row that never became ready.
    unready: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Restart { after: Duration },
    GiveUp { crashes: usize, span: Duration },
}

impl RestartPolicy {
    /// A checked policy.
    ///
    /// # Errors
    /// When a duration or the limit is 0, or `max` is below `first`.
    pub fn new(
        first: Duration,
        max: Duration,
        crash_limit: u32,
        window: Duration,
    ) -> Result<RestartPolicy, InvalidRestartPolicy> {
        if first.is_zero() {
            return Err(InvalidRestartPolicy::NoWait);
        }
        if max < first {
            return Err(InvalidRestartPolicy::MaxBelowFirst { first, max });
        }
        if crash_limit == 0 {
            return Err(InvalidRestartPolicy::NoCrash);
        }
        if window.is_zero() {
            return Err(InvalidRestartPolicy::NoWindow);
        }
        Ok(RestartPolicy { first, max, crash_limit, window })
    }

    /// The wait after the `nth` crash in a row, from 1.
    fn wait(&self, nth: u32) -> Duration {
        let factor = 2u32.saturating_pow(nth.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.max)
    }
}

impl Default for RestartPolicy {
    /// Waits 200 ms, 400 ms, .. 10 s; gives up at the sixth crash in a minute, so an app that dies
    /// at once is given up after some 6 s.
    fn default() -> RestartPolicy {
        RestartPolicy {
            first: Duration::from_millis(200),
            max: Duration::from_secs(10),
            crash_limit: 6,
            window: Duration::from_secs(60),
        }
    }
}

impl Crashes {
    pub(crate) fn new(policy: RestartPolicy) -> Crashes {
        Crashes { policy, times: VecDeque::new(), streak: 0, unready: 0 }
    }

    /// Counts a crash of an instance that had been ready for `ready_for`, if ever.
    pub(crate) fn record(&mut self, now: Instant, ready_for: Option<Duration>) -> Verdict {
        match ready_for {
            Some(health) => {
                self.unready = 0;
                if health >= self.policy.window {
                    self.streak = 0;
                }
            }
            None => self.unready += 1,
        }
        self.streak = self.streak.saturating_add(1);
        self.times.push_back(now);
        // Starts that time out may take longer than the window, yet they are a loop all the same.
        while self.times.len() > self.unready.max(1) && now - self.times[0] > self.policy.window {
            self.times.pop_front();
        }
        if self.times.len() >= self.policy.crash_limit as usize {
            Verdict::GiveUp { crashes: self.times.len(), span: now - self.times[0] }
        } else {
            Verdict::Restart { after: self.policy.wait(self.streak) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn crashes(limit: u32) -> Crashes {
        Crashes::new(RestartPolicy::new(seconds(1), seconds(5), limit, seconds(60)).unwrap())
    }

    fn restart(after: u64) -> Verdict {
        Verdict::Restart { after: seconds(after) }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_start_over_after_health() {
        let mut crashes = crashes(100);
        let now = Instant::now();
        for wait in [1, 2, 4, 5, 5] {
            assert_eq!(crashes.record(now, Some(seconds(3))), restart(wait));
        }
        assert_eq!(crashes.record(now, Some(seconds(60))), restart(1));
        assert_eq!(crashes.record(now, None), restart(2));
    }

    #[test]
    fn gives_up_at_the_limit_within_the_window() {
        let mut crashes = crashes(3);
        let start = Instant::now();
        let at = |second| start + seconds(second);
        assert_eq!(crashes.record(at(0), Some(seconds(1))), restart(1));
        assert_eq!(crashes.record(at(40), Some(seconds(30))), restart(2));
        // The first has left the window by now.
        assert_eq!(crashes.record(at(70), Some(seconds(20))), restart(4));
        assert_eq!(
            crashes.record(at(80), Some(seconds(5))),
            Verdict::GiveUp { crashes: 3, span: seconds(40) }
        );
    }

    #[test]
    fn starts_that_never_become_ready_are_a_loop_however_slow() {
        let mut crashes = crashes(3);
        let start = Instant::now();
        crashes.record(start, None);
        crashes.record(start + seconds(100), None);
        assert_eq!(
            crashes.record(start + seconds(200), None),
            Verdict::GiveUp { crashes: 3, span: seconds(200) }
        );
    }

    #[test]
    fn refuses_what_cannot_work() {
        let policy = |first, max, limit, window| {
            RestartPolicy::new(seconds(first), seconds(max), limit, seconds(window)).unwrap_err()
        };
        assert_eq!(policy(0, 1, 1, 1), InvalidRestartPolicy::NoWait);
        assert_eq!(policy(1, 1, 0, 1), InvalidRestartPolicy::NoCrash);
        assert_eq!(policy(1, 1, 1, 0), InvalidRestartPolicy::NoWindow);
        assert!(policy(2, 1, 1, 1).to_string().contains("1s"));
    }
}
