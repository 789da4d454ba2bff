//! Request targets (RFC 9112 3.2) and `Host` values.

use crate::h1::Flaw;

/// A request target as it is passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// Goes before `path`, because an absolute target with only a query has no slash.
    pub(crate) slash: &'static str,
    /// Origin form or `*`, as sent.
    pub(crate) path: &'a str,
    /// The authority of an absolute target. It replaces `Host`.
    pub(crate) authority: Option<&'a str>,
}

impl Target<'_> {
    /// Whether it is passed on as it was sent.
    pub(crate) fn is_path(&self) -> bool {
        self.slash.is_empty() && self.authority.is_none()
    }
}

pub(crate) fn parse_target<'a>(method: &str, target: &'a str) -> Result<Target<'a>, Flaw> {
    // Servers disagree about the character that such a byte belongs to.
    if !target.is_ascii() {
        return Err("the request target has bytes outside of ASCII; encode them with %");
    }
    if target.contains('#') {
        return Err("the request target has a fragment");
    }
    if target.starts_with('/') {
        return Ok(Target { slash: "", path: target, authority: None });
    }
    if target == "*" {
        let allowed = method == "OPTIONS";
        return allowed
            .then_some(Target { slash: "", path: "*", authority: None })
            .ok_or("only OPTIONS may ask for *");
    }
    let rest =
        strip_scheme(target).ok_or("the request target is neither a path nor an http address")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() {
        return Err("the request target names no host");
    }
    check_host(authority.as_bytes())?;
    let slash = match path {
        "" if method == "OPTIONS" => "*",
        path if path.starts_with('/') => "",
        _ => "/",
    };
    Ok(Target { slash, path, authority: Some(authority) })
}

/// RFC 9110 7.2: `uri-host [ ":" port ]`, or nothing. Different servers read a comma or user information
/// in it differently.
pub(crate) fn check_host(value: &[u8]) -> Result<(), Flaw> {
    const FLAW: Flaw = "Host is not a host name with an optional port";
    let after = match value.strip_prefix(b"[") {
        Some(literal) => {
            let end = literal.iter().position(|&byte| !is_in_literal(byte));
            let end = end.filter(|&end| end > 0 && literal[end] == b']').ok_or(FLAW)?;
            &literal[end + 1..]
        }
        None => match value.iter().position(|&byte| !is_in_name(byte)) {
            Some(0) => return Err(FLAW),
            Some(end) => &value[end..],
            None => return Ok(()),
        },
    };
    let right = match after {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    right.then_some(()).ok_or(FLAW)
}

/// RFC 3986 3.2.2: IPv6 addresses. Future kinds are refused.
fn is_in_literal(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b':' || byte == b'.'
}

/// RFC 3986 3.2.2, without the comma.
fn is_in_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'%' | b'!'
        | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'=')
}

fn strip_scheme(target: &str) -> Option<&str> {
    ["http://", "https://"].into_iter().find_map(|scheme| {
        let head = target.as_bytes().get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme.as_bytes()).then(|| &target[scheme.len()..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9112_3_2_forms() {
        let parsed = |method, target| {
            parse_target(method, target).map(|t| (format!("{}{}", t.slash, t.path), t.authority))
        };
        assert_eq!(parsed("GET", "/a?b"), Ok(("/a?b".into(), None)));
        assert_eq!(parsed("GET", "//a/../b"), Ok(("//a/../b".into(), None)));
        assert_eq!(parsed("GET", "HTTP://h:80/a"), Ok(("/a".into(), Some("h:80"))));
        assert_eq!(parsed("GET", "http://h"), Ok(("/".into(), Some("h"))));
        assert_eq!(parsed("GET", "https://h?q"), Ok(("/?q".into(), Some("h"))));
        assert_eq!(parsed("OPTIONS", "http://h"), Ok(("*".into(), Some("h"))));
        assert_eq!(parsed("OPTIONS", "*"), Ok(("*".into(), None)));
        for bad in [
            "*",
            "a",
            "h:80",
            "http://",
            "http:///a",
            "http://u@h/",
            "ftp://h/",
            "/a#b",
            "/\u{e4}",
            "http://h,i/",
            "?",
        ] {
            assert!(parse_target("GET", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rfc9110_7_2_hosts() {
        for good in ["", "a", "a.b:80", "a:", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b"] {
            assert!(check_host(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            "a b", "a,b", "u@a", "a/b", "a:80:81", "a:x", "a?b", ":80", "[::1", "[]", "[::1]x",
            "a\\b", "a#b",
        ] {
            assert!(check_host(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
