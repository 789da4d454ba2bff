//! How an app was run: what its settings elsewhere need beside its command.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How an app was run, without its secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppSettings {
    /// The image that its containers were of, if it ran in containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The template of systemd whose units its instances were, as in `fibscale@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Those units, in the order of the instances' numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<UnitPort>,
    /// Where it ran.
    pub directory: String,
    /// Variables that it was given, with `***` in place of what seems to be a secret. `{port}`, `{i}` and
    /// `{name}` are as they were given.
    pub env: BTreeMap<String, String>,
    /// Files whose variables it was given, too.
    pub env_files: Vec<String>,
    /// What answers 2xx when it is ready, unless that is a connection.
    pub ready_path: Option<String>,
    pub ready_timeout_s: f64,
    /// From being asked to end to being killed.
    pub grace_s: f64,
    /// For requests in flight, before it is asked to end.
    pub drain_s: f64,
    /// First and last port that instances may have, if there are bounds.
    pub ports: Option<(u16, u16)>,
    /// Where it listened in its container, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_port: Option<u16>,
    /// Requests that may wait for an instance, and how long, as `tenfold up` would have it.
    pub queue_length: usize,
    pub queue_wait_s: f64,
    /// How long an answer may take, as `tenfold up` would have it.
    pub response_timeout_s: f64,
}

/// A unit of a template, and where it listened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPort {
    /// As in `fibscale@1.service`.
    pub unit: String,
    pub port: u16,
}
