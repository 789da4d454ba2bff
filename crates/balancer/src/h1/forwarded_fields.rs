//! The fields that tell backends where a request came from. The balancer writes them, unless a trusted
//! proxy did.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

use crate::config::forwarding::{Forwarding, XForwarded};
use crate::h1::fields::{list, write_field};
use crate::h1::target::check_host;
use crate::net::peer::{Peer, Scheme};

/// What is known about a client connection, and the fields that say so.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The peer, a client or a proxy in front. None over a Unix socket.
    peer: Option<IpAddr>,
    trust: Trust,
    scheme: Scheme,
    families: Families,
    /// The fields that are the same for every request of an untrusted peer.
    fields: Box<[u8]>,
}

/// Whether a peer is believed about others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
}

#[derive(Clone, Copy, Debug)]
struct Families {
    x_forwarded: XForwarded,
    forwarded: bool,
}

/// The client of a request: the peer, or the client of a trusted proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// None over a Unix socket.
    pub(crate) address: Option<IpAddr>,
    pub(crate) scheme: Scheme,
}

/// Finds the client in a list of addresses. It is the last address that is no trusted proxy, or the
/// first one. An unreadable element hides the elements before it.
struct Search<'f> {
    forwarding: &'f Forwarding,
    found: Option<IpAddr>,
    /// What the client spoke, if the list says so.
    scheme: Option<Scheme>,
}

/// The state of a reader within a value with quoted parts.
#[derive(Default)]
struct Quotes {
    open: bool,
    escaped: bool,
}

impl Origin {
    pub(crate) fn new(peer: Peer, forwarding: &Forwarding) -> Self {
        let Peer { address, scheme } = peer;
        let peer = address.map(|address| address.ip().to_canonical());
        let trust = if forwarding.trusts(peer) { Trust::Trusted } else { Trust::Untrusted };
        let families = Families {
            x_forwarded: forwarding.x_forwarded,
            forwarded: forwarding.forwarded.is_on(),
        };
        let mut fields = Vec::new();
        if families.x_forwarded != XForwarded::Off {
            if let Some(peer) = peer {
                write_address(&mut fields, "X-Forwarded-For: ", peer);
            }
            write_field(&mut fields, "X-Forwarded-Proto", scheme.name().as_bytes());
        }
        if let (XForwarded::All, Some(peer)) = (families.x_forwarded, peer) {
            write_address(&mut fields, "X-Real-IP: ", peer);
        }
        Origin { peer, trust, scheme, families, fields: fields.into() }
    }

