//! Clients by their address, and how many connections and requests each has at once, so that one cannot
//! have them all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::config::limits::Limits;
use crate::net::client_network::Household;

/// Finds what each client has at once.
#[derive(Debug)]
pub(crate) struct Census {
    connections: usize,
    requests: usize,
    /// Of clients that have something. Hashed with a secret: clients choose their addresses.
    usages: Mutex<HashMap<Household, Weak<Usage>>>,
}

/// What one client has at once. A connection keeps it, so that a request takes no lock.
#[derive(Debug)]
pub(crate) struct Usage {
    census: Arc<Census>,
    household: Household,
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Connection,
    /// In flight, or on its way to be.
    Request,
}

/// A connection or a request, counted as one of its client's until dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    usage: Arc<Usage>,
    item: Item,
}

impl Census {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let Limits { client_connections: connections, client_in_flight: requests, .. } = *limits;
        Arc::new(Census { connections, requests, usages: Mutex::default() })
    }

    pub(crate) fn usage(self: &Arc<Self>, address: IpAddr) -> Arc<Usage> {
        let household = Household::of(address);
        let mut usages = self.usages();
        if let Some(usage) = usages.get(&household).and_then(Weak::upgrade) {
            return usage;
        }
        let (connections, requests) = Default::default();
        let usage = Arc::new(Usage { census: Arc::clone(self), household, connections, requests });
        usages.insert(household, Arc::downgrade(&usage));
        usage
    }

    fn usages(&self) -> MutexGuard<'_, HashMap<Household, Weak<Usage>>> {
        self.usages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    /// Counts one more; none when the client has as many as it may.
    pub(crate) fn enter(self: &Arc<Self>, item: Item) -> Option<Counted> {
        let most = match item {
            Item::Connection => self.census.connections,
            Item::Request => self.census.requests,
        };
        let one_more = |count: usize| (count < most).then_some(count + 1);
        let entered = self.count(item).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        entered.is_ok().then(|| Counted { usage: Arc::clone(self), item })
    }

    fn count(&self, item: Item) -> &AtomicUsize {
        match item {
            Item::Connection => &self.connections,
            Item::Request => &self.requests,
        }
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        let mut usages = self.census.usages();
        // The client may have come back meanwhile.
        if usages.get(&self.household).is_some_and(|usage| usage.strong_count() == 0) {
            usages.remove(&self.household);
        }
    }
}

impl Counted {
    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.usage.count(self.item).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let census = Census::new(&Limits { client_connections: 2, ..Limits::default() });
        let enter = |address: &str| census.usage(address.parse().unwrap()).enter(Item::Connection);
        let mut open = vec![enter("192.0.2.1").unwrap(), enter("::ffff:192.0.2.1").unwrap()];
        assert!(enter("192.0.2.1").is_none());
        open.push(enter("192.0.2.2").unwrap());
        open.remove(0);
        open.push(enter("192.0.2.1").unwrap());
        open.extend(["2001:db8::1", "2001:db8:0:0:2::1"].map(|address| enter(address).unwrap()));
        assert!(enter("2001:db8:0:0:ffff::").is_none());
        open.push(enter("2001:db8:0:1::").unwrap());
        drop(open);
        assert!(census.usages().is_empty(), "nobody is remembered");
    }

    #[test]
    fn requests_of_a_client_are_counted_over_its_connections() {
        let census = Census::new(&Limits { client_in_flight: 2, ..Limits::default() });
        let [one, other] = [1, 2].map(|last| census.usage([192, 0, 2, last].into()));
        let _connections = [(); 3].map(|()| one.enter(Item::Connection).unwrap());
        let first = one.enter(Item::Request).unwrap();
        let _second = census.usage([192, 0, 2, 1].into()).enter(Item::Request).unwrap();
        assert!(one.enter(Item::Request).is_none());
        assert!(other.enter(Item::Request).is_some());
        drop(first);
        assert!(one.enter(Item::Request).is_some());
    }
}
