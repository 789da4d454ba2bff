//! How the target is used: by users who wait for their answers, or by arrivals that do not.

use std::sync::Arc;
use std::time::Duration;

use crate::config::StartError;
use crate::curve::RateCurve;
use crate::schedule::{Schedule, Share};
use crate::trace::Trace;

/// A number of something per second.
pub type Rate = f64;

/// What decides when the next request is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// A number of users; each sends, waits for the answer, and sends again in its rhythm.
    Closed {
        /// Users at once, each on a connection of its own.
        users: usize,
        /// Users who come, or go, per second; `None`: all at once.
        ramp: Option<Rate>,
        /// When a user's next request is due.
        rhythm: Rhythm,
    },
    /// Requests that come as planned, whatever became of the earlier ones.
    Open {
        /// One after the other. The run ends with the last one, if that has an end.
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
    /// Every so often, whatever the answers take. A user who is late begins at once, and its
    /// response time counts from when it should have begun.
    Every(Duration),
}

/// How long a user thinks between an answer and the next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// Always so long.
    Constant(Duration),
    /// Anything from `least` to `most`, all equally likely.
    Uniform {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// Mostly short and sometimes long, as people are: exponentially distributed.
    Exponential {
        /// Of all.
        mean: Duration,
    },
}

/// A stretch of an open workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// For the reader.
    pub name: Option<String>,
    /// What arrives in it.
    pub flow: Flow,
    /// How long it lasts; `None` is for ever, and only the last one may. A trace brings its own.
    pub length: Option<Duration>,
    /// An arrival that finds so many in the system is dropped, and counted; `None` drops none.
    pub limit: Option<usize>,
}

/// How many arrivals a second a phase brings.
#[derive(Debug, Clone, PartialEq)]
pub enum Flow {
    /// Always so many; none at 0.
    Constant(Rate),
    /// Changing linearly over the phase.
    Ramp {
        /// At its beginning.
        from: Rate,
        /// At its end.
        to: Rate,
    },
    /// Changing in steps of a second, the first at `from` and the last at `to`.
    Stairs {
        /// In its first second.
        from: Rate,
        /// In its last second.
        to: Rate,
    },
    /// So many in the whole phase, evenly.
    Count(u64),
    /// As recorded.
    Trace(Arc<Trace>),
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

    /// Arrivals in several phases.
    pub fn phases(phases: impl IntoIterator<Item = Phase>, spacing: Spacing) -> Workload {
        Workload::Open { phases: phases.into_iter().collect(), spacing }
    }

    /// When the arrivals of an open workload are intended, since its beginning: those of every run
    /// with this seed, whatever its threads. A closed one has none.
    pub fn arrivals(&self, seed: u64) -> impl Iterator<Item = Duration> + use<> {
        const ALONE: Share = Share { thread: 0, threads: 1 };
        let mut schedule = match self {
            Workload::Open { phases, spacing } => {
                let curve = Arc::new(RateCurve::new(0, phases));
                Some(Schedule::new(curve, *spacing, ALONE, seed))
            }
            Workload::Closed { .. } => None,
        };
        std::iter::from_fn(move || {
            let schedule = schedule.as_mut()?;
            let due = schedule.next_due()?;
            schedule.advance();
            Some(Duration::from_nanos(due))
        })
    }

    /// The users of a closed workload.
    pub fn users(&self) -> Option<usize> {
        match self {
            Workload::Closed { users, .. } => Some(*users),
            Workload::Open { .. } => None,
        }
    }

    /// The rate (requests per second) of an open workload that never changes it.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Workload::Open { phases, .. } => match phases.as_slice() {
                [Phase { flow: Flow::Constant(rate), .. }] => Some(*rate),
                _ => None,
            },
            Workload::Closed { .. } => None,
        }
    }

    /// How long it lasts, if it ends by itself.
    pub fn length(&self) -> Option<Duration> {
        match self {
            Workload::Closed { .. } => None,
            Workload::Open { phases, .. } => phases.iter().map(Phase::length).sum(),
        }
    }

    /// The highest rate at any time; 0 of users.
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