    /// None over a Unix socket.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    pub(crate) fn trust(&self) -> Trust {
        self.trust
    }

    /// Adds the fields to a request for `host`, and finds its client.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        host: &[u8],
        headers: &[httparse::Header<'_>],
        forwarding: &Forwarding,
    ) -> Caller {
        if self.trust == Trust::Trusted {
            return self.write_trusted(out, host, headers, forwarding);
        }
        out.extend_from_slice(&self.fields);
        if !host.is_empty() && self.families.x_forwarded != XForwarded::Off {
            write_field(out, "X-Forwarded-Host", host);
        }
        if self.families.x_forwarded == XForwarded::All {
            write_field(out, "X-Forwarded-Port", port(host, self.scheme));
        }
        if self.families.forwarded {
            out.extend_from_slice(b"Forwarded: ");
            self.write_element(out, host);
        }
        Caller { address: self.peer, scheme: self.scheme }
    }

    /// Keeps what the proxy said, and adds the rest as the balancer sees it.
    #[cold]
    fn write_trusted(
        &self,
        out: &mut Vec<u8>,
        host: &[u8],
        headers: &[httparse::Header<'_>],
        forwarding: &Forwarding,
    ) -> Caller {
        let Caller { address: client, scheme } = self.caller(headers, forwarding);
        if self.families.x_forwarded != XForwarded::Off {
            self.write_list(out, headers);
            write_field(out, "X-Forwarded-Proto", scheme.name().as_bytes());
            let is_host = |value: &[u8]| !value.is_empty() && check_host(value).is_ok();
            let host = said(headers, "x-forwarded-host", is_host).unwrap_or(host);
            if !host.is_empty() {
                write_field(out, "X-Forwarded-Host", host);
            }
            if self.families.x_forwarded == XForwarded::All {
                let is_port = |value: &[u8]| parse_port(value).is_some();
                let given = said(headers, "x-forwarded-port", is_port);
                write_field(out, "X-Forwarded-Port", given.unwrap_or(port(host, scheme)));
                if let Some(client) = client {
                    write_address(out, "X-Real-IP: ", client);
                }
            }
        }
        if self.families.forwarded {
            out.extend_from_slice(b"Forwarded: ");
            for value in values(headers, "forwarded").filter(|value| ends_quotes(value)) {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
            self.write_element(out, host);
        }
        Caller { address: client, scheme }
    }

    /// The client that a trusted proxy names, in a family of fields that is in use.
    fn caller(&self, headers: &[httparse::Header<'_>], forwarding: &Forwarding) -> Caller {
        let search = || Search { forwarding, found: None, scheme: None };
        let (mut x, mut rfc) = (search(), search());
        if self.families.x_forwarded != XForwarded::Off {
            let lists = values(headers, "x-forwarded-for");
            lists.flat_map(list).for_each(|element| x.see(parse_address(element), None));
            let scheme = said(headers, "x-forwarded-proto", |value| Scheme::named(value).is_some());
            x.scheme = scheme.and_then(Scheme::named);
        }
        if self.families.forwarded {
            for element in values(headers, "forwarded").flat_map(elements) {
                let scheme = parameter(element, b"proto=").and_then(Scheme::named);
                rfc.see(parameter(element, b"for=").and_then(parse_address), scheme);
            }
        }
        Caller {
            address: x.found.or(rfc.found).or(self.peer),
            scheme: x.scheme.or(rfc.scheme).unwrap_or(self.scheme),
        }
    }

    /// The list of `X-Forwarded-For`, with the peer as its last element.
    fn write_list(&self, out: &mut Vec<u8>, headers: &[httparse::Header<'_>]) {
        let peer = self.peer.map(|peer| peer.to_string()).unwrap_or_default();
        let said = values(headers, "x-forwarded-for");
        let all: Vec<_> = said.chain([peer.as_bytes()]).filter(|value| !value.is_empty()).collect();
        if !all.is_empty() {
            write_field(out, "X-Forwarded-For", &all.join(&b", "[..]));
        }
    }

    /// The balancer's element of `Forwarded`, and the end of its line (RFC 7239 4).
    fn write_element(&self, out: &mut Vec<u8>, host: &[u8]) {
        // Writing to memory succeeds.
        let _ = match self.peer {
            Some(IpAddr::V4(peer)) => write!(out, "for={peer}"),
            Some(IpAddr::V6(peer)) => write!(out, "for=\"[{peer}]\""),
            None => write!(out, "for=unknown"),
        };
        let _ = write!(out, ";proto={}", self.scheme.name());
        if !host.is_empty() {
            // A valid host has neither quotes nor backslashes.
            out.extend_from_slice(b";host=\"");
            out.extend_from_slice(host);
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// The port that the client connected to, if it said so. The balancer's port may have been translated.
fn port(host: &[u8], scheme: Scheme) -> &[u8] {
    let port = match host.iter().rposition(|&byte| byte == b':') {
        // The colon may be inside an IPv6 address.
        Some(colon) if !host[colon..].contains(&b']') => &host[colon + 1..],
        _ => b"",
    };
    match (port, scheme) {
        (b"", Scheme::Http) => b"80",
        (b"", Scheme::Https) => b"443",
        (port, _) => port,
    }
}

impl Search<'_> {
    fn see(&mut self, address: Option<IpAddr>, scheme: Option<Scheme>) {
        let is_proxy = address.is_some() && self.forwarding.trusts(address);
        if !(is_proxy && self.found.is_some()) {
            (self.found, self.scheme) = (address, scheme);
        }
    }
}

fn values<'h>(
    headers: &'h [httparse::Header<'h>],
    name: &'h str,
) -> impl Iterator<Item = &'h [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
        .filter(|value| !value.trim_ascii().is_empty())
}

/// The value of a field that occurs once and is valid.
fn said<'h>(
    headers: &'h [httparse::Header<'h>],
    name: &'h str,
    is_valid: impl Fn(&[u8]) -> bool,
) -> Option<&'h [u8]> {
    let mut values = values(headers, name);
    let value = values.next().filter(|value| is_valid(value))?;
    values.next().is_none().then_some(value)
}

fn write_address(out: &mut Vec<u8>, name: &str, address: IpAddr) {
    // Writing to memory succeeds.
    let _ = write!(out, "{name}{address}\r\n");
}

fn parse_port(value: &[u8]) -> Option<u16> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

/// An address as proxies write it: bare, in brackets, with a port.
pub(crate) fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = text.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.ok().or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

/// The elements of a `Forwarded` value. Commas inside quotes do not separate. If quotes are not closed,
/// the value has no elements: a client's open quote could hide what a proxy appended.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    split_unquoted(if ends_quotes(value) { value } else { b"" }, b',')
}

