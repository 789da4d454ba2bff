//! Who goes where: backends with their slots, and the requests that wait for one. Pure data,
//! no socket and no clock, so that every rule of the queue is tested by itself.
//!
//! A freed slot is handed to the request at the head of the queue within the same step, so nobody
//! barges in and exactly one waiter wakes.

mod list;
mod ranking;
#[cfg(test)]
mod tests;
mod tried;

use std::task::{Poll, Waker};

use crate::config::{AppId, Policy};
use list::{End, Links, List};
use ranking::Ranking;
pub(crate) use tried::Tried;

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
    /// Requests that may wait.
    length: usize,
    members: Vec<Option<Member<B>>>,
    vacant: Vec<u32>,
    generation: u32,
    ranking: Ranking,
    /// Members that get requests, in the order of their arrival, for round robin.
    ring: Vec<u32>,
    cursor: usize,
    waiters: Vec<Waiter<B>>,
    vacant_waiters: Vec<u32>,
    links: Links,
    /// Waiters that any backend may serve.
    unbound: List,
    waiting: usize,
    deepest: usize,
}

/// A backend as the dispatcher sees it.
pub(crate) struct Member<B> {
    pub(crate) id: BackendId,
    pub(crate) backend: B,
    pub(crate) slots: usize,
    pub(crate) in_flight: usize,
    pub(crate) standing: Standing,
    /// Waiters of this backend alone (policies that bind early).
    bound: List,
}

/// Whether a backend gets new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Serving,
    Draining,
}

struct Waiter<B> {
    tried: Tried,
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
    /// The request has been at every backend there is.
    AllTried,
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

enum Choice {
    Now(u32),
    Later(Option<u32>),
    AllTried,
}

impl<B> Member<B> {
    /// It gets new requests, now or once a slot is free.
    fn takes(&self) -> bool {
        self.standing == Standing::Serving && self.slots > 0
    }
}

impl<B: Clone> Dispatch<B> {
    pub(crate) fn new(app: AppId, policy: Policy, length: usize) -> Self {
        Dispatch {
            app,
            policy,
            length,
            members: Vec::new(),
            vacant: Vec::new(),
            generation: 0,
            ranking: Ranking::new(),
            ring: Vec::new(),
            cursor: 0,
            waiters: Vec::new(),
            vacant_waiters: Vec::new(),
            links: Links::default(),
            unbound: List::EMPTY,
            waiting: 0,
            deepest: 0,
        }
    }

    /// Asks for a slot. A request that comes back from a failed backend goes to the head of the
    /// queue, past its bound: it has waited already.
    pub(crate) fn ask(&mut self, tried: Tried) -> Asked<B> {
        match self.choose(&tried) {
            Choice::Now(index) => Asked::Granted(self.grant(index)),
            Choice::AllTried => Asked::AllTried,
            Choice::Later(_) if tried.len() == 0 && self.waiting >= self.length => Asked::Full,
            Choice::Later(bound) => {
                let end = if tried.len() == 0 { End::Back } else { End::Front };
                let waiter = self.vacant_waiters.pop().unwrap_or_else(|| {
                    self.waiters.push(Waiter { tried, state: WaiterState::Vacant });
                    (self.waiters.len() - 1) as u32
                });
                self.waiters[waiter as usize].tried = tried;
                self.enqueue(waiter, bound, end, None);
                Asked::Waiting(Ticket(waiter))
            }
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
    pub(crate) fn release(&mut self, id: BackendId) -> Freed {
        let Some(member) = self.member_mut(id) else { return Freed::default() };
        member.in_flight -= 1;
        let drained = member.standing == Standing::Draining && member.in_flight == 0;
        self.rank(id.index, End::Front);
        Freed { wake: self.serve(id.index), drained }
    }

    pub(crate) fn add(&mut self, backend: B, slots: usize) -> (BackendId, Vec<Waker>) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.members.push(None);
            (self.members.len() - 1) as u32
        });
        self.generation += 1;
        let id = BackendId { app: self.app, index, generation: self.generation };
        let (standing, bound) = (Standing::Serving, List::EMPTY);
        self.members[index as usize] =
            Some(Member { id, backend, slots, in_flight: 0, standing, bound });
        (id, self.enter(index))
    }

