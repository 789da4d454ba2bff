//! What a dependency, such as a database, used while the instances were measured.

use serde::{Deserialize, Serialize};

use crate::calibration::THREAD_FULL;

/// What a dependency used while the instances were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DependencyUse {
    /// Its name, as the user gave it.
    pub name: String,
    /// Cores that it used.
    pub cores: f64,
    /// Cores that it may use, where it is under a quota.
    pub quota: Option<f64>,
    /// Cores of its busiest thread.
    pub busiest_thread: Option<f64>,
    /// Connections to it.
    pub connections: usize,
    /// Ports that it listens on.
    pub ports: Vec<u16>,
}

impl DependencyUse {
    /// Its use as a share of its quota, or of one core for its busiest thread, whichever is more.
    pub fn utilisation(&self) -> f64 {
        let quota = self.quota.map(|quota| self.cores / quota);
        quota.into_iter().chain(self.busiest_thread).fold(0.0, f64::max)
    }

    /// Whether it is at its limit.
    pub fn is_full(&self) -> bool {
        self.utilisation() >= THREAD_FULL
    }
}
