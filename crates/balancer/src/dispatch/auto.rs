//! The number of slots that a backend needs, found from how its service time reacts to requests in
//! flight. No I/O and no clock.
//!
//! While requests wait, another number is tried for a moment: first on one backend, then on all of
//! them. Twice the slots at the same service time mean twice the throughput, and are kept; twice the
//! slots at twice the service time mean that the backend has only moved our queue to itself, and are
//! taken back. The number is doubled until that fails, then halved in on, then tried a step higher
//! and a step lower every now and then, less often while nothing changes.
//!
//! Times are compared by their logarithms: a few slow requests among many fast ones would drown a
//! mean. A trial is over at once when one of its first requests is not answered while others are: a
//! server that serves one connection at a time does not get to the second one.
//!
//! Time in which there is nothing to do does not count: a trial goes on where the next burst comes.

use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;

/// The search, for all backends of an app that leave their slots to it.
#[derive(Debug)]
pub(super) struct AutoSlots {
    slots: usize,
    stage: Stage,
    /// The smallest number known to be too large.
    ceiling: Option<usize>,
    /// One slot is there to hide the time between an answer and the next request.
    bonus: bool,
    next: Direction,
    pause: Duration,
    /// When to try something again, once nothing is left to find.
    resume: Option<Instant>,
    window: Window,
    /// How long service took when the search last ended.
    settled: Option<f64>,
}

/// A backend of the app, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    One(BackendId),
    All,
}

/// What to do about the slots of some backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) scope: Scope,
    pub(super) slots: usize,
}

/// What the backends have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Nothing,
    /// They have requests, and nobody waits.
    Met,
    /// Somebody waits for a slot.
    Waits,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Learning how long service takes as things are.
    Base,
    Trial(Trial),
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    scope: Scope,
    slots: usize,
    base: Window,
    aim: Aim,
    /// How many of the first requests of the subject are answered; as many as it has slots are to be.
    answered: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// More throughput.
    Gain,
    /// No less of it: one more slot hides the gap between two requests.
    NoLoss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Logarithms of service times while everything was full.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Requests that began before are of another number of slots.
    began: Option<Instant>,
    count: u32,
    sum: f64,
    squares: f64,
    longest: Duration,
    /// How long there was something to do, up to the last tick.
    busy: Duration,
    last: Option<Instant>,
    /// Ticks at which there was, and those of them at which nobody waited.
    ticks: u32,
    calm: u32,
}

/// The most slots that are ever tried.
const MOST: usize = 1024;

/// Answers that say something, and the most that are waited for where they say it unclearly.
const ENOUGH: u32 = 32;

const AMPLE: u32 = 4 * ENOUGH;

/// The share of the throughput that more slots could bring which makes them worth it.
const WORTH: f64 = 0.6;

/// A loss below this cannot be told from noise.
const NO_LOSS: f64 = 0.85;

/// Service below this is short enough for the time between two requests to matter: twenty times the
/// tenth of a millisecond that it takes.
const SHORT: Duration = Duration::from_millis(2);

/// From one trial to the next, at first and at most.
const PAUSE: Duration = Duration::from_secs(2);

const MOST_PAUSE: Duration = Duration::from_secs(60);

/// A service time this many times another one is that of another load.
const CHANGED: f64 = 1.5;

/// Time for the first request of a trial to be answered, beyond four times the longest one so far.
const SLACK: Duration = Duration::from_millis(50);

impl AutoSlots {
    pub(super) fn new() -> Self {
        AutoSlots {
            slots: 1,
            stage: Stage::Base,
            ceiling: None,
            bonus: false,
            next: Direction::Up,
            pause: PAUSE,
            resume: None,
            window: Window::new(None),
            settled: None,
        }
    }

    /// What a backend has that is not tried out.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// What this backend has.
    pub(super) fn slots_of(&self, id: BackendId) -> usize {
        match &self.stage {
            Stage::Trial(trial) if trial.scope.has(id) => trial.slots,
            _ => self.slots,
        }
    }

    /// The first search is not over: what is known of the throughput is too little.
    pub(super) fn is_searching(&self) -> bool {
        self.settled.is_none()
    }

