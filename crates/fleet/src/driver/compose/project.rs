//! What Compose says of a project: its services, and which of them can be scaled.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::command;
use super::error::ComposeError;
use crate::limits::{Cpus, Limits};

/// A project as Compose has resolved it: interpolated, merged and with whole paths.
#[derive(Clone, PartialEq)]
pub struct ComposeProject {
    /// Its files, as they were named; none where Compose looks for them itself.
    pub files: Vec<PathBuf>,
    /// Where Compose is run.
    pub folder: PathBuf,
    pub(super) resolved: Value,
}

/// A number of things that are written with a unit or as text.
type Object = Map<String, Value>;

// === impl ComposeProject ===

impl ComposeProject {
    /// Has Compose read its files: these, or those that it finds in the folder.
    ///
    /// # Errors
    /// When Compose is absent, or says that they are wrong.
    pub fn read(files: &[PathBuf], folder: &Path) -> Result<ComposeProject, ComposeError> {
        let resolved = command::config(files, folder)?;
        Ok(ComposeProject { files: files.to_vec(), folder: folder.to_owned(), resolved })
    }

    /// The service to scale: this one, or the only one that can be meant.
    ///
    /// # Errors
    /// When there is no such service, it cannot be scaled, or several can be meant.
    pub fn service(&self, wanted: Option<&str>) -> Result<String, ComposeError> {
        let services: Vec<&String> =
            self.services().map(|services| services.keys().collect()).unwrap_or_default();
        let name = match wanted {
            Some(wanted) => {
                let found = services.iter().find(|name| **name == wanted);
                found.copied().ok_or_else(|| self.unknown(wanted, &services))?
            }
            None => self.only(&services)?,
        };
        match self.obstacle(name) {
            Some(obstacle) => Err(ComposeError::Wrong(format!(
                "the service `{name}` of {self} cannot run more than once: {obstacle}"
            ))),
            None => Ok(name.clone()),
        }
    }

