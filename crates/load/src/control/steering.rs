//! Live changes of a run. The threads of a run share nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::fd_limit::allow_connections;
use super::waker::Waker;
use crate::clock::pausable_clock::PausableClock;
use crate::clock::time::{Clock, Nanos};
use crate::metrics::published::Published;
use crate::workload::plan::Plan;
use crate::workload::rate::{Rate, is_rate, max_rate};

/// Steers a running load. It is cheap to clone and can be sent to other threads. Changes take effect within
/// milliseconds, in all threads as of the same instant. After the end of the run they do nothing.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

/// What is asked of the target at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Present {
    /// Since the start, without pauses.
    pub elapsed: Duration,
    /// Whether the load is paused.
    pub paused: bool,
    /// Users of a closed workload, or the rate of an open one.
    pub demand: Demand,
    /// The name of the phase, if it has one.
    pub phase: Option<String>,
    /// Whether the load was changed while it ran.
    pub steered: bool,
}

/// How much is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// By users.
    Users {
        /// The users who are present.
        now: u64,
        /// The users at the end of the ramp.
        goal: u64,
        /// Users who come or go per second; `None` changes them all at once.
        ramp: Option<Rate>,
    },
    /// By arrivals: requests per second.
    Rate(Rate),
}

/// What the threads share. Every thread follows the steering when the revision has changed, and hands over
/// its records in a place of its own.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    start: Nanos,
    revision: AtomicU64,
    steering: Mutex<Steering>,
    /// The fewest users that a change may leave.
    min_users: usize,
    pub(crate) published: Vec<Mutex<Published>>,
    wakers: Vec<Waker>,
}

/// Everything that can change during a run. It consists of pure functions of time, so that all threads agree
/// whenever they learn of a change.
#[derive(Debug, Clone)]
pub(crate) struct Steering {
    pub(crate) plan: Plan,
    pub(crate) load_clock: PausableClock,
    pub(crate) mark: Option<Nanos>,
    pub(crate) stop: Option<Nanos>,
    /// Whether requests in flight at the end are dropped.
    pub(crate) hurries: bool,
    /// When plan or clock changed last.
    pub(crate) steered: Option<Nanos>,
    pub(crate) abandoned: bool,
}

impl Control {
    pub(crate) fn new(shared: Arc<Shared>) -> Control {
        Control { shared }
    }

    /// Changes the number of users of a closed workload, at its ramp. Surplus users finish their request and
    /// leave. A run that ends with a number of requests keeps one user in each thread, which sends the thread's
    /// share. An open workload does not change.
    pub fn set_users(&self, users: usize) {
        let users = users.max(self.shared.min_users);
        allow_connections(users);
        self.steer(|plan, at| {
            if let Plan::Closed(user_count) = plan {
                *user_count = user_count.towards(users as u64, at);
            }
        });
    }

    /// Changes how many users of a closed workload come or go per second, even during a ramp. `None` changes
    /// them all at once. A rate that is not usable is ignored, and so is the call for an open workload.
    pub fn set_ramp(&self, ramp: Option<Rate>) {
        if ramp.is_none_or(is_rate) {
            self.steer(|plan, at| {
                if let Plan::Closed(user_count) = plan {
                    *user_count = user_count.at_ramp(ramp, at);
                }
            });
        }
    }

    /// Changes the rate of an open workload (requests per second) at once, without a burst or a gap. It replaces
    /// the planned rates, but not the end. Zero stops the arrivals. A rate that is negative, not a number, or
    /// above what [`Config::check`](crate::Config::check) allows is ignored. So is the call for a closed workload.
    pub fn set_rate(&self, rate: Rate) {
        self.ramp_rate(rate, Duration::ZERO);
    }

