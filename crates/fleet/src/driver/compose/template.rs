//! What instances are made after: the container that Compose has made of the service, and never starts.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HostConfig, NetworkingConfig,
    PortBinding, RestartPolicy,
};

use super::project::ComposeProject;
use crate::driver::docker::container::{bytes, nano_cpus};
use crate::limits::Limits;

/// What instances have in common.
#[derive(Debug, Clone)]
pub(super) struct Template {
    body: ContainerCreateBody,
    host: HostConfig,
    /// Names of its networks.
    networks: Vec<String>,
    /// As in `80/tcp`.
    pub(super) exposed: Vec<String>,
}

/// What is one instance's own.
pub(super) struct Own {
    pub(super) env: Vec<(String, String)>,
    pub(super) labels: HashMap<String, String>,
    pub(super) limits: Limits,
    /// The port in its container, if it is to be published.
    pub(super) published: Option<u16>,
}

impl Template {
    /// Nothing where the engine tells nothing of it.
    pub(super) fn of(
        inspected: ContainerInspectResponse,
        project: &ComposeProject,
        service: &str,
    ) -> Option<Template> {
        let config = inspected.config?;
        let exposed = config.exposed_ports.clone().unwrap_or_default();
        // What a container is made of has the names that it is inspected by.
        let body = serde_json::to_value(config).ok()?;
        let body: ContainerCreateBody = serde_json::from_value(body).ok()?;
        let settings = project.get(service)?;
        let is_named = |key: &str| settings.contains_key(key);
        let body = ContainerCreateBody {
            // An engine puts the beginning of a container's id where the file says nothing.
            hostname: body.hostname.filter(|_| is_named("hostname")),
            image: inspected.image.or(body.image),
            // Labels of the service may steer proxies and others, which shall not find instances.
            labels: None,
            exposed_ports: None,
            ..body
        };
        let networks = settings.get("networks").and_then(|networks| networks.as_object());
        let keys = networks.into_iter().flat_map(|networks| networks.keys());
        let name =
            |key: &String| Some(project.resolved["networks"][key]["name"].as_str()?.to_owned());
        let networks = keys.filter_map(name).collect();
        Some(Template { body, host: inspected.host_config?, networks, exposed })
    }

    /// Its networks but the first, which is in the body.
    pub(super) fn more_networks(&self) -> Vec<String> {
        self.networks.iter().skip(1).cloned().collect()
    }

    pub(super) fn body(&self, own: Own) -> ContainerCreateBody {
        let Own { env, labels, limits, published } = own;
        let first = self.networks.first();
        let endpoint = first.map(|name| [(name.clone(), EndpointSettings::default())].into());
        let inside = published.map(|port| format!("{port}/tcp"));
        let binding =
            PortBinding { host_ip: Some("127.0.0.1".into()), host_port: Some(String::new()) };
        let mut host = HostConfig {
            network_mode: first.cloned().or_else(|| self.host.network_mode.clone()),
            port_bindings: inside.clone().map(|inside| [(inside, Some(vec![binding]))].into()),
            // The fleet starts instances again, and counts.
            restart_policy: Some(RestartPolicy::default()),
            auto_remove: Some(false),
            // One that the file says nothing of gets an init, so that SIGTERM reaches the app.
            init: self.host.init.or(Some(true)),
            ..self.host.clone()
        };
        if let Some(cpus) = limits.cpus {
            host.nano_cpus = Some(nano_cpus(cpus));
            (host.cpu_quota, host.cpu_period) = (None, None);
        }
        if let Some(memory) = limits.memory {
            (host.memory, host.memory_swap) = (Some(bytes(memory)), Some(bytes(memory)));
            host.memory_reservation = host.memory_reservation.map(|least| least.min(bytes(memory)));
        }
        ContainerCreateBody {
            env: Some(merged(self.body.env.clone().unwrap_or_default(), env)),
            labels: Some(labels),
            exposed_ports: inside.map(|inside| vec![inside]),
            host_config: Some(host),
            networking_config: endpoint
                .map(|endpoints| NetworkingConfig { endpoints_config: Some(endpoints) }),
            ..self.body.clone()
        }
    }

    /// Whether the service's environment has this variable.
    pub(super) fn tells(&self, variable: &str) -> bool {
        let env = self.body.env.iter().flatten();
        env.into_iter().any(|entry| entry.split('=').next() == Some(variable))
    }
}

/// The later one wins.
fn merged(env: Vec<String>, more: Vec<(String, String)>) -> Vec<String> {
    let is_replaced = |entry: &String| {
        let name = entry.split('=').next().unwrap_or_default();
        more.iter().any(|(key, _)| key == name)
    };
    let mut merged: Vec<String> = env.into_iter().filter(|entry| !is_replaced(entry)).collect();
    merged.extend(more.into_iter().map(|(key, value)| format!("{key}={value}")));
    merged
}
