//! A short part of the measuring, from which steadiness and precision can be judged.

use std::time::Duration;

use serde::Serialize;

use crate::clock::time::{Nanos, SECOND};
use crate::metrics::sparse_histogram::SparseHistogram;
use crate::metrics::usage::Usage;

/// A short part of the measuring, over all threads. In a run of more than 3,600 windows old ones are added up, so
/// that there are never more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Window {
    /// From the beginning of the measuring to the beginning of the window.
    pub start: Duration,
    /// Its length in seconds. The last window may be shorter than the others, or up to a tenth longer.
    pub seconds: f64,
    /// Successful requests, each counted by the share of its service time that lies in the window.
    pub completed: f64,
    /// Successful requests whose last byte arrived in the window.
    pub answered: u64,
    /// Requests that failed in the window.
    pub errors: u64,
    /// Requests whose intended time lies in the window.
    pub due: u64,
    /// Mean service time of the answered ones, in microseconds; `None` if there were none.
    pub service_us: Option<f64>,
    /// Mean response time of the answered ones, in microseconds; `None` if there were none.
    pub response_us: Option<f64>,
    /// Users at its end (closed workload).
    pub users: u64,
    /// Requests sent and not answered at its end.
    pub in_flight: u64,
    /// Requests that wait inside the generator for a connection, at its end (open workload).
    pub waiting: u64,
    /// Requests that were in flight at its end and have not ended yet. Until this is 0, `completed` can still grow,
    /// by at most 1 for each.
    pub unsettled: u64,
    /// Bytes received.
    pub bytes: u64,
    /// The mean number of requests in the system: due, and neither answered nor failed. In a closed workload, the
    /// mean number of users.
    pub in_system: f64,
    /// Whether the figures of the report include it.
    pub stage: Stage,
    /// Response times of the answered ones.
    #[serde(skip)]
    pub response: SparseHistogram,
}

/// The part of a run that a window belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The warm-up. The figures of the report leave it out.
    WarmUp,
    /// The measured part.
    Measured,
}

impl Window {
    /// Successful requests per second.
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.completed / self.seconds } else { 0.0 }
    }
}

/// One thread's part of a window, open or closed.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowTally {
    /// Its number since the beginning of the measuring. A window that stands for several has the number of the first.
    pub(crate) number: u64,
    pub(crate) start: Nanos,
    /// [`Nanos::MAX`] while it is open.
    pub(crate) end: Nanos,
    pub(crate) completed: f64,
    pub(crate) answered: u64,
    pub(crate) errors: u64,
    pub(crate) due: u64,
    /// Requests that had a connection, or were allowed to open one.
    pub(crate) sent: u64,
    /// Failures without an answer.
    pub(crate) lost: u64,
    /// Those of them that reached a timeout.
    pub(crate) abandoned: u64,
    pub(crate) service: Nanos,
    pub(crate) response: Nanos,
    pub(crate) gauges: Gauges,
    pub(crate) in_flight: u64,
    pub(crate) unsettled: u64,
    pub(crate) bytes: u64,
    /// Requests in the system, or users, times nanoseconds.
    pub(crate) occupancy: u64,
    /// Pauses that users began in it.
    pub(crate) pauses: Nanos,
    pub(crate) times: SparseHistogram,
}

/// Values at the end of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gauges {
    pub(crate) users: u64,
    pub(crate) waiting: u64,
    /// What the thread used since the measuring began.
    pub(crate) usage: Usage,
}

impl WindowTally {
    pub(crate) fn open_at(start: Nanos) -> WindowTally {
        WindowTally { start, end: Nanos::MAX, ..WindowTally::default() }
    }

    /// The part of `from..to` that lies in this window.
    pub(crate) fn overlap(&self, from: Nanos, to: Nanos) -> Nanos {
        to.min(self.end).saturating_sub(from.max(self.start))
    }

    /// Adds another thread's part of the same window.
    pub(crate) fn merge(&mut self, other: &WindowTally) {
        self.end = self.end.max(other.end);
        self.completed += other.completed;
        self.answered += other.answered;
        self.errors += other.errors;
        self.due += other.due;
        self.sent += other.sent;
        self.lost += other.lost;
        self.abandoned += other.abandoned;
        self.service += other.service;
        self.response += other.response;
        self.gauges.users += other.gauges.users;
        self.gauges.waiting += other.gauges.waiting;
        self.in_flight += other.in_flight;
        self.unsettled += other.unsettled;
        self.bytes += other.bytes;
        self.occupancy += other.occupancy;
        self.pauses += other.pauses;
        self.times.merge(&other.times);
    }

    /// Adds the window that follows.
    pub(crate) fn append(&mut self, later: &WindowTally) {
        let mut times = std::mem::take(&mut self.times);
        times.absorb(&later.times);
        *self = WindowTally {
            number: self.number,
            start: self.start,
            end: later.end,
            completed: self.completed + later.completed,
            answered: self.answered + later.answered,
            errors: self.errors + later.errors,
            due: self.due + later.due,
            sent: self.sent + later.sent,
            lost: self.lost + later.lost,
            abandoned: self.abandoned + later.abandoned,
            service: self.service + later.service,
            response: self.response + later.response,
            gauges: later.gauges,
            in_flight: later.in_flight,
            unsettled: self.unsettled + later.unsettled,
            bytes: self.bytes + later.bytes,
            occupancy: self.occupancy + later.occupancy,
            pauses: self.pauses + later.pauses,
            times,
        };
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.start) as f64 / SECOND as f64
    }

    /// The public form. `since` is when the measuring began, and `cut` is the end of the warm-up.
    pub(crate) fn publish(&self, since: Nanos, cut: Nanos) -> Window {
        let mean_us =
            |sum: Nanos| (self.answered > 0).then(|| sum as f64 / self.answered as f64 / 1000.0);
        Window {
            start: Duration::from_nanos(self.start.saturating_sub(since)),
            seconds: self.seconds(),
            completed: self.completed,
            answered: self.answered,
            errors: self.errors,
            due: self.due,
            service_us: mean_us(self.service),
            response_us: mean_us(self.response),
            users: self.gauges.users,
            in_flight: self.in_flight,
            waiting: self.gauges.waiting,
            unsettled: self.unsettled,
            bytes: self.bytes,
            in_system: self.occupancy as f64 / self.end.saturating_sub(self.start).max(1) as f64,
            stage: if self.start < cut { Stage::WarmUp } else { Stage::Measured },
            response: self.times.clone(),
        }
    }
}
