//! An upstream and a server for nginx.

use std::net::{Ipv4Addr, SocketAddr};

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, time};
use crate::external::engine::UpstreamConnections;
use crate::external::nginx::{MOST_IDLE, site, upstreams};

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let Settings { name, slots, app, measured_behind, .. } = settings;
    let mut text = settings.heading(&format!(
        "{name}.conf: {name} behind nginx. It is included in `http`, as from /etc/nginx/conf.d."
    ));
    text += "\n";
    text += &comment(0, &settings.count_comment());
    let servers: Vec<SocketAddr> =
        settings.ports.iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).collect();
    let failing = comment(4, "One that fails is left out for a second at a time.");
    let waits = match measured_behind.as_deref() {
        Some("nginx") => "they wait in the instances, as when the plan was measured behind nginx",
        _ => {
            "they wait in the instances, and the slowest answers come later than from the queue of the plan"
        }
    };
    let queueless = comment(4, &settings.slots_comment())
        + &comment(
            4,
            &format!(
                "nginx has no queue: with max_conns={slots} it would answer 502 to every further request. Without, \
                 {waits}. HAProxy has a queue (--to haproxy)."
            ),
        )
        + &settings.connections_comment(4);
    let connections = settings.upstream_connections();
    let most_idle = (settings.instances * slots).clamp(1, MOST_IDLE);
    let idle = (connections == UpstreamConnections::Kept).then_some(most_idle);
    let upstream = upstreams::free(name, &settings.upstreams);
    if upstream != *name {
        text += &comment(
            0,
            &format!(
                "The upstream is {upstream}, since nginx here has one of the name {name} already."
            ),
        );
    }
    text += &site::upstream(&upstream, &servers, idle, [&failing, &queueless]);
    let (listen, response) = ([settings.listen.to_string()], time(app.response_timeout_s));
    text += &site::server(&upstream, &listen, &response, connections);
    vec![Rendered::new(format!("{name}.conf"), text)]
}
