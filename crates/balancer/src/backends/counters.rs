//! The counters. Each thread has its own, under a lock that only a snapshot contends for. A snapshot
//! adds them up.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Counters of one backend. They only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackendCounts {
    /// Requests that got a slot here, including those that moved on to another backend.
    pub requests: u64,
    /// Final answers by class: `responses[0]` is 1xx (upgrades), `responses[4]` is 5xx.
    pub responses: [u64; 5],
    /// Answered requests, and the microseconds from the connection to the last byte of all of them together.
    pub answered: u64,
    /// See `answered`.
    pub service_micros: u64,
    /// Connections that failed or took too long to establish.
    pub connect_errors: u64,
    /// Answers whose header was late or whose body stalled.
    pub timeouts: u64,
    /// Connections closed or reset before an answer.
    pub closed: u64,
    /// Answers that are not valid HTTP/1.
    pub malformed: u64,
    /// Answers that ended early.
    pub truncated: u64,
    /// Requests whose client left.
    pub client_aborts: u64,
    /// Requests sent again after a failure here, to this backend or to another one.
    pub retries: u64,
    /// Health checks.
    pub checks: u64,
    /// Failed health checks.
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
    /// The fault as a clause for messages.
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

/// One thread's counters of a backend.
#[derive(Debug)]
pub(crate) struct BackendTally {
    pub(crate) counts: BackendCounts,
    /// Service times in microseconds.
    pub(crate) service: Histogram<u64>,
}

/// Significant digits of recorded times. Two for each backend (1 %), so that 1,000 backends fit into
/// memory, and three for an app (0.1 %).
pub(crate) const BACKEND_TIME_DIGITS: u8 = 2;

pub(crate) const APP_TIME_DIGITS: u8 = 3;

/// Longer times are recorded as this one.
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
        self.answered += other.answered;
        self.service_micros += other.service_micros;
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

impl BackendTally {
    /// A request was answered, this long after the connection.
    pub(crate) fn answered(&mut self, time: Duration) {
        self.counts.answered += 1;
        self.counts.service_micros += time.as_micros() as u64;
        record(&mut self.service, time);
    }
}

impl Default for BackendTally {
    fn default() -> Self {
        BackendTally { counts: BackendCounts::default(), service: histogram(BACKEND_TIME_DIGITS) }
    }
}

/// An empty histogram, which grows with the recorded times.
pub(crate) fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new(digits).expect("2 and 3 are numbers of digits that a histogram can have")
}

pub(crate) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    // `saturating_record` would saturate at the present size of the histogram.
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
