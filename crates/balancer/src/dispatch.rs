//! Who goes where: backends with their slots, and the requests that wait for one. Pure data,
//! no socket and no clock, so that every rule of the queue is tested by itself.
//!
//! A freed slot is handed to the request at the head of the queue within the same step, so nobody
//! barges in and exactly one waiter wakes.

pub(crate) mod auto;
pub(crate) mod budget;
pub(crate) mod choice;
pub(crate) mod clients;
pub(crate) mod drain_rate;
pub(crate) mod fitness;
pub(crate) mod heap;
pub(crate) mod lessons;
pub(crate) mod lineup;
pub(crate) mod list;
pub(crate) mod member;
pub(crate) mod membership;
pub(crate) mod ring;
pub(crate) mod service;
pub(crate) mod stalled;
#[cfg(test)]
mod tests;
pub(crate) mod waiting;
pub(crate) mod wish;

use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;
use crate::backends::condition::Turn;
use crate::backends::report::Report;
use crate::config::app::{AppConfig, AppId};
use crate::config::health::Health;
use crate::config::limits::QueueLimits;
use crate::config::policy::Policy;
use crate::dispatch::auto::AutoSlots;
use crate::dispatch::budget::{Budget, RetryCounts};
use crate::dispatch::choice::Choice;
use crate::dispatch::clients::Clients;
use crate::dispatch::drain_rate::DrainRate;
use crate::dispatch::lineup::Lineup;
use crate::dispatch::list::{End, Links, List};
use crate::dispatch::member::{Member, Standing};
use crate::dispatch::stalled::Stalled;
use crate::dispatch::wish::{Tried, Wish};

/// How often [`Dispatch::tick`] is to be called.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The queue, the policy and the members. `B` is what a granted request needs of its backend.
pub(crate) struct Dispatch<B> {
    app: AppId,
    policy: Policy,
    limits: QueueLimits,
    members: Vec<Option<Member<B>>>,
    vacant: Vec<u32>,
    generation: u32,
    /// Members that get requests, by [`Role`](crate::config::backend::Role).
    lineups: [Lineup; 2],
    auto: AutoSlots,
    health: Health,
    /// Members whose rest is to end.
    resting: Vec<u32>,
    /// Members whose slow start is not over.
    starting: Vec<u32>,
    /// Counts changes, so that equals take turns.
    sequence: i64,
    /// The state of a generator of random numbers.
    dice: u64,
    budget: Budget,
    /// Members by when their service time was last heard of (`least_time`).
    ages: List,
    age_links: Links,
    waiters: Vec<Waiter<B>>,
    vacant_waiters: Vec<u32>,
    links: Links,
    /// Waiters that any backend may serve.
    unbound: List,
    clients: Clients,
    stalled: Stalled,
    drain_rate: DrainRate,
    waiting: usize,
    deepest: usize,
}

struct Waiter<B> {
    wish: Wish,
    /// Its place among those that wait, by the smallest.
    number: u64,
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
    /// The last backend that the request had not been at is gone.
    AllTried,
    /// Its place went to a client that has fewer of them.
    Displaced,
}

/// Where a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// For any backend that it may go to.
    Any,
    /// For this one, or for another one that has nobody else to serve.
    Of(u32),
    /// For this one, before everybody else: a check of its health.
    First(u32),
}

/// A slot of a backend, to be given back with [`Dispatch::release`].
#[derive(Debug)]
pub(crate) struct Grant<B> {
    pub(crate) id: BackendId,
    pub(crate) backend: B,
    /// Its place among the requests that the backend got.
    pub(crate) ordinal: u32,
}

/// A place in the queue, to be ended with [`Dispatch::claim`] or [`Dispatch::cancel`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// What came of asking for a slot.
#[derive(Debug)]
pub(crate) enum Asked<B> {
    Granted(Grant<B>),
    /// Others may have lost a place or a slot for it, and are to be woken.
    Waiting(Ticket, Outlook, Vec<Waker>),
    /// Every backend is out, and nobody is to wait for one.
    AllDown,
    /// As many requests as may wait already do.
    Full,
    /// Those before it alone would make it wait too long; about this long.
    TooLate(Duration),
    /// The request has been at every backend there is.
    AllTried,
    /// It may be sent again, but too many are.
    Overspent,
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
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

/// What follows from a freed slot.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// The waiter that got the slot.
    pub(crate) wake: Option<Waker>,
    /// A draining backend has no request in flight any more.
    pub(crate) drained: bool,
    pub(crate) changes: Changes,
}

