//! An address that clients connect to, and what they speak there.

use std::net::SocketAddr;

use crate::config::address::Address;
use crate::config::forwarding::Network;
use crate::config::route::Redirect;
use crate::config::tls::Tls;

/// The proxies that send the header of the PROXY protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyProtocol {
    /// Their networks. A connection from there must begin with the header, or it is closed without an
    /// answer. Other connections are ordinary clients.
    pub from: Vec<Network>,
}

impl ProxyProtocol {
    pub(crate) fn expects(&self, peer: Option<SocketAddr>) -> bool {
        let peer = peer.map(|peer| peer.ip());
        self.from.iter().any(|network| network.contains(peer))
    }
}

/// An address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address. Port 0 picks a free one.
    pub address: Address,
    /// Redirects all requests of this listener, usually from http to https.
    pub redirect: Option<Redirect>,
    /// Whether proxies in front send the header of the PROXY protocol.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Whether clients speak TLS. Not over a Unix socket.
    pub tls: Option<Tls>,
    /// The protocols without TLS.
    pub cleartext: Cleartext,
}

/// The protocols of a listener without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cleartext {
    /// Only HTTP/1.1. Browsers speak HTTP/2 only over TLS.
    #[default]
    Http1,
    /// Also HTTP/2, from clients that begin with it (prior knowledge, RFC 9113 3.3), such as gRPC.
    Http1AndH2c,
    /// Only HTTP/2.
    H2c,
}

impl Listener {
    /// A listener on `address`, everything else as by default.
    pub fn new(address: impl Into<Address>) -> Self {
        Listener {
            address: address.into(),
            redirect: None,
            proxy_protocol: None,
            tls: None,
            cleartext: Cleartext::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.address.check()?;
        match (&self.address, &self.tls) {
            (Address::Unix(_), Some(_)) => {
                Err(format!("TLS on {} is impossible; use TLS on a TCP address only", self.address))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_addresses_are_proxies() {
        let proxies = ProxyProtocol { from: vec!["10.0.0.0/8".parse().unwrap()] };
        let expects = |peer: &str| proxies.expects(Some(peer.parse().unwrap()));
        assert!(expects("10.1.2.3:4") && expects("[::ffff:10.1.2.3]:4"));
        assert!(!expects("11.1.2.3:4") && !expects("[::1]:4"));
        assert!(!proxies.expects(None));
        assert!(ProxyProtocol { from: vec!["unix".parse().unwrap()] }.expects(None));
    }
}
