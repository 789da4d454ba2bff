//! Who is at the other end of a client's connection.

use std::net::SocketAddr;

/// A client as its connection tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Of the client itself where a proxy in front tells it by the PROXY protocol. A client over a
    /// Unix socket has none.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) scheme: Scheme,
}

/// What the client's URLs begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// By its name in any case (RFC 3986 3.1).
    pub(crate) fn named(name: &[u8]) -> Option<Scheme> {
        [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.name().as_bytes()))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// What a client connection is, beyond TCP and HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transport {
    /// Version of TLS, as in `TLSv1.3`.
    pub(crate) tls: Option<&'static str>,
    /// Version of HTTP, where it is not the one that the request line tells.
    pub(crate) http: Option<&'static str>,
}
