//! The policies that pick a backend, by name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The rule that picks a backend. As text: `queue`, `round_robin`, `least_conn`, `least_time`,
/// `ip_hash`, `hash header NAME`, `hash cookie NAME`, `hash path`, `hash query NAME`, `random two`,
/// `first`.
///
/// Every policy picks among the backends that have a free slot. If none has, requests wait in one
/// central queue for the first free slot. Requests with a key wait for the backend of their key, unless
/// another backend has nobody else to serve. All policies but `first` honour weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// The backend with the fewest requests in flight for its weight, then the most recently idle one.
    /// Backends under a CPU quota take turns ([`Cpu`](crate::Cpu)).
    #[default]
    Queue,
    /// Each backend in turn, as often as its weight says.
    RoundRobin,
    /// The backend with the fewest requests in flight for its weight. Equal ones take turns.
    LeastConn,
    /// The backend with the smallest product of requests in flight and recent service time. Failures
    /// count as slow, and so do answers that clients did not wait for. The time of an unused backend
    /// halves each second, so that it is tried again.
    LeastTime,
    /// A client address keeps its backend. It is [`Policy::Hash`] over the address. IPv6 addresses count
    /// by their /64 network.
    IpHash,
    /// Requests with an equal key keep their backend. A backend without a free slot passes them to the
    /// next free one, and so does one with a quarter more than its share. A request without the key goes
    /// to the least busy backend.
    Hash(Key),
    /// The less busy of two random backends.
    RandomTwo,
    /// The oldest backend.
    First,
}

/// The part of the request that [`Policy::Hash`] hashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The first field with this name.
    Header(Arc<str>),
    /// The cookie with this name.
    Cookie(Arc<str>),
    /// The path of the target.
    Path,
    /// The first query parameter with this name, undecoded.
    Query(Arc<str>),
}

/// The policy name is unknown.
#[derive(Debug, thiserror::Error)]
#[error(
    "policy {0:?} is not known; use queue, round_robin, least_conn, least_time, ip_hash, first, or in \
     quotes one of \"random two\", \"hash header NAME\", \"hash cookie NAME\", \"hash path\", \"hash query NAME\""
)]
pub struct UnknownPolicy(String);

impl Policy {
    /// Whether requests have a key that leads to a backend of their own.
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
            // A field name with the colon would never match.
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
