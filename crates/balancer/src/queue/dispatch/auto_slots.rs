//! Finds the number of slots that a backend needs from how its service time reacts to requests in
//! flight. It does no I/O and reads no clock.
//!
//! While requests wait, another number is tried for a moment, first on one backend and then on all.
//! Twice the slots at the same service time mean twice the throughput, and are kept. Twice the slots at
//! twice the service time have only moved the queue into the backend, and are taken back. The number is
//! doubled until that fails, and then found by bisection. Afterwards a step up and a step down are tried
//! now and then, less often while nothing changes.
//!
//! Times are compared by their logarithms, because a few slow requests would dominate a mean. A trial ends
//! at once if one of its first requests is not answered while others are. A server that serves one
//! connection at a time does not get to the second one.
//!
//! A fast backend is idle between an answer and the next request if it has few slots. So the number of
//! requests that it answers within two milliseconds is tried, too. It is kept unless that costs throughput.
//! Requests that wait in the backend for so short a time need no order.
//!
//! Until the first answer, the number is doubled without a trial while requests wait. It may be far too large
//! then, so the search halves it first.
//!
//! Time without work does not count. A trial continues with the next burst.

use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;
use crate::queue::TICK;

/// The search, for all backends of an app that have `auto` slots.
#[derive(Debug)]
pub(super) struct AutoSlots {
    slots: usize,
    stage: Stage,
    /// The smallest number known to be too large.
    ceiling: Option<usize>,
    /// Whether the number for [`SHORT_WORK`] was tried.
    tried_short_work: bool,
    next: Direction,
    pause: Duration,
    /// When to try again, once the search has ended.
    resume: Option<Instant>,
    window: Window,
    /// The service time when the search last ended.
    settled: Option<f64>,
    /// Whether the number was doubled without an answer, so that it may be far too large.
    blind: bool,
    usual: UsualTime,
}

/// The logarithm of the service time, on average over the last answers.
#[derive(Debug, Default)]
struct UsualTime {
    count: u32,
    mean: f64,
}

/// One backend of the app, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    One(BackendId),
    All,
}

/// What to change about the slots of some backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) scope: Scope,
    pub(super) slots: usize,
}

/// The load of the backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Nothing,
    /// The members have requests, and nobody waits.
    Met,
    /// Somebody waits for a slot.
    Waits,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Measures the service time with the present number.
    Base,
    Trial(Trial),
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    scope: Scope,
    slots: usize,
    base: Window,
    aim: Aim,
    /// How many of the subject's first requests are answered. As many as it has slots must be.
    answered: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// More throughput.
    Gain,
    /// No less throughput: more slots hide the gap between two requests.
    NoLoss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Service times while all slots were taken.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Requests that began earlier belong to another number of slots.
    began: Option<Instant>,
    count: u32,
    /// The sum of the times, in seconds.
    total: f64,
    /// The sum of their logarithms, and the sum of the squares of these.
    sum: f64,
    squares: f64,
    longest: Duration,
    /// How long there was work, up to the last tick.
    busy: Duration,
    last: Option<Instant>,
    /// Ticks with work, and those of them at which nobody waited.
    ticks: u32,
    calm: u32,
}

/// The most slots that are ever tried.
const MAX_SLOTS: usize = 1024;

/// Answers that are enough for a clear result, and the most that are waited for if it is unclear.
const MIN_ANSWERS: u32 = 32;

const MAX_ANSWERS: u32 = 8 * MIN_ANSWERS;

/// More slots are worth it if they bring this share of the throughput that they could bring.
const MIN_GAIN_SHARE: f64 = 0.3;

/// A loss below this cannot be told from noise.
const NO_LOSS_RATIO: f64 = 0.85;

/// A backend may hold the requests that it answers within this time. The gap between two requests takes a
/// tenth of a millisecond, a twentieth of this.
const SHORT_WORK: Duration = Duration::from_millis(2);

/// The pause between two trials, at first and at most.
const MIN_PAUSE: Duration = Duration::from_secs(2);

const MAX_PAUSE: Duration = Duration::from_secs(60);

/// If the service time changes by this factor, the load is another one.
const CHANGED_LOAD_RATIO: f64 = 1.5;

/// A request is held for long after so many times the usual service time.
const LONG_RATIO: f64 = 16.0;

/// The shortest time and the longest one after which a request is held for long.
const MIN_PATIENCE: Duration = Duration::from_millis(500);

const MAX_PATIENCE: Duration = Duration::from_secs(3600);

/// The most slots that a backend gets without an answer.
pub(super) const MAX_BLIND_SLOTS: usize = 256;

/// How long the first request of a trial may take, beyond four times the longest one so far.
const TRIAL_SLACK: Duration = Duration::from_millis(50);

