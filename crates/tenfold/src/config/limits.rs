//! `[balancer.limits]`: how large each thing may be.

use serde::Deserialize;

use super::value;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsTable {
    #[serde(default, deserialize_with = "value::bytes")]
    header_bytes: Option<u64>,
    #[serde(default, deserialize_with = "value::bytes")]
    target_bytes: Option<u64>,
    #[serde(default, deserialize_with = "value::count")]
    headers: Option<usize>,
    #[serde(default, deserialize_with = "value::bytes")]
    body_bytes: Option<u64>,
    #[serde(default, deserialize_with = "value::count")]
    connections: Option<usize>,
    #[serde(default, deserialize_with = "value::count")]
    client_connections: Option<usize>,
    #[serde(default, deserialize_with = "value::count")]
    client_in_flight: Option<usize>,
    #[serde(default, deserialize_with = "value::bytes")]
    memory_bytes: Option<u64>,
    #[serde(default, deserialize_with = "value::bytes")]
    spool_memory_bytes: Option<u64>,
    #[serde(default, deserialize_with = "value::bytes")]
    spool_file_bytes: Option<u64>,
    #[serde(default, deserialize_with = "value::bytes")]
    spool_total_bytes: Option<u64>,
    requests: Option<u64>,
    #[serde(default, deserialize_with = "value::bytes")]
    client_rate: Option<u64>,
    streams: Option<u32>,
}

impl LimitsTable {
    pub fn resolve(&self) -> balancer::Limits {
        let default = balancer::Limits::default();
        // A number that does not fit is out of range, too.
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        balancer::Limits {
            header_bytes: self.header_bytes.map_or(default.header_bytes, size),
            target_bytes: self.target_bytes.map_or(default.target_bytes, size),
            headers: self.headers.unwrap_or(default.headers),
            body_bytes: self.body_bytes.unwrap_or(default.body_bytes),
            connections: self.connections.unwrap_or(default.connections),
            client_connections: self.client_connections.unwrap_or(default.client_connections),
            client_in_flight: self.client_in_flight.unwrap_or(default.client_in_flight),
            memory_bytes: self.memory_bytes.map_or(default.memory_bytes, size),
            spool_memory_bytes: self.spool_memory_bytes.map_or(default.spool_memory_bytes, size),
            spool_file_bytes: self.spool_file_bytes.unwrap_or(default.spool_file_bytes),
            spool_total_bytes: self.spool_total_bytes.unwrap_or(default.spool_total_bytes),
            requests: self.requests.unwrap_or(default.requests),
            client_rate: self.client_rate.unwrap_or(default.client_rate),
            streams: self.streams.unwrap_or(default.streams),
        }
    }
}