fn ends_quotes(value: &[u8]) -> bool {
    let mut quotes = Quotes::default();
    for &byte in value {
        quotes.enclose(byte);
    }
    !quotes.open
}

/// The value of an element's parameter. `name` includes the `=`. A parameter that occurs twice has no
/// value.
fn parameter<'e>(element: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    let mut values = split_unquoted(element, b';').filter_map(|pair| {
        let (named, value) = pair.split_at_checked(name.len())?;
        named.eq_ignore_ascii_case(name).then_some(value)
    });
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    let quoted = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    Some(quoted.unwrap_or(value))
}

/// The pieces between separators, trimmed.
fn split_unquoted(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quotes = Quotes::default();
    let separates = move |&byte: &u8| !quotes.enclose(byte) && byte == separator;
    value.split(separates).map(<[u8]>::trim_ascii)
}

impl Quotes {
    /// Reads one more byte. Returns whether it is inside quotes or one of them. An escaped quote does
    /// not end them (RFC 9110 5.6.4).
    fn enclose(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.open,
            b'"' => {
                self.open = !self.open;
                return true;
            }
            _ => {}
        }
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::forwarding::Switch;

    fn forwarding(x_forwarded: XForwarded, forwarded: Switch) -> Forwarding {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap()).into();
        Forwarding { trusted, x_forwarded, forwarded, ..Forwarding::default() }
    }

    /// The client that is found, and what a backend is told, for a request to `h:81` from `peer`.
    fn told(forwarding: &Forwarding, peer: &str, fields: &[(&str, &str)]) -> (String, String) {
        let address = peer.parse().ok().map(|peer| SocketAddr::new(peer, 5000));
        let origin = Origin::new(Peer { address, scheme: Scheme::Http }, forwarding);
        let headers: Vec<_> = fields
            .iter()
            .map(|(name, value)| httparse::Header { name, value: value.as_bytes() })
            .collect();
        let mut out = Vec::new();
        let caller = origin.write(&mut out, b"h:81", &headers, forwarding);
        let client = caller.address.map_or("nobody".into(), |client| client.to_string());
        (client, String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_untrusted_peer_is_the_client_whatever_it_says() {
        let all = forwarding(XForwarded::All, Switch::On);
        let forged = [("X-Forwarded-For", "1.1.1.1"), ("Forwarded", "for=1.1.1.1")];
        let (client, fields) = told(&all, "9.9.9.9", &forged);
        assert_eq!(client, "9.9.9.9");
        assert_eq!(
            fields,
            "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: http\r\nX-Real-IP: 9.9.9.9\r\n\
             X-Forwarded-Host: h:81\r\nX-Forwarded-Port: 81\r\n\
             Forwarded: for=9.9.9.9;proto=http;host=\"h:81\"\r\n"
        );
        let none = forwarding(XForwarded::Off, Switch::Off);
        assert_eq!(told(&none, "9.9.9.9", &forged), ("9.9.9.9".into(), String::new()));
    }

    #[test]
    fn a_trusted_list_is_appended_to() {
        let all = forwarding(XForwarded::All, Switch::On);
        let (client, fields) = told(
            &all,
            "10.0.0.1",
            &[
                ("X-Forwarded-For", "1.1.1.1, 2.2.2.2"),
                ("x-forwarded-for", "10.9.9.9"),
                ("X-Forwarded-Proto", "https"),
                ("X-Forwarded-Host", "shop.example"),
                ("X-Real-IP", "6.6.6.6"),
                ("Forwarded", "for=2.2.2.2"),
            ],
        );
        assert_eq!(client, "2.2.2.2");
        assert_eq!(
            fields,
            "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.9.9.9, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\
             X-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 443\r\nX-Real-IP: 2.2.2.2\r\n\
             Forwarded: for=2.2.2.2, for=10.0.0.1;proto=http;host=\"h:81\"\r\n"
        );
    }

    #[test]
    fn malformed_fields_of_a_trusted_peer_are_replaced() {
        let usual = forwarding(XForwarded::Usual, Switch::Off);
        let fields = [("X-Forwarded-Proto", "gopher"), ("X-Forwarded-Host", "a b")];
        let expected =
            "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h:81\r\n";
        assert_eq!(told(&usual, "10.0.0.1", &fields).1, expected);
        let twice = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")];
        assert_eq!(told(&usual, "10.0.0.1", &twice).1, expected);
    }

    #[test]
    fn a_trusted_peer_tells_what_its_client_spoke() {
        let scheme = |forwarding: &Forwarding, peer: &str, name: &str, value: &str| {
            let address = Some(SocketAddr::new(peer.parse().unwrap(), 5000));
            let origin = Origin::new(Peer { address, scheme: Scheme::Http }, forwarding);
            let headers = [httparse::Header { name, value: value.as_bytes() }];
            origin.write(&mut Vec::new(), b"h", &headers, forwarding).scheme.name()
        };
        let x = forwarding(XForwarded::Usual, Switch::Off);
        assert_eq!(scheme(&x, "10.0.0.1", "X-Forwarded-Proto", "HTTPS"), "https");
        assert_eq!(scheme(&x, "9.9.9.9", "X-Forwarded-Proto", "https"), "http");
        assert_eq!(scheme(&x, "10.0.0.1", "Forwarded", "for=1.1.1.1;proto=https"), "http");
        let rfc = forwarding(XForwarded::Off, Switch::On);
        assert_eq!(scheme(&rfc, "10.0.0.1", "X-Forwarded-Proto", "https"), "http");
        for (elements, spoken) in [
            ("for=1.1.1.1;proto=https", "https"),
            ("for=1.1.1.1;Proto=\"https\", for=10.0.0.7;proto=http", "https"),
            // Nobody knows what somebody unknown says of a client.
            ("for=1.1.1.1;proto=https, for=2.2.2.2;proto=http", "http"),
            ("for=1.1.1.1;proto=https;proto=https", "http"),
            ("for=1.1.1.1;proto=gopher", "http"),
        ] {
            assert_eq!(scheme(&rfc, "10.0.0.1", "Forwarded", elements), spoken, "{elements}");
        }
    }

    #[test]
    fn a_unix_socket_has_no_address() {
        let mut all = forwarding(XForwarded::All, Switch::On);
        let fields = [("X-Forwarded-For", "1.1.1.1")];
        let expected = "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h:81\r\nX-Forwarded-Port: 81\r\n\
                        Forwarded: for=unknown;proto=http;host=\"h:81\"\r\n";
        assert_eq!(told(&all, "unix", &fields), ("nobody".into(), expected.into()));
        all.trusted.push("unix".parse().unwrap());
        let (client, fields) = told(&all, "unix", &fields);
        assert_eq!(client, "1.1.1.1");
        assert!(fields.starts_with("X-Forwarded-For: 1.1.1.1\r\n"), "{fields}");
    }

    #[test]
    fn the_client_is_the_last_untrusted_address() {
        let x = forwarding(XForwarded::Usual, Switch::Off);
        let rfc = forwarding(XForwarded::Off, Switch::On);
        for (list, client) in [
            ("1.1.1.1", "1.1.1.1"),
            ("1.1.1.1, 10.0.0.7", "1.1.1.1"),
            ("6.6.6.6, 1.1.1.1, 10.0.0.7, fd00::1", "1.1.1.1"),
            ("10.0.0.8, 10.0.0.7", "10.0.0.8"),
            ("1.1.1.1, unknown", "10.0.0.1"),
            ("1.1.1.1, unknown, 10.0.0.7", "10.0.0.7"),
            ("1.1.1.1:443", "1.1.1.1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:1.1.1.1", "1.1.1.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(told(&x, "10.0.0.1", &[("X-Forwarded-For", list)]).0, client, "{list}");
        }
        for (list, client) in [
            ("for=1.1.1.1", "1.1.1.1"),
            ("FOR=1.1.1.1;proto=http, by=10.0.0.9;for=10.0.0.7", "1.1.1.1"),
            ("for=\"[2001:db8::1]:443\"", "2001:db8::1"),
            ("for=1.1.1.1;by=\"a, for=6.6.6.6\"", "1.1.1.1"),
            ("for=1.1.1.1;by=\"a\\\", for=6.6.6.6\"", "1.1.1.1"),
            ("for=_hidden, for=10.0.0.7", "10.0.0.7"),
            ("for=1.1.1.1;for=6.6.6.6", "10.0.0.1"),
            ("for=1.1.1.1, proto=http", "10.0.0.1"),
            // A proxy that appends to whatever its client says.
            ("for=6.6.6.6;by=\", for=1.1.1.1", "10.0.0.1"),
            ("for=6.6.6.6;by=\"\\\", for=1.1.1.1", "10.0.0.1"),
        ] {
            assert_eq!(told(&rfc, "10.0.0.1", &[("Forwarded", list)]).0, client, "{list}");
        }
        assert_eq!(told(&rfc, "10.0.0.1", &[("X-Forwarded-For", "1.1.1.1")]).0, "10.0.0.1");
        assert_eq!(told(&x, "10.0.0.1", &[("Forwarded", "for=1.1.1.1")]).0, "10.0.0.1");
    }
}
