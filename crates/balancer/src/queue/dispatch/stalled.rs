//! Slots that wait for their client, to take its answer or to send its body. While others wait, one
//! client may hold a quarter of all slots in this way.
//!
//! A client that lost such a slot is *curbed* as long as others come. While it leaves a quarter of the
//! slots unused, it gets no further one. Otherwise it would take each freed slot and keep it until it is
//! found stalled.

use std::collections::HashMap;
use std::task::Waker;

use crate::backends::backend_id::BackendId;
use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::member::Member;
use crate::queue::dispatch::{Dispatch, Line};

/// The slots of an app that wait for their clients.
#[derive(Debug, Default)]
pub(super) struct Stalled {
    entries: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    /// Slots of each client that are not revoked.
    held: HashMap<Option<ClientNetwork>, usize>,
    /// How many slots have stalled so far.
    sequence: u64,
    curbed: Option<Curbed>,
}

/// A client that lost a slot which it did not use.
#[derive(Debug)]
struct Curbed {
    client: Option<ClientNetwork>,
    /// Ticks until the curb ends, unless others come.
    ticks: u32,
}

#[derive(Debug)]
struct Entry {
    id: BackendId,
    client: Option<ClientNetwork>,
    /// Slots that stalled earlier have smaller numbers.
    number: u64,
    waker: Waker,
    /// Whether it is to be given back.
    revoked: bool,
}

/// A slot that waits for its client. End it with [`Dispatch::resume`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stall(u32);

/// One client may hold one slot in this many without using it. It may have the same share of all
/// connections.
const MAX_UNUSED_DIVISOR: usize = 4;

/// After a second without others, in ticks ([`TICK`](crate::queue::TICK)), a curb ends.
const CURB: u32 = 10;

impl<B: Clone> Dispatch<B> {
    /// Records that a slot waits for its client. `waker` is woken when the slot is to be given back.
    /// Returns a waker to wake now, if others already wait.
    pub(crate) fn stall(
        &mut self,
        id: BackendId,
        client: Option<ClientNetwork>,
        waker: &Waker,
    ) -> (Stall, Option<Waker>) {
        let Stalled { entries, vacant, held, sequence, .. } = &mut self.stalled;
        let place = vacant.pop().unwrap_or_else(|| {
            entries.push(None);
            (entries.len() - 1) as u32
        });
        *sequence += 1;
        *held.entry(client).or_default() += 1;
        let (number, waker) = (*sequence, waker.clone());
        entries[place as usize] = Some(Entry { id, client, number, waker, revoked: false });
        let bound = self.at(id.index).is_some_and(|member| !member.bound.is_empty());
        let line = if bound { Line::Of(id.index) } else { Line::Any };
        (Stall(place), self.relieve(line))
    }

    /// Records that the slot no longer waits for its client, or is given back.
    pub(crate) fn resume(&mut self, stall: &Stall) {
        let entry = self.stalled.entries[stall.0 as usize].take();
        self.stalled.vacant.push(stall.0);
        if let Some(Entry { client, revoked: false, .. }) = entry {
            self.stalled.forget(client);
        }
    }

    /// Whether others need the slot more.
    pub(crate) fn is_revoked(&self, stall: &Stall) -> bool {
        self.stalled.entries[stall.0 as usize].as_ref().is_some_and(|entry| entry.revoked)
    }

    /// Revokes a slot for those who wait in this line, if one client holds too many. It takes the slot
    /// that has waited longest for its client.
    pub(super) fn relieve(&mut self, line: Line) -> Option<Waker> {
        let list = match line {
            Line::Any => &self.unbound,
            Line::Of(index) => &self.at(index)?.bound,
            Line::First(_) => return None,
        };
        let (&greedy, &held) = self.stalled.held.iter().max_by_key(|(_, held)| **held)?;
        if held <= self.share() {
            return None;
        }
        let is_other = |&waiter: &u32| self.waiters[waiter as usize].hints.client != greedy;
        let others = list.iter(&self.links).filter(is_other).count();
        let mut of_use: Vec<_> = self.stalled.entries.iter_mut().flatten().collect();
        of_use.retain(|entry| !matches!(line, Line::Of(index) if entry.id.index != index));
        // Slots on their way back are already promised.
        let coming = of_use.iter().filter(|entry| entry.revoked).count();
        if others <= coming {
            return None;
        }
        let held = of_use.into_iter().filter(|entry| !entry.revoked && entry.client == greedy);
        let longest = held.min_by_key(|entry| entry.number)?;
        longest.revoked = true;
        let waker = longest.waker.clone();
        self.stalled.forget(greedy);
        self.stalled.curbed = Some(Curbed { client: greedy, ticks: CURB });
        Some(waker)
    }

    /// How many slots one client may hold without using them while others wait.
    fn share(&self) -> usize {
        let serving = self.members.iter().flatten().filter(|member| member.takes());
        (serving.map(Member::room).sum::<usize>() / MAX_UNUSED_DIVISOR).max(1)
    }

    /// The client that gets no further slot now.
    pub(super) fn held_back(&self) -> Option<Option<ClientNetwork>> {
        let client = self.stalled.curbed.as_ref()?.client;
        let held = self.stalled.held.get(&client).copied().unwrap_or_default();
        (held >= self.share()).then_some(client)
    }

    /// Whether it is held back as long as it does not use its slots.
    #[cfg(test)]
    pub(super) fn is_curbed(&self, client: Option<ClientNetwork>) -> bool {
        self.stalled.curbed.as_ref().is_some_and(|curbed| curbed.client == client)
    }

    /// Records a request of this client.
    pub(super) fn note_arrival(&mut self, client: Option<ClientNetwork>) {
        if let Some(curbed) = &mut self.stalled.curbed
            && curbed.client != client
        {
            curbed.ticks = CURB;
        }
    }

    /// Ends a curb in time. Serves the requests that it held back once their client uses its slots
    /// again.
    pub(super) fn tick_curb(&mut self) -> Vec<Waker> {
        let Some(curbed) = &mut self.stalled.curbed else { return Vec::new() };
        curbed.ticks -= 1;
        if curbed.ticks == 0 {
            self.stalled.curbed = None;
        }
        let members = 0..self.members.len() as u32;
        members.flat_map(|index| self.serve_all(index)).collect()
    }
}

impl Stalled {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.vacant.len() == self.entries.len()
    }

    /// Uncounts one slot of this client.
    fn forget(&mut self, client: Option<ClientNetwork>) {
        if let Some(held) = self.held.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&client);
            }
        }
    }
}
