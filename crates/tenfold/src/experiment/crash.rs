//! Instances that died while something was measured.

use capacity::Crashes;
use fleet::Past;
use serde::{Deserialize, Serialize};

/// The deaths of one instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deaths {
    /// What its user calls it.
    pub name: String,
    pub past: Past,
}

impl Deaths {
    /// So many of them, for the science.
    pub fn crashes(&self, times: u32) -> Crashes {
        Crashes { name: self.name.clone(), times, cause: self.past.last_crash.clone() }
    }
}
