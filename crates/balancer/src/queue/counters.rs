//! What each thread counts of an app's requests.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::backends::counters::{APP_TIME_DIGITS, histogram};

/// Requests that the queue turned away, by reason. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShedCounts {
    /// The queue was full.
    pub full: u64,
    /// The wait was too long.
    pub timeout: u64,
    /// The expected wait was too long.
    pub too_late: u64,
    /// No backend was up.
    pub all_down: u64,
    /// The client left while it waited.
    pub client_gone: u64,
}

/// One thread's counters of an app, besides those of its backends.
#[derive(Debug)]
pub(crate) struct AppTally {
    /// Time in the queue, in microseconds.
    pub(crate) queue: Histogram<u64>,
    /// Response time, in microseconds.
    pub(crate) response: Histogram<u64>,
    pub(crate) shed: ShedCounts,
}

impl ShedCounts {
    pub(crate) fn add(&mut self, other: ShedCounts) {
        self.full += other.full;
        self.timeout += other.timeout;
        self.too_late += other.too_late;
        self.all_down += other.all_down;
        self.client_gone += other.client_gone;
    }
}

impl Default for AppTally {
    fn default() -> Self {
        AppTally {
            queue: histogram(APP_TIME_DIGITS),
            response: histogram(APP_TIME_DIGITS),
            shed: ShedCounts::default(),
        }
    }
}
