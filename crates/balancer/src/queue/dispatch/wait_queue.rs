//! The waiting requests, and how they are served.

use std::task::Waker;
use std::time::Duration;

use crate::backends::report::Report;
use crate::config::backend::Slots;
use crate::queue::dispatch::fair_queueing::Place;
use crate::queue::dispatch::list::{End, List};
use crate::queue::dispatch::member::Member;
use crate::queue::dispatch::request_hints::RequestHints;
use crate::queue::dispatch::{
    Asked, Dispatch, Line, Refusal, Ticket, WaitReason, Waiter, WaiterState,
};

impl<B: Clone> Dispatch<B> {
    /// Gives a freed slot to a waiter, and records how fast the queue moves.
    pub(super) fn hand_over(&mut self, index: u32, report: Report) -> Option<Waker> {
        let (waker, line) = self.serve_next(index)?;
        if let Some(now) = report.ended() {
            let (list, rate) = match line {
                Line::First(_) => return Some(waker),
                Line::Any => (&self.unbound, &mut self.drain_rate),
                Line::Of(index) => match self.members[index as usize].as_mut() {
                    Some(member) => (&member.bound, &mut member.drain_rate),
                    None => return Some(waker),
                },
            };
            // After the last waiter, nobody waits for an unknown time.
            if !list.is_empty() {
                rate.handed(now);
            }
        }
        Some(waker)
    }

    /// Whether the queue will not speed up soon because the number of slots is found.
    pub(super) fn is_settled(&self) -> bool {
        let left_to_us = |member: &Member<B>| member.rule == Slots::Auto;
        !self.auto.is_searching() || !self.members.iter().flatten().any(left_to_us)
    }

    /// The least time that one more waiter is likely to wait.
    pub(super) fn expected_wait(
        &self,
        bound: Option<u32>,
        hints: &RequestHints,
    ) -> Option<Duration> {
        let (list, rate) = match bound.and_then(|index| self.at(index)) {
            Some(member) => (&member.bound, &member.drain_rate),
            None => (&self.unbound, &self.drain_rate),
        };
        let later = self.later(hints).count();
        let own = self.clients.len(hints.client) - later;
        rate.wait(self.clients.next_place(hints.client, own, list.len()))
    }

    /// Waiters of the same client that would be served after this request, last one first.
    fn later(&self, hints: &RequestHints) -> impl Iterator<Item = u32> {
        let turn = self.clients.next(hints).turn;
        let last = self.clients.last_turns(hints.client);
        last.take_while(move |&waiter| self.waiters[waiter as usize].place.turn > turn)
    }

    /// Whether the queue is full and no waiter would be served after this one.
    pub(super) fn is_full_for(&self, hints: &RequestHints) -> bool {
        self.waiting >= self.limits.length && self.last_after(hints).is_none()
    }

    /// The waiter that would be served last, if that is after this request: of its client, the one whose
    /// turn is last. It comes with the one whose number is last, unless that is this request.
    fn last_after(&self, hints: &RequestHints) -> Option<(u32, Option<u32>)> {
        let number = self.clients.next_number(hints.client);
        let may_precede = self.clients.may_precede(number);
        let last = may_precede.then(|| self.last_behind(number)).flatten();
        let Some(last) = last else { return Some((self.later(hints).next()?, None)) };
        let client = self.waiters[last as usize].hints.client;
        Some((self.clients.last_turns(client).next()?, Some(last)))
    }

    /// The waiter with the last number, if it comes after this number. It visits all waiters. That is
    /// needed only if a client that asks for less than others meets a full queue.
    fn last_behind(&self, number: u64) -> Option<u32> {
        let numbers =
            self.waiters.iter().enumerate().filter_map(|(index, waiter)| match waiter.state {
                WaiterState::Waiting { line: Line::Any | Line::Of(_), .. } => {
                    Some((waiter.place.number, index as u32))
                }
                _ => None,
            });
        numbers.max_by_key(|&(number, _)| number).filter(|last| last.0 > number).map(|last| last.1)
    }