impl Phase {
    /// Arrivals at a constant rate; none at 0. Without a length it lasts for ever.
    pub fn constant(rate: Rate, length: Option<Duration>) -> Phase {
        Phase { name: None, flow: Flow::Constant(rate), length, limit: None }
    }

    /// Arrivals at a rate that changes linearly.
    pub fn ramp(from: Rate, to: Rate, length: Duration) -> Phase {
        Phase { name: None, flow: Flow::Ramp { from, to }, length: Some(length), limit: None }
    }

    /// Arrivals at recorded rates.
    pub fn trace(trace: Trace) -> Phase {
        Phase { name: None, flow: Flow::Trace(Arc::new(trace)), length: None, limit: None }
    }

    /// How long it lasts; `None` is for ever.
    pub fn length(&self) -> Option<Duration> {
        match &self.flow {
            Flow::Trace(trace) => {
                let own = trace.length();
                Some(self.length.map_or(own, |length| length.min(own)))
            }
            _ => self.length,
        }
    }

    fn check(&self) -> Result<(), StartError> {
        let (rates, needs_length) = match self.flow {
            Flow::Constant(rate) => ([rate, rate], false),
            Flow::Ramp { from, to } | Flow::Stairs { from, to } => ([from, to], true),
            Flow::Count(_) => ([0.0; 2], true),
            Flow::Trace(_) => ([0.0; 2], false),
        };
        if let Some(rate) = rates.into_iter().find(|rate| !is_rate(*rate) && *rate != 0.0) {
            return Err(StartError::Rate(rate));
        }
        if self.limit == Some(0) {
            return Err(StartError::Zero("the limit of a phase", "1"));
        }
        match self.length {
            Some(Duration::ZERO) => Err(StartError::Zero("the length of a phase", "1 ms")),
            None if needs_length => Err(StartError::EndlessPhase),
            _ => Ok(()),
        }
    }

    fn peak(&self) -> Rate {
        match &self.flow {
            Flow::Constant(rate) => *rate,
            Flow::Ramp { from, to } | Flow::Stairs { from, to } => from.max(*to),
            Flow::Count(count) => {
                *count as Rate / self.length.map_or(f64::INFINITY, |length| length.as_secs_f64())
            }
            Flow::Trace(trace) => trace.steps().iter().map(|step| step.rate).fold(0.0, f64::max),
        }
    }

    /// Whether anything arrives in it.
    fn is_silent(&self) -> bool {
        match self.flow {
            Flow::Constant(rate) => rate == 0.0,
            Flow::Ramp { from, to } | Flow::Stairs { from, to } => from + to == 0.0,
            Flow::Count(count) => count == 0,
            Flow::Trace(_) => false,
        }
    }
}

fn check_phases(phases: &[Phase]) -> Result<(), StartError> {
    phases.iter().try_for_each(Phase::check)?;
    if phases.iter().all(Phase::is_silent) {
        return Err(StartError::Rate(0.0));
    }
    let (_, earlier) = phases.split_last().ok_or(StartError::Rate(0.0))?;
    match earlier.iter().all(|phase| phase.length().is_some()) {
        true => Ok(()),
        false => Err(StartError::EndlessPhase),
    }
}

/// The highest rate that so many generator threads are asked for. A request takes a thread 4 us and
/// more: one that is to send ten times as many has all to do to count what it cannot send.
pub(crate) fn fastest(threads: usize) -> Rate {
    const A_THREAD: Rate = 1e6;
    A_THREAD * threads as Rate
}

/// A rate that a schedule can be made of. One in ten thousand seconds is far below any use, and
/// keeps intended times within the clock's range.
pub(crate) fn is_rate(rate: Rate) -> bool {
    (1e-4..=1e9).contains(&rate)
}
