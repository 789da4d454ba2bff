//! When an instance that died is started again, and when its crashes are a loop.

use std::time::Duration;

use tokio::time::Instant;

/// How instances that die by themselves are restarted: without end, after waits.
///
/// The wait before a restart doubles from `first` to `max`. A random share of up to `jitter` is taken off,
/// so that instances that died together do not start together. An instance that served for `steady` is
/// back at `first`. One that died under requests does not make the waits grow, because it could start.
/// `crash_limit` crashes without a steady time are a crash loop.
#[derive(Debug, Clone, PartialEq)]
pub struct RestartPolicy {
    first: Duration,
    max: Duration,
    jitter: f64,
    crash_limit: u32,
    steady: Duration,
}

/// Why a [`RestartPolicy`] was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// No share.
    #[error("the jitter of the waits is {0}; use a share from 0 to 0.5")]
    NoShare(f64),
    /// An instance that never died would be in a loop.
    #[error("the crash limit is 0; use 1 to call the first crash a loop")]
    NoCrash,
    /// Every crash would be the first.
    #[error("the time after which an instance is steady is 0; use some seconds")]
    NeverSteady,
}

/// How an instance died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// By itself, or it is not known how.
    Idle,
    /// With requests in flight, which may be what ended it, so long after it was ready.
    Serving(Duration),
}

/// The crashes of one instance since it was steady.
#[derive(Debug)]
pub struct Crashes {
    policy: RestartPolicy,
    count: u32,
    /// Those without requests, which make the waits grow.
    idle: u32,
    first: Option<Instant>,
}

/// An instance that served for so long is started again at once.
const SERVED: Duration = Duration::from_secs(1);

/// What follows from a crash.
#[derive(Debug, PartialEq)]
pub struct Setback {
    /// The wait before the restart.
    pub wait: Duration,
    /// Crashes in a row, and the time from the first of them, where they are a loop.
    pub crash_loop: Option<(u32, Duration)>,
}

impl RestartPolicy {
    /// A checked policy.
    ///
    /// # Errors
    /// When a duration or the limit is 0, `max` is below `first`, or `jitter` no share up to a half.
    pub fn new(
        first: Duration,
        max: Duration,
        jitter: f64,
        crash_limit: u32,
        steady: Duration,
    ) -> Result<RestartPolicy, InvalidRestartPolicy> {
        if first.is_zero() {
            return Err(InvalidRestartPolicy::NoWait);
        }
        if max < first {
            return Err(InvalidRestartPolicy::MaxBelowFirst { first, max });
        }
        if !(0.0..=0.5).contains(&jitter) {
            return Err(InvalidRestartPolicy::NoShare(jitter));
        }
        if crash_limit == 0 {
            return Err(InvalidRestartPolicy::NoCrash);
        }
        if steady.is_zero() {
            return Err(InvalidRestartPolicy::NeverSteady);
        }
        Ok(RestartPolicy { first, max, jitter, crash_limit, steady })
    }

    /// How long an instance has to serve until its crashes are forgotten.
    pub fn steady(&self) -> Duration {
        self.steady
    }

    /// The wait after the `nth` crash in a row, from 1.
    fn wait(&self, nth: u32) -> Duration {
        let factor = 2u32.saturating_pow(nth.saturating_sub(1));
        let wait = self.first.saturating_mul(factor).min(self.max);
        wait.mul_f64(1.0 - self.jitter * rand::random::<f64>())
    }
}

impl Default for RestartPolicy {
    /// Waits 200 ms, 400 ms, .. 30 s, each up to a fifth shorter. An instance is steady after 10 s.
    /// The sixth crash before that is a loop. An app that dies at once has it some 6 s after the first.
    fn default() -> RestartPolicy {
        RestartPolicy {
            first: Duration::from_millis(200),
            max: Duration::from_secs(30),
            jitter: 0.2,
            crash_limit: 6,
            steady: Duration::from_secs(10),
        }
    }
}

