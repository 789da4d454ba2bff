//! `[balancer]`: what holds for all apps.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::balancer_program::BalancerProgram;
use super::forwarding::ForwardingTable;
use super::limits::LimitsTable;
use super::listener::ListenerTable;
use super::log::LogTable;
use super::quantity;
use super::timeouts::TimeoutsTable;
use super::tls::AcmeTable;
use super::value::{self, Short};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BalancerTable {
    #[serde(default)]
    pub listeners: Vec<Short<ListenerTable>>,
    /// What balances.
    pub program: Option<BalancerProgram>,
    #[serde(default, deserialize_with = "value::count")]
    pub threads: Option<usize>,
    #[serde(default, deserialize_with = "address")]
    pub admin: Option<SocketAddr>,
    #[serde(default, deserialize_with = "value::host_names")]
    pub admin_names: Vec<String>,
    #[serde(default)]
    pub admin_open: bool,
    pub socket: Option<PathBuf>,
    /// Time for requests in flight at a stop.
    #[serde(default, deserialize_with = "value::positive_seconds")]
    pub drain: Option<Duration>,
    #[serde(default)]
    pub timeouts: TimeoutsTable,
    #[serde(default)]
    pub limits: LimitsTable,
    #[serde(default)]
    pub forwarding: ForwardingTable,
    /// Where answers wait for slow clients.
    pub spool_folder: Option<PathBuf>,
    pub acme: Option<AcmeTable>,
    pub access_log: Option<Short<LogTable>>,
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    quantity::address(&String::deserialize(from)?).map(Some).map_err(serde::de::Error::custom)
}
