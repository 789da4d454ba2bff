//! How the target is used: by users who wait for their answers, or by arrivals that do not.

use std::time::Duration;

use super::phase::{Flow, Phase, Spacing, check_phases};
use super::rate::{Rate, is_rate};
use crate::error::start_error::StartError;

/// What decides when the next request is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// A number of users. Each sends, waits for the answer, and sends again in its rhythm.
    Closed {
        /// Users at once, each on a connection of its own.
        users: usize,
        /// Users who come or go per second; `None` changes them all at once.
        ramp: Option<Rate>,
        /// When a user's next request is due.
        rhythm: Rhythm,
    },
    /// Requests that arrive as planned, whether or not earlier ones are answered.
    Open {
        /// The phases in order. The run ends with the last one, if it has an end.
        phases: Vec<Phase>,
        /// How the arrivals are spread.
        spacing: Spacing,
    },
}

/// When a user's next request is due. The first one goes out at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rhythm {
    /// After a pause that begins with the answer.
    Think(Think),
    /// At fixed intervals, however long the answers take. A late user sends at once, and its response time
    /// counts from when it should have sent.
    Every(Duration),
}

/// How long a user thinks between an answer and the next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// A constant time.
    Constant(Duration),
    /// A time from `least` to `most`, uniformly distributed.
    Uniform {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// An exponentially distributed time: mostly short and sometimes long.
    Exponential {
        /// The mean of all times.
        mean: Duration,
    },
}

impl Workload {
    /// Users who think for `think` between requests and all start at once.
    pub fn closed(users: usize, think: Duration) -> Workload {
        Workload::Closed { users, ramp: None, rhythm: Rhythm::Think(Think::Constant(think)) }
    }

    /// Evenly spaced arrivals at a constant rate (requests per second).
    pub fn open(rate: Rate) -> Workload {
        Workload::phases([Phase::constant(rate, None)], Spacing::Even)
    }

    /// Arrivals at a constant rate (requests per second), as many independent users make them.
    pub fn poisson(rate: Rate) -> Workload {
        Workload::phases([Phase::constant(rate, None)], Spacing::Poisson)
    }

    /// Arrivals at a constant rate (requests per second), as many independent users make them. Each of the `strata` has
    /// exactly as many as the rate says, one after the other. After them it is pure Poisson.
    pub fn stratified(rate: Rate, strata: impl IntoIterator<Item = Duration>) -> Workload {
        let lengths = strata.into_iter().map(Some).chain([None]);
        Workload::phases(lengths.map(|length| Phase::constant(rate, length)), Spacing::Stratified)
    }

    /// Arrivals in several phases.
    pub fn phases(phases: impl IntoIterator<Item = Phase>, spacing: Spacing) -> Workload {
        Workload::Open { phases: phases.into_iter().collect(), spacing }
    }

    /// The users of a closed workload.
    pub fn users(&self) -> Option<usize> {
        match self {
            Workload::Closed { users, .. } => Some(*users),
            Workload::Open { .. } => None,
        }
    }

    /// The rate (requests per second) of an open workload whose rate is constant.
    pub fn rate(&self) -> Option<Rate> {
        let Workload::Open { phases, .. } = self else { return None };
        let Flow::Constant(rate) = phases.first()?.flow else { return None };
        let is_constant = phases.iter().all(|phase| phase.flow == Flow::Constant(rate));
        is_constant.then_some(rate)
    }

    /// How long it lasts, if it ends by itself.
    pub fn length(&self) -> Option<Duration> {
        match self {
            Workload::Closed { .. } => None,
            Workload::Open { phases, .. } => phases.iter().map(Phase::length).sum(),
        }
    }

    /// The highest rate at any time; 0 for a closed workload.
    pub(crate) fn peak(&self) -> Rate {
        match self {
            Workload::Closed { .. } => 0.0,
            Workload::Open { phases, .. } => phases.iter().map(Phase::peak).fold(0.0, f64::max),
        }
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        match self {
            Workload::Closed { users: 0, .. } => Err(StartError::NoUsers),
            Workload::Closed { users, .. } if *users > u32::MAX as usize => {
                Err(StartError::TooManyUsers(*users))
            }
            Workload::Closed { ramp: Some(ramp), .. } if !is_rate(*ramp) => {
                Err(StartError::Ramp(*ramp))
            }
            Workload::Closed { rhythm, .. } => rhythm.check(),
            Workload::Open { phases, .. } => check_phases(phases),
        }
    }
}

impl Rhythm {
    fn check(self) -> Result<(), StartError> {
        match self {
            Rhythm::Think(Think::Uniform { least, most }) if least > most => {
                Err(StartError::Think { least, most })
            }
            Rhythm::Every(Duration::ZERO) => Err(StartError::Zero("the pacing", "1 ms")),
            Rhythm::Think(_) | Rhythm::Every(_) => Ok(()),
        }
    }
}
