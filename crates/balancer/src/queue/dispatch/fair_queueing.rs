//! Fair queueing: each client gets its turn, however many requests the others send.
//!
//! A request gets a number as it joins the queue (start-time fair queueing: Goyal, Vin and Cheng,
//! SIGCOMM 1996). The number is one above the last one of its client, or above the one that was served
//! last. Slots go by number. So the first waiting requests of all clients come before the second ones.
//!
//! Within a client, connections take turns in the same way. Neighbours often share an address, so one of
//! them must not have to wait for all that another one asks for. When a number of a client comes up, its
//! request whose turn is first gets that slot. So other clients wait no longer.

use std::collections::HashMap;

use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::list::{Links, List};
use crate::queue::dispatch::request_hints::{RequestHints, Turn};

/// Clients by their address. All clients without one are a single client.
#[derive(Debug, Default)]
pub(super) struct FairQueueing {
    /// Hashed with a secret, because clients choose their addresses.
    waiting: HashMap<Option<ClientNetwork>, ClientQueue>,
    /// The number that was served last.
    served: u64,
    /// The largest waiting number, or more.
    last: u64,
    links: Links,
}

/// The waiting requests of one client.
#[derive(Clone, Copy, Debug)]
struct ClientQueue {
    last: u64,
    /// The requests by their turn.
    turns: List,
    /// The turn that was served last.
    served: u64,
    /// The last turn of connections that share theirs.
    shared: u64,
}

/// When a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Among all requests.
    pub(super) number: u64,
    /// Among those of its client.
    pub(super) turn: u64,
}

impl Place {
    /// The place of a retried request. It goes before all new ones, because it has waited already.
    pub(super) const RETRIED: Place = Place { number: 0, turn: 0 };
}

impl FairQueueing {
    /// The number that the next request of this client gets.
    pub(super) fn next_number(&self, client: Option<ClientNetwork>) -> u64 {
        let last = self.waiting.get(&client).map_or(0, |queue| queue.last);
        last.max(self.served) + 1
    }

    /// Whether a request with this number may have others behind it.
    pub(super) fn may_precede(&self, number: u64) -> bool {
        number < self.last
    }

    /// The place of a request that has not been tried.
    pub(super) fn next(&self, hints: &RequestHints) -> Place {
        let queue = self.waiting.get(&hints.client);
        let (served, shared) = queue.map_or((0, 0), |queue| (queue.served, queue.shared));
        let turn = match hints.turn {
            Turn::After(turns) => served + 1 + u64::from(turns),
            Turn::Shared => served.max(shared) + 1,
        };
        Place { number: self.next_number(hints.client), turn }
    }

    /// Adds a waiting request. `turn` tells the turn of each one.
    pub(super) fn join(
        &mut self,
        hints: &RequestHints,
        number: u64,
        waiter: u32,
        turn: impl Fn(u32) -> u64,
    ) {
        let none = ClientQueue { last: 0, turns: List::EMPTY, served: 0, shared: 0 };
        let queue = self.waiting.entry(hints.client).or_insert(none);
        queue.last = queue.last.max(number);
        if hints.turn == Turn::Shared {
            queue.shared = queue.shared.max(turn(waiter));
        }
        queue.turns.insert(&mut self.links, waiter, turn);
        self.last = self.last.max(number);
    }

    /// Removes a waiting request.
    pub(super) fn leave(&mut self, client: Option<ClientNetwork>, waiter: u32) {
        let Some(queue) = self.waiting.get_mut(&client) else { return };
        queue.turns.remove(&mut self.links, waiter);
        if queue.turns.is_empty() {
            self.waiting.remove(&client);
        }
        if self.waiting.is_empty() {
            self.last = self.served;
        }
    }

    /// The waiting requests of a client by their turn, last one first.
    pub(super) fn last_turns(&self, client: Option<ClientNetwork>) -> impl Iterator<Item = u32> {
        let queue = self.waiting.get(&client);
        queue.into_iter().flat_map(|queue| queue.turns.iter_back(&self.links))
    }

    /// The waiting requests of a client by their turn.
    pub(super) fn turns(&self, client: Option<ClientNetwork>) -> impl Iterator<Item = u32> {
        let queue = self.waiting.get(&client);
        queue.into_iter().flat_map(|queue| queue.turns.iter(&self.links))
    }

    /// Records that a waiting request got a slot.
    pub(super) fn serve(&mut self, client: Option<ClientNetwork>, place: Place) {
        self.served = self.served.max(place.number);
        if let Some(queue) = self.waiting.get_mut(&client) {
            queue.served = queue.served.max(place.turn);
        }
    }

    /// The worst place of this client's next request among `waiting` ones, if it comes after `own` ones of
    /// its client. 1 is the head.
    pub(super) fn next_place(
        &self,
        client: Option<ClientNetwork>,
        own: usize,
        waiting: usize,
    ) -> usize {
        let others = self.waiting.len() - usize::from(self.waiting.contains_key(&client));
        (own + 1).saturating_mul(others + 1).min(waiting + 1)
    }

    /// The number of this client's waiting requests.
    pub(super) fn len(&self, client: Option<ClientNetwork>) -> usize {
        self.waiting.get(&client).map_or(0, |queue| queue.turns.len())
    }
}
