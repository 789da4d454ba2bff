//! How many connections and requests each client has at once, so that no client can take them all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::config::limits::Limits;
use crate::net::client_network::ClientNetwork;

/// Finds the usage of each client.
#[derive(Debug)]
pub(crate) struct ClientLimits {
    connections: usize,
    requests: usize,
    /// Clients with a connection or a request. Hashed with a secret, because clients choose their
    /// addresses.
    usages: Mutex<HashMap<ClientNetwork, Weak<ClientUsage>>>,
}

/// What one client has at once. A connection keeps it, so that a request takes no lock.
#[derive(Debug)]
pub(crate) struct ClientUsage {
    census: Arc<ClientLimits>,
    network: ClientNetwork,
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Connection,
    /// A request that is in flight or on its way there.
    Request,
}

/// A connection or a request that counts for its client until dropped.
#[derive(Debug)]
pub(crate) struct CountedUse {
    usage: Arc<ClientUsage>,
    resource: Resource,
}

impl ClientLimits {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let Limits { client_connections: connections, client_in_flight: requests, .. } = *limits;
        Arc::new(ClientLimits { connections, requests, usages: Mutex::default() })
    }

    pub(crate) fn usage(self: &Arc<Self>, address: IpAddr) -> Arc<ClientUsage> {
        let network = ClientNetwork::of(address);
        let mut usages = self.usages();
        if let Some(usage) = usages.get(&network).and_then(Weak::upgrade) {
            return usage;
        }
        let (connections, requests) = Default::default();
        let usage =
            Arc::new(ClientUsage { census: Arc::clone(self), network, connections, requests });
        usages.insert(network, Arc::downgrade(&usage));
        usage
    }

    fn usages(&self) -> MutexGuard<'_, HashMap<ClientNetwork, Weak<ClientUsage>>> {
        self.usages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientUsage {
    /// Counts one more. None if the client has as many as it may.
    pub(crate) fn enter(self: &Arc<Self>, resource: Resource) -> Option<CountedUse> {
        let most = match resource {
            Resource::Connection => self.census.connections,
            Resource::Request => self.census.requests,
        };
        let one_more = |count: usize| (count < most).then_some(count + 1);
        let entered =
            self.count(resource).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        entered.is_ok().then(|| CountedUse { usage: Arc::clone(self), resource })
    }

    fn count(&self, resource: Resource) -> &AtomicUsize {
        match resource {
            Resource::Connection => &self.connections,
            Resource::Request => &self.requests,
        }
    }
}

impl Drop for ClientUsage {
    fn drop(&mut self) {
        let mut usages = self.census.usages();
        // The client may have come back meanwhile.
        if usages.get(&self.network).is_some_and(|usage| usage.strong_count() == 0) {
            usages.remove(&self.network);
        }
    }
}

impl CountedUse {
    pub(crate) fn usage(&self) -> &Arc<ClientUsage> {
        &self.usage
    }
}

impl Drop for CountedUse {
    fn drop(&mut self) {
        self.usage.count(self.resource).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let census = ClientLimits::new(&Limits { client_connections: 2, ..Limits::default() });
        let enter =
            |address: &str| census.usage(address.parse().unwrap()).enter(Resource::Connection);
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
        let census = ClientLimits::new(&Limits { client_in_flight: 2, ..Limits::default() });
        let [one, other] = [1, 2].map(|last| census.usage([192, 0, 2, last].into()));
        let _connections = [(); 3].map(|()| one.enter(Resource::Connection).unwrap());
        let first = one.enter(Resource::Request).unwrap();
        let _second = census.usage([192, 0, 2, 1].into()).enter(Resource::Request).unwrap();
        assert!(one.enter(Resource::Request).is_none());
        assert!(other.enter(Resource::Request).is_some());
        drop(first);
        assert!(one.enter(Resource::Request).is_some());
    }
}
