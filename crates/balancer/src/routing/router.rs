//! Finds the route of a request. Hosts are looked up in sorted tables, and paths are compared from the
//! longest. Nothing is copied.

use crate::config::Config;
use crate::config::app::AppId;
use crate::config::route::{
    Destination, HostPattern, MAX_HOST_BYTES, PathPrefix, Prefix, Redirect, Route,
};
use crate::h1::fields::list;
use crate::h1::outline::Outline;
use crate::net::peer::Scheme;

/// What happens to the requests of a listener.
pub(crate) enum ListenerRoute {
    /// The first app gets all of them.
    First,
    /// The routes decide.
    Routes,
    /// All are redirected.
    Redirect(Redirect),
    /// All are redirected to the same place over TLS, except those that came over TLS to a proxy in
    /// front.
    Secure(Redirect, Box<ListenerRoute>),
}

/// Why no app answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No route is for this host.
    UnknownHost,
    /// No route of this host is for this path.
    UnknownPath,
    /// A route sends the client elsewhere.
    Redirected { status: u16, location: String },
    /// A route redirects the client to its own host, and it named none.
    NoHost,
}

/// The routes of a balancer, prepared for lookup.
pub(crate) struct Router {
    /// Both sorted by host.
    exact: Vec<(Box<[u8]>, Paths)>,
    under: Vec<(Box<[u8]>, Paths)>,
    any: Paths,
}

/// The beginning of the field that tells the stripped prefix.
const FORWARDED_PREFIX: &[u8] = b"X-Forwarded-Prefix: ";

/// The longest path first.
type Paths = Vec<(PathPrefix, Destination)>;

impl ListenerRoute {
    /// By listener.
    pub(crate) fn all(config: &Config) -> Box<[ListenerRoute]> {
        let served =
            || if config.routes.is_empty() { ListenerRoute::First } else { ListenerRoute::Routes };
        let entry = |redirect: &Option<Redirect>| match redirect.clone() {
            Some(redirect) if redirect.only_secures() => {
                ListenerRoute::Secure(redirect, Box::new(served()))
            }
            Some(redirect) => ListenerRoute::Redirect(redirect),
            None => served(),
        };
        config.listeners.iter().map(|listener| entry(&listener.redirect)).collect()
    }

    /// The redirect that answers a request, unless an app does.
    pub(crate) fn redirect<'r>(
        &'r self,
        router: &'r Router,
        head: &[u8],
        outline: &Outline,
        scheme: Scheme,
    ) -> Option<&'r Redirect> {
        match self {
            ListenerRoute::First => None,
            ListenerRoute::Routes => match router.find(head, outline, scheme) {
                Ok((_, Destination::Redirect(redirect))) => Some(redirect),
                Ok((_, Destination::App { .. })) | Err(_) => None,
            },
            ListenerRoute::Secure(_, served) if scheme == Scheme::Https => {
                served.redirect(router, head, outline, scheme)
            }
            ListenerRoute::Redirect(redirect) | ListenerRoute::Secure(redirect, _) => {
                Some(redirect)
            }
        }
    }

    /// The app for a request that the client sent by `scheme`. `head` is the request for the backend,
    /// and it gets the changes that the route makes.
    pub(crate) fn route(
        &self,
        router: &Router,
        head: &mut Vec<u8>,
        scheme: Scheme,
    ) -> Result<AppId, NoRoute> {
        match self {
            ListenerRoute::First => Ok(AppId::FIRST),
            ListenerRoute::Routes => router.route(head, scheme),
            ListenerRoute::Secure(_, served) if scheme == Scheme::Https => {
                served.route(router, head, scheme)
            }
            ListenerRoute::Redirect(redirect) | ListenerRoute::Secure(redirect, _) => {
                Err(redirected(redirect, head, &Outline::of(head)))
            }
        }
    }
}

impl Router {
    pub(crate) fn new(routes: &[Route]) -> Self {
        let mut router = Router { exact: Vec::new(), under: Vec::new(), any: Vec::new() };
        for Route { host, path, to } in routes {
            let paths = match host {
                HostPattern::Any => &mut router.any,
                HostPattern::Exact(name) => entry(&mut router.exact, name),
                HostPattern::Under(suffix) => entry(&mut router.under, suffix),
            };
            let at =
                paths.partition_point(|(other, _)| other.as_bytes().len() >= path.as_bytes().len());
            paths.insert(at, (path.clone(), to.clone()));
        }
        router
    }