impl AutoSlots {
    pub(super) fn new() -> Self {
        AutoSlots {
            slots: 1,
            stage: Stage::Base,
            ceiling: None,
            tried_short_work: false,
            next: Direction::Up,
            pause: MIN_PAUSE,
            resume: None,
            window: Window::new(None),
            settled: None,
            blind: false,
            usual: UsualTime::default(),
        }
    }

    /// The slots of a backend that is not on trial.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// The slots of this backend.
    pub(super) fn slots_of(&self, id: BackendId) -> usize {
        match &self.stage {
            Stage::Trial(trial) if trial.scope.has(id) => trial.slots,
            _ => self.slots,
        }
    }

    /// Whether the first search is still running, so that the throughput is not known yet.
    pub(super) fn is_searching(&self) -> bool {
        self.settled.is_none()
    }

    /// Records an answered request. `full` means that its backend had no free slot and somebody waited.
    /// `ordinal` is its number since the backend's slots last changed.
    pub(super) fn answered(
        &mut self,
        id: BackendId,
        ordinal: u32,
        full: bool,
        time: Duration,
        ended: Instant,
    ) {
        let is_long = time > self.patient_for();
        self.usual.add(time);
        if let Stage::Trial(trial) = &mut self.stage {
            match trial.scope {
                scope if !scope.has(id) => return,
                Scope::One(_) if (ordinal as usize) < trial.slots => trial.answered += 1,
                _ => {}
            }
        }
        if full && !is_long {
            self.window.add(time, ended);
        }
    }

    /// Records that a client gave up. Returns whether the request was one of the first of a trial, which
    /// must then be counted anew.
    pub(super) fn left(&mut self, id: BackendId, ordinal: u32) -> bool {
        let Stage::Trial(trial) = &mut self.stage else { return false };
        let first = trial.scope == Scope::One(id) && (ordinal as usize) < trial.slots;
        if first {
            trial.answered = 0;
        }
        first
    }

    /// For how many ticks a request is not held for long.
    pub(super) fn patience(&self) -> i64 {
        (self.patient_for().as_millis() / TICK.as_millis()) as i64
    }

    fn patient_for(&self) -> Duration {
        match self.usual.count {
            0 => MIN_PATIENCE,
            _ => self.usual.time().mul_f64(LONG_RATIO).clamp(MIN_PATIENCE, MAX_PATIENCE),
        }
    }

