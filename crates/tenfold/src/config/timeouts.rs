//! `[balancer.timeouts]`: how long each phase may take.

use std::time::Duration;

use serde::Deserialize;

use super::value;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeoutsTable {
    #[serde(default, deserialize_with = "value::positive_seconds")]
    header: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    handshake: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    idle: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    body: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    upload: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    client_grace: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    connect: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    response: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    stall: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    tunnel: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    backend_idle: Option<Duration>,
}

impl TimeoutsTable {
    pub fn resolve(&self) -> balancer::Timeouts {
        let default = balancer::Timeouts::default();
        balancer::Timeouts {
            header: self.header.unwrap_or(default.header),
            handshake: self.handshake.unwrap_or(default.handshake),
            idle: self.idle.unwrap_or(default.idle),
            body: self.body.unwrap_or(default.body),
            upload: self.upload.unwrap_or(default.upload),
            client_grace: self.client_grace.unwrap_or(default.client_grace),
            connect: self.connect.unwrap_or(default.connect),
            response: self.response.unwrap_or(default.response),
            stall: self.stall.unwrap_or(default.stall),
            tunnel: self.tunnel.unwrap_or(default.tunnel),
            backend_idle: self.backend_idle.unwrap_or(default.backend_idle),
        }
    }
}
