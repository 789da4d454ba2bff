//! Clients by their address, and how many connections and streams each has, so that one cannot have
//! them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::Limits;

/// Counts open connections and streams by client.
pub(crate) struct Census {
    connections: usize,
    streams: usize,
    /// Hashed with a secret: clients choose their addresses.
    counts: Mutex<HashMap<Household, Count>>,
}

/// What one client has open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    connections: usize,
    streams: usize,
}

/// An IPv4 address, or the /64 network of an IPv6 address: what one client has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Household(IpAddr);

impl Census {
    pub(crate) fn new(limits: &Limits) -> Self {
        let Limits { client_connections: connections, client_streams: streams, .. } = *limits;
        Census { connections, streams, counts: Mutex::default() }
    }

    /// Counts one more connection, until [`Census::leave`]; none when there are too many.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<Household> {
        let household = Household::of(address);
        let mut counts = self.counts();
        let count = counts.entry(household).or_default();
        if count.connections >= self.connections {
            return None;
        }
        count.connections += 1;
        Some(household)
    }

    pub(crate) fn leave(&self, household: Household) {
        self.forget(household, |count| count.connections -= 1);
    }

    /// Counts one more stream of a client, until [`Census::leave_stream`]; false when there are too many.
    pub(crate) fn enter_stream(&self, household: Household) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(household).or_default();
        let enters = count.streams < self.streams;
        count.streams += usize::from(enters);
        enters
    }

    pub(crate) fn leave_stream(&self, household: Household) {
        self.forget(household, |count| count.streams -= 1);
    }

    fn forget(&self, household: Household, one: impl FnOnce(&mut Count)) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&household) {
            one(count);
            if *count == Count::default() {
                counts.remove(&household);
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Household, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Household {
    pub(crate) fn of(address: IpAddr) -> Self {
        Household(match address.to_canonical() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
            }
            address => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let census = Census::new(&Limits { client_connections: 2, ..Limits::default() });
        let enter = |address: &str| census.enter(address.parse().unwrap());
        let first = enter("192.0.2.1").unwrap();
        assert!(enter("::ffff:192.0.2.1").is_some());
        assert!(enter("192.0.2.1").is_none());
        assert!(enter("192.0.2.2").is_some());
        census.leave(first);
        assert!(enter("192.0.2.1").is_some());
        let households =
            ["2001:db8::1", "2001:db8:0:0:2::1"].map(|address| enter(address).unwrap());
        assert_eq!(households[0], households[1]);
        assert!(enter("2001:db8:0:0:ffff::").is_none());
        assert!(enter("2001:db8:0:1::").is_some());
        households.into_iter().for_each(|household| census.leave(household));
        assert!(!census.counts().contains_key(&households[0]), "nobody is remembered");
    }

    #[test]
    fn streams_of_a_client_are_counted_over_its_connections() {
        let limits = Limits { client_streams: 2, ..Limits::default() };
        let (census, [one, other]) =
            (Census::new(&limits), [1, 2].map(|last| Household::of([192, 0, 2, last].into())));
        assert_eq!([(); 3].map(|()| census.enter_stream(one)), [true, true, false]);
        assert!(census.enter_stream(other));
        census.leave_stream(one);
        assert!(census.enter_stream(one));
        [one, one, other].into_iter().for_each(|household| census.leave_stream(household));
        assert!(census.counts().is_empty(), "nobody is remembered");
    }
}
