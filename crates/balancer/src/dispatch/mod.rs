//! Who goes where: backends with their slots, and the requests that wait for one. Pure data,
//! no socket and no clock, so that every rule of the queue is tested by itself.
//!
//! A freed slot is handed to the request at the head of the queue within the same step, so nobody
//! barges in and exactly one waiter wakes.

mod budget;
mod choice;
mod heap;
mod lineup;
mod list;
mod member;
mod membership;
mod ring;
mod service;
#[cfg(test)]
mod tests;
mod wait;
mod wish;

use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::config::{AppConfig, AppId, QueueLimits};
use crate::policy::Policy;
use budget::Budget;
pub use budget::RetryCounts;
use choice::Choice;
use lineup::Lineup;
use list::{End, Links, List};
pub(crate) use member::{Member, Standing, Terms};
pub(crate) use ring::hash;
use wait::DrainRate;
pub(crate) use wish::{Tried, Wish};

/// How often [`Dispatch::tick`] is to be called.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// A backend of one balancer; never reused for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId {
    app: AppId,
    index: u32,
    generation: u32,
}

/// The queue, the policy and the members. `B` is what a granted request needs of its backend.
pub(crate) struct Dispatch<B> {
    app: AppId,
    policy: Policy,
    limits: QueueLimits,
    members: Vec<Option<Member<B>>>,
    vacant: Vec<u32>,
    generation: u32,
    /// Members that get requests, by [`Role`](crate::backend::Role).
    lineups: [Lineup; 2],
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
    drain_rate: DrainRate,
    waiting: usize,
    deepest: usize,
}

struct Waiter<B> {
    wish: Wish,
    state: WaiterState<B>,
}

enum WaiterState<B> {
    Vacant,
    Waiting {
        waker: Option<Waker>,
        bound: Option<u32>,
    },
    Granted(Grant<B>),
    /// The last backend that the request had not been at is gone.
    AllTried,
}

/// A slot of a backend, to be given back with [`Dispatch::release`].
#[derive(Debug)]
pub(crate) struct Grant<B> {
    pub(crate) id: BackendId,
    pub(crate) backend: B,
}

/// A place in the queue, to be ended with [`Dispatch::claim`] or [`Dispatch::cancel`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// What came of asking for a slot.
#[derive(Debug)]
pub(crate) enum Asked<B> {
    Granted(Grant<B>),
    Waiting(Ticket),
    /// As many requests as may wait already do.
    Full,
    /// Those before it alone would make it wait too long; about this long.
    TooLate(Duration),
    /// The request has been at every backend there is.
    AllTried,
    /// It may be sent again, but too many are.
    Overspent,
}

/// How a request ended, as far as it says something about its backend.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Report {
    #[default]
    Nothing,
    Answered {
        ended: Instant,
        micros: u32,
        /// The answer is the backend's own failure: a 5xx.
        error: bool,
    },
    Failed {
        ended: Instant,
        micros: u32,
    },
}

/// What follows from a freed slot.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// The waiter that got the slot.
    pub(crate) wake: Option<Waker>,
    /// A draining backend has no request in flight any more.
    pub(crate) drained: bool,
}

