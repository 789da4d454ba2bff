//! The key by which a policy keeps requests together on one backend.

use std::net::IpAddr;

use crate::config::policy::{Key, Policy};
use crate::queue::dispatch::ring::hash;

impl Policy {
    /// The hash of the part of a request that the policy keeps together: of its header, or of its
    /// client's address. Other policies pay nothing for it.
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

/// The values of the fields with this name.
fn fields<'h>(head: &'h [u8], name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    let lines = head.split(|&byte| byte == b'\n').skip(1);
    // A body may follow.
    lines.take_while(|line| !line.trim_ascii().is_empty()).filter_map(move |line| {
        let colon = memchr::memchr(b':', line)?;
        let (found, value) = (&line[..colon], &line[colon + 1..]);
        found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// The path and the query of the target, in each of its forms (RFC 9112 3.2).
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET /a/b?x=1&user=7&users=8 HTTP/1.1\r\nHost: h\r\nX-User:  ann \r\n\
        COOKIE: a=b; sid=s1\r\nCookie: sid=s2\r\n\r\nX-Body: no\r\n";

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