    /// Lets a request wait. In a full queue, it takes the place of another one.
    pub(super) fn wait(&mut self, hints: RequestHints, line: Line, reason: WaitReason) -> Asked<B> {
        let full = hints.tried.len() == 0 && self.waiting >= self.limits.length;
        let displaced = full.then(|| self.last_after(&hints)).flatten();
        let mut woken = Vec::new();
        let mut left = None;
        if let Some((waiter, last)) = displaced
            && let Some(line) = self.line(waiter)
        {
            woken.extend(self.unlink(waiter, line));
            self.waiters[waiter as usize].state = WaiterState::Refused(Refusal::Displaced);
            left = Some((last, self.waiters[waiter as usize].place.number, line));
        }
        let ticket = self.queue(hints, line);
        if let Some((last, number, line)) = left {
            self.renumber(last.unwrap_or(ticket.0), number, line);
        }
        woken.extend(self.relieve(line));
        Asked::Waiting(ticket, reason, woken)
    }

    /// Gives a free slot of this backend to the first waiter that it may serve.
    pub(super) fn serve(&mut self, index: u32) -> Option<Waker> {
        self.serve_next(index).map(|(waker, _)| waker)
    }

    fn serve_next(&mut self, index: u32) -> Option<(Waker, Line)> {
        let (due, line) = self.next_for(index)?;
        let waiter = self.first_in_turn(due, line);
        let Waiter { place, ref hints, .. } = self.waiters[waiter as usize];
        self.clients.serve(hints.client, place);
        let waker = self.unlink(waiter, line);
        let grant = match line {
            Line::First(_) => self.grant_check(index),
            Line::Any | Line::Of(_) => self.grant(index),
        };
        self.waiters[waiter as usize].state = WaiterState::Granted(grant);
        // A waiter that has not polled yet finds its grant when it does.
        Some((waker.unwrap_or_else(|| Waker::noop().clone()), line))
    }

    /// Gives the number of this waiter to the one of its client whose turn is first, and returns that one.
    fn first_in_turn(&mut self, due: u32, line: Line) -> u32 {
        let Waiter { place, ref hints, .. } = self.waiters[due as usize];
        if matches!(line, Line::First(_)) || place == Place::RETRIED {
            return due;
        }
        let is_alike = |&other: &u32| {
            self.waiters[other as usize].place != Place::RETRIED && self.line(other) == Some(line)
        };
        let Some(first) = self.clients.turns(hints.client).find(is_alike) else { return due };
        if first == due {
            return due;
        }
        let later = std::mem::replace(&mut self.waiters[first as usize].place.number, place.number);
        self.waiters[due as usize].place.number = later;
        let list = Self::list(line, &mut self.unbound, &mut self.members);
        list.remove(&mut self.links, due);
        list.replace(&mut self.links, first, due);
        list.insert(&mut self.links, first, |index| self.waiters[index as usize].place.number);
        first
    }

    /// Gives the number that a waiter left to one that comes later and waits in the same line.
    fn renumber(&mut self, waiter: u32, number: u64, line: Line) {
        let place = self.waiters[waiter as usize].place;
        if self.line(waiter) != Some(line) || place.number <= number {
            return;
        }
        self.waiters[waiter as usize].place.number = number;
        let list = Self::list(line, &mut self.unbound, &mut self.members);
        list.remove(&mut self.links, waiter);
        list.insert(&mut self.links, waiter, |index| self.waiters[index as usize].place.number);
    }