    /// A request has ended. `full`: its backend had no free slot, and somebody waited. `ordinal`:
    /// its place among the requests since the backend's slots last changed.
    pub(super) fn answered(
        &mut self,
        id: BackendId,
        ordinal: u32,
        full: bool,
        time: Duration,
        ended: Instant,
    ) {
        if let Stage::Trial(trial) = &mut self.stage {
            match trial.scope {
                scope if !scope.has(id) => return,
                Scope::One(_) if (ordinal as usize) < trial.slots => trial.answered += 1,
                _ => {}
            }
        }
        if full {
            self.window.add(time, ended);
        }
    }

    /// A client gave up its request. Where it was one of the first of a trial, which then are to be
    /// counted anew: it says nothing of whether it would have been answered.
    pub(super) fn left(&mut self, id: BackendId, ordinal: u32) -> bool {
        let Stage::Trial(trial) = &mut self.stage else { return false };
        let first = trial.scope == Scope::One(id) && (ordinal as usize) < trial.slots;
        if first {
            trial.answered = 0;
        }
        first
    }

    /// What is to change now. `subjects`: the backends that leave their slots to this, and serve.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        demand: Demand,
        subjects: &[BackendId],
    ) -> Option<Decision> {
        self.window.tick(now, demand);
        if let Stage::Trial(trial) = self.stage
            && !subjects.iter().any(|&subject| trial.scope.has(subject))
        {
            return Some(self.end(now, trial.scope));
        }
        let (&first, several) = (subjects.first()?, subjects.len() > 1);
        match self.stage {
            Stage::Base => {
                let waits = demand == Demand::Waits;
                if self.window.count < ENOUGH || self.is_pausing(now) || !waits {
                    self.window.keep_recent();
                    return None;
                }
                let (slots, aim) = self.candidate()?;
                let scope = Scope::One(first);
                Some(self.begin(Trial { scope, slots, base: self.window, aim, answered: 0 }, now))
            }
            Stage::Trial(trial) => match self.verdict(&trial)? {
                true if several && trial.scope != Scope::All => {
                    Some(self.begin(Trial { scope: Scope::All, ..trial }, now))
                }
                verdict => Some(self.conclude(&trial, verdict, now)),
            },
        }
    }

    /// Whether more slots than are known to be worth it are tried at this backend.
    pub(super) fn tries_more(&self, id: BackendId) -> bool {
        matches!(&self.stage, Stage::Trial(trial) if trial.scope.has(id) && trial.slots > self.slots)
    }

    /// Ends a trial, if there is one, with what was before.
    pub(super) fn refuse(&mut self, now: Instant) -> Option<Decision> {
        let Stage::Trial(trial) = self.stage else { return None };
        Some(self.conclude(&trial, false, now))
    }

    fn is_pausing(&mut self, now: Instant) -> bool {
        let (Some(resume), Some(settled)) = (self.resume, self.settled) else { return false };
        if (self.window.mean() - settled).abs() > CHANGED.ln() {
            (self.pause, self.settled) = (PAUSE, Some(self.window.mean()));
            return false;
        }
        now < resume
    }

    /// The number to try next, if there is one.
    fn candidate(&mut self) -> Option<(usize, Aim)> {
        let (slots, step) = (self.slots, (self.slots / 8).max(1));
        let short = self.window.mean() < (SHORT.as_micros() as f64).ln();
        match self.ceiling {
            None => (slots < MOST).then(|| ((2 * slots).min(MOST), Aim::Gain)),
            Some(ceiling) if ceiling > slots + step => Some(((slots + ceiling) / 2, Aim::Gain)),
            Some(_) if short && !self.bonus => Some((slots + 1, Aim::NoLoss)),
            Some(_) if self.settled.is_none() => {
                (self.settled, self.resume) = (Some(self.window.mean()), self.window.began);
                None
            }
            Some(_) => {
                let lower = slots.saturating_sub(step + usize::from(self.bonus));
                let down = self.next == Direction::Down && lower >= 1;
                Some((if down { lower } else { (slots + step).min(MOST) }, Aim::Gain))
            }
        }
    }

    fn begin(&mut self, trial: Trial, now: Instant) -> Decision {
        self.stage = Stage::Trial(trial);
        self.window = Window::new(Some(now));
        Decision { scope: trial.scope, slots: trial.slots }
    }

    /// Whether the trial's number is the better one; none while that is not known.
    fn verdict(&self, trial: &Trial) -> Option<bool> {
        let (window, more) = (&self.window, trial.slots > self.slots);
        let elapsed = window.busy;
        let limit = 4 * trial.base.longest.max(window.longest) + SLACK;
        let is_single = matches!(trial.scope, Scope::One(_));
        if more && is_single && trial.answered < trial.slots {
            return (elapsed > limit).then_some(false);
        }
        let calm = 2 * window.calm > window.ticks;
        if window.count < ENOUGH {
            let endless = elapsed > 16 * limit + PAUSE;
            return (endless || (calm && elapsed > PAUSE)).then_some(false);
        }
        // The throughput of a full backend is its slots over its service time.
        let (high, low) = if more { (trial.slots, self.slots) } else { (self.slots, trial.slots) };
        let ratio = high as f64 / low as f64;
        let slower = window.mean() - trial.base.mean();
        let gain = ratio.ln() - if more { slower } else { -slower };
        let worth = match trial.aim {
            Aim::Gain => (1.0 + WORTH * (ratio - 1.0)).ln(),
            Aim::NoLoss => NO_LOSS.ln(),
        };
        let error = (window.error() + trial.base.error()).sqrt();
        let unclear = (gain - worth).abs() < 2.0 * error && window.count < AMPLE;
        (!unclear).then_some((gain > worth) == more)
    }

    fn conclude(&mut self, trial: &Trial, kept: bool, now: Instant) -> Decision {
        let up = trial.slots > self.slots;
        let searching = self.settled.is_none();
        if kept {
            self.slots = trial.slots;
            self.bonus |= trial.aim == Aim::NoLoss;
            self.pause = PAUSE;
            if !searching {
                // There is more to find in the same direction.
                self.ceiling = if up { None } else { self.ceiling.map(|_| trial.slots + 1) };
                self.bonus &= up;
            }
        } else {
            match trial.aim {
                Aim::Gain if up => self.ceiling = Some(trial.slots),
                Aim::Gain => {}
                // Not to be tried again.
                Aim::NoLoss => self.bonus = true,
            }
            if !searching {
                self.next = if up { Direction::Down } else { Direction::Up };
                self.pause = (2 * self.pause).min(MOST_PAUSE);
            }
        }
        if !searching {
            self.resume = Some(if kept { now } else { now + self.pause });
        }
        let scope = if kept { Scope::All } else { trial.scope };
        self.end(now, scope)
    }

    fn end(&mut self, now: Instant, scope: Scope) -> Decision {
        self.stage = Stage::Base;
        self.window = Window::new(Some(now));
        Decision { scope, slots: self.slots }
    }
}