    /// The only service, or the only one that publishes a port.
    fn only<'a>(&'a self, services: &[&'a String]) -> Result<&'a String, ComposeError> {
        if let [only] = services {
            return Ok(only);
        }
        let publish: Vec<&String> =
            services.iter().copied().filter(|name| !self.ports(name).is_empty()).collect();
        if let [only] = publish[..] {
            return Ok(only);
        }
        let candidates = if publish.is_empty() { services } else { &publish[..] };
        let mut question = format!(
            "{self} has {} services that may be meant: pick the one to scale",
            candidates.len()
        );
        for name in candidates {
            question += &format!("\n  --service {name}");
        }
        Err(ComposeError::Wrong(question))
    }

    fn unknown(&self, wanted: &str, services: &[&String]) -> ComposeError {
        let listed: Vec<&str> = services.iter().map(|name| name.as_str()).collect();
        let remedy = match listed.is_empty() {
            true => "name another file by --compose".to_owned(),
            false => format!("name one of {}", listed.join(", ")),
        };
        ComposeError::Wrong(format!("{self} has no service `{wanted}`: {remedy}"))
    }

    /// Why a service runs once at most, with a remedy.
    fn obstacle(&self, name: &str) -> Option<String> {
        let service = self.get(name)?;
        let mode = service.get("network_mode").and_then(Value::as_str).unwrap_or_default();
        if mode == "host" || mode == "none" || mode.contains(':') {
            return Some(format!(
                "its `network_mode: {mode}` gives it no address of its own, so leave it out"
            ));
        }
        for (used, kind) in [("configs", "config"), ("secrets", "secret")] {
            let names = service.get(used).and_then(Value::as_array).into_iter().flatten();
            let mut names = names.filter_map(|entry| entry.get("source")?.as_str());
            let is_file = |source: &&str| self.resolved[used][*source]["file"].is_string();
            if let Some(source) = names.find(|source| !is_file(source)) {
                return Some(format!(
                    "Tenfold can give it the {kind} `{source}` from a `file` only"
                ));
            }
        }
        None
    }

    /// As Compose calls the project.
    pub(super) fn name(&self) -> &str {
        self.resolved["name"].as_str().unwrap_or("default")
    }

    /// The words that name it on a command line.
    pub fn words(&self) -> Vec<String> {
        let of_file = |file: &PathBuf| ["--compose".to_owned(), file.display().to_string()];
        match self.files.is_empty() {
            true => of_file(&self.folder).into(),
            false => self.files.iter().flat_map(of_file).collect(),
        }
    }

    pub(super) fn services(&self) -> Option<&Object> {
        self.resolved.get("services")?.as_object()
    }

    pub(super) fn get(&self, service: &str) -> Option<&Object> {
        self.services()?.get(service)?.as_object()
    }

    /// The image that a service is of; Compose names those that it builds.
    pub fn image(&self, service: &str) -> String {
        let image = self.get(service).and_then(|it| it.get("image")?.as_str());
        image.map_or_else(|| format!("{}-{service}", self.name()), str::to_owned)
    }

    /// Whether a service has an image only once it is built. One with a name of its own is pulled first.
    pub(super) fn is_built(&self, service: &str) -> bool {
        self.get(service).is_some_and(|it| it.contains_key("build") && !it.contains_key("image"))
    }

    /// Whether each start builds it anew.
    pub(super) fn is_always_built(&self, service: &str) -> bool {
        self.get(service).is_some_and(|it| it.get("pull_policy") == Some(&"build".into()))
    }

    /// The TCP ports in the container of a service that its file publishes.
    fn ports(&self, service: &str) -> Vec<String> {
        let ports = self.get(service).and_then(|it| it.get("ports")?.as_array());
        let tcp = ports.into_iter().flatten().filter_map(|port| {
            let target = number(port.get("target")?)?;
            let is_tcp = port.get("protocol").and_then(Value::as_str).is_none_or(|it| it == "tcp");
            is_tcp.then(|| format!("{target}/tcp"))
        });
        let mut tcp: Vec<String> = tcp.collect();
        tcp.sort_unstable();
        tcp.dedup();
        tcp
    }

    /// The TCP ports that a service publishes, or exposes where it publishes none.
    pub(super) fn listened(&self, service: &str) -> Vec<String> {
        let published = self.ports(service);
        if !published.is_empty() {
            return published;
        }
        let exposed = self.get(service).and_then(|it| it.get("expose")?.as_array());
        let exposed = exposed.into_iter().flatten().filter_map(number);
        exposed.map(|port| format!("{port}/tcp")).collect()
    }

    /// What the file limits an instance to.
    pub fn limits(&self, service: &str) -> Limits {
        let service = self.get(service);
        let of_deploy = |key: &str| service?.get("deploy")?.pointer("/resources/limits")?.get(key);
        let of = |key: &str| service?.get(key);
        let cpus = of_deploy("cpus").or_else(|| of("cpus")).and_then(number);
        let memory = of_deploy("memory").or_else(|| of("mem_limit")).and_then(number);
        Limits {
            cpus: cpus.filter(|cpus| *cpus > 0.0).and_then(|cpus| Cpus::try_from(cpus).ok()),
            memory: memory.filter(|bytes| *bytes > 0.0).map(|bytes| bytes as u64),
        }
    }

    /// How many of a service there shall be.
    pub(super) fn count(&self, service: &str) -> u64 {
        let service = self.get(service);
        let of_deploy = service.and_then(|it| it.get("deploy")?.get("replicas")?.as_u64());
        let scale = || service.and_then(|it| it.get("scale")?.as_u64());
        of_deploy.or_else(scale).unwrap_or(1)
    }

    /// What a service depends on: each with its condition.
    pub(super) fn needs(&self, service: &str) -> impl Iterator<Item = (&str, &str)> {
        let needs = self.get(service).and_then(|it| it.get("depends_on")?.as_object());
        needs.into_iter().flatten().map(|(name, how)| {
            let condition = how.get("condition").and_then(Value::as_str);
            (name.as_str(), condition.unwrap_or("service_started"))
        })
    }

    /// Whether a service needs another, or what needs it.
    fn is_above(&self, service: &str, base: &str) -> bool {
        let mut seen = vec![service];
        let mut next = 0;
        while let Some(&at) = seen.get(next) {
            if at == base {
                return true;
            }
            for (name, _) in self.needs(at) {
                if !seen.contains(&name) {
                    seen.push(name);
                }
            }
            next += 1;
        }
        false
    }

    /// All services that run beside one, but those that need it, or of which none shall run.
    pub(super) fn beside(&self, scaled: &str) -> Vec<&str> {
        let names = self.services().into_iter().flat_map(Object::keys).map(String::as_str);
        names.filter(|name| self.count(name) > 0 && !self.is_above(name, scaled)).collect()
    }
}

impl fmt::Debug for ComposeProject {
    /// Without its settings, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComposeProject({self})")
    }
}

