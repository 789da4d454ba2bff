//! The configured routes: what happens to a request, by host and path.

use std::fmt;
use std::str::FromStr;

use crate::config::app::AppId;

/// One route. If several routes fit a request, the most exact host decides, then the longest path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The hosts of the route.
    pub host: HostPattern,
    /// The paths of the route.
    pub path: PathPrefix,
    /// What happens to the request.
    pub to: Destination,
}

/// Hosts without port, in any case: `*`, `a.example` or `*.a.example`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host that no other route names, and requests without a host.
    #[default]
    Any,
    /// This host.
    Exact(String),
    /// Every host with this suffix, which begins with a dot. The name after the dot itself does not fit.
    Under(String),
}

/// A path and everything below it. `/api` fits `/api`, `/api/` and `/api/users`, but not `/apis`. It is
/// compared byte by byte with the path that the client sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathPrefix(String);

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A backend of this app answers it.
    App {
        /// The app.
        app: AppId,
        /// How the app sees the path.
        prefix: Prefix,
    },
    /// The client is redirected.
    Redirect(Redirect),
}

/// How an app sees the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefix {
    /// The path as the client sent it.
    #[default]
    Keep,
    /// The path without the prefix, which goes into `X-Forwarded-Prefix`.
    Strip,
}

/// An answer that redirects the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    status: RedirectStatus,
    location: Vec<LocationPart>,
}

/// How long a redirect holds, and whether the method stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectStatus {
    /// 301: permanent. Clients turn other methods into GET.
    MovedPermanently,
    /// 302: temporary. Clients turn other methods into GET.
    Found,
    /// 307: temporary, with the same method and body.
    TemporaryRedirect,
    /// 308: permanent, with the same method and body.
    #[default]
    PermanentRedirect,
}

/// A host pattern, a path or a location is not usable. The text is one sentence with a remedy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRoute(String);

/// A part of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LocationPart {
    Text(String),
    /// The request's host without its port.
    Host,
    /// The request's path with its query.
    Path,
}

impl Route {
    /// Returns what is wrong with the routes of this many apps, in one sentence with a remedy.
    pub(crate) fn check_all(routes: &[Route], apps: usize) -> Result<(), String> {
        for (index, route) in routes.iter().enumerate() {
            let Route { host, path, to } = route;
            if let Destination::App { app, .. } = to
                && app.index() >= apps
            {
                return Err(format!(
                    "the route for {host}{path} leads to an app that does not exist; add the app or the route of another one"
                ));
            }
            if routes[..index].iter().any(|other| other.host == *host && other.path == *path) {
                return Err(format!("there are two routes for {host}{path}; remove one"));
            }
        }
        Ok(())
    }

    /// Whether it redirects to the same place over TLS, but none of `routes` serves that place. Requests
    /// over TLS go to the next shorter path of the same host.
    pub fn is_dead_end_over_tls(&self, routes: &[Route]) -> bool {
        let serves = |other: &Route| {
            let fits = other.host == self.host && other.path.fits(self.path.as_bytes());
            fits && !other.to.only_secures()
        };
        self.to.only_secures() && !routes.iter().any(serves)
    }
}

impl HostPattern {
    /// Whether it fits this host, which has no port.
    pub(crate) fn fits(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        match self {
            HostPattern::Any => true,
            HostPattern::Exact(name) => host == *name,
            HostPattern::Under(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        }
    }
}

impl Destination {
    pub(crate) fn only_secures(&self) -> bool {
        matches!(self, Destination::Redirect(redirect) if redirect.only_secures())
    }
}

impl PathPrefix {
    /// The path without a slash at the end. It is empty for every path.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether `path`, which has no query, is this path or below it.
    pub(crate) fn fits(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.as_bytes());
        // The empty prefix also fits `*`.
        rest.is_some_and(|rest| self.0.is_empty() || matches!(rest.first(), None | Some(b'/')))
    }
}

