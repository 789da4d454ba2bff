//! `[[balancer.listeners]]`: where clients connect.

use std::str::FromStr;

use balancer::{Address, Listener};
use serde::{Deserialize, Deserializer};

use super::quantity;
use super::route::redirect;
use super::source::{Key, Wrong};

/// Also its address alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerTable {
    #[serde(deserialize_with = "address")]
    address: Address,
    redirect: Option<String>,
    status: Option<u16>,
}

impl ListenerTable {
    pub fn resolve(&self, at: &Key) -> Result<Listener, Wrong> {
        let mut listener = Listener::new(self.address.clone());
        listener.redirect = redirect(self.redirect.as_deref(), self.status, at)?;
        Ok(listener)
    }
}

impl FromStr for ListenerTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(ListenerTable { address: quantity::server(text)?, redirect: None, status: None })
    }
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
    quantity::server(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}
