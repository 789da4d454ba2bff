//! A frontend and a backend for HAProxy, from 2.2 on: its servers' `maxconn` counts requests, as slots do.

use std::fmt::Write;

use crate::external::engine::UpstreamConnections;

/// What the sections say.
pub struct Sections<'a> {
    pub name: &'a str,
    /// Where clients connect.
    pub binds: &'a [String],
    /// How long a request may wait.
    pub wait: &'a str,
    /// Requests that may wait.
    pub queue_length: usize,
    pub connections: UpstreamConnections,
    /// Comments and lines of the frontend, of the backend, and the servers.
    pub frontend: &'a str,
    pub backend: &'a str,
}

/// `timeout`s and the mode, as for both.
pub fn defaults(response: &str) -> String {
    format!(
        "defaults\n    mode http\n    timeout http-request 30s\n    timeout client 60s\n    timeout connect 3s\n    # As \
         `tenfold up` waits for an answer.\n    timeout server {response}\n    timeout tunnel 1h\n"
    )
}

/// The frontend and the backend.
pub fn sections(wanted: &Sections<'_>) -> String {
    let Sections { name, binds, wait, queue_length, connections, frontend, backend } = wanted;
    let reuse = match connections {
        UpstreamConnections::Kept => "http-reuse safe",
        UpstreamConnections::Closed => "option http-server-close\n    http-reuse never",
    };
    let mut text = "\nfrontend clients\n".to_owned();
    for bind in *binds {
        let _ = writeln!(text, "    bind {bind}");
    }
    let _ = writeln!(
        text,
        "{frontend}    http-request return status 503 if {{ queue({name}) ge {} }}\n    default_backend \
         {name}\n\nbackend {name}\n    # How long a request may wait in the queue.\n    timeout queue {wait}\n    balance \
         leastconn\n    option forwardfor\n    http-request set-header X-Forwarded-Proto http\n    {reuse}\n{}",
        (*queue_length).max(1),
        backend.trim_end()
    );
    text
}

/// haproxy(1), "Quoting and escaping".
pub fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in text.chars() {
        if " \\\"'#$".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}
