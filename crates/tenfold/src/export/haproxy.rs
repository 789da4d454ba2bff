//! A whole configuration for HAProxy, from 2.2 on: its servers' `maxconn` counts requests, as slots do.

use std::fmt::Write;

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, time};

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
    let response = time(app.response_timeout_s);
    let mut text = settings.heading(what);
    text += "\ndefaults\n    mode http\n    timeout http-request 30s\n    timeout client 60s\n    timeout connect 3s\n";
    text += &comment(4, "As `tenfold up` waits for an answer.");
    let _ = writeln!(text, "    timeout server {response}\n    timeout tunnel 1h");
    if let Servers::Service { .. } = servers {
        text += "\n";
        text += &comment(0, "Docker's own: it knows the addresses of all replicas.");
        text += "resolvers docker\n    nameserver dns 127.0.0.11:53\n    resolve_retries 3\n    timeout resolve 1s\n    \
                 timeout retry 1s\n    hold valid 1s\n";
    }
    let _ = writeln!(text, "\nfrontend clients\n    bind {bind}");
    text += &comment(4, &settings.queue_comment());
    let _ = writeln!(
        text,
        "    http-request return status 503 if {{ queue({name}) ge {} }}\n    default_backend {name}\n\nbackend {name}",
        app.queue_length.max(1)
    );
    text += &comment(4, "How long a request may wait in the queue.");
    let _ = writeln!(text, "    timeout queue {}", time(app.queue_wait_s));
    text += "    balance leastconn\n    option forwardfor\n    http-request set-header X-Forwarded-Proto http\n    \
             http-reuse safe\n";
    if let Some(path) = &app.ready_path {
        text += &comment(4, "A check waits behind the requests of an instance.");
        let _ = writeln!(
            text,
            "    option httpchk\n    http-check send meth GET uri {}\n    timeout check 10s",
            quoted(path)
        );
    }
    text += &comment(4, &settings.slots_comment());
    let _ = writeln!(text, "    default-server maxconn {slots} check inter 2s fall 3 rise 1");
    text += &comment(4, &settings.count_comment());
    match servers {
        Servers::Ports => {
            for (index, port) in settings.ports().enumerate() {
                let _ = writeln!(text, "    server {name}-{} 127.0.0.1:{port}", index + 1);
            }
        }
        Servers::Service { port } => {
            let _ = writeln!(
                text,
                "    server-template {name}- {instances} {name}:{port} resolvers docker init-addr none"
            );
        }
    }
    text
}

/// haproxy(1), "Quoting and escaping".
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in text.chars() {
        if " \\\"'#$".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}