    fn route(&self, head: &mut Vec<u8>, scheme: Scheme) -> Result<AppId, NoRoute> {
        let outline = Outline::of(head);
        match self.find(head, &outline, scheme)? {
            (_, Destination::Redirect(redirect)) => Err(redirected(redirect, head, &outline)),
            (_, Destination::App { app, prefix: Prefix::Keep }) => Ok(*app),
            (prefix, Destination::App { app, prefix: Prefix::Strip }) => {
                strip(head, &outline, prefix.as_bytes());
                Ok(*app)
            }
        }
    }

    fn find(
        &self,
        head: &[u8],
        outline: &Outline,
        scheme: Scheme,
    ) -> Result<&(PathPrefix, Destination), NoRoute> {
        let host = host_name(&head[outline.host.clone()]);
        let target = &head[outline.target.clone()];
        let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
        let paths = self.paths(host).ok_or(NoRoute::UnknownHost)?;
        // A redirect to TLS does not apply to requests over TLS, which would loop.
        let is_for = |to: &Destination| !(scheme == Scheme::Https && to.only_secures());
        let found = paths.iter().find(|(path, to)| path.fits(&target[..end]) && is_for(to));
        found.ok_or(NoRoute::UnknownPath)
    }

    /// The routes of the most exact host that has any.
    fn paths(&self, host: &[u8]) -> Option<&Paths> {
        let mut lower = [0; MAX_HOST_BYTES];
        let any = Some(&self.any).filter(|paths| !paths.is_empty());
        let Some(lower) = lower.get_mut(..host.len()) else { return any };
        lower.copy_from_slice(host);
        lower.make_ascii_lowercase();
        let dots = (0..lower.len()).filter(|&at| lower[at] == b'.');
        lookup(&self.exact, lower)
            .or_else(|| {
                // The leftmost dot gives the longest suffix. The part before the dot is not empty.
                let mut suffixes = dots.filter(|&at| at > 0).map(|at| &lower[at..]);
                if self.under.is_empty() {
                    return None;
                }
                suffixes.find_map(|suffix| lookup(&self.under, suffix))
            })
            .or(any)
    }
}

fn entry<'p>(table: &'p mut Vec<(Box<[u8]>, Paths)>, host: &str) -> &'p mut Paths {
    let at = match table.binary_search_by(|(name, _)| (**name).cmp(host.as_bytes())) {
        Ok(at) => at,
        Err(at) => {
            table.insert(at, (host.as_bytes().into(), Vec::new()));
            at
        }
    };
    &mut table[at].1
}

fn lookup<'p>(table: &'p [(Box<[u8]>, Paths)], host: &[u8]) -> Option<&'p Paths> {
    let at = table.binary_search_by(|(name, _)| (**name).cmp(host)).ok()?;
    Some(&table[at].1)
}

/// The host without its port and without a final dot.
fn host_name(host: &[u8]) -> &[u8] {
    let end = match host.first() {
        Some(b'[') => host.iter().position(|&byte| byte == b']').map(|end| end + 1),
        _ => host.iter().position(|&byte| byte == b':'),
    };
    let name = &host[..end.unwrap_or(host.len())];
    name.strip_suffix(b".").unwrap_or(name)
}

fn redirected(redirect: &Redirect, head: &[u8], outline: &Outline) -> NoRoute {
    let host = host_name(&head[outline.host.clone()]);
    match redirect.location(host, &head[outline.target.clone()]) {
        Some(location) => NoRoute::Redirected { status: redirect.status(), location },
        None => NoRoute::NoHost,
    }
}