    /// The list of requests that wait in this line.
    fn list<'l>(
        line: Line,
        unbound: &'l mut List,
        members: &'l mut [Option<Member<B>>],
    ) -> &'l mut List {
        let Line::Of(index) = line else { return unbound };
        let member = members[index as usize].as_mut();
        &mut member.expect("nobody waits for a backend that is gone").bound
    }

    fn line(&self, waiter: u32) -> Option<Line> {
        match self.waiters[waiter as usize].state {
            WaiterState::Waiting { line, .. } => Some(line),
            _ => None,
        }
    }

    fn next_for(&self, index: u32) -> Option<(u32, Line)> {
        let member = self.at(index)?;
        if member.in_flight >= member.room() {
            return None;
        }
        if let Some(waiter) = member.first.iter(&self.links).next() {
            return Some((waiter, Line::First(index)));
        }
        let held_back = self.held_back();
        let wait_alone = |client| self.clients.len(client) == self.waiting;
        if !member.takes() || held_back.is_some_and(wait_alone) {
            return None;
        }
        let is_due = |waiter: &u32| held_back != Some(self.waiters[*waiter as usize].hints.client);
        if let Some(waiter) = member.bound.iter(&self.links).find(is_due) {
            return Some((waiter, Line::Of(index)));
        }
        let (id, tier) = (member.id, member.tier());
        let fits = |waiter: &u32| {
            let tried = &self.waiters[*waiter as usize].hints.tried;
            is_due(waiter) && !tried.contains(id) && self.tier_for(tried) == Some(tier)
        };
        let unbound = self.unbound.iter(&self.links).find(fits);
        unbound.map(|waiter| (waiter, Line::Any)).or_else(|| self.bound_elsewhere(fits))
    }

    /// The first waiter of another backend's longest line, because that backend may never answer.
    fn bound_elsewhere(&self, fits: impl Fn(&u32) -> bool) -> Option<(u32, Line)> {
        if self.waiting == 0 || !self.policy.is_keyed() {
            return None;
        }
        let lines = self.members.iter().flatten().filter(|member| !member.bound.is_empty());
        let heads = lines.filter_map(|member| {
            let head = member.bound.iter(&self.links).find(&fits)?;
            Some((member.bound.len(), head, Line::Of(member.id.index)))
        });
        heads.max_by_key(|&(len, ..)| len).map(|(_, head, line)| (head, line))
    }

    pub(super) fn serve_all(&mut self, index: u32) -> Vec<Waker> {
        std::iter::from_fn(|| self.serve(index)).collect()
    }

    pub(super) fn queue(&mut self, hints: RequestHints, line: Line) -> Ticket {
        let place = match hints.tried.len() {
            0 => self.clients.next(&hints),
            _ => Place::RETRIED,
        };
        let waiter = self.vacant_waiters.pop().unwrap_or_else(|| {
            self.waiters.push(Waiter { hints, place, state: WaiterState::Vacant });
            (self.waiters.len() - 1) as u32
        });
        (self.waiters[waiter as usize].hints, self.waiters[waiter as usize].place) = (hints, place);
        self.enqueue(waiter, line, None);
        Ticket(waiter)
    }

    pub(super) fn enqueue(&mut self, waiter: u32, line: Line, waker: Option<Waker>) {
        self.waiters[waiter as usize].state = WaiterState::Waiting { waker, line };
        let list = match line {
            Line::Any => &mut self.unbound,
            Line::Of(index) | Line::First(index) => {
                let member = self.members[index as usize].as_mut();
                let member = member.expect("nobody waits for a backend that is gone");
                if line == Line::First(index) { &mut member.first } else { &mut member.bound }
            }
        };
        let Waiter { place, ref hints, .. } = self.waiters[waiter as usize];
        if let Line::First(_) = line {
            list.push(&mut self.links, waiter, End::Back);
        } else {
            list.insert(&mut self.links, waiter, |index| self.waiters[index as usize].place.number);
            let turn = |index: u32| self.waiters[index as usize].place.turn;
            self.clients.join(hints, place.number, waiter, turn);
            self.waiting += 1;
            self.max_waiting = self.max_waiting.max(self.waiting);
        }
        self.rank_line(line);
    }

    pub(super) fn unlink(&mut self, waiter: u32, line: Line) -> Option<Waker> {
        let (list, rate) = match line {
            Line::Any => (&mut self.unbound, Some(&mut self.drain_rate)),
            Line::Of(index) | Line::First(index) => {
                let member = self.members[index as usize].as_mut();
                let member = member.expect("nobody waits for a backend that is gone");
                match line {
                    Line::First(_) => (&mut member.first, None),
                    _ => (&mut member.bound, Some(&mut member.drain_rate)),
                }
            }
        };
        list.remove(&mut self.links, waiter);
        if let Some(rate) = rate {
            self.waiting -= 1;
            self.clients.leave(self.waiters[waiter as usize].hints.client, waiter);
            if list.is_empty() {
                rate.reset();
            }
        }
        self.rank_line(line);
        match &mut self.waiters[waiter as usize].state {
            WaiterState::Waiting { waker, .. } => waker.take(),
            _ => None,
        }
    }

    fn rank_line(&mut self, line: Line) {
        if let Line::Of(index) = line {
            self.rank(index, End::Back);
        }
    }
}
