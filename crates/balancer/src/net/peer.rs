//! Who is at the other end of a client's connection.

use std::net::SocketAddr;

/// A client, as its connection shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The address of the client. Behind a proxy that speaks the PROXY protocol, the proxy tells it. A
    /// client over a Unix socket has none.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) scheme: Scheme,
}

/// The scheme of the client's URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// Parses a scheme in any case (RFC 3986 3.1).
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

/// The protocols of a client connection beyond TCP and HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transport {
    /// The version of TLS, such as `TLSv1.3`.
    pub(crate) tls: Option<&'static str>,
    /// The version of HTTP, if the request line does not tell it.
    pub(crate) http: Option<&'static str>,
}
