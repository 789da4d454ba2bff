//! Finds the number of slots that a backend needs from how its service time reacts to requests in
//! flight. It does no I/O and reads no clock.
//!
//! The search begins with one slot. While requests wait, the number grows fourfold as soon as the backend has
//! answered as many requests. A server that serves one connection at a time does not get to the second one,
//! so its number stays. All others soon have *many* slots: as many as their load needs.
//!
//! While backends have many slots, their service time by requests in flight shows where further requests only
//! wait in the backend. As many slots are tried for a moment. They are kept if the throughput stays the same,
//! or if hardly anybody waits for them. If few are in flight and the service time does not grow, fewer are not
//! tried.
//!
//! In overload the number in flight does not vary, and that tells nothing. Then half of them are tried, and
//! half of those, until throughput falls, and the number is found by bisection. Afterwards a step up and a
//! step down are tried now and then, less often while nothing changes. If nobody waits any more, backends
//! have many slots again, so that a burst starts at once.
//!
//! A trial of more slots begins at one backend. If throughput is to grow, it goes on at all backends. A trial
//! of half the requests is for all at once, because backends may share what limits them. A step down at one
//! backend fails if the others became faster or slower meanwhile.
//!
//! A fast backend is idle between an answer and the next request if it has few slots. So the number of
//! requests that it answers within two milliseconds is tried, too. It is kept unless that costs throughput.
//! Requests that wait in the backend for so short a time need no order.
//!
//! If the first answer takes longer than half a second, the number grows without a trial while requests wait.
//!
//! Time without work does not count. A trial continues with the next burst if that comes soon.

mod service_curve;
mod trial;
mod window;

use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;
use crate::queue::TICK;
use crate::queue::dispatch::auto_slots::service_curve::{FEW, Knee, ServiceCurve};
use crate::queue::dispatch::auto_slots::trial::{Aim, Reference, Scope, Trial};
use crate::queue::dispatch::auto_slots::window::{MIN_ANSWERS, UsualTime, Window};

pub(super) use crate::queue::dispatch::auto_slots::window::{Answer, Demand};

/// The search, for all backends of an app that have `auto` slots.
#[derive(Debug)]
pub(super) struct AutoSlots {
    slots: usize,
    stage: Stage,
    /// How far the number has grown.
    many: usize,
    /// Whether fewer slots may do as well. Halving has not ended.
    halving: bool,
    /// The largest number known to be too small, and until when that is believed.
    too_few: usize,
    too_few_until: Option<Instant>,
    /// The smallest number known to be too large.
    ceiling: Option<usize>,
    /// Whether the number for [`SHORT_WORK`] was tried.
    tried_short_work: bool,
    next: Direction,
    pause: Duration,
    /// When to try again, once the search has ended.
    resume: Option<Instant>,
    window: Window,
    /// Of the backends without a trial, while there is one.
    others: Window,
    /// The service time when the search last ended.
    settled: Option<f64>,
    /// Whether a search has ended.
    was_settled: bool,
    /// When the number may grow again, after a request was not answered.
    grow_at: Option<Instant>,
    /// When somebody last waited for a slot, or backends had many.
    waited: Option<Instant>,
    usual: UsualTime,
    curve: ServiceCurve,
    /// The last knee of the curve.
    knee: Option<usize>,
}

/// What to change about the slots of some backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) scope: Scope,
    pub(super) slots: usize,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Measures the service time with the present number.
    Base,
    Trial(Trial),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// The most slots that are ever tried.
const MAX_SLOTS: usize = 1024;

/// Answers that tell well how many there are a second.
const ENOUGH_ANSWERS: u32 = 4 * MIN_ANSWERS;

/// Fewer slots are tried if they differ by this factor from the present number and from what was too few.
const WORTH_TRYING_RATIO: f64 = 1.15;

/// Half of the requests in flight is tried again if it is so many times what was too few.
const NEWLY_BUSY_RATIO: f64 = 1.5;

/// If nobody has waited for so long, backends have many slots again.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// A backend may hold the requests that it answers within this time. The gap between two requests takes a
/// tenth of a millisecond, a twentieth of this.
const SHORT_WORK: Duration = Duration::from_millis(2);

/// By how much the number grows while requests wait.
const GROWTH: usize = 4;

/// Below this, the number grows before it is known what fewer would do.
const UNMEASURED_GROWTH: usize = 32;

