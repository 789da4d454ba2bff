//! `[balancer.forwarding]`: what apps and clients are told about a request, and who is believed.

use balancer::{Forwarding, Network, Switch, XForwarded};
use serde::Deserialize;

use super::value;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardingTable {
    #[serde(default, deserialize_with = "value::parsed_list")]
    trusted: Vec<Network>,
    x_forwarded: Option<Fields>,
    forwarded: Option<bool>,
    via: Option<bool>,
    request_id: Option<bool>,
    queue_time: Option<bool>,
    server_timing: Option<bool>,
    date: Option<bool>,
    underscores: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fields {
    Off,
    Usual,
    All,
}

impl ForwardingTable {
    pub fn resolve(&self) -> Forwarding {
        let default = Forwarding::default();
        let switch = |said: Option<bool>, default| said.map_or(default, Switch::from);
        Forwarding {
            trusted: self.trusted.clone(),
            x_forwarded: match self.x_forwarded {
                None => default.x_forwarded,
                Some(Fields::Off) => XForwarded::Off,
                Some(Fields::Usual) => XForwarded::Usual,
                Some(Fields::All) => XForwarded::All,
            },
            forwarded: switch(self.forwarded, default.forwarded),
            via: switch(self.via, default.via),
            request_id: switch(self.request_id, default.request_id),
            queue_time: switch(self.queue_time, default.queue_time),
            server_timing: switch(self.server_timing, default.server_timing),
            date: switch(self.date, default.date),
            underscores: switch(self.underscores, default.underscores),
        }
    }
}
