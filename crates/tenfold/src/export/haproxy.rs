//! A whole configuration for HAProxy.

use std::fmt::Write;

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, time};
use crate::external::haproxy::sections::{self, Sections};

/// Where servers are found.
pub enum Servers {
    /// On ports of this machine.
    Ports,
    /// Under the name of a service, as Docker resolves it, on this port.
    Service { port: u16 },
}

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let bind = settings.listen.to_string();
    let what = format!("haproxy.cfg: {} behind HAProxy.", settings.name);
    vec![Rendered::new("haproxy.cfg", configuration(settings, &what, &bind, &Servers::Ports))]
}

/// The configuration with clients at `bind`.
pub fn configuration(settings: &Settings, what: &str, bind: &str, servers: &Servers) -> String {
    let Settings { name, instances, slots, app, .. } = settings;
    let (response, wait) = (time(app.response_timeout_s), time(app.queue_wait_s));
    let mut text = settings.heading(what);
    text += "\n";
    text += &sections::defaults(&response);
    if let Servers::Service { .. } = servers {
        text += "\n";
        text += &comment(0, "Docker's own: it knows the addresses of all replicas.");
        text += "resolvers docker\n    nameserver dns 127.0.0.11:53\n    resolve_retries 3\n    timeout resolve 1s\n    \
                 timeout retry 1s\n    hold valid 1s\n";
    }
    let mut backend = settings.connections_comment(4);
    if let Some(path) = &app.ready_path {
        backend += &comment(4, "A check waits behind the requests of an instance.");
        let _ = writeln!(
            backend,
            "    option httpchk\n    http-check send meth GET uri {}\n    timeout check 10s",
            sections::quoted(path)
        );
    }
    backend += &comment(4, &settings.slots_comment());
    let _ = writeln!(backend, "    default-server maxconn {slots} check inter 2s fall 3 rise 1");
    backend += &comment(4, &settings.count_comment());
    match servers {
        Servers::Ports => {
            for (index, port) in settings.ports.iter().enumerate() {
                let _ = writeln!(backend, "    server {name}-{} 127.0.0.1:{port}", index + 1);
            }
        }
        Servers::Service { port } => {
            let _ = writeln!(
                backend,
                "    server-template {name}- {instances} {name}:{port} resolvers docker init-addr none"
            );
        }
    }
    text += &sections::sections(&Sections {
        name,
        binds: &[bind.to_owned()],
        wait: &wait,
        queue_length: app.queue_length,
        connections: settings.upstream_connections(),
        frontend: &comment(4, &settings.queue_comment()),
        backend: &backend,
    });
    text
}