/// A number that was too small is tried again after this time, because that may have been chance.
const TOO_FEW_TIME: Duration = Duration::from_secs(300);

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

/// How far the number grows while requests wait. More slots must prove that they bring throughput.
pub(super) const MAX_GROWN: usize = 256;

impl AutoSlots {
    pub(super) fn new() -> Self {
        AutoSlots {
            slots: 1,
            stage: Stage::Base,
            many: 1,
            halving: true,
            too_few: 0,
            too_few_until: None,
            ceiling: None,
            tried_short_work: false,
            next: Direction::Up,
            pause: MIN_PAUSE,
            resume: None,
            window: Window::new(None),
            others: Window::new(None),
            settled: None,
            was_settled: false,
            grow_at: None,
            waited: None,
            usual: UsualTime::default(),
            curve: ServiceCurve::default(),
            knee: None,
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
        !self.was_settled
    }

    /// Records an answered request.
    pub(super) fn answered(&mut self, id: BackendId, answer: Answer) {
        let is_long = answer.time > self.patient_for();
        self.usual.add(answer.time);
        if !is_long {
            self.curve.add(answer.at_start, answer.time);
        }
        let has_many = self.has_many();
        if answer.full {
            self.waited = Some(answer.ended);
        }
        let (counts, is_drained) = match &mut self.stage {
            Stage::Trial(trial) if !trial.scope.has(id) => {
                if answer.full && !is_long {
                    self.others.add(answer);
                }
                return;
            }
            Stage::Trial(trial) => {
                trial.answered += usize::from((answer.ordinal as usize) < trial.slots);
                (answer.full, answer.at_work <= trial.slots)
            }
            Stage::Base => (answer.full || has_many, true),
        };
        if counts && is_drained {
            self.window.pace.add(answer.interval);
        }
        if counts && !is_long {
            self.window.add(answer);
        }
    }

    /// Records that a client gave up. Returns whether the first requests of a trial must be counted anew.
    pub(super) fn left(&mut self, id: BackendId, ordinal: u32) -> bool {
        let Stage::Trial(trial) = &mut self.stage else { return false };
        let first = trial.scope == Scope::One(id) && (ordinal as usize) < trial.slots;
        if !first {
            return false;
        }
        let counts_anew = trial.left >= trial.exceptions();
        if counts_anew {
            (trial.answered, trial.left) = (0, 0);
        } else {
            trial.left += 1;
        }
        counts_anew
    }

    /// Records that a backend has not answered.
    pub(super) fn failed(&mut self, id: BackendId, ordinal: u32) {
        if let Stage::Trial(trial) = &mut self.stage {
            trial.has_failed |= trial.scope == Scope::One(id) && (ordinal as usize) < trial.slots;
        }
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

    /// What is to change now. `subjects` are the serving backends with `auto` slots. `is_held` means that they
    /// hold more requests for long than they work at.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        demand: Demand,
        is_held: bool,
        subjects: &[BackendId],
    ) -> Option<Decision> {
        self.window.tick(now, demand);
        if let Stage::Trial(trial) = self.stage
            && !subjects.iter().any(|&subject| trial.scope.has(subject))
        {
            // More connections than it takes may have brought it down.
            return Some(match trial.aim {
                Aim::Answers => self.conclude(&trial, false, now),
                _ => self.end(now, trial.scope),
            });
        }
        let (&first, several) = (subjects.first()?, subjects.len() > 1);
        let waits = demand == Demand::Waits;
        if waits || (self.has_many() && matches!(self.stage, Stage::Base)) {
            self.waited = Some(now);
        } else if self.many > 1 && self.waited.is_some_and(|waited| now >= waited + QUIET_TIME) {
            return Some(self.return_to_many(now));
        }
        match self.stage {
            Stage::Base => {
                let is_loaded = waits || self.has_many();
                let is_known = self.window.count >= MIN_ANSWERS;
                let is_time = is_known && is_loaded && !self.is_pausing(now);
                let mut candidate = is_time.then(|| self.candidate(waits, is_held)).flatten();
                if candidate.is_none() && waits && self.may_grow(now) {
                    if self.usual.count == 0 && self.window.busy >= MIN_PATIENCE {
                        (self.slots, self.many) = (GROWTH * self.slots, GROWTH * self.slots);
                        return Some(self.end(now, Scope::All));
                    }
                    let is_growing =
                        self.usual.count > 0 && (is_known || self.slots < UNMEASURED_GROWTH);
                    candidate = is_growing.then_some((GROWTH * self.slots, Aim::Answers));
                }
                let Some((slots, aim)) = candidate else {
                    self.window.keep_recent();
                    return None;
                };
                let scope = if aim == Aim::Fewer { Scope::All } else { Scope::One(first) };
                Some(self.begin(self.trial(scope, slots, aim), now))
            }
            // Fewer requests came, and all were answered.
            Stage::Trial(trial) if trial.aim == Aim::Answers && demand == Demand::Nothing => {
                Some(self.conclude(&trial, trial.answered > 0 && !trial.has_failed, now))
            }
            Stage::Trial(trial) => match trial.verdict(&self.window, &self.reference(&trial))? {
                true if several && trial.scope != Scope::All && trial.aim != Aim::Answers => {
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
        if self.too_few_until.is_some_and(|until| now >= until) {
            (self.too_few, self.too_few_until) = (0, None);
        }
        let (Some(resume), Some(settled)) = (self.resume, self.settled) else { return false };
        if (self.window.mean() - settled).abs() > CHANGED_LOAD_RATIO.ln() {
            (self.pause, self.settled) = (MIN_PAUSE, Some(self.window.mean()));
            return false;
        }
        now < resume
    }

    /// Whether the slots are as many as the load was found to need, and no fewer ones are known to do.
    pub(super) fn has_many(&self) -> bool {
        self.halving && self.slots == self.many
    }

    /// Whether the number may grow.
    fn may_grow(&self, now: Instant) -> bool {
        let is_time = self.grow_at.is_none_or(|at| now >= at);
        self.has_many() && self.slots < MAX_GROWN && is_time
    }

    /// The search begins anew, with many slots.
    fn return_to_many(&mut self, now: Instant) -> Decision {
        let AutoSlots { many, too_few, too_few_until, was_settled, usual, curve, .. } =
            std::mem::replace(self, AutoSlots::new());
        (self.slots, self.many) = (many, many);
        (self.too_few, self.too_few_until) = (too_few, too_few_until);
        (self.was_settled, self.usual, self.curve) = (was_settled, usual, curve);
        self.end(now, Scope::All)
    }

    /// How many requests a backend has in flight, for the times of this window.
    fn in_flight(&self, window: &Window) -> f64 {
        if self.has_many() { window.at_work() } else { self.slots as f64 }
    }

    /// The number to try next, if there is one.
    fn candidate(&mut self, waits: bool, is_held: bool) -> Option<(usize, Aim)> {
        let (slots, step) = (self.slots, step(self.slots));
        let least = self.slots_of_short_work();
        self.knee = self.curve.knee().slots().or(self.knee);
        if self.halving {
            if let Some(fewer) = self.fewer(waits).filter(|&fewer| fewer >= least && !is_held) {
                return Some((fewer, Aim::Fewer));
            }
            if self.has_many() && !(waits && slots >= MAX_GROWN) {
                self.settle();
                return None;
            }
            self.halving = false;
        }
        // A trial would hardly find a better number. The knee may be an old one, so steps are tried later.
        if self.settled.is_none() && self.knee == Some(slots) && self.window.is_calm() {
            self.ceiling = None;
            self.settle();
            self.pause = MAX_PAUSE;
            self.resume = self.window.began.map(|began| began + MAX_PAUSE);
            return None;
        }
        match self.ceiling {
            Some(ceiling) if ceiling > slots + step => Some(((slots + ceiling) / 2, Aim::Gain)),
            _ if slots < least && !self.tried_short_work => Some((least, Aim::NoLoss)),
            _ if self.settled.is_none() => {
                self.settle();
                None
            }
            // Then a trial would last long and tell little.
            _ if self.window.is_calm() => None,
            _ => {
                let lower = slots.saturating_sub(step);
                let down = self.next == Direction::Down && lower >= least;
                Some((if down { lower } else { (slots + step).min(MAX_SLOTS) }, Aim::Gain))
            }
        }
    }

    /// Fewer slots to try: those of the knee, or else half, if it is not known that this is too few.
    fn fewer(&self, waits: bool) -> Option<usize> {
        // Without a queue there is time to know the present throughput well.
        if !waits && self.window.count < ENOUGH_ANSWERS {
            return None;
        }
        let differs = |more: f64, less: f64| more >= WORTH_TRYING_RATIO * less;
        let knee = self.curve.knee();
        if let Some(fewer) = knee.slots() {
            return differs(self.slots as f64, fewer as f64).then_some(fewer);
        }
        let in_flight = self.in_flight(&self.window);
        let (half, too_few) = ((in_flight / 2.0).max(1.0), self.too_few as f64);
        let are_few = half <= FEW;
        match knee {
            // Requests that do not disturb one another would only wait elsewhere. Many that came at the same
            // time all take as long, and only seem not to disturb one another.
            Knee::Above if are_few => return None,
            Knee::Unknown if are_few && !waits => return None,
            Knee::At(_) if !waits => return None,
            _ => {}
        }
        let fewer = match () {
            () if half >= NEWLY_BUSY_RATIO * too_few => half,
            // While requests wait, there are as many in flight as the slots allow.
            () if waits => (too_few * in_flight).sqrt(),
            () => return None,
        };
        let is_worth = differs(in_flight, fewer) && differs(fewer, too_few);
        // The mean in flight is a little below the slots.
        let fewer = (fewer + 0.1) as usize;
        (is_worth && fewer > self.too_few).then_some(fewer)
    }

    fn settle(&mut self) {
        if self.settled.is_none() {
            (self.settled, self.resume) = (Some(self.window.mean()), self.window.began);
            self.was_settled = true;
        }
    }

    /// The requests that a backend answers within [`SHORT_WORK`].
    fn slots_of_short_work(&self) -> usize {
        let slots = self.window.rate() * SHORT_WORK.as_secs_f64();
        (slots.ceil() as usize).clamp(1, MAX_SLOTS)
    }

    fn trial(&self, scope: Scope, slots: usize, aim: Aim) -> Trial {
        Trial { scope, slots, base: self.window, aim, answered: 0, left: 0, has_failed: false }
    }

    /// What a trial is compared with.
    fn reference(&self, trial: &Trial) -> Reference {
        let (slots, in_flight) = (self.slots, self.in_flight(&trial.base));
        Reference { slots, in_flight, usual_time: self.usual.time(), others: self.others }
    }

    fn begin(&mut self, trial: Trial, now: Instant) -> Decision {
        self.stage = Stage::Trial(trial);
        self.window = Window::new(Some(now));
        self.others = self.window;
        Decision { scope: trial.scope, slots: trial.slots }
    }

    fn conclude(&mut self, trial: &Trial, kept: bool, now: Instant) -> Decision {
        if !kept && trial.slots < self.slots && self.window.count >= MIN_ANSWERS {
            (self.too_few, self.too_few_until) = (trial.slots, Some(now + TOO_FEW_TIME));
        }
        match (trial.aim, kept) {
            (Aim::Answers, true) => {
                (self.slots, self.many, self.pause) = (trial.slots, trial.slots, MIN_PAUSE);
            }
            (Aim::Answers, false) => {
                self.grow_at = Some(now + self.pause);
                self.lengthen_pause();
            }
            (Aim::Fewer, true) => {
                self.ceiling = Some(self.in_flight(&trial.base).ceil() as usize);
                (self.slots, self.settled, self.pause) = (trial.slots, None, MIN_PAUSE);
            }
            (Aim::Fewer, false) if self.has_many() => {
                self.settled = Some(trial.base.mean());
                self.resume = Some(now + self.pause);
                // A knee that is none must not be tried every minute.
                self.pause = (2 * self.pause).min(TOO_FEW_TIME);
            }
            (Aim::Fewer, false) => self.halving = false,
            (Aim::Gain | Aim::NoLoss, _) => self.conclude_step(trial, kept, now),
        }
        self.end(now, if kept { Scope::All } else { trial.scope })
    }

    /// Once halving has ended.
    fn conclude_step(&mut self, trial: &Trial, kept: bool, now: Instant) {
        let up = trial.slots > self.slots;
        let searching = self.settled.is_none();
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
                // This number is not tried again.
                Aim::NoLoss => self.tried_short_work = true,
                _ if up => self.ceiling = Some(trial.slots),
                _ => {}
            }
            if !searching {
                self.next = if up { Direction::Down } else { Direction::Up };
                self.lengthen_pause();
                // Of few slots, one less costs much while it is tried.
                if !up && self.slots as f64 <= FEW {
                    self.pause = MAX_PAUSE;
                }
            }
        }
        if !searching {
            self.resume = Some(if kept { now } else { now + self.pause });
        }
    }

    fn lengthen_pause(&mut self) {
        self.pause = (2 * self.pause).min(MAX_PAUSE);
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
