//! The rules that pick a backend, by name, and what they want to know of a request.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The rule that picks a backend. As text: `queue`, `round_robin`, `least_conn`, `least_time`,
/// `ip_hash`, `hash header NAME`, `hash cookie NAME`, `hash path`, `hash query NAME`,
/// `random two`, `first`.
///
/// All pick among the backends that have a free slot. Where none has, requests wait in one central
/// queue for the first slot that becomes free; those with a key wait for the backend of their key,
/// unless another one has nobody else to serve. All honour weights, but for `first`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// The backend with fewest requests in flight for its weight, then the most recently idle;
    /// those under a quota take turns ([`Cpu`](crate::Cpu)).
    #[default]
    Queue,
    /// Each backend in turn, as often as its weight says.
    RoundRobin,
    /// The backend with fewest requests in flight for its weight, in turn among equals.
    LeastConn,
    /// The backend where requests in flight, times how long it took of late, are least.
    /// What fails counts as slow, and so does what clients wait for in vain; what is not asked is taken
    /// to be faster each second, so that nobody starves.
    LeastTime,
    /// A client address keeps its backend: [`Policy::Hash`] over the address, an IPv6 one by its
    /// network of 64 bits.
    IpHash,
    /// Requests with an equal key keep their backend. A backend with all slots taken passes them on to
    /// the next one that is free, and so does one with a quarter more than its share of all requests. A request
    /// without the key goes to the least busy backend.
    Hash(Key),
    /// The less busy one of two backends picked at random.
    RandomTwo,
    /// The oldest backend.
    First,
}

/// What [`Policy::Hash`] looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The first field of this name.
    Header(Arc<str>),
    /// The cookie of this name.
    Cookie(Arc<str>),
    /// The target's path.
    Path,
    /// The first parameter of this name in the target's query, as it was sent.
    Query(Arc<str>),
}

/// A policy name that is not known.
#[derive(Debug, thiserror::Error)]
#[error(
    "policy {0:?} is not known; use queue, round_robin, least_conn, least_time, ip_hash, first, or in \
     quotes one of \"random two\", \"hash header NAME\", \"hash cookie NAME\", \"hash path\", \"hash query NAME\""
)]
pub struct UnknownPolicy(String);

impl Policy {
    /// Requests have a key that leads to a backend of their own.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self, Policy::IpHash | Policy::Hash(_))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Queue => "queue",
            Policy::RoundRobin => "round_robin",
            Policy::LeastConn => "least_conn",
            Policy::LeastTime => "least_time",
            Policy::IpHash => "ip_hash",
            Policy::RandomTwo => "random two",
            Policy::First => "first",
            Policy::Hash(Key::Path) => "hash path",
            Policy::Hash(Key::Header(name)) => return write!(f, "hash header {name}"),
            Policy::Hash(Key::Cookie(name)) => return write!(f, "hash cookie {name}"),
            Policy::Hash(Key::Query(name)) => return write!(f, "hash query {name}"),
        })
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        Ok(match words[..] {
            ["queue"] => Policy::Queue,
            ["round_robin"] => Policy::RoundRobin,
            ["least_conn"] => Policy::LeastConn,
            ["least_time"] => Policy::LeastTime,
            ["ip_hash"] => Policy::IpHash,
            ["random", "two"] => Policy::RandomTwo,
            ["first"] => Policy::First,
            ["hash", "path"] => Policy::Hash(Key::Path),
            // With the colon, no request would ever have it.
            ["hash", "header", name] if !name.contains(':') => {
                Policy::Hash(Key::Header(name.into()))
            }
            ["hash", "cookie", name] => Policy::Hash(Key::Cookie(name.into())),
            ["hash", "query", name] => Policy::Hash(Key::Query(name.into())),
            _ => return Err(UnknownPolicy(text.into())),
        })
    }
}

impl TryFrom<String> for Policy {
    type Error = UnknownPolicy;

    fn try_from(text: String) -> Result<Self, UnknownPolicy> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> String {
        policy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let names = [
            "queue",
            "round_robin",
            "least_conn",
            "least_time",
            "ip_hash",
            "random two",
            "first",
            "hash path",
            "hash header x-user",
            "hash cookie sid",
            "hash query q",
        ];
        for name in names {
            assert_eq!(name.parse::<Policy>().unwrap().to_string(), name);
        }
        for wrong in
            ["fastest", "hash", "hash header", "hash header X-User:", "hash path x", "random", ""]
        {
            let message = wrong.parse::<Policy>().unwrap_err().to_string();
            assert!(message.contains(&format!("{wrong:?}")) && message.contains("round_robin"));
        }
    }
}
