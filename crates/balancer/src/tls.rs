//! TLS of a listener: certificates by host name, from files that may change.
//!
//! - `acme`: certificates that an authority issues.
//! - `certificate`: a chain with its key, read from files.
//! - `hosts`: which certificate a client gets.
//! - `reloader`: the thread that notices new files.

pub(crate) mod acme;
pub(crate) mod certificate;
pub(crate) mod hosts;
pub(crate) mod reloader;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{ServerConfig, SupportedProtocolVersion, version};

use crate::config::tls::{Certificate, Tls, TlsVersion};
use crate::http2;
use crate::tls::hosts::{Hosts, Patience};

/// The protocols that clients may ask for by ALPN (RFC 7301), best first. A client that asks for nothing
/// gets HTTP/1.1. A client that asks only for others is refused, as the RFC says.
const ALPN_PROTOCOLS: [&[u8]; 3] = [http2::ALPN, b"http/1.1", b"http/1.0"];

/// What a listener needs for TLS.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads all files. Returns what is wrong, in one sentence with a remedy, or a sentence for each
    /// certificate that has expired or soon will.
    pub fn verify(&self) -> Result<Vec<String>, String> {
        Ok(self.load(&[])?.hosts.refresh(Patience::Told))
    }

    /// Reads all files. `more` comes after the listener's own certificates.
    pub(crate) fn load(&self, more: &[Certificate]) -> Result<Server, String> {
        let provider = Arc::new(ring::default_provider());
        let hosts =
            Arc::new(Hosts::load([&self.certificates, more].concat(), Arc::clone(&provider))?);
        let config = self.server(provider, &hosts).map_err(|error| {
            format!("TLS cannot be set up: {error}; check that the system has random numbers")
        })?;
        Ok(Server { hosts, config: Arc::new(config) })
    }

    /// Tickets and their keys belong to this listener alone. rustls resumes a session only for the host
    /// name that it began with, so a session never crosses hosts.
    fn server(
        &self,
        provider: Arc<CryptoProvider>,
        hosts: &Arc<Hosts>,
    ) -> Result<ServerConfig, rustls::Error> {
        let versions: &[&SupportedProtocolVersion] = match self.minimum {
            TlsVersion::V1_2 => &[&version::TLS13, &version::TLS12],
            TlsVersion::V1_3 => &[&version::TLS13],
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(hosts) as Arc<dyn rustls::server::ResolvesServerCert>);
        config.alpn_protocols = ALPN_PROTOCOLS.map(<[u8]>::to_vec).into();
        config.ticketer = ring::Ticketer::new()?;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(config)
    }
}
