//! One backend: its address, its slots and its weight.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::address::Address;

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The name for people and metrics. It need not be unique.
    pub name: String,
    /// Its address.
    pub address: Address,
    /// The largest number of requests in flight, and so of connections. 0 pauses the backend.
    pub slots: Slots,
    /// Its share of the requests, from 1 to [`Backend::MAX_WEIGHT`]. 1 by default.
    pub weight: u32,
    /// When it gets requests. Always, by default.
    pub role: Role,
    /// The largest number of connections, including upgraded ones, which take no slot. Unlimited by
    /// default.
    pub max_connections: Option<usize>,
    /// How many upgraded connections take no slot. Further ones take a slot. By default 1000, which fits
    /// into the usual 1024 open files of a process.
    pub max_upgraded: usize,
    /// How long its slots and its weight grow from a sixteenth to their full value after it joins. Zero
    /// by default.
    pub slow_start: Duration,
    /// How the kernel limits its CPU time. Unlimited by default.
    pub cpu: Cpu,
}

/// How the kernel limits a backend's CPU time. This decides which idle backend is the best choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// No limit. The backend that answered last has warm caches.
    #[default]
    Unlimited,
    /// A quota for each period (cgroup `cpu.max`, `docker run --cpus`). The backend that rested longest
    /// has the most quota left.
    Quota,
}

/// How many requests a backend gets at once. As text a number or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Slots {
    /// This number.
    Fixed(usize),
    /// The best number, found from how the service time reacts to more and fewer slots while requests
    /// wait. It is 1 for an app that serves one request at a time, or 2 if a request takes less than
    /// about 2 ms. It is the number of workers for a pool, and more for an app that mostly waits. All
    /// backends of an app with `auto` share the number, which starts at 1.
    Auto,
}

/// The text is not a number of slots.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a number of slots; use a whole number, or auto to have it found")]
pub struct UnknownSlots(String);

/// When a backend gets requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Always.
    #[default]
    Primary,
    /// Only when no primary backend takes the request.
    Backup,
}

impl Backend {
    /// The largest [`Backend::weight`].
    pub const MAX_WEIGHT: u32 = 256;

    /// A backend with this number of slots and default settings.
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
