//! Another number of slots, and what it brings.

use std::time::Duration;

use crate::backends::backend_id::BackendId;
use crate::queue::dispatch::auto_slots::window::{MAX_ANSWERS, MIN_ANSWERS, Window};

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

/// What a trial is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// Of the backends before.
    pub(super) slots: usize,
    pub(super) in_flight: f64,
    pub(super) usual_time: Duration,
    /// Of the other backends during the trial.
    pub(super) others: Window,
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

/// Backends were full if this share of their slots was taken, on average.
const FULL_SHARE: f64 = 0.95;

/// A loss that is within what the throughput of a backend with little work varies by, as a logarithm.
const MAX_CALM_LOSS: f64 = 0.1;

/// Whether anybody waits for slots is clear after this time.
const CALM_TIME: Duration = Duration::from_secs(2);

/// How long fewer slots are tried while hardly anybody waits for one.
const PATIENT_TIME: Duration = Duration::from_secs(30);

/// How long the first request of a trial may take, beyond four times the longest one so far.
const SLACK: Duration = Duration::from_millis(50);

/// A trial is void if the service time of other backends changed by this factor.
const CHANGED_RATIO: f64 = 1.25;

impl Trial {
    /// Whether its first requests are answered, as many as there are slots.
    fn is_answered(&self) -> bool {
        self.answered + self.left >= self.slots
    }

    /// The same but for a few, which may be long polls.
    fn is_mostly_answered(&self) -> bool {
        self.answered + self.left + self.exceptions() >= self.slots
    }

    /// How many of the first requests may have no answer.
    pub(super) fn exceptions(&self) -> usize {
        self.slots / MAX_EXCEPTIONS_DIVISOR
    }

    /// Whether the trial's number is the better one. None while that is unknown.
    pub(super) fn verdict(&self, window: &Window, reference: &Reference) -> Option<bool> {
        let (elapsed, is_more) = (window.busy, self.slots > reference.slots);
        let longest = self.base.longest.max(window.longest).max(reference.usual_time);
        let limit = 4 * longest + SLACK;
        let is_single = matches!(self.scope, Scope::One(_));
        if is_more && is_single && !self.is_answered() {
            let most_are = self.aim == Aim::Answers && self.is_mostly_answered();
            return (elapsed > limit).then_some(most_are);
        }
        if self.aim == Aim::Answers {
            return Some(true);
        }
        // Where nobody waits for slots any more, they are enough for the work that comes.
        let is_calm = window.is_calm() && elapsed > CALM_TIME;
        // One backend has shown that they bring throughput.
        let is_proven = is_more && self.scope == Scope::All;
        if window.count < MIN_ANSWERS {
            // Few requests wait with light load. Then it takes longer to know what fewer slots cost.
            let is_patient = is_calm && self.aim == Aim::Fewer;
            let patience = if is_patient { PATIENT_TIME } else { CALM_TIME };
            let is_endless = elapsed > 16 * limit + patience;
            let is_kept = is_calm && (self.aim == Aim::NoLoss || is_proven);
            let is_over = is_endless || (is_calm && !is_patient);
            return is_over.then_some(is_kept);
        }
        let (gain, is_clear) = self.gain(window, reference);
        match self.aim {
            _ if !is_more && self.is_void(&reference.others) => Some(false),
            Aim::Fewer if window.is_calm() => is_calm.then_some(gain < MAX_CALM_LOSS),
            // The times of the few that waited would tell little.
            Aim::Gain if is_calm => Some(is_proven),
            _ if !is_clear && window.count < MAX_ANSWERS => None,
            // More slots must have proved their worth.
            _ => Some((gain > 0.0) == is_more && (is_clear || !is_more)),
        }
    }

    /// Whether the other backends became slower or faster during the trial, for whatever reason.
    fn is_void(&self, others: &Window) -> bool {
        let change = (others.mean() - self.base.mean()).abs();
        let error = others.squared_error(&self.base, Window::answers_but_one).sqrt();
        others.count >= MIN_ANSWERS && change > CHANGED_RATIO.ln() + 2.0 * error
    }

    /// By how much the larger number of slots gains more than it must, as a logarithm, and whether that is clear.
    fn gain(&self, window: &Window, reference: &Reference) -> (f64, bool) {
        // The throughput of a full backend is its slots over its service time. Logarithms are compared, because
        // a few slow requests would dominate a mean.
        let ratio = self.slots as f64 / reference.in_flight;
        let by_times = ratio.ln() - (window.mean() - self.base.mean());
        let by_rates = (window.rate() / self.base.rate()).ln();
        let was_full = reference.in_flight >= FULL_SHARE * reference.slots as f64;
        let change = match self.aim {
            // Times say nothing if fewer were in flight before.
            Aim::Fewer if ratio >= 1.0 => by_rates,
            // They say less if the requests in flight varied, and rates do if a few requests are slow.
            Aim::Fewer if !was_full || (window.is_even() && self.base.is_even()) => {
                by_times.max(by_rates)
            }
            _ => by_times,
        };
        let is_more = self.aim != Aim::Fewer && ratio > 1.0;
        let (gain, ratio) = if is_more { (change, ratio) } else { (-change, ratio.recip()) };
        let worth = match self.aim {
            Aim::NoLoss => NO_LOSS_RATIO.ln(),
            Aim::Fewer => -SAME_RATIO.ln(),
            _ => (1.0 + MIN_GAIN_SHARE * (ratio - 1.0)).ln(),
        };
        let count = match self.aim {
            Aim::Fewer => Window::independent_answers,
            _ => Window::answers_but_one,
        };
        let error = window.squared_error(&self.base, count).sqrt();
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
