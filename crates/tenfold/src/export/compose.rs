//! A stack for Docker Compose: the app as a service with replicas, and HAProxy in front of it.

use std::fmt::Write;

use super::comment::comment;
use super::haproxy::{Servers, configuration};
use super::rendered::Rendered;
use super::settings::{Settings, fill, time};
use super::yaml;

/// Beside `compose.yaml`.
const BALANCER: &str = "compose-haproxy.cfg";
/// The maintainers keep this release up for years, and it has all that the configuration needs.
const IMAGE: &str = "haproxy:3.0-alpine";
/// Where the balancer listens in its container.
const BALANCER_PORT: u16 = 8080;

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let name = &settings.name;
    let what = format!("{BALANCER}: HAProxy in front of the service {name} of compose.yaml.");
    let bind = format!(":{BALANCER_PORT}");
    let servers = Servers::Service { port: settings.container_port.unwrap_or_default() };
    let balancer = configuration(settings, &what, &bind, &servers);
    vec![Rendered::new("compose.yaml", stack(settings)), Rendered::new(BALANCER, balancer)]
}

fn stack(settings: &Settings) -> String {
    let Settings { name, app, limits, .. } = settings;
    let mut text = settings
        .heading_of_command(&format!("compose.yaml: {name} in containers, behind HAProxy."));
    let container_port = settings.container_port.unwrap_or_default();
    let filled = |text: &str| fill(text, &container_port.to_string(), "1", name).replace('$', "$$");
    let _ = writeln!(text, "\nservices:\n  {name}:");
    match &app.image {
        Some(folder) if folder.starts_with('/') => {
            let _ = writeln!(text, "    build: {}", yaml::text(&folder.replace('$', "$$")));
        }
        Some(image) => {
            let _ = writeln!(text, "    image: {}", yaml::text(image));
        }
        None => {
            text += &comment(4, "FILL IN: the plan measured processes, which have no image.");
            let _ = writeln!(text, "    image: {name}:latest");
        }
    }
    if settings.is_numbered() {
        text += &comment(4, "{i} is 1 in every container: Compose tells a replica no index.");
    }
    let command: Vec<String> = settings.command.iter().map(|word| filled(word)).collect();
    if !command.is_empty() {
        let _ = writeln!(text, "    command: {}", yaml::list(&command));
    }
    text += "    environment:\n";
    let port = container_port.to_string();
    let own = (!app.env.contains_key("PORT")).then_some(("PORT", port.as_str()));
    // The way to programs of this machine is of no use in an image.
    let variables = own.into_iter().chain(settings.variables()).filter(|(name, _)| *name != "PATH");
    for (name, value) in variables {
        let _ = writeln!(text, "      {}: {}", yaml::text(name), yaml::text(&filled(value)));
    }
    for name in settings.secret_variables() {
        let _ = writeln!(text, "      # {name}:");
    }
    if !app.env_files.is_empty() {
        text += "    env_file:\n";
        for file in &app.env_files {
            let _ = writeln!(text, "      - {}", yaml::text(&file.replace('$', "$$")));
        }
    }
    text += &comment(4, "No port of the machine: only the first replica could have it.");
    let _ = writeln!(
        text,
        "    expose: [\"{container_port}\"]\n    init: true\n    restart: unless-stopped"
    );
    let _ = writeln!(text, "    stop_grace_period: {}\n    deploy:", time(app.grace_s));
    text += &comment(6, &settings.count_comment());
    let _ = writeln!(text, "      replicas: {}", settings.instances);
    text += &comment(6, &settings.limits_comment());
    if limits.cpus.is_some() || limits.memory_bytes.is_some() {
        text += "      resources:\n        limits:\n";
        if let Some(cpus) = limits.cpus {
            let _ = writeln!(text, "          cpus: \"{cpus}\"");
        }
        if let Some(bytes) = limits.memory_bytes {
            let _ = writeln!(text, "          memory: \"{bytes}\"");
        }
    }
    text += "\n";
    text += &comment(2, "It holds slots and queue: see the file.");
    let _ = writeln!(
        text,
        "  {name}-balancer:\n    image: {IMAGE}\n    ports: [{}]\n    volumes: \
         [\"./{BALANCER}:/usr/local/etc/haproxy/haproxy.cfg:ro\"]\n    depends_on: [{name}]\n    restart: \
         unless-stopped",
        yaml::text(&format!("{}:{BALANCER_PORT}", settings.listen))
    );
    text
}