    /// What is to change now. `subjects` are the serving backends with `auto` slots.
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
        if self.usual.count == 0
            && demand == Demand::Waits
            && self.window.busy >= MIN_PATIENCE
            && self.slots < MAX_BLIND_SLOTS
        {
            (self.slots, self.blind) = (2 * self.slots, true);
            return Some(self.end(now, Scope::All));
        }
        match self.stage {
            Stage::Base => {
                let waits = demand == Demand::Waits;
                if self.window.count < MIN_ANSWERS || self.is_pausing(now) || !waits {
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

    /// Whether this backend is trying out more slots than are known to help.
    pub(super) fn tries_more(&self, id: BackendId) -> bool {
        matches!(&self.stage, Stage::Trial(trial) if trial.scope.has(id) && trial.slots > self.slots)
    }

    /// Ends a trial, if there is one, with the previous number.
    pub(super) fn refuse(&mut self, now: Instant) -> Option<Decision> {
        let Stage::Trial(trial) = self.stage else { return None };
        Some(self.conclude(&trial, false, now))
    }

    fn is_pausing(&mut self, now: Instant) -> bool {
        let (Some(resume), Some(settled)) = (self.resume, self.settled) else { return false };
        if (self.window.mean() - settled).abs() > CHANGED_LOAD_RATIO.ln() {
            (self.pause, self.settled) = (MIN_PAUSE, Some(self.window.mean()));
            return false;
        }
        now < resume
    }

    /// The number to try next, if there is one.
    fn candidate(&mut self) -> Option<(usize, Aim)> {
        let (slots, step) = (self.slots, step(self.slots));
        let least = self.slots_of_short_work();
        match self.ceiling {
            _ if self.blind && slots > 1 => Some((slots / 2, Aim::Gain)),
            None => (slots < MAX_SLOTS).then(|| ((2 * slots).min(MAX_SLOTS), Aim::Gain)),
            Some(ceiling) if ceiling > slots + step => Some(((slots + ceiling) / 2, Aim::Gain)),
            Some(_) if slots < least && !self.tried_short_work => Some((least, Aim::NoLoss)),
            Some(_) if self.settled.is_none() => {
                (self.settled, self.resume) = (Some(self.window.mean()), self.window.began);
                None
            }
            Some(_) => {
                let lower = slots.saturating_sub(step);
                let down = self.next == Direction::Down && lower >= least;
                Some((if down { lower } else { (slots + step).min(MAX_SLOTS) }, Aim::Gain))
            }
        }
    }

    /// The requests that a backend answers within [`SHORT_WORK`] with the present number of slots.
    fn slots_of_short_work(&self) -> usize {
        let per_second = self.slots as f64 / self.window.arithmetic_mean();
        ((per_second * SHORT_WORK.as_secs_f64()).ceil() as usize).clamp(1, MAX_SLOTS)
    }

    fn begin(&mut self, trial: Trial, now: Instant) -> Decision {
        self.stage = Stage::Trial(trial);
        self.window = Window::new(Some(now));
        Decision { scope: trial.scope, slots: trial.slots }
    }

    /// Whether the trial's number is the better one. None while that is unknown.
    fn verdict(&self, trial: &Trial) -> Option<bool> {
        let (window, more) = (&self.window, trial.slots > self.slots);
        let elapsed = window.busy;
        let limit = 4 * trial.base.longest.max(window.longest) + TRIAL_SLACK;
        let is_single = matches!(trial.scope, Scope::One(_));
        if more && is_single && trial.answered < trial.slots {
            return (elapsed > limit).then_some(false);
        }
        let calm = 2 * window.calm > window.ticks;
        if window.count < MIN_ANSWERS {
            let endless = elapsed > 16 * limit + MIN_PAUSE;
            // Where nobody waits for slots any more, they are enough for the work that comes.
            let enough = calm && elapsed > MIN_PAUSE;
            return (endless || enough).then_some(enough && trial.aim == Aim::NoLoss);
        }
        // The throughput of a full backend is its slots over its service time.
        let (high, low) = if more { (trial.slots, self.slots) } else { (self.slots, trial.slots) };
        let ratio = high as f64 / low as f64;
        let slower = window.mean() - trial.base.mean();
        let gain = ratio.ln() - if more { slower } else { -slower };
        let worth = match trial.aim {
            Aim::Gain => (1.0 + MIN_GAIN_SHARE * (ratio - 1.0)).ln(),
            Aim::NoLoss => NO_LOSS_RATIO.ln(),
        };
        let error = (window.error() + trial.base.error()).sqrt();
        let unclear = (gain - worth).abs() < 2.0 * error;
        match unclear {
            true if window.count < MAX_ANSWERS => None,
            // More slots must have proved their worth.
            true if more && self.settled.is_some() => Some(false),
            _ => Some((gain > worth) == more),
        }
    }

    fn conclude(&mut self, trial: &Trial, kept: bool, now: Instant) -> Decision {
        let up = trial.slots > self.slots;
        let searching = self.settled.is_none();
        self.blind &= kept && trial.slots > 1;
        if kept {
            self.slots = trial.slots;
            self.tried_short_work |= trial.aim == Aim::NoLoss;
            self.pause = MIN_PAUSE;
            if !searching {
                // The search continues in the same direction, in larger steps. Twice the slots at once would
                // make every request there wait for a moment.
                self.ceiling = Some(trial.slots + if up { 4 * step(trial.slots) } else { 1 });
                self.tried_short_work &= up;
            }
        } else {
            match trial.aim {
                Aim::Gain if up => self.ceiling = Some(trial.slots),
                Aim::Gain => {}
                // This number is not tried again.
                Aim::NoLoss => self.tried_short_work = true,
            }
            if !searching {
                self.next = if up { Direction::Down } else { Direction::Up };
                self.pause = (2 * self.pause).min(MAX_PAUSE);
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

/// The difference between this number and the next one that is tried, once the search has ended.
fn step(slots: usize) -> usize {
    (slots / 8).max(1)
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
        let (count, total, sum, squares, ticks, calm) = (0, 0.0, 0.0, 0.0, 0, 0);
        Window { began, count, total, sum, squares, longest, busy, last: began, ticks, calm }
    }

    fn add(&mut self, time: Duration, ended: Instant) {
        if self.began.is_some_and(|began| ended < began + time) {
            return;
        }
        let log = (time.as_micros().max(1) as f64).ln();
        self.count += 1;
        self.total += time.as_secs_f64();
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

    /// Forgets half of the answers beyond the needed ones.
    fn keep_recent(&mut self) {
        if self.count > MAX_ANSWERS {
            (self.total, self.sum, self.squares) =
                (self.total / 2.0, self.sum / 2.0, self.squares / 2.0);
            self.count /= 2;
        }
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }

    /// The mean of the times, in seconds. `mean` is that of their logarithms.
    fn arithmetic_mean(&self) -> f64 {
        (self.total / f64::from(self.count.max(1))).max(1e-6)
    }

    /// The square of the mean's standard error.
    fn error(&self) -> f64 {
        let count = f64::from(self.count.max(2));
        (self.squares / count - self.mean().powi(2)).max(0.0) / (count - 1.0)
    }
}

impl UsualTime {
    fn add(&mut self, time: Duration) {
        self.count = (self.count + 1).min(MIN_ANSWERS);
        self.mean += ((time.as_micros().max(1) as f64).ln() - self.mean) / f64::from(self.count);
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.mean.exp() / 1e6)
    }
}
