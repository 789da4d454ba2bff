//! How the target is used: by users who wait for their answers, or by arrivals that do not.

use std::time::Duration;

use crate::config::StartError;

/// A number of something per second.
pub type Rate = f64;

/// What decides when the next request is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// A fixed number of users; each sends, waits for the answer, thinks, and sends again.
    Closed {
        /// Users at once, each on a connection of its own.
        users: usize,
        /// Users started per second; `None` starts all at once.
        ramp: Option<Rate>,
        /// Pause between an answer and the user's next request; the first goes out at once.
        think: Duration,
    },
    /// Requests that come at a rate, whatever became of the earlier ones.
    Open {
        /// Requests per second, above zero.
        rate: Rate,
        /// A rate to change to, linearly over this time from the start, and to keep after it.
        ramp_to: Option<(Rate, Duration)>,
        /// How the arrivals are spread.
        spacing: Spacing,
    },
}

/// How arrivals are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// At equal distances.
    #[default]
    Even,
    /// With exponential gaps, as many independent users make them.
    Poisson,
}

impl Workload {
    /// Users who think for `think` between requests and all start at once.
    pub fn closed(users: usize, think: Duration) -> Workload {
        Workload::Closed { users, ramp: None, think }
    }

    /// Evenly spaced arrivals at a constant rate (requests per second).
    pub fn open(rate: Rate) -> Workload {
        Workload::Open { rate, ramp_to: None, spacing: Spacing::Even }
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        match *self {
            Workload::Closed { users: 0, .. } => Err(StartError::NoUsers),
            Workload::Closed { users, .. } if users > u32::MAX as usize => {
                Err(StartError::TooManyUsers(users))
            }
            Workload::Closed { ramp, .. } => match ramp {
                Some(rate) if !is_rate(rate) => Err(StartError::Ramp(rate)),
                _ => Ok(()),
            },
            Workload::Open { rate, .. } if !is_rate(rate) => Err(StartError::Rate(rate)),
            Workload::Open { ramp_to, .. } => match ramp_to {
                Some((rate, _)) if !is_rate(rate) => Err(StartError::Rate(rate)),
                _ => Ok(()),
            },
        }
    }
}

/// A rate that a schedule can be made of. One in ten thousand seconds is far below any use, and
/// keeps intended times within the clock's range.
fn is_rate(rate: Rate) -> bool {
    (1e-4..=1e9).contains(&rate)
}
