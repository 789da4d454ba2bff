//! Fair queueing: each client gets its turn, however many requests the others send.
//!
//! A request gets a number as it joins the queue (start-time fair queueing: Goyal, Vin and Cheng,
//! SIGCOMM 1996). The number is one above the last one of its client, or above the one that was served
//! last. Slots go by number. So the first waiting requests of all clients come before the second ones,
//! and the requests of one client stay in order.

use std::collections::HashMap;

use crate::net::client_network::ClientNetwork;

/// Clients by their address. All clients without one are a single client.
#[derive(Debug, Default)]
pub(super) struct FairQueueing {
    /// Hashed with a secret, because clients choose their addresses.
    waiting: HashMap<Option<ClientNetwork>, ClientQueue>,
    /// The number that was served last.
    served: u64,
    /// The largest waiting number, or more.
    last: u64,
}

/// The waiting requests of one client.
#[derive(Clone, Copy, Debug, Default)]
struct ClientQueue {
    len: usize,
    last: u64,
}

/// The number of a retried request. It goes before all new ones, because it has waited already.
pub(super) const RETRIED: u64 = 0;

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

    /// Adds a waiting request.
    pub(super) fn join(&mut self, client: Option<ClientNetwork>, number: u64) {
        let queue = self.waiting.entry(client).or_default();
        (queue.len, queue.last) = (queue.len + 1, queue.last.max(number));
        self.last = self.last.max(number);
    }

    /// Removes a waiting request.
    pub(super) fn leave(&mut self, client: Option<ClientNetwork>) {
        let Some(queue) = self.waiting.get_mut(&client) else { return };
        queue.len -= 1;
        if queue.len == 0 {
            self.waiting.remove(&client);
        }
        if self.waiting.is_empty() {
            self.last = self.served;
        }
    }

    /// Records that a waiting request got a slot.
    pub(super) fn serve(&mut self, number: u64) {
        self.served = self.served.max(number);
    }

    /// The worst place of this client's next request among `waiting` ones. 1 is the head.
    pub(super) fn next_place(&self, client: Option<ClientNetwork>, waiting: usize) -> usize {
        let own = self.waiting.get(&client).map_or(0, |queue| queue.len);
        let others = self.waiting.len() - usize::from(own > 0);
        (own + 1).saturating_mul(others + 1).min(waiting + 1)
    }

    /// The number of this client's waiting requests.
    pub(super) fn len(&self, client: Option<ClientNetwork>) -> usize {
        self.waiting.get(&client).map_or(0, |queue| queue.len)
    }
}