impl fmt::Display for ComposeProject {
    /// As a sentence names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.files[..] {
            [] => write!(f, "the compose file in {}", self.folder.display()),
            files => {
                let names: Vec<String> =
                    files.iter().map(|file| file.display().to_string()).collect();
                f.write_str(&names.join(" and "))
            }
        }
    }
}

/// A number, written as one or as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn project(services: &Value) -> ComposeProject {
        let resolved = json!({"name": "shop", "services": services});
        ComposeProject { files: vec!["compose.yaml".into()], folder: ".".into(), resolved }
    }

    #[test]
    fn the_service_that_publishes_a_port_is_meant() {
        let web = json!({"ports": [{"target": 8000, "published": "80", "protocol": "tcp"}]});
        let shop = project(&json!({"web": web, "db": {}}));
        assert_eq!(shop.service(None).unwrap(), "web");
        assert_eq!(shop.listened("web"), ["8000/tcp"]);
        let several = project(&json!({"web": web, "db": web, "cache": {}})).service(None);
        let question = several.unwrap_err().to_string();
        assert_eq!(
            question,
            "compose.yaml has 2 services that may be meant: pick the one to scale\n  --service db\n  --service web"
        );
        let unknown = shop.service(Some("wbe")).unwrap_err().to_string();
        assert_eq!(unknown, "compose.yaml has no service `wbe`: name one of db, web");
    }

    #[test]
    fn a_service_that_can_run_once_only_is_refused() {
        let host = project(&json!({"web": {"network_mode": "host"}}));
        let refused = host.service(None).unwrap_err().to_string();
        assert!(refused.contains("`network_mode: host` gives it no address"), "{refused}");
        let mut key = project(&json!({"web": {"secrets": [{"source": "key"}]}}));
        key.resolved["secrets"] = json!({"key": {"environment": "KEY"}});
        let refused = key.service(None).unwrap_err().to_string();
        assert!(refused.ends_with("the secret `key` from a `file` only"), "{refused}");
        key.resolved["secrets"] = json!({"key": {"file": "/run/key"}});
        assert!(key.service(None).is_ok());
    }

    #[test]
    fn limits_are_those_of_the_file() {
        let limits = json!({"cpus": 0.5, "memory": "52428800"});
        let shop = project(&json!({
            "web": {"deploy": {"resources": {"limits": limits}}},
            "old": {"cpus": 1.5, "mem_limit": "20000000"},
        }));
        let of = |name: &str| shop.limits(name).to_string();
        assert_eq!(
            (of("web"), of("old")),
            ("0.5 cores and 50 MiB".into(), "1.5 cores and 20 MB".into())
        );
    }

    #[test]
    fn what_needs_the_service_or_shall_not_run_is_left_out() {
        let on = |name: &str| json!({"depends_on": {name: {"condition": "service_started"}}});
        let shop = project(&json!({
            "web": on("db"), "db": {}, "proxy": on("edge"), "edge": on("web"), "mail": {},
            "later": {"deploy": {"replicas": 0}},
        }));
        assert_eq!(shop.beside("web"), ["db", "mail"]);
    }
}
