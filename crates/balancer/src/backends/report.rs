//! How a request ended, as far as that says something about its backend.

use std::time::Instant;

use crate::backends::counters::BackendFault;

/// How a request ended, as far as it says something about its backend.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Report {
    #[default]
    Nothing,
    /// The client left before the answer.
    Left {
        ended: Instant,
        /// How long only the backend was waited for. The request would have taken longer.
        micros: u32,
    },
    Answered {
        ended: Instant,
        micros: u32,
        /// Whether the status is 5xx.
        error: bool,
    },
    Failed {
        fault: BackendFault,
        ended: Instant,
        micros: u32,
    },
}

impl Report {
    pub(crate) fn left(began: Instant, ended: Instant) -> Self {
        Report::Left { ended, micros: micros(began, ended) }
    }

    pub(crate) fn answered(began: Instant, ended: Instant, error: bool) -> Self {
        Report::Answered { ended, micros: micros(began, ended), error }
    }

    pub(crate) fn failed(fault: BackendFault, began: Instant, ended: Instant) -> Self {
        Report::Failed { fault, ended, micros: micros(began, ended) }
    }

    pub(crate) fn ended(self) -> Option<Instant> {
        match self {
            Report::Nothing => None,
            Report::Left { ended, .. }
            | Report::Answered { ended, .. }
            | Report::Failed { ended, .. } => Some(ended),
        }
    }
}

/// Saturates after more than an hour.
fn micros(began: Instant, ended: Instant) -> u32 {
    u32::try_from(ended.saturating_duration_since(began).as_micros()).unwrap_or(u32::MAX)
}
