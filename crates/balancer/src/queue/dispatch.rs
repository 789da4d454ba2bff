//! The queue as pure data: backends with their slots, and the requests that wait for one. It has no
//! socket and no clock, so every rule is tested by itself.
//!
//! A freed slot goes to the request at the head of the queue within the same step. So no later request
//! overtakes it, and exactly one waiter wakes.

pub(crate) mod auto_slots;
pub(crate) mod availability;
pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod drain_rate;
pub(crate) mod fair_queueing;
pub(crate) mod feedback;
pub(crate) mod heap;
pub(crate) mod list;
pub(crate) mod long_held;
pub(crate) mod member;
pub(crate) mod membership;
pub(crate) mod request_hints;
pub(crate) mod retry_budget;
pub(crate) mod ring;
pub(crate) mod service_time;
pub(crate) mod stalled;
pub(crate) mod suspects;
#[cfg(test)]
mod tests;
pub(crate) mod wait_queue;

use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;
use crate::backends::health_state::HealthChange;
use crate::backends::report::Report;
use crate::config::app::{AppConfig, AppId};
use crate::config::backend::Slots;
use crate::config::health::Health;
use crate::config::limits::QueueLimits;
use crate::config::policy::Policy;
use crate::queue::dispatch::auto_slots::AutoSlots;
use crate::queue::dispatch::candidates::{Candidates, Choice};
use crate::queue::dispatch::drain_rate::DrainRate;
use crate::queue::dispatch::fair_queueing::{FairQueueing, Place};
use crate::queue::dispatch::list::{End, Links, List};
use crate::queue::dispatch::member::{Member, Standing};
use crate::queue::dispatch::request_hints::{RequestHints, Tried};
use crate::queue::dispatch::retry_budget::{Budget, RetryCounts};
use crate::queue::dispatch::stalled::Stalled;
use crate::queue::dispatch::suspects::Suspects;

/// The queue, the policy and the members. `B` is what a granted request needs of its backend.
pub(crate) struct Dispatch<B> {
    app: AppId,
    policy: Policy,
    limits: QueueLimits,
    members: Vec<Option<Member<B>>>,
    vacant: Vec<u32>,
    generation: u32,
    /// Members that get requests, by [`Role`](crate::config::backend::Role).
    candidates: [Candidates; 2],
    auto: AutoSlots,
    /// Counts the calls of [`tick`](Dispatch::tick).
    ticks: i64,
    /// The tick before the last answer of a backend with `auto` slots.
    answered_at: i64,
    health: Health,
    /// Members whose rest is to end.
    resting: Vec<u32>,
    /// Members whose slow start is not over.
    starting: Vec<u32>,
    /// Counts changes, so that equal members take turns.
    sequence: i64,
    /// The state of the random number generator.
    rng: u64,
    budget: Budget,
    /// Members by the last report of their service time (`least_time`).
    ages: List,
    age_links: Links,
    waiters: Vec<Waiter<B>>,
    vacant_waiters: Vec<u32>,
    links: Links,
    /// Waiters that any backend may serve.
    unbound: List,
    clients: FairQueueing,
    stalled: Stalled,
    suspects: Suspects,
    drain_rate: DrainRate,
    waiting: usize,
    max_waiting: usize,
}

struct Waiter<B> {
    hints: RequestHints,
    place: Place,
    state: WaiterState<B>,
}

enum WaiterState<B> {
    Vacant,
    Waiting { waker: Option<Waker>, line: Line },
    Granted(Grant<B>),
    Refused(Refusal),
}

/// Why a waiter gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The last backend that the request had not tried is gone.
    AllTried,
    /// A client with fewer waiting requests got its place.
    Displaced,
}

/// The line in which a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Any backend that it may go to.
    Any,
    /// This backend, or another one that has nobody else to serve.
    Of(u32),
    /// This backend, before all others: a health check.
    First(u32),
}

/// A slot of a backend. Give it back with [`Dispatch::release`].
#[derive(Debug)]
pub(crate) struct Grant<B> {
    pub(crate) id: BackendId,
    pub(crate) backend: B,
    /// Its number among the requests that the backend got.
    pub(crate) ordinal: u32,
}

/// A place in the queue. End it with [`Dispatch::claim`] or [`Dispatch::cancel`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// The result of asking for a slot.
#[derive(Debug)]
pub(crate) enum Asked<B> {
    Granted(Grant<B>),
    /// The wakers are of requests that lost a place or a slot to it.
    Waiting(Ticket, WaitReason, Vec<Waker>),
    /// Every backend is out, and requests do not wait for one.
    AllDown,
    /// The queue is full.
    Full,
    /// The requests before it would make it wait too long, by this estimate.
    TooLate(Duration),
    /// The request has tried every backend.
    AllTried,
    /// It could be sent again, but the retry budget is spent.
    Overspent,
    /// Requests like it have just cost backends, and the last ones are kept from it.
    Confined,
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// A free slot.
    Slot,
    /// A backend that is fit to serve.
    Recovery,
}

