//! What is told about a request beyond its own words, to the app and to the client, and which
//! proxies in front of us are believed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// What the balancer adds to requests and answers.
///
/// A field that says where a request came from is believed only of a trusted proxy; from everybody
/// else it is replaced. Turn on only the families that the trusted proxies write themselves: one
/// that they pass on as they got it is the client's word.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// Proxies in front of us. What they say of the client is kept and appended to.
    pub trusted: Vec<Network>,
    /// `X-Forwarded-For` and its kin, to the app.
    pub x_forwarded: XForwarded,
    /// `Forwarded` (RFC 7239), to the app.
    pub forwarded: Switch,
    /// `Via` (RFC 9110 7.6.3), to the app.
    pub via: Switch,
    /// `X-Request-Id`, to the app and to the client: a trusted proxy's, or 128 random bits.
    pub request_id: Switch,
    /// `X-Queue-Time` (milliseconds) and `X-Request-Start` (`t=` and seconds since 1970), to the
    /// app, on requests that waited for a slot.
    pub queue_time: Switch,
    /// `Server-Timing: queue;dur=..., service;dur=...` (milliseconds), to the client, on answers to
    /// requests that waited for a slot.
    pub server_timing: Switch,
    /// `Date`, to the client, on answers that come without (RFC 9110 6.6.1) and on our own.
    pub date: Switch,
}

/// How much of the `X-Forwarded` family the app gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XForwarded {
    /// None.
    Off,
    /// `X-Forwarded-For`, `-Proto` and `-Host`: what frameworks read.
    #[default]
    Usual,
    /// `X-Forwarded-Port` and `X-Real-IP` too.
    All,
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    On,
    /// It is not, and costs nothing.
    Off,
}

/// An address, all addresses with a common prefix, or all that come over Unix sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(Range);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    Prefix(IpNet),
    Unix,
}

/// A network that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a network; write an address, a prefix like 10.0.0.0/8 or fd00::/8, or unix")]
pub struct UnknownNetwork(String);

impl Forwarding {
    /// Whether this peer is a trusted proxy. One over a Unix socket has no address.
    pub(crate) fn trusts(&self, peer: Option<IpAddr>) -> bool {
        self.trusted.iter().any(|network| network.contains(peer))
    }
}

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding {
            trusted: Vec::new(),
            x_forwarded: XForwarded::Usual,
            // Few frameworks read it, and an app that reads both may meet two answers.
            forwarded: Switch::Off,
            // A gateway must send it to servers, and need not to clients.
            via: Switch::On,
            // 3 % of the balancer's instructions for every request, and bytes to parse for the app.
            request_id: Switch::Off,
            // Only requests that waited pay.
            queue_time: Switch::On,
            server_timing: Switch::On,
            // Costs only where the backend sends none.
            date: Switch::On,
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
    fn networks() {
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
