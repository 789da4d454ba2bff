//! The phases of an open workload: what arrives in each, and for how long.

use std::sync::Arc;
use std::time::Duration;

use super::rate::{Rate, is_rate};
use super::trace::Trace;
use crate::error::start_error::StartError;

/// A part of an open workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// The name that the reader sees.
    pub name: Option<String>,
    /// What arrives in it.
    pub flow: Flow,
    /// How long it lasts. Only the last phase may last for ever (`None`). A trace has a length of its own.
    pub length: Option<Duration>,
    /// An arrival that finds this many requests in the system is dropped and counted. `None` drops nothing.
    pub limit: Option<usize>,
}

/// How many arrivals a second a phase brings.
#[derive(Debug, Clone, PartialEq)]
pub enum Flow {
    /// A constant rate. At 0 nothing arrives.
    Constant(Rate),
    /// A rate that changes linearly over the phase.
    Ramp {
        /// At its beginning.
        from: Rate,
        /// At its end.
        to: Rate,
    },
    /// A rate that changes in steps of a second, from `from` in the first to `to` in the last.
    Stairs {
        /// In its first second.
        from: Rate,
        /// In its last second.
        to: Rate,
    },
    /// A number of arrivals in the whole phase, evenly spaced.
    Count(u64),
    /// Recorded rates.
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
    /// As a Poisson process of which the number of arrivals in each phase is known: as many as its rate says, at
    /// independent uniform times. A phase without an end is pure Poisson.
    Stratified,
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

    pub(crate) fn check(&self) -> Result<(), StartError> {
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

    pub(crate) fn peak(&self) -> Rate {
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

pub(crate) fn check_phases(phases: &[Phase]) -> Result<(), StartError> {
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
