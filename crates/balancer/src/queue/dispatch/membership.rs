//! Adding, changing and removing backends, and what that means for waiting requests.

use std::task::Waker;
use std::time::Instant;

use crate::backends::backend_id::BackendId;
use crate::backends::health_state::HealthState;
use crate::config::backend::Slots;
use crate::config::policy::Policy;
use crate::queue::dispatch::auto_slots::{Decision, Demand, MAX_GROWN};
use crate::queue::dispatch::candidates::Choice;
use crate::queue::dispatch::drain_rate::DrainRate;
use crate::queue::dispatch::list::{End, List};
use crate::queue::dispatch::long_held::LongHeld;
use crate::queue::dispatch::member::{Member, MemberTerms, Ramp, Standing};
use crate::queue::dispatch::request_hints::Tried;
use crate::queue::dispatch::service_time::ServiceTime;
use crate::queue::dispatch::{Changes, Dispatch, Line, Refusal, WaiterState};

impl<B: Clone> Dispatch<B> {
    pub(crate) fn add(
        &mut self,
        backend: B,
        rule: Slots,
        terms: MemberTerms,
    ) -> (BackendId, Vec<Waker>) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.members.push(None);
            (self.members.len() - 1) as u32
        });
        self.generation += 1;
        let id = BackendId { app: self.app, index, generation: self.generation };
        self.members[index as usize] = Some(Member {
            id,
            backend,
            terms,
            slots: self.slots_by(rule),
            rule,
            lent: 0,
            overtaken: 0,
            long_held: LongHeld::default(),
            granted: 0,
            granted_before: 0,
            standing: Standing::Serving,
            in_flight: 0,
            tunnels: 0,
            ramp: Ramp::new(terms.slow_start),
            health_state: HealthState::unknown(self.health.active.as_ref()),
            confines: false,
            bound: List::EMPTY,
            first: List::EMPTY,
            drain_rate: DrainRate::default(),
            last_answer: None,
            service: ServiceTime::default(),
            turn: 0,
            counted_load: 0,
        });
        self.ages.push(&mut self.age_links, index, End::Back);
        (id, self.enter(index))
    }

    /// The slots of a new backend under this rule.
    pub(crate) fn slots_by(&self, rule: Slots) -> usize {
        match rule {
            Slots::Fixed(slots) => slots,
            Slots::Auto => self.auto.slots(),
        }
    }

    /// Puts the slots under another rule. Returns their number, for [`Dispatch::set_slots`].
    pub(crate) fn set_rule(&mut self, id: BackendId, rule: Slots) -> usize {
        if let Some(member) = self.member_mut(id) {
            member.rule = rule;
        }
        match rule {
            Slots::Fixed(slots) => slots,
            Slots::Auto => self.auto.slots_of(id),
        }
    }

    /// Sets the slots. 0 pauses a backend: it gets no requests and no checks, and requests bound to it
    /// move on.
    pub(crate) fn set_slots(&mut self, id: BackendId, slots: usize) -> Vec<Waker> {
        let Some(member) = self.member_mut(id) else { return Vec::new() };
        let took = member.takes();
        member.set_slots(slots);
        let mut wakers = match (took, member.takes()) {
            (true, true) => {
                self.rank(id.index, End::Front);
                self.serve_all(id.index)
            }
            (true, false) => self.leave(id.index),
            (false, true) => self.enter(id.index),
            (false, false) => Vec::new(),
        };
        if slots == 0 {
            self.refuse_checks(id.index, &mut wakers);
        }
        wakers
    }

    /// Sets slots that were found. Those who wait get them in the order of the policy, because serving one
    /// backend after the other would fill the first one with polls.
    pub(crate) fn set_found_slots(&mut self, found: &[(BackendId, usize)]) -> Vec<Waker> {
        if found.is_empty() {
            return Vec::new();
        }
        for &(id, slots) in found {
            let Some(member) = self.member_mut(id) else { continue };
            member.set_slots(slots);
            self.rank(id.index, End::Front);
        }
        let mut wakers = Vec::new();
        for tier in 0..self.candidates.len() {
            while let Some(index) = self.first(tier, &Tried::default())
                && let Some(waker) = self.serve(index)
            {
                if self.policy == Policy::RoundRobin {
                    self.take_turn(tier, Some(index));
                }
                wakers.push(waker);
            }
        }
        for (id, _) in found {
            wakers.extend(self.serve_all(id.index));
        }
        wakers
    }

    /// Stops giving new requests to a backend. Requests bound to it move on. Returns its requests in
    /// flight, including upgraded connections.
    pub(crate) fn drain(&mut self, id: BackendId) -> (Option<usize>, Vec<Waker>) {
        let Some(member) = self.member_mut(id) else { return (None, Vec::new()) };
        let in_flight = member.in_flight + member.tunnels;
        member.standing = Standing::Draining;
        let mut wakers = self.leave(id.index);
        self.refuse_checks(id.index, &mut wakers);
        (Some(in_flight), wakers)
    }

    /// Removes a backend. Its requests in flight continue.
    pub(crate) fn remove(&mut self, id: BackendId) -> (Option<Member<B>>, Vec<Waker>) {
        let (_, wakers) = self.drain(id);
        if self.member(id).is_none() {
            return (None, wakers);
        }
        self.ages.remove(&mut self.age_links, id.index);
        self.vacant.push(id.index);
        (self.members[id.index as usize].take(), wakers)
    }

    /// Does what is due. Call it once every [`TICK`](crate::queue::TICK).
    pub(crate) fn tick(&mut self, now: Instant) -> Changes {
        self.budget.tick();
        self.suspects.tick(self.ticks);
        let mut changes = self.end_rests(now);
        if !self.starting.is_empty() {
            changes.wakers.extend(self.continue_slow_starts(now));
        }
        changes.wakers.extend(self.tick_curb());
        self.ticks += 1;
        changes.wakers.extend(self.lend_slots());
        changes.slots = self.search_slots(now);
        changes
    }

    /// Gives backends with `auto` slots further ones for the requests that they hold for long. Such requests
    /// may take all slots, so that requests wait and none is answered anywhere. Then a backend may have twice
    /// as many slots as it holds for long.
    fn lend_slots(&mut self) -> Vec<Waker> {
        let since = self.ticks - self.auto.patience();
        let is_starving = self.waiting > 0 && self.answered_at < since && !self.auto.is_searching();
        let has_many = self.auto.has_many();
        let mut wakers = Vec::new();
        for index in 0..self.members.len() as u32 {
            let Some(member) = self.members[index as usize].as_mut() else { continue };
            if member.rule != Slots::Auto {
                continue;
            }
            let overtaken = member.long_held.overtaken_since(since);
            let mut lent = overtaken;
            if is_starving {
                let twice = (2 * member.long_held.since(since)).min(MAX_GROWN);
                lent = lent.max(twice.saturating_sub(member.slots));
            }
            // Among many slots they count as load, so that backends hold equally many of them.
            let overtaken = if has_many { 0 } else { overtaken };
            if (member.lent, member.overtaken) != (lent, overtaken) {
                (member.lent, member.overtaken) = (lent, overtaken);
                self.rank(index, End::Back);
                wakers.extend(self.serve_all(index));
            }
        }
        wakers
    }

    /// Applies the result of the search for slots to each backend concerned, even to one that is down
    /// and comes back.
    fn search_slots(&mut self, now: Instant) -> Vec<(BackendId, usize)> {
        let members = self.members.iter().flatten();
        let left_to_us: Vec<_> = members.filter(|member| member.rule == Slots::Auto).collect();
        let serving = left_to_us.iter().filter(|member| member.takes());
        let subjects: Vec<_> = serving.map(|member| member.id).collect();
        let demand = match left_to_us.iter().any(|member| member.in_flight > 0) {
            _ if self.waiting > 0 => Demand::Waits,
            true => Demand::Met,
            false => Demand::Nothing,
        };
        let since = self.ticks - self.auto.patience();
        let held: usize = left_to_us.iter().map(|member| member.long_held.since(since)).sum();
        let is_held = 2 * held > left_to_us.iter().map(|member| member.in_flight).sum();
        let decision = self.auto.tick(now, demand, is_held, &subjects);
        self.concerned(decision)
    }

    /// Whether a backend is trying out more slots than are known to help.
    pub(crate) fn tries_more_slots(&self, id: BackendId) -> bool {
        self.member(id).is_some_and(|member| member.rule == Slots::Auto) && self.auto.tries_more(id)
    }

    /// Ends a trial of more slots at this backend, because a check was not answered in time. Usually the
    /// server works on the connections of the trial and not on that of the check. Returns the slots that
    /// are to be set.
    pub(crate) fn end_trial(&mut self, id: BackendId, now: Instant) -> Vec<(BackendId, usize)> {
        let decision = self.tries_more_slots(id).then(|| self.auto.refuse(now)).flatten();
        self.concerned(decision)
    }

    /// The backends that a decision about slots concerns, with their slots.
    fn concerned(&self, decision: Option<Decision>) -> Vec<(BackendId, usize)> {
        let Some(Decision { scope, slots }) = decision else { return Vec::new() };
        let members = self.members.iter().flatten();
        let left_to_us = members.filter(|member| member.rule == Slots::Auto);
        let ids = left_to_us.map(|member| member.id).filter(|&id| scope.has(id));
        ids.map(|id| (id, slots)).collect()
    }

    fn continue_slow_starts(&mut self, now: Instant) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for index in std::mem::take(&mut self.starting) {
            let Some(member) = self.members[index as usize].as_mut() else { continue };
            let changed = member.ramp.tick(member.terms.slow_start, now);
            if !member.ramp.is_over() {
                self.starting.push(index);
            }
            if changed {
                self.rank(index, End::Back);
                wakers.extend(self.serve_all(index));
            }
        }
        self.weigh();
        wakers
    }

    /// Starts giving requests to a backend, if it takes any.
    pub(super) fn enter(&mut self, index: u32) -> Vec<Waker> {
        if !self.at(index).is_some_and(Member::takes) {
            return Vec::new();
        }
        self.start_slowly(index);
        self.drain_rate.reset();
        self.join_candidates(index);
        self.rank(index, End::Back);
        let mut wakers = self.place_unbound(index);
        self.refuse_stranded(&mut wakers);
        wakers
    }

    pub(super) fn start_slowly(&mut self, index: u32) {
        let Some(member) = self.members[index as usize].as_mut() else { return };
        member.ramp = Ramp::new(member.terms.slow_start);
        if !member.ramp.is_over() && !self.starting.contains(&index) {
            self.starting.push(index);
        }
    }

    /// Stops giving requests to a backend that takes none any more.
    pub(super) fn leave(&mut self, index: u32) -> Vec<Waker> {
        let member = self.members[index as usize].as_mut();
        let bound = member.map(|member| {
            member.drain_rate.reset();
            std::mem::replace(&mut member.bound, List::EMPTY)
        });
        self.rank(index, End::Back);
        self.leave_candidates(index);
        let mut wakers = self.place_again(bound.unwrap_or(List::EMPTY));
        self.refuse_stranded(&mut wakers);
        self.call_backups(&mut wakers);
        wakers
    }

    /// Requests that wait for any backend may need backups now.
    fn call_backups(&mut self, wakers: &mut Vec<Waker>) {
        if !self.unbound.is_empty() {
            for backup in self.candidates[1].eligible.clone() {
                wakers.extend(self.place_unbound(backup));
            }
        }
    }

    /// Moves requests elsewhere that wait for a backend without room for long.
    pub(super) fn leave_stuck(&mut self, index: u32) -> Vec<Waker> {
        let stuck = self.members[index as usize].as_mut().filter(|member| member.is_stuck());
        let Some(member) = stuck else { return Vec::new() };
        let mut wakers = Vec::new();
        if !member.bound.is_empty() {
            member.drain_rate.reset();
            let bound = std::mem::replace(&mut member.bound, List::EMPTY);
            self.rank(index, End::Back);
            wakers = self.place_again(bound);
        }
        self.call_backups(&mut wakers);
        wakers
    }

    /// Refuses waiters that have tried every backend that is left.
    fn refuse_stranded(&mut self, wakers: &mut Vec<Waker>) {
        if self.candidates.iter().all(|candidates| candidates.eligible.is_empty()) {
            return;
        }
        let waiters: Vec<_> = self.unbound.iter(&self.links).collect();
        for waiter in waiters {
            if self.tier_for(&self.waiters[waiter as usize].hints.tried).is_none() {
                wakers.extend(self.unlink(waiter, Line::Any));
                self.waiters[waiter as usize].state = WaiterState::Refused(Refusal::AllTried);
            }
        }
    }

    /// Refuses the checks of a backend that is not checked any more.
    fn refuse_checks(&mut self, index: u32, wakers: &mut Vec<Waker>) {
        while let Some(waiter) = self.at(index).and_then(|m| m.first.iter(&self.links).next()) {
            wakers.extend(self.unlink(waiter, Line::First(index)));
            self.waiters[waiter as usize].state = WaiterState::Refused(Refusal::AllTried);
        }
    }

    /// Gives unbound waiters to a new backend. Its checks still go first.
    fn place_unbound(&mut self, index: u32) -> Vec<Waker> {
        let mut wakers = match self.policy.is_keyed() {
            false => Vec::new(),
            true => {
                let unbound = std::mem::replace(&mut self.unbound, List::EMPTY);
                self.place_again(unbound)
            }
        };
        wakers.extend(self.serve_all(index));
        wakers
    }

    /// Chooses anew for the waiters of a removed list, in their order.
    fn place_again(&mut self, mut list: List) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(waiter) = list.pop_front(&mut self.links) {
            self.waiting -= 1;
            let entry = &mut self.waiters[waiter as usize];
            let hints = entry.hints;
            self.clients.leave(hints.client, waiter);
            let WaiterState::Waiting { waker, .. } =
                std::mem::replace(&mut entry.state, WaiterState::Vacant)
            else {
                unreachable!("a waiter in a list waits");
            };
            match self.choose(&hints) {
                Choice::Now(index) => {
                    let grant = self.grant(index);
                    self.waiters[waiter as usize].state = WaiterState::Granted(grant);
                    wakers.extend(waker);
                }
                Choice::Later(bound) => {
                    self.enqueue(waiter, bound.map_or(Line::Any, Line::Of), waker);
                }
                Choice::AllTried => {
                    self.waiters[waiter as usize].state = WaiterState::Refused(Refusal::AllTried);
                    wakers.extend(waker);
                }
            }
        }
        wakers
    }
}