impl BackendId {
    /// The app that it belongs to.
    pub fn app(self) -> AppId {
        self.app
    }
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
            drain_rate: DrainRate::default(),
            waiting: 0,
            deepest: 0,
        }
    }

    /// Asks for a slot. A request that comes back from a failed backend goes to the head of the
    /// queue, past its bounds: it has waited already.
    pub(crate) fn ask(&mut self, wish: Wish) -> Asked<B> {
        let first = wish.tried.len() == 0;
        let choice = self.choose(&wish);
        match choice {
            _ if first => self.budget.request(),
            Choice::AllTried => {}
            _ if !self.budget.retry() => return Asked::Overspent,
            _ => {}
        }
        match choice {
            Choice::Now(index) => Asked::Granted(self.grant(index)),
            Choice::AllTried => Asked::AllTried,
            Choice::Later(_) if first && self.waiting >= self.limits.length => Asked::Full,
            Choice::Later(bound) => match self.expected_wait(bound) {
                Some(wait) if first && wait > self.limits.wait => Asked::TooLate(wait),
                _ => Asked::Waiting(self.queue(wish, bound, first)),
            },
        }
    }

    /// The grant, once there is one, or none when the request has meanwhile been at every backend
    /// there is; until then `waker` is woken when either comes.
    pub(crate) fn claim(&mut self, ticket: &Ticket, waker: &Waker) -> Poll<Option<Grant<B>>> {
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
            WaiterState::Granted(grant) => Some(grant),
            _ => None,
        })
    }

    /// Leaves the queue. A ticket that may have been granted is claimed, and its grant released.
    pub(crate) fn cancel(&mut self, ticket: &Ticket) {
        let state = &self.waiters[ticket.0 as usize].state;
        if let &WaiterState::Waiting { bound, .. } = state {
            self.unlink(ticket.0, bound);
            self.waiters[ticket.0 as usize].state = WaiterState::Vacant;
            self.vacant_waiters.push(ticket.0);
        }
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, id: BackendId, report: Report) -> Freed {
        let Some(member) = self.member_mut(id) else { return Freed::default() };
        member.in_flight -= 1;
        let drained = member.is_drained();
        self.learn(id.index, report);
        self.rank(id.index, End::Front);
        Freed { wake: self.hand_over(id.index, report), drained }
    }

    /// Turns a slot into an upgraded connection, which holds none, and so frees it; unless the
    /// backend has as many of them as it may.
    pub(crate) fn upgrade(&mut self, id: BackendId, report: Report) -> Option<Freed> {
        let member = self.member_mut(id)?;
        if member.tunnels >= member.terms.tunnels {
            return None;
        }
        member.tunnels += 1;
        Some(self.release(id, report))
    }

    /// An upgraded connection that held no slot has ended.
    pub(crate) fn end_upgraded(&mut self, id: BackendId) -> Freed {
        let Some(member) = self.member_mut(id) else { return Freed::default() };
        member.tunnels -= 1;
        let drained = member.is_drained();
        self.rank(id.index, End::Front);
        Freed { wake: self.serve(id.index), drained }
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
        let grant = Grant { id: member.id, backend: member.backend.clone() };
        self.rank(index, End::Back);
        grant
    }

    /// Takes note of how long a backend took.
    fn learn(&mut self, index: u32, report: Report) {
        if self.policy != Policy::LeastTime {
            return;
        }
        let (now, Some(member)) = (report.ended(), self.members[index as usize].as_mut()) else {
            return;
        };
        let Some(now) = now else { return };
        match report {
            Report::Nothing => {}
            Report::Answered { ended, micros, error: false } => {
                member.service.answered(micros, ended);
            }
            Report::Answered { ended, micros, .. } | Report::Failed { ended, micros } => {
                member.service.failed(micros, ended);
            }
        }
        self.ages.remove(&mut self.age_links, index);
        self.ages.push(&mut self.age_links, index, End::Back);
        // Two for each answer: more than one of all backends falls out of date at a time.
        for _ in 0..2 {
            let Some(oldest) = self.ages.iter(&self.age_links).next() else { break };
            let member = self.members[oldest as usize].as_mut();
            if !member.is_some_and(|member| member.service.age(now)) {
                break;
            }
            self.ages.remove(&mut self.age_links, oldest);
            self.ages.push(&mut self.age_links, oldest, End::Back);
            self.rank(oldest, End::Back);
        }
    }

    /// Hands a slot that was just given back to a waiter, and notes how fast the queue moves.
    fn hand_over(&mut self, index: u32, report: Report) -> Option<Waker> {
        let bound = self.at(index).is_some_and(|member| !member.bound.is_empty());
        let waker = self.serve(index)?;
        if let Some(now) = report.ended() {
            match self.members[index as usize].as_mut() {
                Some(member) if bound => member.drain_rate.handed(now),
                _ => self.drain_rate.handed(now),
            }
        }
        Some(waker)
    }

    /// The least that one more waiter is likely to wait.
    fn expected_wait(&self, bound: Option<u32>) -> Option<Duration> {
        match bound.and_then(|index| self.at(index)) {
            Some(member) => member.drain_rate.wait(member.bound.len() + 1),
            None => self.drain_rate.wait(self.unbound.len() + 1),
        }
    }

    /// Hands a free slot of this backend to the first waiter that it may serve.
    fn serve(&mut self, index: u32) -> Option<Waker> {
        let member = self.at(index)?;
        if !member.takes() || member.in_flight >= member.room() {
            return None;
        }
        let (id, bound, tier) = (member.id, member.bound, member.tier());
        let next =
            bound.iter(&self.links).next().map(|waiter| (waiter, Some(index))).or_else(|| {
                let mut unbound = self.unbound.iter(&self.links);
                let fits = |&waiter: &u32| {
                    let tried = &self.waiters[waiter as usize].wish.tried;
                    !tried.contains(id) && self.tier_for(tried) == Some(tier)
                };
                unbound.find(fits).map(|waiter| (waiter, None))
            });
        let (waiter, bound) = next?;
        let waker = self.unlink(waiter, bound);
        let grant = self.grant(index);
        self.waiters[waiter as usize].state = WaiterState::Granted(grant);
        // A waiter that has not polled yet finds its grant when it does.
        Some(waker.unwrap_or_else(|| Waker::noop().clone()))
    }

    fn serve_all(&mut self, index: u32) -> Vec<Waker> {
        std::iter::from_fn(|| self.serve(index)).collect()
    }

    fn queue(&mut self, wish: Wish, bound: Option<u32>, first: bool) -> Ticket {
        let waiter = self.vacant_waiters.pop().unwrap_or_else(|| {
            self.waiters.push(Waiter { wish, state: WaiterState::Vacant });
            (self.waiters.len() - 1) as u32
        });
        self.waiters[waiter as usize].wish = wish;
        self.enqueue(waiter, bound, if first { End::Back } else { End::Front }, None);
        Ticket(waiter)
    }

    fn enqueue(&mut self, waiter: u32, bound: Option<u32>, end: End, waker: Option<Waker>) {
        self.waiters[waiter as usize].state = WaiterState::Waiting { waker, bound };
        match bound.and_then(|index| self.members[index as usize].as_mut()) {
            Some(member) => member.bound.push(&mut self.links, waiter, end),
            None => self.unbound.push(&mut self.links, waiter, end),
        }
        self.waiting += 1;
        self.deepest = self.deepest.max(self.waiting);
        if let Some(index) = bound {
            self.rank(index, End::Back);
        }
    }

    fn unlink(&mut self, waiter: u32, bound: Option<u32>) -> Option<Waker> {
        let (list, rate) = match bound.and_then(|index| self.members[index as usize].as_mut()) {
            Some(member) => (&mut member.bound, &mut member.drain_rate),
            None => (&mut self.unbound, &mut self.drain_rate),
        };
        list.remove(&mut self.links, waiter);
        if list.is_empty() {
            rate.reset();
        }
        self.waiting -= 1;
        if let Some(index) = bound {
            self.rank(index, End::Back);
        }
        match &mut self.waiters[waiter as usize].state {
            WaiterState::Waiting { waker, .. } => waker.take(),
            _ => None,
        }
    }
}

impl Report {
    pub(crate) fn answered(began: Instant, ended: Instant, error: bool) -> Self {
        Report::Answered { ended, micros: micros(began, ended), error }
    }

    pub(crate) fn failed(began: Instant, ended: Instant) -> Self {
        Report::Failed { ended, micros: micros(began, ended) }
    }

    pub(crate) fn ended(self) -> Option<Instant> {
        match self {
            Report::Nothing => None,
            Report::Answered { ended, .. } | Report::Failed { ended, .. } => Some(ended),
        }
    }
}

/// Up to an hour or so, which is longer than a request takes.
fn micros(began: Instant, ended: Instant) -> u32 {
    u32::try_from(ended.saturating_duration_since(began).as_micros()).unwrap_or(u32::MAX)
}
