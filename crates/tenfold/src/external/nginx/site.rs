//! An upstream and a server for nginx, from 1.15.3 on, to be included in `http`.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::external::engine::UpstreamConnections;

/// The servers, of which one that fails is left out for a second. `notes` are comments before the servers and
/// before the number of idle connections. Without a number none is kept.
pub fn upstream(
    name: &str,
    servers: &[SocketAddr],
    idle: Option<usize>,
    notes: [&str; 2],
) -> String {
    let mut text =
        format!("upstream {name} {{\n    zone {name} 64k;\n    least_conn;\n{}", notes[0]);
    for server in servers {
        let _ = writeln!(text, "    server {server} max_fails=1 fail_timeout=1s;");
    }
    text += notes[1];
    if let Some(idle) = idle {
        let _ = writeln!(text, "    keepalive {idle};");
    }
    text + "}\n\n"
}

/// What clients connect to. `response` is how long an answer may take.
pub fn server(
    name: &str,
    listen: &[String],
    response: &str,
    connections: UpstreamConnections,
) -> String {
    // What an empty value leaves out, so that HTTP/1.1 keeps the connection.
    let ordinary = match connections {
        UpstreamConnections::Kept => "''",
        UpstreamConnections::Closed => "close",
    };
    let variable = name.replace('-', "_");
    let listen: String = listen.iter().map(|at| format!("    listen {at};\n")).collect();
    format!(
        "map $http_upgrade ${variable}_connection {{\n    default upgrade;\n    ''      {ordinary};\n}}\n\nserver {{\n{listen}\n    \
         location / {{\n        proxy_pass http://{name};\n        proxy_http_version 1.1;\n        proxy_set_header \
         Upgrade $http_upgrade;\n        proxy_set_header Connection ${variable}_connection;\n        proxy_set_header \
         Host $http_host;\n        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n        \
         proxy_set_header X-Forwarded-Proto $scheme;\n        # Instances are near: one that does not accept within \
         a second is gone.\n        proxy_connect_timeout 1s;\n        # As `tenfold up` waits for an answer.\n        \
         proxy_read_timeout {response};\n    }}\n}}\n"
    )
}
