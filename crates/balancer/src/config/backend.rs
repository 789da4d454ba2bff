//! One backend: its address, its slots and its weight.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::address::Address;

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// For people and metrics; need not be unique.
    pub name: String,
    /// Where it listens.
    pub address: Address,
    /// Requests in flight that it gets at most, and so connections; 0 pauses it.
    pub slots: Slots,
    /// Its share of the requests, from 1 to [`Backend::MAX_WEIGHT`]; 1 by default.
    pub weight: u32,
    /// When it gets requests; always by default.
    pub role: Role,
    /// Connections that it gets at most, with upgraded ones, which take no slot; none by default.
    pub max_connections: Option<usize>,
    /// Upgraded connections that take no slot; what is beyond takes one. By default 1000: as many as
    /// fit into the usual 1024 open files of a process.
    pub max_upgraded: usize,
    /// How long its slots and its weight take to grow from a sixteenth to all of it when it begins
    /// to get requests; not at all by default.
    pub slow_start: Duration,
    /// How much CPU time the kernel gives it; as much as there is by default.
    pub cpu: Cpu,
}

/// How much CPU time the kernel gives a backend, which says when it had better be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// As much as there is: who answered last has warm caches.
    #[default]
    Unlimited,
    /// A budget in every period, and none beyond it (cgroup `cpu.max`, `docker run --cpus`): who has
    /// rested longest has most of it left.
    Quota,
}

/// How many requests a backend gets at once. As text a number or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Slots {
    /// So many.
    Fixed(usize),
    /// As many as serve it best, found from how its service time reacts to more and fewer of them
    /// while requests wait: one for an app that serves one request at a time, or two if it takes
    /// less than about 2 ms; as many as the workers of a pool; more for one that mostly waits. All
    /// backends of an app that leave it to us share the number, which begins at 1.
    Auto,
}

/// A text that is no number of slots.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no number of slots; use a whole number, or auto to have it found")]
pub struct UnknownSlots(String);

/// When a backend gets requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Always.
    #[default]
    Primary,
    /// When no primary one takes them.
    Backup,
}

impl Backend {
    /// The most that [`Backend::weight`] can be.
    pub const MAX_WEIGHT: u32 = 256;

    /// A backend with so many slots, everything else as by default.
    pub fn new(
        name: impl Into<String>,
        address: impl Into<Address>,
        slots: impl Into<Slots>,
    ) -> Self {
        Backend {
            name: name.into(),
            address: address.into(),
            slots: slots.into(),
            weight: 1,
            role: Role::default(),
            max_connections: None,
            max_upgraded: 1000,
            slow_start: Duration::ZERO,
            cpu: Cpu::default(),
        }
    }
}

impl From<usize> for Slots {
    fn from(slots: usize) -> Self {
        Slots::Fixed(slots)
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slots::Fixed(slots) => slots.fmt(f),
            Slots::Auto => f.write_str("auto"),
        }
    }
}

impl From<Slots> for String {
    fn from(slots: Slots) -> Self {
        slots.to_string()
    }
}

impl TryFrom<String> for Slots {
    type Error = UnknownSlots;

    fn try_from(text: String) -> Result<Self, UnknownSlots> {
        text.parse()
    }
}

impl FromStr for Slots {
    type Err = UnknownSlots;

    fn from_str(text: &str) -> Result<Self, UnknownSlots> {
        match text {
            "auto" => Ok(Slots::Auto),
            number => number.parse().map(Slots::Fixed).map_err(|_| UnknownSlots(number.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_round_trip() {
        for text in ["0", "12", "auto"] {
            assert_eq!(text.parse::<Slots>().unwrap().to_string(), text);
        }
        let message = "many".parse::<Slots>().unwrap_err().to_string();
        assert!(message.contains("many") && message.contains("auto"), "{message}");
    }
}