/// Why no backend serves.
#[derive(Debug)]
pub(crate) struct AllDown {
    pub(crate) backends: usize,
    pub(crate) reason: String,
    /// When the first one is tried again, if that is known.
    pub(crate) until: Option<Instant>,
}

/// The consequences of a freed slot.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// The waiter that got the slot.
    pub(crate) wake: Option<Waker>,
    /// Whether a draining backend has no request in flight any more.
    pub(crate) drained: bool,
    pub(crate) changes: Changes,
}

/// Wakers to wake, changes of health, and new numbers of slots.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) wakers: Vec<Waker>,
    pub(crate) health_changes: Vec<(BackendId, HealthChange)>,
    /// Numbers of slots that were found and are to be set.
    pub(crate) slots: Vec<(BackendId, usize)>,
}

impl<B: Clone> Dispatch<B> {
    pub(crate) fn new(app: AppId, config: &AppConfig) -> Self {
        Dispatch {
            app,
            policy: config.policy.clone(),
            limits: config.queue,
            members: Vec::new(),
            vacant: Vec::new(),
            generation: 0,
            candidates: Default::default(),
            auto: AutoSlots::new(),
            ticks: 0,
            answered_at: 0,
            health: config.health.clone(),
            resting: Vec::new(),
            starting: Vec::new(),
            sequence: 0,
            rng: 0x9e37_79b9_7f4a_7c15,
            budget: Budget::new(config.retries),
            ages: List::EMPTY,
            age_links: Links::default(),
            waiters: Vec::new(),
            vacant_waiters: Vec::new(),
            links: Links::default(),
            unbound: List::EMPTY,
            clients: FairQueueing::default(),
            stalled: Stalled::default(),
            suspects: Suspects::default(),
            drain_rate: DrainRate::default(),
            waiting: 0,
            max_waiting: 0,
        }
    }

    /// Asks for a slot. A retried request goes to the head of the queue and past its limits, because it
    /// has waited already.
    pub(crate) fn ask(&mut self, hints: RequestHints) -> Asked<B> {
        let first = hints.tried.len() == 0;
        self.note_arrival(hints.client);
        if self.has_suspects() && self.is_confined(&hints) {
            return self.ask_confined(&hints);
        }
        if Self::is_final(&hints) {
            return Asked::AllTried;
        }
        if self.must_wait(&hints) {
            return Asked::Confined;
        }
        let choice = match self.held_back() {
            Some(client) if first && client == hints.client => Choice::Later(None),
            _ => self.choose(&hints),
        };
        match choice {
            _ if first => self.budget.request(),
            Choice::AllTried => {}
            _ if !self.budget.retry() => return Asked::Overspent,
            _ => {}
        }
        match choice {
            Choice::Now(index) => Asked::Granted(self.grant(index)),
            Choice::AllTried => Asked::AllTried,
            Choice::Later(_) if first && self.is_full_for(&hints) => Asked::Full,
            Choice::Later(None) if self.is_all_down() => {
                if self.health.all_down_wait.is_zero() {
                    return Asked::AllDown;
                }
                self.wait(hints, Line::Any, WaitReason::Recovery)
            }
            Choice::Later(bound) => match self.expected_wait(bound, &hints) {
                Some(wait) if first && wait > self.limits.wait && self.is_settled() => {
                    Asked::TooLate(wait)
                }
                _ => self.wait(hints, bound.map_or(Line::Any, Line::Of), WaitReason::Slot),
            },
        }
    }

    /// Asks for a slot of this backend, before all others, even if it is not fit to serve. None if it is
    /// gone, paused or draining.
    pub(crate) fn ask_first(&mut self, id: BackendId) -> Option<Asked<B>> {
        let member = self.member(id)?;
        if member.standing == Standing::Draining || member.slots == 0 {
            return None;
        }
        Some(match member.in_flight < member.room() {
            true => Asked::Granted(self.grant_check(id.index)),
            false => {
                let ticket = self.queue(RequestHints::default(), Line::First(id.index));
                Asked::Waiting(ticket, WaitReason::Slot, Vec::new())
            }
        })
    }

