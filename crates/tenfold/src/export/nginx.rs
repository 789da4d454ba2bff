//! An upstream and a server for nginx, from 1.15.3 on.

use std::fmt::Write;

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, time};

/// Idle connections that a worker keeps to all instances together.
const MOST_IDLE: usize = 256;

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let Settings { name, slots, app, .. } = settings;
    let variable = name.replace('-', "_");
    let mut text = settings.heading(&format!(
        "{name}.conf: {name} behind nginx. It is included in `http`, as from /etc/nginx/conf.d."
    ));
    text += "\n";
    text += &comment(0, &settings.count_comment());
    let _ = writeln!(text, "upstream {name} {{\n    zone {name} 64k;\n    least_conn;");
    text += &comment(4, "One that fails is left out for a second at a time.");
    for port in settings.ports() {
        let _ = writeln!(text, "    server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;");
    }
    text += &comment(4, &settings.slots_comment());
    text += &comment(
        4,
        &format!(
            "nginx has no queue: with max_conns={slots} it would answer 502 to every further request. Without, they \
             wait in the instances, and the slowest answers come later than from the one queue of the plan. HAProxy \
             has such a queue (--to haproxy)."
        ),
    );
    let idle = (settings.instances * slots).clamp(1, MOST_IDLE);
    let _ = writeln!(text, "    keepalive {idle};\n}}\n");
    let _ = writeln!(
        text,
        "map $http_upgrade ${variable}_connection {{\n    default upgrade;\n    ''      '';\n}}\n"
    );
    let _ = writeln!(
        text,
        "server {{\n    listen {};\n\n    location / {{\n        proxy_pass http://{name};\n        \
         proxy_http_version 1.1;\n        proxy_set_header Upgrade $http_upgrade;\n        proxy_set_header Connection \
         ${variable}_connection;\n        proxy_set_header Host $http_host;\n        proxy_set_header \
         X-Forwarded-For $proxy_add_x_forwarded_for;\n        proxy_set_header X-Forwarded-Proto $scheme;",
        settings.listen
    );
    text += &comment(8, "Instances are near: one that does not accept within a second is gone.");
    text += "        proxy_connect_timeout 1s;\n";
    text += &comment(8, "As `tenfold up` waits for an answer.");
    let _ =
        writeln!(text, "        proxy_read_timeout {};\n    }}\n}}", time(app.response_timeout_s));
    vec![Rendered::new(format!("{name}.conf"), text)]
}
