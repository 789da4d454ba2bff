//! `[[balancer.listeners]]`: where clients connect.

use std::path::Path;
use std::str::FromStr;

use balancer::{Address, Cleartext, Listener, Network, ProxyProtocol};
use serde::{Deserialize, Deserializer};

use super::quantity;
use super::route::redirect;
use super::source::{Key, Wrong};
use super::tls::TlsTable;
use super::value;

/// Also its address alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerTable {
    #[serde(deserialize_with = "address")]
    address: Address,
    redirect: Option<String>,
    status: Option<u16>,
    /// Proxies that say whom they speak for.
    #[serde(default, deserialize_with = "value::parsed_list")]
    proxy_protocol: Vec<Network>,
    tls: Option<TlsTable>,
    #[serde(default)]
    cleartext: Protocols,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Protocols {
    #[default]
    Http1,
    Http1AndH2c,
    H2c,
}

impl ListenerTable {
    pub fn resolve(&self, directory: Option<&Path>, at: &Key) -> Result<Listener, Wrong> {
        let mut listener = Listener::new(self.address.clone());
        listener.redirect = redirect(self.redirect.as_deref(), self.status, at)?;
        if !self.proxy_protocol.is_empty() {
            listener.proxy_protocol = Some(ProxyProtocol { from: self.proxy_protocol.clone() });
        }
        let tls = self.tls.as_ref().map(|tls| tls.resolve(directory, &at.then("tls")));
        listener.tls = tls.transpose()?;
        listener.cleartext = match self.cleartext {
            Protocols::Http1 => Cleartext::Http1,
            Protocols::Http1AndH2c => Cleartext::Http1AndH2c,
            Protocols::H2c => Cleartext::H2c,
        };
        if listener.tls.is_some()
            && listener.redirect.is_some()
            && self.redirect.as_deref() == Some("https")
        {
            return Err(at.then("redirect").wrong(
                "clients of this listener speak TLS already: redirect to https from one without tls",
            ));
        }
        Ok(listener)
    }
}

impl FromStr for ListenerTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(ListenerTable {
            address: quantity::server(text)?,
            redirect: None,
            status: None,
            proxy_protocol: Vec::new(),
            tls: None,
            cleartext: Protocols::default(),
        })
    }
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
    quantity::server(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}