/// Takes the prefix off the path, and adds the field that tells the app.
fn strip(head: &mut Vec<u8>, outline: &Outline, prefix: &[u8]) {
    if prefix.is_empty() {
        return;
    }
    let start = outline.target.start;
    let rest = start + prefix.len();
    let rooted = head.get(rest) == Some(&b'/');
    head.drain(start + usize::from(!rooted)..rest);
    if !rooted {
        head[start] = b'/';
    }
    let before = take_stripped_prefixes(head);
    // The field goes before the empty line at the end.
    head.truncate(head.len() - 2);
    head.extend_from_slice(FORWARDED_PREFIX);
    head.extend_from_slice(&before);
    head.extend_from_slice(prefix);
    head.extend_from_slice(b"\r\n\r\n");
}

/// Takes out the prefixes that a trusted proxy has stripped before. Apps read only one field.
fn take_stripped_prefixes(head: &mut Vec<u8>) -> Vec<u8> {
    let (mut told, mut at) = (Vec::new(), 0);
    while let Some(length) = memchr::memchr(b'\n', &head[at..]) {
        let line = at..at + length + 1;
        match head[line.clone()].split_at_checked(FORWARDED_PREFIX.len()) {
            Some((name, value)) if name.eq_ignore_ascii_case(FORWARDED_PREFIX) => {
                let parts = list(value).map(|part| part.strip_suffix(b"/").unwrap_or(part));
                parts.for_each(|part| told.extend_from_slice(part));
                head.drain(line);
            }
            _ => at = line.end,
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::config::listener::Listener;
    use crate::config::route::RedirectStatus;

    /// Each rule leads to an app of its own number.
    fn router(rules: &[&str]) -> Router {
        let route = |(index, rule): (usize, &&str)| {
            let (host, path) = rule.split_at(rule.find('/').unwrap());
            let to = Destination::App { app: AppId::nth(index), prefix: Prefix::Strip };
            Route { host: host.parse().unwrap(), path: path.parse().unwrap(), to }
        };
        Router::new(&rules.iter().enumerate().map(route).collect::<Vec<_>>())
    }

    /// The entry of a listener that redirects and has no routes.
    fn entry(location: &str) -> ListenerRoute {
        let redirect = Redirect::new(RedirectStatus::PermanentRedirect, location).unwrap();
        let mut listener = Listener::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        listener.redirect = Some(redirect);
        let config = Config { listeners: vec![listener], ..Config::default() };
        ListenerRoute::all(&config).into_iter().next().unwrap()
    }

    fn status(none: &NoRoute) -> u16 {
        match none {
            NoRoute::UnknownHost => 421,
            NoRoute::UnknownPath => 404,
            NoRoute::Redirected { status, .. } => *status,
            NoRoute::NoHost => 400,
        }
    }

    fn request(host: &str, target: &str) -> Vec<u8> {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nA: b\r\n\r\n").into_bytes()
    }

    #[test]
    fn the_most_exact_host_and_the_longest_path_decide() {
        let rules = [
            "a.example/",
            "a.example/x",
            "a.example/x/y",
            "*.a.example/",
            "*.b.a.example/",
            "*/z",
            "[::1]/",
        ];
        let router = router(&rules);
        let found = |host: &str, target: &str| match router
            .route(&mut request(host, target), Scheme::Http)
        {
            Ok(app) => rules[app.index()].to_owned(),
            Err(none) => status(&none).to_string(),
        };
        for (host, target, expected) in [
            ("a.example", "/", "a.example/"),
            ("A.Example:8080", "/w", "a.example/"),
            ("a.example.", "/x", "a.example/x"),
            ("a.example.:80", "/x?/y", "a.example/x"),
            ("a.example", "/xy", "a.example/"),
            ("a.example", "/x/y/z", "a.example/x/y"),
            ("a.example", "*", "a.example/"),
            ("c.a.example", "/", "*.a.example/"),
            ("d.c.a.example", "/", "*.a.example/"),
            ("c.b.a.example", "/", "*.b.a.example/"),
            ("b.a.example", "/", "*.a.example/"),
            (".a.example", "/", "404"),
            ("xa.example", "/z", "*/z"),
            ("", "/z/1", "*/z"),
            ("other", "/", "404"),
            ("[::1]:80", "/", "[::1]/"),
            // A host that is named has no part in the rules for the others.
            ("c.a.example", "/z", "*.a.example/"),
        ] {
            assert_eq!(found(host, target), expected, "{host} {target}");
        }
        assert_eq!(found(&"a.".repeat(10_000), "/z"), "*/z");
        let named = self::router(&["a.example/"]);
        let unknown = named.route(&mut request("b.example", "/"), Scheme::Http);
        assert_eq!(unknown.unwrap_err(), NoRoute::UnknownHost);
    }

    #[test]
    fn a_prefix_is_stripped_and_told() {
        let router = router(&["*/api/v1"]);
        for (target, expected) in [
            ("/api/v1", "/"),
            ("/api/v1/", "/"),
            ("/api/v1/users?a=/api/v1", "/users?a=/api/v1"),
            ("/api/v1?a", "/?a"),
            ("/api/v1//b", "//b"),
        ] {
            let mut head = request("h", target);
            router.route(&mut head, Scheme::Http).unwrap();
            let expected = format!(
                "GET {expected} HTTP/1.1\r\nHost: h\r\nA: b\r\nX-Forwarded-Prefix: /api/v1\r\n\r\n"
            );
            assert_eq!(String::from_utf8(head).unwrap(), expected);
        }
    }

    #[test]
    fn a_prefix_goes_behind_what_a_proxy_has_stripped() {
        for (told, expected) in [("/shop", "/shop/v1"), ("/a/, /b", "/a/b/v1"), ("/", "/v1")] {
            let fields = format!("x-forwarded-prefix: {told}\r\nA: b\r\n");
            let mut head = format!("GET /v1/c HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
            router(&["*/v1"]).route(&mut head, Scheme::Http).unwrap();
            let fields = format!("A: b\r\nX-Forwarded-Prefix: {expected}\r\n");
            let expected = format!("GET /c HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            assert_eq!(String::from_utf8(head).unwrap(), expected);
        }
    }

    #[test]
    fn redirects_keep_what_they_are_told_to() {
        let entry = entry("https://{host}/b{path}");
        let failure =
            entry.route(&router(&[]), &mut request("h:80", "/a?b"), Scheme::Https).unwrap_err();
        assert!(
            matches!(&failure, NoRoute::Redirected { status: 308, location } if location == "https://h/b/a?b"),
            "{failure:?}"
        );
        let failure = entry.route(&router(&[]), &mut request("", "/"), Scheme::Http).unwrap_err();
        assert_eq!(failure, NoRoute::NoHost);
    }

    /// Behind a proxy that ends TLS it would come back for ever.
    #[test]
    fn a_request_over_tls_is_not_redirected_to_https() {
        for location in ["https://{host}{path}", "https://{host}:8443{path}"] {
            let route =
                |scheme| entry(location).route(&router(&[]), &mut request("h:80", "/a?b"), scheme);
            assert_eq!(status(&route(Scheme::Http).unwrap_err()), 308, "{location}");
            assert_eq!(route(Scheme::Https).unwrap(), AppId::FIRST, "{location}");
        }
    }

    #[test]
    fn a_route_to_https_is_for_what_came_without_tls() {
        let https = Redirect::to_https(RedirectStatus::PermanentRedirect, 443);
        let elsewhere =
            Redirect::new(RedirectStatus::PermanentRedirect, "https://b.example{path}").unwrap();
        let app = Destination::App { app: AppId::FIRST, prefix: Prefix::Keep };
        let rules = [
            ("/", app),
            ("/in", Destination::Redirect(https.clone())),
            ("/in/b", Destination::Redirect(elsewhere)),
        ];
        let route = |(path, to): (&str, Destination)| Route {
            host: "a.example".parse().unwrap(),
            path: path.parse().unwrap(),
            to,
        };
        let mut routes: Vec<_> = rules.into_iter().map(route).collect();
        let ask = |routes: &[Route], path, scheme| {
            let answer = Router::new(routes).route(&mut request("a.example", path), scheme);
            answer.map_err(|none| status(&none))
        };
        assert_eq!(ask(&routes, "/in/a", Scheme::Http), Err(308));
        assert_eq!(ask(&routes, "/in/a", Scheme::Https), Ok(AppId::FIRST));
        assert_eq!(ask(&routes, "/in/b", Scheme::Https), Err(308));
        routes.remove(0);
        assert_eq!(ask(&routes, "/in/a", Scheme::Https), Err(404));
    }
}