    /// Changes the rate linearly over a time, otherwise like [`Control::set_rate`].
    pub fn ramp_rate(&self, rate: Rate, over: Duration) {
        let most = max_rate(self.shared.published.len());
        if rate == 0.0 || (is_rate(rate) && rate <= most) {
            self.steer(|plan, at| {
                if let Plan::Open(curve) = plan {
                    *curve = Arc::new(curve.redirected(at, rate, over));
                }
            });
        }
    }

    /// Sends nothing until [`Control::resume`]; requests in flight finish.
    pub fn pause(&self) {
        self.shared.change(|steering, now| {
            steering.load_clock.pause(now);
            steering.steered = Some(now);
        });
    }

    /// Goes on where [`Control::pause`] stopped. Requests that would have been due in the pause come later.
    pub fn resume(&self) {
        self.shared.change(|steering, now| {
            steering.load_clock.resume(now);
            steering.steered = Some(now);
        });
    }

    /// Ends the measuring now. [`crate::Run::wait`] then returns as soon as the requests in
    /// flight have finished.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Ends the measuring now, and drops the requests in flight.
    pub(crate) fn cut(&self) {
        self.shared.hurry();
        self.shared.stop();
    }

    /// What is asked of the target now.
    pub fn present(&self) -> Present {
        let steering = self.shared.steering();
        let now = self.shared.clock.now();
        let at = steering.load_clock.load_time(now);
        let (demand, phase) = match &steering.plan {
            Plan::Closed(user_count) => {
                let (goal, ramp) = (user_count.goal(), user_count.ramp());
                (Demand::Users { now: user_count.at(at), goal, ramp }, None)
            }
            Plan::Open(curve) => {
                (Demand::Rate(curve.rate_at(at)), curve.phase_at(at).map(str::to_owned))
            }
        };
        Present {
            elapsed: Duration::from_nanos(at.saturating_sub(self.shared.start)),
            paused: steering.load_clock.is_paused(),
            demand,
            phase,
            steered: steering.steered.is_some(),
        }
    }

    fn steer(&self, set: impl FnOnce(&mut Plan, Nanos)) {
        self.shared.change(|steering, now| {
            let at = steering.load_clock.load_time(now);
            set(&mut steering.plan, at);
            steering.steered = Some(now);
        });
    }
}

impl Steering {
    pub(crate) fn new(plan: Plan) -> Steering {
        Steering {
            plan,
            load_clock: PausableClock::default(),
            mark: None,
            stop: None,
            hurries: false,
            steered: None,
            abandoned: false,
        }
    }
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        start: Nanos,
        plan: Plan,
        min_users: usize,
        published: Vec<Mutex<Published>>,
        wakers: Vec<Waker>,
    ) -> Shared {
        let steering = Mutex::new(Steering::new(plan));
        let revision = AtomicU64::new(0);
        Shared { clock, start, revision, steering, min_users, published, wakers }
    }

    /// Measuring begins now, in every thread at the same instant.
    pub(crate) fn mark(&self) {
        self.change(|steering, now| steering.mark = Some(now));
    }

    /// Measuring ends now. Only the first call counts.
    pub(crate) fn stop(&self) {
        self.change(|steering, now| {
            steering.stop.get_or_insert(now);
        });
    }

    /// Requests in flight at the end will be dropped.
    pub(crate) fn hurry(&self) {
        self.change(|steering, _| steering.hurries = true);
    }

    /// The run was dropped: its threads end at once.
    pub(crate) fn abandon(&self) {
        self.change(|steering, _| steering.abandoned = true);
    }

    /// Rises with every change. Reading it is all that the control costs a thread.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn steering(&self) -> MutexGuard<'_, Steering> {
        self.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, set: impl FnOnce(&mut Steering, Nanos)) {
        {
            let mut steering = self.steering();
            // Read under the lock, so that changes are in the order of their times.
            set(&mut steering, self.clock.now());
            self.revision.fetch_add(1, Ordering::Release);
        }
        for waker in &self.wakers {
            waker.wake();
        }
    }
}
