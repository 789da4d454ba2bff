//! What a listener asks of a connection before its first request.

use std::net::SocketAddr;

use crate::config::listener::{Listener, ProxyProtocol};
use crate::config::tls::Certificate;
use crate::tls;

/// The setup of one listener.
pub(crate) struct ConnectionSetup {
    pub(crate) proxies: Option<ProxyProtocol>,
    pub(crate) tls: Option<tls::Server>,
}

impl ConnectionSetup {
    /// Reads all files. `more` are certificates for all listeners. Returns what is wrong, in one
    /// sentence with a remedy.
    pub(crate) fn new(listener: &Listener, more: &[Certificate]) -> Result<Self, String> {
        let tls = listener.tls.as_ref().map(|tls| tls.load(more)).transpose()?;
        Ok(ConnectionSetup { proxies: listener.proxy_protocol.clone(), tls })
    }

    /// Whether the peer is a proxy that will name its client.
    pub(crate) fn expects_proxy_header(&self, peer: Option<SocketAddr>) -> bool {
        self.proxies.as_ref().is_some_and(|proxies| proxies.expects(peer))
    }

    /// Whether connections begin with HTTP at once.
    pub(crate) fn is_open(&self) -> bool {
        self.proxies.is_none() && self.tls.is_none()
    }
}