    /// With no slots, a backend is paused: it gets no request, and those bound to it move on.
    pub(crate) fn set_slots(&mut self, id: BackendId, slots: usize) -> Vec<Waker> {
        let Some(member) = self.member_mut(id) else { return Vec::new() };
        let took = member.takes();
        member.slots = slots;
        match (took, member.takes()) {
            (true, true) => {
                self.rank(id.index, End::Front);
                std::iter::from_fn(|| self.serve(id.index)).collect()
            }
            (true, false) => self.leave(id.index),
            (false, true) => self.enter(id.index),
            (false, false) => Vec::new(),
        }
    }

    /// Stops giving new requests to a backend; those bound to it move on. Returns the number in
    /// flight.
    pub(crate) fn drain(&mut self, id: BackendId) -> (Option<usize>, Vec<Waker>) {
        let Some(member) = self.member_mut(id) else { return (None, Vec::new()) };
        let in_flight = member.in_flight;
        member.standing = Standing::Draining;
        (Some(in_flight), self.leave(id.index))
    }

    /// Takes a backend out. Its requests in flight end as they may.
    pub(crate) fn remove(&mut self, id: BackendId) -> (Option<Member<B>>, Vec<Waker>) {
        let (_, wakers) = self.drain(id);
        if self.member(id).is_none() {
            return (None, wakers);
        }
        self.vacant.push(id.index);
        (self.members[id.index as usize].take(), wakers)
    }