impl Crashes {
    /// None yet.
    pub fn new(policy: RestartPolicy) -> Crashes {
        Crashes { policy, count: 0, idle: 0, first: None }
    }

    /// Counts one.
    pub fn record(&mut self, now: Instant, death: Death) -> Setback {
        let first = *self.first.get_or_insert(now);
        self.count = self.count.saturating_add(1);
        let wait = match death {
            Death::Idle => {
                self.idle = self.idle.saturating_add(1);
                self.policy.wait(self.idle)
            }
            // A service that requests end must be back before the next one comes.
            Death::Serving(served) if served >= SERVED => Duration::ZERO,
            // Requests that end it at once would take a core for the starts.
            Death::Serving(_) => self.policy.wait(1),
        };
        let is_loop = self.count >= self.policy.crash_limit;
        Setback { wait, crash_loop: is_loop.then(|| (self.count, now - first)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The instance is steady.
    pub fn forget(&mut self) {
        (self.count, self.idle, self.first) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn crashes(limit: u32) -> Crashes {
        Crashes::new(RestartPolicy::new(seconds(1), seconds(5), 0.0, limit, seconds(60)).unwrap())
    }

    #[test]
    fn waits_double_and_reset_after_a_steady_run() {
        let mut crashes = crashes(100);
        let mut wait = || crashes.record(Instant::now(), Death::Idle).wait;
        assert_eq!([wait(), wait(), wait(), wait(), wait()], [1, 2, 4, 5, 5].map(seconds));
        crashes.forget();
        assert_eq!(crashes.record(Instant::now(), Death::Idle).wait, seconds(1));
    }

    #[test]
    fn deaths_under_requests_do_not_make_waits_grow() {
        let mut crashes = crashes(3);
        let mut record = |death| crashes.record(Instant::now(), death);
        for _ in 0..9 {
            assert_eq!(record(Death::Serving(seconds(2))).wait, Duration::ZERO);
            assert_eq!(record(Death::Serving(Duration::ZERO)).wait, seconds(1));
        }
        assert_eq!(record(Death::Idle).wait, seconds(1));
        let last = record(Death::Idle);
        assert_eq!((last.wait, last.crash_loop.map(|it| it.0)), (seconds(2), Some(20)));
    }

    #[test]
    fn crashes_above_the_limit_are_a_loop_until_steady() {
        let (mut crashes, start) = (crashes(3), Instant::now());
        let mut crash_loop =
            |second| crashes.record(start + seconds(second), Death::Idle).crash_loop;
        assert_eq!([crash_loop(0), crash_loop(40)], [None, None]);
        assert_eq!(crash_loop(100), Some((3, seconds(100))));
        assert_eq!(crash_loop(130), Some((4, seconds(130))));
        crashes.forget();
        assert!(crashes.is_empty());
        assert_eq!(crashes.record(start, Death::Idle).crash_loop, None);
    }

    #[test]
    fn jitter_shortens_waits_by_at_most_its_share() {
        let policy = RestartPolicy::default();
        let waits: Vec<Duration> = (0..100).map(|_| policy.wait(100)).collect();
        assert!(waits.iter().all(|wait| (seconds(24)..=seconds(30)).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }

    #[test]
    fn an_impossible_policy_is_refused() {
        let policy = |first, max, jitter, limit, steady| {
            RestartPolicy::new(seconds(first), seconds(max), jitter, limit, seconds(steady))
                .unwrap_err()
        };
        assert_eq!(policy(0, 1, 0.0, 1, 1), InvalidRestartPolicy::NoWait);
        assert_eq!(policy(1, 1, 2.0, 1, 1), InvalidRestartPolicy::NoShare(2.0));
        assert_eq!(policy(1, 1, 0.0, 0, 1), InvalidRestartPolicy::NoCrash);
        assert_eq!(policy(1, 1, 0.0, 1, 0), InvalidRestartPolicy::NeverSteady);
        assert!(policy(2, 1, 0.0, 1, 1).to_string().contains("1s"));
    }
}
