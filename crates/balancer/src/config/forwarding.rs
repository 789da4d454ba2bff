//! The fields that the balancer adds to requests and answers, and the proxies in front of it that it
//! trusts.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// The fields that the balancer adds to requests and answers.
///
/// Only a trusted proxy is believed about where a request came from. The fields of everybody else are
/// replaced. Turn on only those families of fields that the trusted proxies write themselves. A field
/// that a proxy passes on unchanged is the client's word.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// Trusted proxies in front of the balancer. Their fields about the client are kept and appended to.
    pub trusted: Vec<Network>,
    /// `X-Forwarded-For` and its relatives, for the app.
    pub x_forwarded: XForwarded,
    /// `Forwarded` (RFC 7239), for the app.
    pub forwarded: Switch,
    /// `Via` (RFC 9110 7.6.3), for the app.
    pub via: Switch,
    /// `X-Request-Id`, for the app and the client: the trusted proxy's, or 128 random bits.
    pub request_id: Switch,
    /// `X-Queue-Time` (milliseconds) and `X-Request-Start` (`t=` and seconds since 1970), for the app,
    /// on requests that waited for a slot.
    pub queue_time: Switch,
    /// `Server-Timing: queue;dur=..., service;dur=...` (milliseconds), for the client, on answers to
    /// requests that waited for a slot.
    pub server_timing: Switch,
    /// `Date`, for the client, on answers without one (RFC 9110 6.6.1) and on the balancer's own
    /// answers.
    pub date: Switch,
    /// Fields of a request with `_` in their names, for the app. Those that it may take for a field that only the
    /// balancer or this connection may say are dropped all the same.
    pub underscores: Switch,
}

/// How many fields of the `X-Forwarded` family the app gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XForwarded {
    /// None.
    Off,
    /// `X-Forwarded-For`, `-Proto` and `-Host`, which frameworks read.
    #[default]
    Usual,
    /// Also `X-Forwarded-Port` and `X-Real-IP`.
    All,
}

/// Whether something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is on.
    On,
    /// It is off and costs nothing.
    Off,
}

/// One address, all addresses with a common prefix, or all peers over Unix sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(Range);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    Prefix(IpNet),
    Unix,
}

/// The text is not a network.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a network; write an address, a prefix like 10.0.0.0/8 or fd00::/8, or unix")]
pub struct UnknownNetwork(String);

impl Forwarding {
    /// Whether this peer is a trusted proxy. A peer over a Unix socket has no address.
    pub(crate) fn trusts(&self, peer: Option<IpAddr>) -> bool {
        self.trusted.iter().any(|network| network.contains(peer))
    }
}

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding {
            trusted: Vec::new(),
            x_forwarded: XForwarded::Usual,
            // Few frameworks read it. An app that reads both families may get two answers.
            forwarded: Switch::Off,
            // A gateway must send it to servers, but not to clients.
            via: Switch::On,
            // It costs 3 % of the balancer's instructions for every request, and bytes for the app to
            // parse.
            request_id: Switch::Off,
            // Only requests that waited pay for it.
            queue_time: Switch::On,
            server_timing: Switch::On,
            // It costs only where the backend sends none.
            date: Switch::On,
            // CGI-like servers, WSGI and Rack read X_Forwarded_For as X-Forwarded-For. nginx drops them, too.
            underscores: Switch::Off,
        }
    }
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self == Switch::On
    }
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Switch::On } else { Switch::Off }
    }
}

impl Network {
    pub(crate) fn contains(&self, peer: Option<IpAddr>) -> bool {
        match (self.0, peer) {
            (Range::Prefix(prefix), Some(address)) => prefix.contains(&address.to_canonical()),
            (Range::Unix, None) => true,
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = UnknownNetwork;

    fn from_str(text: &str) -> Result<Self, UnknownNetwork> {
        if text == "unix" {
            return Ok(Network(Range::Unix));
        }
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let prefix = text.parse::<IpNet>().ok().or_else(address);
        let range = prefix.map(Range::Prefix);
        range.map(Network).ok_or_else(|| UnknownNetwork(text.into()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Range::Prefix(prefix) => prefix.fmt(f),
            Range::Unix => f.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses_alone() {
        let network = |text: &str| text.parse::<Network>().unwrap();
        for (text, inside, outside) in [
            ("10.1.0.0/16", "10.1.2.3", "10.2.0.0"),
            ("10.1.0.0/16", "::ffff:10.1.2.3", "::ffff:10.2.0.0"),
            ("192.168.1.7", "192.168.1.7", "192.168.1.8"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::1", "::1", "127.0.0.1"),
            ("unix", "", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.1", ""),
            ("0.0.0.0/0", "1.2.3.4", "::1"),
        ] {
            assert!(network(text).contains(inside.parse().ok()), "{text} {inside}");
            assert!(!network(text).contains(outside.parse().ok()), "{text} {outside}");
        }
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "proxy.example", "10.0.0.0/8,::1"] {
            assert!(bad.parse::<Network>().unwrap_err().to_string().contains("10.0.0.0/8"));
        }
    }
}
