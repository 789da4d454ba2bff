//! The clients whose requests wait: each gets its turn, however many the others send.
//!
//! A request is numbered as it joins the queue (start-time fair queueing: Goyal, Vin and Cheng,
//! SIGCOMM 1996): one above its client's last one, or above the number that was served last. Slots go
//! by number. So the first waiting requests of all clients come before the second ones, and the
//! requests of a single client in their order.

use std::collections::HashMap;

use crate::net::client_network::ClientNetwork as Household;

/// Clients by their address; those without one are one client.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Hashed with a secret: clients choose their addresses.
    waiting: HashMap<Option<Household>, Line>,
    /// The number that was served last.
    served: u64,
    /// The largest number that waits, or more.
    last: u64,
}

/// One client's requests that wait.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    len: usize,
    last: u64,
}

/// The number of a request that goes before all new ones: it has waited before.
pub(super) const FIRST: u64 = 0;

impl Clients {
    /// The number that the next request of this client gets.
    pub(super) fn next_number(&self, client: Option<Household>) -> u64 {
        let last = self.waiting.get(&client).map_or(0, |line| line.last);
        last.max(self.served) + 1
    }

    /// Whether a request with this number may have others behind it.
    pub(super) fn may_precede(&self, number: u64) -> bool {
        number < self.last
    }

    /// A request waits.
    pub(super) fn join(&mut self, client: Option<Household>, number: u64) {
        let line = self.waiting.entry(client).or_default();
        (line.len, line.last) = (line.len + 1, line.last.max(number));
        self.last = self.last.max(number);
    }

    /// A request waits no more.
    pub(super) fn leave(&mut self, client: Option<Household>) {
        let Some(line) = self.waiting.get_mut(&client) else { return };
        line.len -= 1;
        if line.len == 0 {
            self.waiting.remove(&client);
        }
        if self.waiting.is_empty() {
            self.last = self.served;
        }
    }

    /// A request that waited was given a slot.
    pub(super) fn serve(&mut self, number: u64) {
        self.served = self.served.max(number);
    }

    /// The place of this client's next request among `waiting` ones, at the latest: 1 for the head.
    pub(super) fn next_place(&self, client: Option<Household>, waiting: usize) -> usize {
        let own = self.waiting.get(&client).map_or(0, |line| line.len);
        let others = self.waiting.len() - usize::from(own > 0);
        (own + 1).saturating_mul(others + 1).min(waiting + 1)
    }

    /// How many requests of this client wait.
    pub(super) fn len(&self, client: Option<Household>) -> usize {
        self.waiting.get(&client).map_or(0, |line| line.len)
    }
}