impl Redirect {
    /// A redirect to a location with a scheme, or with a leading slash on the same host. `{host}` stands
    /// for the request's host without port, and `{path}` for its path with the query.
    pub fn new(status: RedirectStatus, location: &str) -> Result<Redirect, BadRoute> {
        let lower = location.to_ascii_lowercase();
        let absolute = lower.starts_with("http://") || lower.starts_with("https://");
        // `//` and a lone `{path}` could lead to any host that a client puts into its path.
        let local = location.starts_with('/') && !location.starts_with("//");
        let wrong = |what: &str| {
            BadRoute(format!(
                "redirect location {location:?} {what}; use https://{{host}}{{path}}, https://a.example/b or /b"
            ))
        };
        let nowhere = location.contains("//{path}") || location.starts_with("/{path}");
        if !(absolute || local) || nowhere || lower.ends_with("//") {
            return Err(wrong("is neither an http address nor a path"));
        }
        if !location.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("has a blank or a letter beyond ASCII"));
        }
        let mut pieces = Vec::new();
        let mut rest = location;
        while let Some(start) = rest.find('{') {
            let (text, placeholder) = rest.split_at(start);
            let known = [("{host}", LocationPart::Host), ("{path}", LocationPart::Path)];
            let found = known.into_iter().find(|(name, _)| placeholder.starts_with(name));
            let Some((name, piece)) = found else {
                return Err(wrong("has a placeholder other than {host} and {path}"));
            };
            pieces.extend([LocationPart::Text(text.to_owned()), piece]);
            rest = &placeholder[name.len()..];
        }
        pieces.push(LocationPart::Text(rest.to_owned()));
        Ok(Redirect { status, location: pieces })
    }

    /// A redirect to the same host and path over TLS on this port.
    pub fn to_https(status: RedirectStatus, port: u16) -> Redirect {
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let text = |text: &str| LocationPart::Text(text.to_owned());
        Redirect {
            status,
            location: vec![text("https://"), LocationPart::Host, text(&port), LocationPart::Path],
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status.code()
    }

    /// Whether it leads to the same host and path over TLS.
    pub(crate) fn only_secures(&self) -> bool {
        let mut pieces =
            self.location.iter().filter(|piece| **piece != LocationPart::Text(String::new()));
        let scheme = pieces.next().is_some_and(
            |piece| matches!(piece, LocationPart::Text(text) if text.eq_ignore_ascii_case("https://")),
        );
        let host = pieces.next() == Some(&LocationPart::Host);
        let path = pieces.next_back() == Some(&LocationPart::Path);
        let is_port = |text: &str| {
            text.strip_prefix(':')
                .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let rest = pieces.all(|piece| matches!(piece, LocationPart::Text(text) if is_port(text)));
        scheme && host && path && rest
    }

    /// The location for a request to `host`, without port, and `target`. None if the location needs a
    /// host and the request has none.
    pub(crate) fn location(&self, host: &[u8], target: &[u8]) -> Option<String> {
        let mut location = String::new();
        for piece in &self.location {
            match piece {
                LocationPart::Text(text) => location.push_str(text),
                LocationPart::Host if host.is_empty() => return None,
                LocationPart::Host => location.push_str(std::str::from_utf8(host).ok()?),
                // `*` asks about the server as a whole.
                LocationPart::Path if !target.starts_with(b"/") => location.push('/'),
                LocationPart::Path => location.push_str(std::str::from_utf8(target).ok()?),
            }
        }
        Some(location)
    }
}

impl RedirectStatus {
    /// The status code.
    pub fn code(self) -> u16 {
        match self {
            RedirectStatus::MovedPermanently => 301,
            RedirectStatus::Found => 302,
            RedirectStatus::TemporaryRedirect => 307,
            RedirectStatus::PermanentRedirect => 308,
        }
    }
}

impl TryFrom<u16> for RedirectStatus {
    type Error = BadRoute;

    fn try_from(code: u16) -> Result<Self, BadRoute> {
        match code {
            301 => Ok(RedirectStatus::MovedPermanently),
            302 => Ok(RedirectStatus::Found),
            307 => Ok(RedirectStatus::TemporaryRedirect),
            308 => Ok(RedirectStatus::PermanentRedirect),
            _ => Err(BadRoute(format!(
                "{code} is not a redirect status; use 308 or 301 for good, 307 or 302 for now"
            ))),
        }
    }
}

impl FromStr for HostPattern {
    type Err = BadRoute;

    fn from_str(text: &str) -> Result<Self, BadRoute> {
        if text == "*" {
            return Ok(HostPattern::Any);
        }
        let lower = text.to_ascii_lowercase();
        let lower = lower.strip_suffix('.').unwrap_or(&lower);
        let (name, under) = match lower.strip_prefix('*') {
            Some(suffix) => (suffix.strip_prefix('.').unwrap_or(""), true),
            None => (lower, false),
        };
        let literal = name.starts_with('[') && name.ends_with(']') && !under;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let named = name.split('.').all(|label| !label.is_empty()) && name.bytes().all(plain);
        let inside = name.trim_start_matches('[').trim_end_matches(']');
        let address = literal && inside.parse::<std::net::Ipv6Addr>().is_ok();
        if name.len() > MAX_HOST_BYTES || !(named || address) {
            return Err(BadRoute(format!(
                "host {text:?} is not a host pattern; use a.example, *.a.example or *, without scheme, port and path"
            )));
        }
        Ok(match under {
            true => HostPattern::Under(format!(".{name}")),
            false => HostPattern::Exact(name.to_owned()),
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Any => f.write_str("*"),
            HostPattern::Exact(name) => f.write_str(name),
            HostPattern::Under(suffix) => write!(f, "*{suffix}"),
        }
    }
}

impl FromStr for PathPrefix {
    type Err = BadRoute;

    fn from_str(text: &str) -> Result<Self, BadRoute> {
        if let Some((before, _)) = text.split_once('*') {
            let whole = before.rsplit_once('/').map_or("", |(whole, _)| whole);
            let whole = PathPrefix(whole.to_owned());
            return Err(BadRoute(format!(
                "path {text:?} has a star, which has no meaning here; use {whole}, which also fits everything below it"
            )));
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'?' && byte != b'#';
        if !text.starts_with('/') || !text.bytes().all(plain) {
            return Err(BadRoute(format!(
                "path {text:?} is not a path prefix; begin it with /, leave out the query, and write other than ASCII as %-escapes"
            )));
        }
        Ok(PathPrefix(text.strip_suffix('/').unwrap_or(text).to_owned()))
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

/// The largest host name (RFC 1035 2.3.4).
pub(crate) const MAX_HOST_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_patterns_are_read_without_case_and_ports() {
        let parsed = |text: &str| text.parse::<HostPattern>();
        assert_eq!(parsed("*"), Ok(HostPattern::Any));
        assert_eq!(parsed("A.Example."), Ok(HostPattern::Exact("a.example".into())));
        assert_eq!(parsed("*.a.example"), Ok(HostPattern::Under(".a.example".into())));
        assert_eq!(parsed("[::1]"), Ok(HostPattern::Exact("[::1]".into())));
        for bad in
            ["", "*a.example", "*.", "a..b", "a:80", "http://a", "a/b", "[::1", "*.[::1]", "ä"]
        {
            assert!(parsed(bad).unwrap_err().to_string().contains("use a.example"), "{bad}");
        }
    }

    #[test]
    fn path_prefixes_end_at_segments() {
        let fits =
            |prefix: &str, path: &str| prefix.parse::<PathPrefix>().unwrap().fits(path.as_bytes());
        for (prefix, path) in [
            ("/", "/"),
            ("/", "/a"),
            ("/", "*"),
            ("/a", "/a"),
            ("/a", "/a/"),
            ("/a", "/a/b"),
            ("/a/", "/a"),
            ("/a/b", "/a/b//c"),
        ] {
            assert!(fits(prefix, path), "{prefix} {path}");
        }
        // Bytes are compared as they came: neither case, escapes nor dots are read.
        for (prefix, path) in [
            ("/a", "/ab"),
            ("/a", "/"),
            ("/a", "/A"),
            ("/a", "/%61"),
            ("/a", "//a"),
            ("/a", "/b/../a"),
        ] {
            assert!(!fits(prefix, path), "{prefix} {path}");
        }
        for bad in ["", "a", "/a?b", "/a b", "/ä", "/a#b"] {
            assert!(bad.parse::<PathPrefix>().is_err(), "{bad}");
        }
        for (bad, remedy) in [("/a/*", "/a"), ("/*", "/"), ("/a/*/b", "/a"), ("*", "/")] {
            let message = bad.parse::<PathPrefix>().unwrap_err().to_string();
            assert!(message.contains(&format!("use {remedy}, which")), "{message}");
        }
    }

    #[test]
    fn redirects_fill_in_host_and_path_only() {
        let to = |location: &str| Redirect::new(RedirectStatus::default(), location);
        let at = |location: &str, host: &str, target: &str| {
            to(location).unwrap().location(host.as_bytes(), target.as_bytes())
        };
        assert_eq!(at("https://b/c", "a", "/x").as_deref(), Some("https://b/c"));
        assert_eq!(at("https://{host}{path}", "a", "/x?y").as_deref(), Some("https://a/x?y"));
        assert_eq!(at("/new{path}", "a", "//evil").as_deref(), Some("/new//evil"));
        assert_eq!(at("https://b{path}", "", "*").as_deref(), Some("https://b/"));
        assert_eq!(at("https://{host}/", "", "/"), None);
        let https = Redirect::to_https(RedirectStatus::MovedPermanently, 8443);
        assert_eq!(https.location(b"[::1]", b"/x").as_deref(), Some("https://[::1]:8443/x"));
        for bad in ["", "b", "//b", "{path}", "/{path}", "ftp://b", "https://b/ c", "/{user}", "/{"]
        {
            assert!(to(bad).is_err(), "{bad}");
        }
        assert!(RedirectStatus::try_from(303).unwrap_err().to_string().contains("use 308"));
    }
}
