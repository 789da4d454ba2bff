//! Another number of slots, and what it brings.

use crate::backends::backend_id::BackendId;
use crate::queue::dispatch::auto_slots::window::Window;

/// A number of slots that some backends have for a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) scope: Scope,
    pub(super) slots: usize,
    pub(super) base: Window,
    pub(super) aim: Aim,
    /// How many of the subject's first requests are answered. As many as it has slots must be.
    pub(super) answered: usize,
    /// How many of them their clients gave up.
    pub(super) left: usize,
    /// Whether one of them failed.
    pub(super) has_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// An answer to each of the first requests.
    Answers,
    /// The same throughput with fewer requests.
    Fewer,
    /// More throughput.
    Gain,
    /// No less throughput: more slots hide the gap between two requests.
    NoLoss,
}

/// One backend of the app, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    One(BackendId),
    All,
}

/// More slots are worth it if they bring this share of the throughput that they could bring.
const MIN_GAIN_SHARE: f64 = 0.3;

/// A loss below this cannot be told from noise.
const NO_LOSS_RATIO: f64 = 0.85;

/// One in so many of the first requests may have no answer.
const MAX_EXCEPTIONS_DIVISOR: usize = 4;

/// Half of the requests must keep this share of the throughput.
const SAME_RATIO: f64 = 0.97;

impl Trial {
    /// Whether its first requests are answered, as many as there are slots.
    pub(super) fn is_answered(&self) -> bool {
        self.answered + self.left >= self.slots
    }

    /// The same but for a few, which may be long polls.
    pub(super) fn is_mostly_answered(&self) -> bool {
        self.answered + self.left + self.exceptions() >= self.slots
    }

    /// How many of the first requests may have no answer.
    pub(super) fn exceptions(&self) -> usize {
        self.slots / MAX_EXCEPTIONS_DIVISOR
    }

    /// By how much the larger number of slots gains more than it must, as a logarithm, and whether that is clear.
    /// `before` is the number that was in flight in the base.
    pub(super) fn gain(&self, window: &Window, before: f64) -> (f64, bool) {
        // The throughput of a full backend is its slots over its service time. Logarithms are compared, because
        // a few slow requests would dominate a mean.
        let ratio = self.slots as f64 / before;
        let mut change = ratio.ln() - (window.mean() - self.base.mean());
        if self.aim == Aim::Fewer {
            // Before, the backend was not full, and its requests in flight varied.
            change = change.max((window.rate() / self.base.rate()).ln());
        }
        let (gain, ratio) = if ratio > 1.0 { (change, ratio) } else { (-change, ratio.recip()) };
        let worth = match self.aim {
            Aim::NoLoss => NO_LOSS_RATIO.ln(),
            Aim::Fewer => -SAME_RATIO.ln(),
            _ => (1.0 + MIN_GAIN_SHARE * (ratio - 1.0)).ln(),
        };
        let error = (window.error() + self.base.error()).sqrt();
        (gain - worth, (gain - worth).abs() >= 2.0 * error)
    }
}

impl Scope {
    pub(crate) fn has(self, id: BackendId) -> bool {
        match self {
            Scope::One(one) => one == id,
            Scope::All => true,
        }
    }
}
