//! Clients by their address, and how many connections each has, so that one cannot have them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts open connections by client.
pub(crate) struct Census {
    limit: usize,
    /// Hashed with a secret: clients choose their addresses.
    counts: Mutex<HashMap<Household, usize>>,
}

/// An IPv4 address, or the /64 network of an IPv6 address: what one client has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Household(IpAddr);

impl Census {
    pub(crate) fn new(limit: usize) -> Self {
        Census { limit, counts: Mutex::default() }
    }

    /// Counts one more connection, until [`Census::leave`]; none when there are too many.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<Household> {
        let household = Household::of(address);
        let mut counts = self.counts();
        let count = counts.entry(household).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(household)
    }

    pub(crate) fn leave(&self, household: Household) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&household) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&household);
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Household, usize>> {
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
        let census = Census::new(2);
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
}
