//! How many requests can be in flight while something is measured, and how many the workload holds.

use crate::calibration::{FILES_PER_REQUEST, IN_FLIGHT_PEAK_DEVIATIONS, SPARE_FILES};
use crate::queueing::workload::Workload;

/// What the limit on open files leaves to the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightLimit {
    /// Files that the process may open.
    pub files: u64,
    /// Requests that it can have in flight.
    pub requests: usize,
}

/// A workload that holds more requests than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Requests that it holds at once.
    pub needed: usize,
    /// Requests that there is room for.
    pub limit: InFlightLimit,
}

impl InFlightLimit {
    /// Under a limit of so many open files.
    pub fn within(files: u64) -> InFlightLimit {
        InFlightLimit {
            files,
            requests: (files.saturating_sub(SPARE_FILES) / FILES_PER_REQUEST) as usize,
        }
    }

    /// The shortage of the workload if a request takes `service` seconds. Each user has a connection.
    /// Arrivals are not held up. So the number in flight has a Poisson distribution, and Little's law gives
    /// its mean.
    pub fn shortage(self, workload: &Workload, service: f64) -> Option<Shortage> {
        let needed = match *workload {
            Workload::Closed { users, .. } => users,
            Workload::Open { rate, .. } => {
                let mean = rate * service;
                (mean + IN_FLIGHT_PEAK_DEVIATIONS * mean.sqrt()).ceil() as usize
            }
        };
        (needed > self.requests).then_some(Shortage { needed, limit: self })
    }
}

impl Shortage {
    /// Open files that the workload needs.
    pub fn files(&self) -> u64 {
        SPARE_FILES.saturating_add(FILES_PER_REQUEST.saturating_mul(self.needed as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_takes_three_files() {
        let room = InFlightLimit::within(556);
        assert_eq!(room.requests, 100);
        let users = |users| Workload::Closed { users, think: 1.0 };
        assert_eq!(room.shortage(&users(100), 0.1), None);
        let shortage = room.shortage(&users(101), 0.1).unwrap();
        assert_eq!(InFlightLimit::within(shortage.files()).requests, 101);
        assert_eq!(InFlightLimit::within(64).requests, 0);
    }

    #[test]
    fn an_endless_rate_needs_too_many_files() {
        let endless = Workload::Open { rate: 1e300, arrival_scv: 1.0 };
        assert_eq!(InFlightLimit::within(556).shortage(&endless, 0.2).unwrap().files(), u64::MAX);
    }

    #[test]
    fn arrivals_peak_above_their_mean() {
        let room = InFlightLimit::within(556);
        let arrivals = |rate| Workload::Open { rate, arrival_scv: 1.0 };
        assert_eq!(room.shortage(&arrivals(370.0), 0.2), None, "74 and 26");
        assert_eq!(room.shortage(&arrivals(400.0), 0.2).unwrap().needed, 107);
    }
}