impl Scope {
    pub(super) fn has(self, id: BackendId) -> bool {
        match self {
            Scope::One(one) => one == id,
            Scope::All => true,
        }
    }
}

impl Window {
    fn new(began: Option<Instant>) -> Self {
        let (longest, busy) = (Duration::ZERO, Duration::ZERO);
        let (count, sum, squares, ticks, calm) = (0, 0.0, 0.0, 0, 0);
        Window { began, count, sum, squares, longest, busy, last: began, ticks, calm }
    }

    fn add(&mut self, time: Duration, ended: Instant) {
        if self.began.is_some_and(|began| ended < began + time) {
            return;
        }
        let log = (time.as_micros().max(1) as f64).ln();
        self.count += 1;
        self.sum += log;
        self.squares += log * log;
        self.longest = self.longest.max(time);
    }

    fn tick(&mut self, now: Instant, demand: Demand) {
        self.began.get_or_insert(now);
        let last = self.last.replace(now).unwrap_or(now);
        if demand != Demand::Nothing {
            self.busy += now - last;
            self.ticks += 1;
            self.calm += u32::from(demand == Demand::Met);
        }
    }

    /// Forgets half of what is more than enough.
    fn keep_recent(&mut self) {
        if self.count > AMPLE {
            (self.count, self.sum, self.squares) =
                (self.count / 2, self.sum / 2.0, self.squares / 2.0);
        }
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }

    /// The square of the mean's standard error.
    fn error(&self) -> f64 {
        let count = f64::from(self.count.max(2));
        (self.squares / count - self.mean().powi(2)).max(0.0) / (count - 1.0)
    }
}