    pub(crate) fn member(&self, id: BackendId) -> Option<&Member<B>> {
        self.members.get(id.index as usize)?.as_ref().filter(|member| member.id == id)
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

    fn member_mut(&mut self, id: BackendId) -> Option<&mut Member<B>> {
        self.members.get_mut(id.index as usize)?.as_mut().filter(|member| member.id == id)
    }

    /// Begins to give requests to a backend, if it takes any.
    fn enter(&mut self, index: u32) -> Vec<Waker> {
        if !self.members[index as usize].as_ref().is_some_and(Member::takes) {
            return Vec::new();
        }
        self.ring.push(index);
        self.rank(index, End::Back);
        let mut wakers = self.place_unbound(index);
        self.refuse_stranded(&mut wakers);
        wakers
    }

    /// Gives no more requests to a backend that takes none any more.
    fn leave(&mut self, index: u32) -> Vec<Waker> {
        let member = self.members[index as usize].as_mut();
        let bound = member.map(|member| std::mem::replace(&mut member.bound, List::EMPTY));
        self.rank(index, End::Back);
        self.ring.retain(|&other| other != index);
        let mut wakers = self.place_again(bound.unwrap_or(List::EMPTY));
        self.refuse_stranded(&mut wakers);
        wakers
    }

    /// Tells waiters that every backend that is left has failed them.
    fn refuse_stranded(&mut self, wakers: &mut Vec<Waker>) {
        let waiters: Vec<_> = self.unbound.iter(&self.links).collect();
        for waiter in waiters {
            if self.been_everywhere(&self.waiters[waiter as usize].tried) {
                wakers.extend(self.unlink(waiter, None));
                self.waiters[waiter as usize].state = WaiterState::AllTried;
            }
        }
    }

    fn been_everywhere(&self, tried: &Tried) -> bool {
        tried.len() > 0
            && !self.ring.is_empty()
            && !self.ring.iter().any(|&index| self.is_new(index, tried))
    }

    fn is_new(&self, index: u32, tried: &Tried) -> bool {
        self.members[index as usize].as_ref().is_some_and(|member| !tried.contains(member.id))
    }

    fn choose(&mut self, tried: &Tried) -> Choice {
        if self.been_everywhere(tried) {
            return Choice::AllTried;
        }
        let fits = |index: u32| self.is_new(index, tried);
        let chosen = match self.policy {
            Policy::Queue | Policy::LeastConn => self.ranking.first(fits),
            Policy::RoundRobin => {
                let turns = (0..self.ring.len()).map(|turn| (self.cursor + turn) % self.ring.len());
                let turn = turns.into_iter().find(|&turn| fits(self.ring[turn]));
                turn.map(|turn| {
                    self.cursor = turn + 1;
                    self.ring[turn]
                })
            }
        };
        match chosen {
            Some(index) if self.is_free(index) => Choice::Now(index),
            bound => Choice::Later(bound),
        }
    }

    fn is_free(&self, index: u32) -> bool {
        let member = self.members[index as usize].as_ref();
        member.is_some_and(|m| m.takes() && m.in_flight < m.slots && m.bound.is_empty())
    }

    fn grant(&mut self, index: u32) -> Grant<B> {
        let member = self.members[index as usize].as_mut().expect("a chosen backend is a member");
        member.in_flight += 1;
        let grant = Grant { id: member.id, backend: member.backend.clone() };
        self.rank(index, End::Back);
        grant
    }

    /// Hands a free slot of this backend to the first waiter that it may serve.
    fn serve(&mut self, index: u32) -> Option<Waker> {
        let member = self.members[index as usize].as_ref()?;
        if member.standing == Standing::Draining || member.in_flight >= member.slots {
            return None;
        }
        let (id, bound) = (member.id, member.bound);
        let next =
            bound.iter(&self.links).next().map(|waiter| (waiter, Some(index))).or_else(|| {
                let mut unbound = self.unbound.iter(&self.links);
                let fits = |&waiter: &u32| !self.waiters[waiter as usize].tried.contains(id);
                unbound.find(fits).map(|waiter| (waiter, None))
            });
        let (waiter, bound) = next?;
        let waker = self.unlink(waiter, bound);
        let grant = self.grant(index);
        self.waiters[waiter as usize].state = WaiterState::Granted(grant);
        // A waiter that has not polled yet finds its grant when it does.
        Some(waker.unwrap_or_else(|| Waker::noop().clone()))
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
        match bound.and_then(|index| self.members[index as usize].as_mut()) {
            Some(member) => member.bound.remove(&mut self.links, waiter),
            None => self.unbound.remove(&mut self.links, waiter),
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

    /// Gives the waiters of no backend to one that has come.
    fn place_unbound(&mut self, index: u32) -> Vec<Waker> {
        match self.policy {
            Policy::Queue => std::iter::from_fn(|| self.serve(index)).collect(),
            Policy::RoundRobin | Policy::LeastConn => {
                let unbound = std::mem::replace(&mut self.unbound, List::EMPTY);
                self.place_again(unbound)
            }
        }
    }

    /// Chooses anew for the waiters of a list that belongs to nobody any more, in their order.
    fn place_again(&mut self, mut list: List) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(waiter) = list.pop_front(&mut self.links) {
            self.waiting -= 1;
            let entry = &mut self.waiters[waiter as usize];
            let tried = entry.tried;
            let WaiterState::Waiting { waker, .. } =
                std::mem::replace(&mut entry.state, WaiterState::Vacant)
            else {
                unreachable!("a waiter in a list waits");
            };
            match self.choose(&tried) {
                Choice::Now(index) => {
                    let grant = self.grant(index);
                    self.waiters[waiter as usize].state = WaiterState::Granted(grant);
                    wakers.extend(waker);
                }
                Choice::Later(bound) => self.enqueue(waiter, bound, End::Back, waker),
                Choice::AllTried => {
                    self.waiters[waiter as usize].state = WaiterState::AllTried;
                    wakers.extend(waker);
                }
            }
        }
        wakers
    }

    /// Puts a backend where the policy's order has it now.
    fn rank(&mut self, index: u32, end: End) {
        let Some(member) = self.members[index as usize].as_ref() else { return };
        let takes = member.takes();
        match self.policy {
            Policy::RoundRobin => {}
            Policy::Queue => {
                let free = takes && member.in_flight < member.slots;
                self.ranking.set(index, free.then_some(member.in_flight), end);
            }
            // The back at every change: equals take turns.
            Policy::LeastConn => {
                let load = member.in_flight + member.bound.len();
                self.ranking.set(index, takes.then_some(load), End::Back);
            }
        }
    }
}
