//! Counts and times of a part of the measuring.

use std::collections::BTreeMap;

use crate::clock::time::Nanos;
use crate::error::kind::{ErrorKind, Failed};
use crate::metrics::histogram::Histogram;
use crate::metrics::met::Met;
use crate::metrics::sparse_histogram::SparseHistogram;
use crate::metrics::window_histogram::WindowHistogram;

const FIRST_STATUS: u16 = 100;
const STATUSES: usize = 900;

/// Counts and times of a part of the measuring. `Times` suits the use: it is quick for an open window, small for
/// a closed one, and gives percentiles in a sum.
#[derive(Debug, Clone)]
pub(crate) struct Tally<Times = Histogram> {
    pub(crate) requests: u64,
    pub(crate) errors: [u64; ErrorKind::ALL.len()],
    /// How often requests failed in each way, and when at first and last.
    failures: BTreeMap<Failed, Met>,
    status: Box<[u64; STATUSES]>,
    pub(crate) bytes: u64,
    /// Bytes of the bodies of complete answers.
    pub(crate) body_bytes: u64,
    /// Requests whose intended time has come.
    pub(crate) due: u64,
    /// Requests that had a connection, or were allowed to open one.
    pub(crate) taken_up: u64,
    /// Arrivals that found every connection busy.
    pub(crate) waited: u64,
    /// Arrivals that the limit of their phase dropped. They are not due.
    pub(crate) dropped: u64,
    /// Requests of paced users that began late because of a slow answer before.
    pub(crate) late: u64,
    pub(crate) connections_opened: u64,
    pub(crate) reconnects: u64,
    /// How often requests went out again, because a used connection was closed before they came.
    pub(crate) repeated: u64,
    /// From the beginning of a connection to the first request on it.
    pub(crate) connect: Times,
    pub(crate) response: Times,
    pub(crate) service: Times,
    /// From the send to the first byte of the answer.
    pub(crate) first_byte: Times,
    pub(crate) failed: Times,
    pub(crate) lag: Times,
}

/// The counts of an open window.
pub(crate) type OpenTally = Tally<WindowHistogram>;
/// The counts of one closed window, or of several.
pub(crate) type ClosedTally = Tally<SparseHistogram>;

impl<Times: Default> Default for Tally<Times> {
    fn default() -> Self {
        Tally {
            requests: 0,
            errors: [0; ErrorKind::ALL.len()],
            failures: BTreeMap::new(),
            status: Box::new([0; STATUSES]),
            bytes: 0,
            body_bytes: 0,
            due: 0,
            taken_up: 0,
            waited: 0,
            dropped: 0,
            late: 0,
            connections_opened: 0,
            reconnects: 0,
            repeated: 0,
            connect: Times::default(),
            response: Times::default(),
            service: Times::default(),
            first_byte: Times::default(),
            failed: Times::default(),
            lag: Times::default(),
        }
    }
}

impl OpenTally {
    /// Takes what was counted, and leaves nothing.
    pub(crate) fn take(&mut self) -> ClosedTally {
        let mut part = ClosedTally::default();
        for (small, counts) in part.times_mut().into_iter().zip(self.times_mut()) {
            *small = SparseHistogram::of(counts);
        }
        part.count(self);
        self.clear_counts();
        part
    }
}

impl Tally {
    /// Adds counts and times.
    pub(crate) fn add(&mut self, part: &ClosedTally) {
        self.count(part);
        for (sum, small) in self.times_mut().into_iter().zip(part.times()) {
            small.add_to(sum);
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.count(other);
        for (sum, others) in self.times_mut().into_iter().zip(other.times()) {
            sum.merge(others);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.clear_counts();
        self.times_mut().into_iter().for_each(Histogram::clear);
    }
}

impl<Times> Tally<Times> {
    pub(crate) fn times(&self) -> [&Times; 6] {
        let Tally { connect, response, service, first_byte, failed, lag, .. } = self;
        [connect, response, service, first_byte, failed, lag]
    }

    pub(crate) fn times_mut(&mut self) -> [&mut Times; 6] {
        let Tally { connect, response, service, first_byte, failed, lag, .. } = self;
        [connect, response, service, first_byte, failed, lag]
    }

    /// Adds the counts, not the times.
    pub(crate) fn count<Others>(&mut self, other: &Tally<Others>) {
        self.requests += other.requests;
        for (mine, others) in self.errors.iter_mut().zip(other.errors) {
            *mine += others;
        }
        other.failures.iter().for_each(|(failed, met)| met.add_to(&mut self.failures, *failed));
        for (mine, others) in self.status.iter_mut().zip(other.status.iter()) {
            *mine += others;
        }
        self.bytes += other.bytes;
        self.body_bytes += other.body_bytes;
        self.due += other.due;
        self.taken_up += other.taken_up;
        self.waited += other.waited;
        self.dropped += other.dropped;
        self.late += other.late;
        self.connections_opened += other.connections_opened;
        self.reconnects += other.reconnects;
        self.repeated += other.repeated;
    }

    fn clear_counts(&mut self) {
        self.requests = 0;
        self.errors.fill(0);
        self.failures.clear();
        self.status.fill(0);
        self.bytes = 0;
        self.body_bytes = 0;
        self.due = 0;
        self.taken_up = 0;
        self.waited = 0;
        self.dropped = 0;
        self.late = 0;
        self.connections_opened = 0;
        self.reconnects = 0;
        self.repeated = 0;
    }

    /// Statuses that were seen, with their counts.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let numbered = (FIRST_STATUS..).zip(self.status.iter().copied());
        numbered.filter(|(_, count)| *count > 0)
    }

    /// Failures that occurred.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (Failed, Met)> {
        self.failures.iter().map(|(failed, met)| (*failed, *met))
    }

    pub(crate) fn note_failure(&mut self, failed: Failed, at: Nanos) {
        self.errors[failed.kind as usize] += 1;
        Met::once(at).add_to(&mut self.failures, failed);
    }

    pub(crate) fn note_status(&mut self, status: u16) {
        let index = usize::from(status.saturating_sub(FIRST_STATUS));
        if let Some(count) = self.status.get_mut(index) {
            *count += 1;
        }
    }
}