/// Whom to wake, and whose health has changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) wakers: Vec<Waker>,
    pub(crate) turns: Vec<(BackendId, Turn)>,
    /// Numbers of slots that were found; to be set.
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
            lineups: Default::default(),
            auto: AutoSlots::new(),
            health: config.health.clone(),
            resting: Vec::new(),
            starting: Vec::new(),
            sequence: 0,
            dice: 0x9e37_79b9_7f4a_7c15,
            budget: Budget::new(config.retries),
            ages: List::EMPTY,
            age_links: Links::default(),
            waiters: Vec::new(),
            vacant_waiters: Vec::new(),
            links: Links::default(),
            unbound: List::EMPTY,
            clients: Clients::default(),
            stalled: Stalled::default(),
            drain_rate: DrainRate::default(),
            waiting: 0,
            deepest: 0,
        }
    }

    /// Asks for a slot. A request that comes back from a failed backend goes to the head of the
    /// queue, past its bounds: it has waited already.
    pub(crate) fn ask(&mut self, wish: Wish) -> Asked<B> {
        let first = wish.tried.len() == 0;
        self.note_arrival(wish.client);
        let choice = match self.held_back() {
            Some(client) if first && client == wish.client => Choice::Later(None),
            _ => self.choose(&wish),
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
            Choice::Later(_) if first && self.is_full_for(&wish) => Asked::Full,
            Choice::Later(None) if self.is_all_down() => {
                if self.health.all_down_wait.is_zero() {
                    return Asked::AllDown;
                }
                self.wait(wish, Line::Any, Outlook::Recovery)
            }
            Choice::Later(bound) => match self.expected_wait(bound, wish.client) {
                Some(wait) if first && wait > self.limits.wait && self.is_settled() => {
                    Asked::TooLate(wait)
                }
                _ => self.wait(wish, bound.map_or(Line::Any, Line::Of), Outlook::Slot),
            },
        }
    }

    /// Asks for a slot of this backend in particular, before everybody else, also where it is not
    /// fit to serve. None where there is nothing to ask of it.
    pub(crate) fn ask_first(&mut self, id: BackendId) -> Option<Asked<B>> {
        let member = self.member(id)?;
        if member.standing == Standing::Draining || member.slots == 0 {
            return None;
        }
        Some(match member.in_flight < member.room() {
            true => Asked::Granted(self.grant_check(id.index)),
            false => {
                let ticket = self.queue(Wish::default(), Line::First(id.index));
                Asked::Waiting(ticket, Outlook::Slot, Vec::new())
            }
        })
    }

    /// The grant, once there is one, or why there will be none; until then `waker` is woken when
    /// either comes.
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

    /// Leaves the queue. A ticket that may have been granted is claimed, and its grant released.
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
        let drained = member.is_drained();
        let changes = self.heard(id.index, report);
        self.learn(id.index, report);
        self.rank(id.index, End::Front);
        Freed { wake: self.hand_over(id.index, report), drained, changes }
    }

    /// Turns a slot into an upgraded connection, which holds none, and so frees it; unless the
    /// backend has as many of them as it may.
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

    /// An upgraded connection that held no slot has ended.
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

    /// Requests waiting now, and the most that ever waited at once.
    pub(crate) fn depth(&self) -> (usize, usize) {
        (self.waiting, self.deepest)
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
        member.granted = ordinal.wrapping_add(1);
        self.rank(index, End::Back);
        Grant { id, backend, ordinal }
    }

    /// The slot of a check, which is none of the requests whose answers a trial of slots waits for.
    fn grant_check(&mut self, index: u32) -> Grant<B> {
        let grant = self.grant(index);
        if let Some(member) = self.member_mut(grant.id) {
            member.granted = grant.ordinal;
        }
        grant
    }
}
