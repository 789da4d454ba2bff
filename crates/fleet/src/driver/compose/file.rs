//! The project that Compose gets back: what must still be started, and a container that is never started,
//! after which instances are made.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::project::ComposeProject;

/// The service of the container after which instances are made.
pub(super) const TEMPLATE: &str = "tenfold";

/// What the project has already. It is used as it is.
#[derive(Debug, Default)]
pub(super) struct Present {
    pub(super) networks: HashSet<String>,
    pub(super) volumes: HashSet<String>,
}

/// The file by which images are built: all services, as what is built may be made of another one's image.
pub(super) fn to_build(project: &ComposeProject) -> Value {
    let mut file = project.resolved.clone();
    for service in file["services"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Value::Object(service) = service {
            // Which profile is active was decided when the file was read.
            service.remove("profiles");
        }
    }
    file
}

/// The file for Compose: the template of `scaled` with its name and image, and the services of `started`. What
/// is made bears these labels.
pub(super) fn render(
    project: &ComposeProject,
    (scaled, container, image): (&str, &str, &str),
    started: &[&str],
    present: &Present,
    labels: &Map<String, Value>,
    template_labels: &Map<String, Value>,
) -> Value {
    let mut services = Map::new();
    for name in started {
        let mut service = project.get(name).cloned().unwrap_or_default();
        // Which profile is active was decided when the file was read.
        service.remove("profiles");
        if let Some(Value::Object(needs)) = service.get_mut("depends_on") {
            needs.retain(|need, _| started.contains(&need.as_str()));
        }
        add(&mut service, labels);
        services.insert((*name).to_owned(), service.into());
    }
    let mut template = project.get(scaled).cloned().unwrap_or_default();
    for key in ["ports", "container_name", "depends_on", "profiles", "scale", "mac_address"] {
        template.remove(key);
    }
    if let Some(Value::Object(deploy)) = template.get_mut("deploy") {
        deploy.remove("replicas");
    }
    if let Some(Value::Object(networks)) = template.get_mut("networks") {
        // A fixed address is for one, and an alias would spread requests past the balancer.
        networks.values_mut().for_each(|settings| *settings = Value::Null);
    }
    if project.is_built(scaled) {
        // It is there by now. A registry may have another one of this name.
        template.remove("build");
        template.insert("pull_policy".into(), "never".into());
    }
    template.insert("image".into(), image.into());
    template.insert("container_name".into(), container.into());
    template.insert("labels".into(), template_labels.clone().into());
    services.insert(TEMPLATE.into(), template.into());

    let mut file = project.resolved.clone();
    file["services"] = services.into();
    for (kind, present) in [("networks", &present.networks), ("volumes", &present.volumes)] {
        let Some(Value::Object(all)) = file.get_mut(kind) else { continue };
        for settings in all.values_mut() {
            let name = settings["name"].as_str().unwrap_or_default().to_owned();
            if present.contains(&name) {
                *settings = json!({"name": name, "external": true});
            } else if kind == "networks"
                && settings["external"] != true
                && let Value::Object(settings) = settings
            {
                add(settings, labels);
            }
        }
    }
    file
}

/// Adds labels to those that a service or network has.
fn add(to: &mut Map<String, Value>, labels: &Map<String, Value>) {
    let own = to.entry("labels").or_insert_with(|| json!({}));
    if !own.is_object() {
        *own = json!({});
    }
    if let Value::Object(own) = own {
        own.extend(labels.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_names_are_for_the_users_own_container() {
        let resolved = json!({
            "name": "shop",
            "services": {
                "web": {
                    "build": {"context": "/shop"}, "container_name": "shop", "ports": [{"target": 80}],
                    "networks": {"default": {"ipv4_address": "10.0.0.2"}}, "environment": {"A": "1"},
                    "depends_on": {"db": {"condition": "service_started"}},
                },
                "db": {"image": "db", "labels": {"a": "b"}, "depends_on": {"old": {}}},
                "old": {},
            },
            "networks": {"default": {"name": "shop_default"}, "front": {"name": "shop_front"}},
            "volumes": {"data": {"name": "shop_data"}},
        });
        let project = ComposeProject { files: Vec::new(), folder: "/shop".into(), resolved };
        let present = Present {
            networks: ["shop_default".to_owned()].into(),
            volumes: ["shop_data".to_owned()].into(),
        };
        let labels = Map::from_iter([("mark".to_owned(), json!("1"))]);
        let file = render(
            &project,
            ("web", "tenfold-shop", "shop-web"),
            &["db"],
            &present,
            &labels,
            &labels,
        );
        assert_eq!(
            file["services"],
            json!({
                "tenfold": {
                    "image": "shop-web", "container_name": "tenfold-shop", "labels": {"mark": "1"},
                    "networks": {"default": null}, "environment": {"A": "1"}, "pull_policy": "never",
                },
                "db": {"image": "db", "labels": {"a": "b", "mark": "1"}, "depends_on": {}},
            })
        );
        assert_eq!(
            file["networks"],
            json!({
                "default": {"name": "shop_default", "external": true},
                "front": {"name": "shop_front", "labels": {"mark": "1"}},
            })
        );
        assert_eq!(file["volumes"], json!({"data": {"name": "shop_data", "external": true}}));
    }
}
