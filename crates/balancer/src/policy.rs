//! The rules that pick a backend, by name, and what they want to know of a request.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dispatch::hash;

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

    /// What the policy keeps together of a request, as a hash: of its header, or of where it came
    /// from. Costs nothing for policies that look at neither.
    pub(crate) fn key(&self, head: &[u8], client: Option<IpAddr>) -> Option<u64> {
        match self {
            Policy::IpHash => Some(match client?.to_canonical() {
                IpAddr::V4(address) => hash(&address.octets()),
                IpAddr::V6(address) => hash(&address.octets()[..8]),
            }),
            Policy::Hash(key) => key.find(head).map(hash),
            _ => None,
        }
    }
}

impl Key {
    fn find<'h>(&'h self, head: &'h [u8]) -> Option<&'h [u8]> {
        match self {
            Key::Header(name) => fields(head, name.as_bytes()).next(),
            Key::Cookie(name) => fields(head, b"cookie")
                .flat_map(|field| field.split(|&byte| byte == b';'))
                .find_map(|pair| value(pair.trim_ascii(), name.as_bytes())),
            Key::Path => Some(target(head).0),
            Key::Query(name) => {
                let mut pairs = target(head).1?.split(|&byte| byte == b'&');
                pairs.find_map(|pair| value(pair, name.as_bytes()))
            }
        }
    }
}

/// The values of the fields of this name.
fn fields<'h>(head: &'h [u8], name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    let lines = head.split(|&byte| byte == b'\n').skip(1);
    // A body may follow.
    lines.take_while(|line| !line.trim_ascii().is_empty()).filter_map(move |line| {
        let colon = memchr::memchr(b':', line)?;
        let (found, value) = (&line[..colon], &line[colon + 1..]);
        found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// The path and the query of the target, whichever form it has (RFC 9112 3.2).
fn target(head: &[u8]) -> (&[u8], Option<&[u8]>) {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut target = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    if let Some(scheme) = memchr::memmem::find(target, b"://")
        && !target.starts_with(b"/")
    {
        let rest = &target[scheme + 3..];
        let authority = rest.iter().position(|&byte| byte == b'/' || byte == b'?');
        target = &rest[authority.unwrap_or(rest.len())..];
    }
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

/// The value of a pair with this name.
fn value<'h>(pair: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    pair.strip_prefix(name)?.strip_prefix(b"=")
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

    const HEAD: &[u8] = b"GET /a/b?x=1&user=7&users=8 HTTP/1.1\r\nHost: h\r\nX-User:  ann \r\n\
        COOKIE: a=b; sid=s1\r\nCookie: sid=s2\r\n\r\nX-Body: no\r\n";

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

    #[test]
    fn keys_are_found_where_they_are() {
        let absolute = b"GET http://h:1/a/b?user=7 HTTP/1.1\r\n\r\n";
        for (key, head, found) in [
            (Key::Header("x-user".into()), HEAD, Some("ann")),
            (Key::Header("x-use".into()), HEAD, None),
            (Key::Header("x-body".into()), HEAD, None),
            (Key::Cookie("sid".into()), HEAD, Some("s1")),
            (Key::Cookie("id".into()), HEAD, None),
            (Key::Path, HEAD, Some("/a/b")),
            (Key::Query("user".into()), HEAD, Some("7")),
            (Key::Query("use".into()), HEAD, None),
            (Key::Path, absolute, Some("/a/b")),
            (Key::Query("user".into()), absolute, Some("7")),
            (Key::Path, b"GET http://h HTTP/1.1\r\n\r\n", Some("")),
            (Key::Path, b"GET /go?to=http://h/ HTTP/1.1\r\n\r\n", Some("/go")),
            (Key::Query("to".into()), b"OPTIONS * HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(key.find(head), found.map(str::as_bytes), "{key:?}");
        }
    }

    #[test]
    fn an_address_is_a_key_by_its_network() {
        let key = |address: &str| Policy::IpHash.key(HEAD, Some(address.parse().unwrap()));
        assert_eq!(key("2001:db8::1"), key("2001:db8::2"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(Policy::Queue.key(HEAD, None), None);
    }
}
