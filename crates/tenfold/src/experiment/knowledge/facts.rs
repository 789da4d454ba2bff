//! What was measured.

use std::collections::BTreeMap;

use capacity::Trial;
use serde::{Deserialize, Serialize};

use crate::document::idle_connections::IdleConnections;
use crate::document::plan::Stop;
use crate::experiment::crash::Deaths;
use crate::experiment::observation::Observation;

/// Everything that was measured, and nothing that follows from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// One instance, by concurrency.
    pub rungs: Vec<Observation>,
    /// Two saturated instances.
    pub second: Option<Observation>,
    /// The goal's workload, in the order in which it was measured.
    pub confirmed: Vec<Observation>,
    /// The same behind Tenfold's own queue, where another balancer is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind_own_queue: Vec<Observation>,
    /// Name and version of that other balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<String>,
    /// What idle connections to an instance do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_connections: Option<IdleConnections>,
    /// What was changed to tell explanations apart, and what it showed.
    pub trials: Vec<Trial>,
    /// Counts that could not be measured.
    pub lost: Vec<Lost>,
    /// Instances that died and were started again while something was measured, by their index.
    pub deaths: BTreeMap<usize, Deaths>,
    pub notes: Vec<String>,
    /// Why no more was measured.
    pub stop: Option<Stop>,
}

/// A count whose instances did not start, or died while they were measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lost {
    pub instances: usize,
    /// Why, with the app's last words.
    pub why: String,
}
