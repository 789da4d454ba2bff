//! Counts and times of a stretch of measuring.

use crate::error_kind::ErrorKind;
use crate::histogram::Histogram;

const FIRST_STATUS: u16 = 100;
const STATUSES: usize = 500;

/// Counts and times since they were last handed over.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) errors: [u64; ErrorKind::ALL.len()],
    status: Box<[u64; STATUSES]>,
    pub(crate) bytes: u64,
    /// Requests whose intended time has come.
    pub(crate) due: u64,
    /// Of these, the ones for which there was a connection, or leave to open one.
    pub(crate) taken_up: u64,
    /// Arrivals that found every connection busy.
    pub(crate) waited: u64,
    pub(crate) connections_opened: u64,
    pub(crate) reconnects: u64,
    pub(crate) response: Histogram,
    pub(crate) service: Histogram,
    /// From the send to the first byte of the answer.
    pub(crate) first_byte: Histogram,
    pub(crate) failed: Histogram,
    pub(crate) lag: Histogram,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            requests: 0,
            errors: [0; ErrorKind::ALL.len()],
            status: Box::new([0; STATUSES]),
            bytes: 0,
            due: 0,
            taken_up: 0,
            waited: 0,
            connections_opened: 0,
            reconnects: 0,
            response: Histogram::new(),
            service: Histogram::new(),
            first_byte: Histogram::new(),
            failed: Histogram::new(),
            lag: Histogram::new(),
        }
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.requests += other.requests;
        for (mine, others) in self.errors.iter_mut().zip(other.errors) {
            *mine += others;
        }
        for (mine, others) in self.status.iter_mut().zip(other.status.iter()) {
            *mine += others;
        }
        self.bytes += other.bytes;
        self.due += other.due;
        self.taken_up += other.taken_up;
        self.waited += other.waited;
        self.connections_opened += other.connections_opened;
        self.reconnects += other.reconnects;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.first_byte.merge(&other.first_byte);
        self.failed.merge(&other.failed);
        self.lag.merge(&other.lag);
    }

    pub(crate) fn clear(&mut self) {
        self.requests = 0;
        self.errors.fill(0);
        self.status.fill(0);
        self.bytes = 0;
        self.due = 0;
        self.taken_up = 0;
        self.waited = 0;
        self.connections_opened = 0;
        self.reconnects = 0;
        self.response.clear();
        self.service.clear();
        self.first_byte.clear();
        self.failed.clear();
        self.lag.clear();
    }

    /// Statuses that were seen, with their counts.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let numbered = (FIRST_STATUS..).zip(self.status.iter().copied());
        numbered.filter(|(_, count)| *count > 0)
    }

    pub(crate) fn note_status(&mut self, status: u16) {
        let index = usize::from(status.saturating_sub(FIRST_STATUS));
        if let Some(count) = self.status.get_mut(index) {
            *count += 1;
        }
    }
}