    /// The grant, or why there will be none. Until then, `waker` is kept.
    pub(crate) fn claim(
        &mut self,
        ticket: &Ticket,
        waker: &Waker,
    ) -> Poll<Result<Grant<B>, Refusal>> {
        let state = &mut self.waiters[ticket.0 as usize].state;
        if let WaiterState::Waiting { waker: kept, .. } = state {
            if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
                *kept = Some(waker.clone());
            }
            return Poll::Pending;
        }
        let state = std::mem::replace(state, WaiterState::Vacant);
        self.vacant_waiters.push(ticket.0);
        Poll::Ready(match state {
            WaiterState::Granted(grant) => Ok(grant),
            WaiterState::Refused(refusal) => Err(refusal),
            _ => unreachable!("a ticket is of a waiter"),
        })
    }

    /// Leaves the queue. If the ticket may have been granted, claim it and release the grant instead.
    pub(crate) fn cancel(&mut self, ticket: &Ticket) {
        let state = &self.waiters[ticket.0 as usize].state;
        if let &WaiterState::Waiting { line, .. } = state {
            self.unlink(ticket.0, line);
            self.waiters[ticket.0 as usize].state = WaiterState::Vacant;
            self.vacant_waiters.push(ticket.0);
        }
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, id: BackendId, ordinal: u32, report: Report) -> Freed {
        self.note_time(id, ordinal, report);
        let Some(member) = self.member_mut(id) else { return Freed::default() };
        member.in_flight -= 1;
        member.confines &= member.in_flight > 0;
        let drained = member.is_drained();
        let changes = self.on_report(id.index, report);
        self.learn(id.index, report);
        self.rank(id.index, End::Front);
        Freed { wake: self.hand_over(id.index, report), drained, changes }
    }

    /// Turns a slot into an upgraded connection, which frees it. None if the backend has as many of
    /// those as it may.
    pub(crate) fn upgrade(&mut self, id: BackendId, ordinal: u32, report: Report) -> Option<Freed> {
        let member = self.member_mut(id)?;
        if member.tunnels >= member.terms.tunnels {
            return None;
        }
        member.tunnels += 1;
        let mut freed = self.release(id, ordinal, report);
        freed.changes.wakers.extend(self.leave_stuck(id.index));
        Some(freed)
    }

    /// Ends an upgraded connection that held no slot.
    pub(crate) fn end_upgraded(&mut self, id: BackendId) -> Freed {
        let Some(member) = self.member_mut(id) else { return Freed::default() };
        member.tunnels -= 1;
        let drained = member.is_drained();
        self.rank(id.index, End::Front);
        Freed { wake: self.serve(id.index), drained, changes: Changes::default() }
    }

    pub(crate) fn member(&self, id: BackendId) -> Option<&Member<B>> {
        self.at(id.index).filter(|member| member.id == id)
    }

    /// All members, oldest first.
    pub(crate) fn members(&self) -> Vec<&Member<B>> {
        let mut members: Vec<_> = self.members.iter().flatten().collect();
        members.sort_by_key(|member| member.id.generation);
        members
    }

    /// The number of waiting requests, now and at most.
    pub(crate) fn depth(&self) -> (usize, usize) {
        (self.waiting, self.max_waiting)
    }

    pub(crate) fn retries(&self) -> RetryCounts {
        self.budget.counts
    }

    fn member_mut(&mut self, id: BackendId) -> Option<&mut Member<B>> {
        self.members.get_mut(id.index as usize)?.as_mut().filter(|member| member.id == id)
    }

    fn at(&self, index: u32) -> Option<&Member<B>> {
        self.members.get(index as usize)?.as_ref()
    }

    fn is_new(&self, index: u32, tried: &Tried) -> bool {
        self.at(index).is_some_and(|member| !tried.contains(member.id))
    }

    fn grant(&mut self, index: u32) -> Grant<B> {
        let member = self.members[index as usize].as_mut().expect("a chosen backend is a member");
        member.in_flight += 1;
        let (id, backend, ordinal) = (member.id, member.backend.clone(), member.granted);
        if member.rule == Slots::Auto {
            let at_work = member.in_flight.saturating_sub(member.lent);
            member.long_held.granted(ordinal, self.ticks, at_work);
        }
        member.granted = ordinal.wrapping_add(1);
        self.rank(index, End::Back);
        Grant { id, backend, ordinal }
    }

    /// The slot of a check. It does not count among the requests that a trial of slots waits for.
    fn grant_check(&mut self, index: u32) -> Grant<B> {
        let grant = self.grant(index);
        if let Some(member) = self.member_mut(grant.id) {
            member.granted = grant.ordinal;
        }
        grant
    }
}
