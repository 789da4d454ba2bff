//! Live changes of a run: the only thing that its threads share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::clock::{Clock, Nanos};
use crate::driver::Waker;
use crate::recorder::Published;
use crate::usage::allow_connections;
use crate::workload::Rate;

/// Steers a running load; cheap to clone and to send to other threads. Changes take effect at
/// once. After the run has ended they do nothing.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

/// Wishes, read by every thread when the revision has changed, and a place for each thread to
/// hand over what it has recorded.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    revision: AtomicU64,
    users: AtomicU64,
    rate: AtomicU64,
    paused: AtomicBool,
    mark: AtomicU64,
    stop: AtomicU64,
    abandoned: AtomicBool,
    pub(crate) published: Vec<Mutex<Published>>,
    wakers: Vec<Waker>,
}

/// No wish, in a field of wishes.
const NONE: u64 = u64::MAX;

/// All wishes at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wishes {
    pub(crate) users: Option<u64>,
    pub(crate) rate: Option<Rate>,
    pub(crate) paused: bool,
    pub(crate) mark: Option<Nanos>,
    pub(crate) stop: Option<Nanos>,
    pub(crate) abandoned: bool,
}

impl Control {
    pub(crate) fn new(shared: Arc<Shared>) -> Control {
        Control { shared }
    }

    /// Changes the number of users of a closed workload. New ones start now; surplus ones finish
    /// their request and leave. Does nothing to an open workload.
    pub fn set_users(&self, users: usize) {
        allow_connections(users);
        self.shared.change(|s| s.users.store(users as u64, Ordering::Relaxed));
    }

    /// Changes the rate of an open workload (requests per second) and ends its ramp, without a
    /// burst or a hole. Zero stops the arrivals; a rate that is negative or no number is ignored.
    /// Does nothing to a closed workload.
    pub fn set_rate(&self, rate: Rate) {
        if rate.is_finite() && rate >= 0.0 {
            self.shared.change(|s| s.rate.store(rate.to_bits(), Ordering::Relaxed));
        }
    }

    /// Sends nothing until [`Control::resume`]; requests in flight finish.
    pub fn pause(&self) {
        self.shared.change(|s| s.paused.store(true, Ordering::Relaxed));
    }

    /// Goes on where [`Control::pause`] stopped; what would have been due meanwhile is not.
    pub fn resume(&self) {
        self.shared.change(|s| s.paused.store(false, Ordering::Relaxed));
    }

    /// Ends the measuring now. [`crate::Run::wait`] then returns as soon as the requests in
    /// flight have finished.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        published: Vec<Mutex<Published>>,
        wakers: Vec<Waker>,
    ) -> Shared {
        Shared {
            clock,
            revision: AtomicU64::new(0),
            users: AtomicU64::new(NONE),
            rate: AtomicU64::new(NONE),
            paused: AtomicBool::new(false),
            mark: AtomicU64::new(NONE),
            stop: AtomicU64::new(NONE),
            abandoned: AtomicBool::new(false),
            published,
            wakers,
        }
    }

    /// Measuring begins now, in every thread at the same instant.
    pub(crate) fn mark(&self) -> Nanos {
        let now = self.clock.now();
        self.change(|s| s.mark.store(now, Ordering::Relaxed));
        now
    }

    /// Measuring ends now; the first call counts.
    pub(crate) fn stop(&self) {
        let now = self.clock.now();
        self.change(|s| {
            let _ = s.stop.compare_exchange(NONE, now, Ordering::Relaxed, Ordering::Relaxed);
        });
    }

    /// Nobody is interested any more: requests in flight are dropped.
    pub(crate) fn abandon(&self) {
        self.change(|s| s.abandoned.store(true, Ordering::Relaxed));
    }

    /// Rises with every change; one load of it is what the control costs a thread.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn wishes(&self) -> Wishes {
        let get = |field: &AtomicU64| Some(field.load(Ordering::Relaxed)).filter(|v| *v != NONE);
        Wishes {
            users: get(&self.users),
            // The bits of NONE are those of a NaN, which `set_rate` refuses.
            rate: get(&self.rate).map(Rate::from_bits),
            paused: self.paused.load(Ordering::Relaxed),
            mark: get(&self.mark),
            stop: get(&self.stop),
            abandoned: self.abandoned.load(Ordering::Relaxed),
        }
    }

    fn change(&self, set: impl FnOnce(&Shared)) {
        set(self);
        self.revision.fetch_add(1, Ordering::Release);
        for waker in &self.wakers {
            waker.wake();
        }
    }
}
