//! Deployment, Service and PodDisruptionBudget for Kubernetes, from 1.30 on.

use std::fmt::Write;

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, fill};
use super::yaml;

/// Balancers learn that a pod ends after it was told to: it serves for so long, in seconds.
const LAG: u64 = 5;

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let (name, container_port) = (&settings.name, settings.container_port.unwrap_or_default());
    let mut text = settings
        .heading_of_command(&format!("kubernetes.yaml: {name} as a Deployment behind a Service."));
    text += &comment(0, &settings.slots_comment());
    text += &settings.connections_comment(0);
    text += &comment(
        0,
        "A Service has no slots and no queue: it spreads connections by chance, so that the slowest answers come later \
         than from the one queue of the plan.",
    );
    text += &deployment(settings);
    let _ = writeln!(
        text,
        "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  selector:\n    app: {name}\n  \
         ports:\n    - port: 80\n      targetPort: {container_port}"
    );
    text += "---\n";
    text += &comment(0, "A drained node takes one instance at a time.");
    let _ = writeln!(
        text,
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: {name}\nspec:\n  maxUnavailable: 1\n  \
         selector:\n    matchLabels:\n      app: {name}"
    );
    vec![Rendered::new("kubernetes.yaml", text)]
}

fn deployment(settings: &Settings) -> String {
    let Settings { name, app, limits, .. } = settings;
    let container_port = settings.container_port.unwrap_or_default();
    let filled = |text: &str| fill(text, &container_port.to_string(), "1", name);
    // Kubernetes puts variables into $(NAME).
    let escaped = |text: &str| yaml::text(&filled(text).replace("$(", "$$("));
    let mut text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels:\n    app: {name}\nspec:\n"
    );
    text += &comment(2, &settings.count_comment());
    let _ = writeln!(
        text,
        "  replicas: {}\n  selector:\n    matchLabels:\n      app: {name}\n  template:\n    metadata:\n      \
         labels:\n        app: {name}\n    spec:",
        settings.instances
    );
    let grace = LAG + app.grace_s.max(app.drain_s).ceil() as u64;
    text += &comment(6, "The pause below, then the time for requests in flight.");
    let _ = writeln!(
        text,
        "      terminationGracePeriodSeconds: {grace}\n      containers:\n        - name: {name}"
    );
    match &app.image {
        Some(image) if !image.starts_with('/') => {
            let _ = writeln!(text, "          image: {}", yaml::text(image));
        }
        Some(folder) => {
            text += &comment(
                10,
                &format!("FILL IN the registry's name of the image that {folder} makes."),
            );
            let _ = writeln!(text, "          image: {name}:latest");
        }
        None => {
            text += &comment(10, "FILL IN: the plan measured processes, which have no image.");
            let _ = writeln!(text, "          image: {name}:latest");
        }
    }
    if settings.is_numbered() {
        text += &comment(10, "{i} is 1 in every pod: a Deployment tells them no index.");
    }
    let command: Vec<String> = settings.command.iter().map(|word| escaped(word)).collect();
    // The words after an image take the place of its CMD, which are args here.
    let key = if app.image.is_some() { "args" } else { "command" };
    if !command.is_empty() {
        let _ = writeln!(text, "          {key}: [{}]", command.join(", "));
    }
    text += "          env:\n";
    let own = (!app.env.contains_key("PORT")).then_some(("PORT", "{port}"));
    let variables = own.into_iter().chain(settings.variables()).filter(|(name, _)| *name != "PATH");
    for (name, value) in variables {
        let _ =
            writeln!(text, "            - name: {name}\n              value: {}", escaped(value));
    }
    for variable in settings.secret_variables() {
        text += &comment(12, &format!("FILL IN: make a Secret {name}-secrets that holds it."));
        let _ = writeln!(
            text,
            "            - name: {variable}\n              valueFrom: {{secretKeyRef: {{name: {name}-secrets, key: \
             {variable}}}}}"
        );
    }
    for file in &app.env_files {
        text += &comment(
            10,
            &format!("FILL IN the variables of {file}, which the plan does not keep."),
        );
    }
    let _ = writeln!(text, "          ports:\n            - containerPort: {container_port}");
    text += &comment(10, &settings.limits_comment());
    if limits.cpus.is_some() || limits.memory_bytes.is_some() {
        let cpus = limits.cpus.map(|cpus| format!("cpu: \"{cpus}\""));
        let memory = limits.memory_bytes.map(|bytes| format!("memory: \"{bytes}\""));
        let both: Vec<String> = cpus.into_iter().chain(memory).collect();
        let both = both.join(", ");
        text += &comment(10, "Requests are the same, so that a node always has what was measured.");
        let _ = writeln!(
            text,
            "          resources:\n            limits: {{{both}}}\n            requests: {{{both}}}"
        );
    }
    let probe = match &app.ready_path {
        Some(path) => format!("httpGet: {{path: {}, port: {container_port}}}", yaml::text(path)),
        None => format!("tcpSocket: {{port: {container_port}}}"),
    };
    let failures = (app.ready_timeout_s / 2.0).ceil().max(1.0);
    text += &comment(10, "Slow to start is no fault for as long as the plan allowed.");
    let _ = writeln!(
        text,
        "          startupProbe:\n            {probe}\n            periodSeconds: 2\n            failureThreshold: \
         {failures}\n          readinessProbe:\n            {probe}\n            periodSeconds: 2\n            \
         timeoutSeconds: 10"
    );
    text += &comment(10, "Requests still come until every balancer knows that the pod ends.");
    let _ = writeln!(
        text,
        "          lifecycle:\n            preStop:\n              sleep: {{seconds: {LAG}}}"
    );
    text
}
