//! What is counted. Each thread counts for itself, under a lock that only a snapshot ever contends
//! for; a snapshot adds the threads up.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Counts of one backend; only ever grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackendCounts {
    /// Requests that got a slot here, with those that moved on to another backend.
    pub requests: u64,
    /// Final answers by class: `responses[0]` is 1xx (upgrades), `responses[4]` is 5xx.
    pub responses: [u64; 5],
    /// Connections that could not be established, in time or at all.
    pub connect_errors: u64,
    /// Answers whose header did not come in time, or whose body stalled.
    pub timeouts: u64,
    /// Connections closed or reset before an answer.
    pub closed: u64,
    /// Answers that are not HTTP/1 as it must be.
    pub malformed: u64,
    /// Answers that ended early.
    pub truncated: u64,
    /// Clients that left during their request.
    pub client_aborts: u64,
    /// Requests sent again after a failure here, to this backend or to another one.
    pub retries: u64,
    /// Checks of its health.
    pub checks: u64,
    /// Those that it failed.
    pub failed_checks: u64,
    /// Connections established.
    pub connects: u64,
    /// Bytes sent to the backend.
    pub bytes_in: u64,
    /// Bytes of its answers sent to clients.
    pub bytes_out: u64,
}

/// What went wrong with a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendFault {
    Connect,
    Timeout,
    Closed,
    Malformed,
    Truncated,
    ClientAbort,
}

impl BackendFault {
    /// For people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            BackendFault::Connect => "it cannot be reached",
            BackendFault::Timeout => "its answer did not come in time",
            BackendFault::Closed => "it closed the connection without an answer",
            BackendFault::Malformed => "its answer was not HTTP/1.1",
            BackendFault::Truncated => "its answer ended early",
            BackendFault::ClientAbort => "the client left",
        }
    }
}

/// One thread's share of a backend.
#[derive(Debug)]
pub(crate) struct BackendTally {
    pub(crate) counts: BackendCounts,
    /// Microseconds.
    pub(crate) service: Histogram<u64>,
}

/// Times are kept to 1 % for each backend, so that 1,000 backends fit into memory,
/// and to 0.1 % in total.
pub(crate) const BACKEND_TIME_DIGITS: u8 = 2;

pub(crate) const APP_TIME_DIGITS: u8 = 3;

/// Longer times count as this one.
const MAX_RECORDED_TIME: Duration = Duration::from_secs(3600);

impl BackendCounts {
    pub(crate) fn fault(&mut self, fault: BackendFault) {
        *match fault {
            BackendFault::Connect => &mut self.connect_errors,
            BackendFault::Timeout => &mut self.timeouts,
            BackendFault::Closed => &mut self.closed,
            BackendFault::Malformed => &mut self.malformed,
            BackendFault::Truncated => &mut self.truncated,
            BackendFault::ClientAbort => &mut self.client_aborts,
        } += 1;
    }

    pub(crate) fn response(&mut self, status: u16) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.responses[class] += 1;
    }

    pub(crate) fn add(&mut self, other: &BackendCounts) {
        self.requests += other.requests;
        for (sum, count) in self.responses.iter_mut().zip(other.responses) {
            *sum += count;
        }
        self.connect_errors += other.connect_errors;
        self.timeouts += other.timeouts;
        self.closed += other.closed;
        self.malformed += other.malformed;
        self.truncated += other.truncated;
        self.client_aborts += other.client_aborts;
        self.retries += other.retries;
        self.checks += other.checks;
        self.failed_checks += other.failed_checks;
        self.connects += other.connects;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

impl Default for BackendTally {
    fn default() -> Self {
        BackendTally { counts: BackendCounts::default(), service: histogram(BACKEND_TIME_DIGITS) }
    }
}

/// An empty histogram; it grows with the times it sees.
pub(crate) fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new(digits).expect("2 and 3 are numbers of digits that a histogram can have")
}

pub(crate) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    // Not `saturating_record`: it saturates at what the histogram has grown to so far.
    let grown = histogram.record(time.min(MAX_RECORDED_TIME).as_micros() as u64);
    grown.expect("a histogram that grows takes every value up to the longest");
}

pub(crate) fn merge(into: &mut Histogram<u64>, from: &Histogram<u64>) {
    into.add(from).expect("a histogram that grows takes every value of another one");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_as_they_are() {
        let mut times = histogram(APP_TIME_DIGITS);
        for time in [Duration::ZERO, Duration::from_millis(56), Duration::from_secs(9999)] {
            record(&mut times, time);
        }
        assert!(times.equivalent(times.value_at_quantile(0.5), 56_000), "{times:?}");
        assert!(times.equivalent(times.max(), 3_600_000_000), "the longest");
    }
}
