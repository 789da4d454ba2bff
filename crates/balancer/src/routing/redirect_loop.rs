//! Redirects that lead back to themselves, at once or through others.

use crate::config::Config;
use crate::config::listener::Listener;
use crate::config::route::{Destination, HostPattern};
use crate::h1::outline::Outline;
use crate::net::peer::Scheme;
use crate::routing::router::{ListenerRoute, Router};

/// What redirects clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirecting {
    /// The listener with this index in [`Config::listeners`].
    Listener(usize),
    /// The route with this index in [`Config::routes`].
    Route(usize),
}

/// Redirects that a client follows before it gives up (Fetch 4.4: HTTP-redirect fetch).
const MAX_FOLLOWED_REDIRECTS: usize = 20;

/// A host that only the pattern `*` fits.
const UNNAMED_HOST: &str = "some.invalid";

/// Follows the redirects of a balancer like a client.
struct Follower<'c> {
    listeners: &'c [Listener],
    listener_routes: Box<[ListenerRoute]>,
    router: Router,
    /// The hosts that this balancer serves.
    own: Vec<&'c HostPattern>,
}

/// The parts of a request that decide where it goes.
struct Visit {
    listener: usize,
    host: String,
    target: String,
}

impl Config {
    /// The first redirect that leads a client back to itself, at once or through others. It reports only
    /// certain loops: a location on another host, or on a port without a listener, may be anybody's.
    pub fn redirect_loop(&self) -> Option<Redirecting> {
        let follower = Follower::new(self);
        let listeners = 0..self.listeners.len();
        let of_listener = listeners.clone().filter(|&at| self.listeners[at].redirect.is_some());
        let of_listener = of_listener.map(|listener| {
            let visit = Visit { listener, host: UNNAMED_HOST.into(), target: "/".into() };
            (Redirecting::Listener(listener), visit)
        });
        let routes = self.routes.iter().enumerate();
        let routes = routes.filter(|(_, route)| matches!(route.to, Destination::Redirect(_)));
        let of_route = routes.flat_map(|(at, route)| {
            let routed = listeners.clone().filter(|&at| self.listeners[at].redirect.is_none());
            routed.map(move |listener| {
                let (host, target) = (a_host(&route.host), route.path.to_string());
                (Redirecting::Route(at), Visit { listener, host, target })
            })
        });
        let mut redirects = of_listener.chain(of_route);
        redirects.find(|(_, visit)| follower.never_arrives(visit)).map(|(redirect, _)| redirect)
    }
}

impl<'c> Follower<'c> {
    fn new(config: &'c Config) -> Self {
        let named = config.routes.iter().map(|route| &route.host);
        Follower {
            listeners: &config.listeners,
            listener_routes: ListenerRoute::all(config),
            router: Router::new(&config.routes),
            own: named.filter(|host| **host != HostPattern::Any).collect(),
        }
    }

    fn never_arrives(&self, first: &Visit) -> bool {
        let mut next = self.follow(first);
        for _ in 0..MAX_FOLLOWED_REDIRECTS {
            let Some(visit) = next else { return false };
            next = self.follow(&visit);
        }
        true
    }

    /// Where a redirect sends the client, if that is this balancer.
    fn follow(&self, visit: &Visit) -> Option<Visit> {
        let scheme = self.scheme(visit.listener);
        let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", visit.target, visit.host);
        let outline = Outline::of(head.as_bytes());
        let redirect = self.listener_routes[visit.listener].redirect(
            &self.router,
            head.as_bytes(),
            &outline,
            scheme,
        )?;
        let location = redirect.location(visit.host.as_bytes(), visit.target.as_bytes())?;
        if location.starts_with('/') {
            return Some(Visit { target: location, host: visit.host.clone(), ..*visit });
        }
        let (scheme, rest) = location.split_once("://")?;
        let scheme = Scheme::named(scheme.as_bytes())?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let default = if scheme == Scheme::Http { 80 } else { 443 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, default),
        };
        let is_here = |&listener: &usize| {
            let address = self.listeners[listener].address.tcp();
            self.scheme(listener) == scheme && address.is_some_and(|it| it.port() == port)
        };
        let listener = (0..self.listeners.len()).find(is_here)?;
        let is_own = host == visit.host || self.own.iter().any(|pattern| pattern.fits(host));
        let target = if path.is_empty() { "/" } else { path }.to_owned();
        is_own.then(|| Visit { listener, host: host.to_owned(), target })
    }

    fn scheme(&self, listener: usize) -> Scheme {
        if self.listeners[listener].tls.is_some() { Scheme::Https } else { Scheme::Http }
    }
}

/// A host that fits the pattern.
fn a_host(pattern: &HostPattern) -> String {
    match pattern {
        HostPattern::Any => UNNAMED_HOST.to_owned(),
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Under(suffix) => format!("some{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::config::app::AppId;
    use crate::config::route::{Prefix, Redirect, RedirectStatus, Route};
    use crate::config::tls::Tls;

    fn redirect(location: &str) -> Redirect {
        Redirect::new(RedirectStatus::default(), location).unwrap()
    }

    /// Each route is a host with a path, and where it redirects to, or `app`.
    fn config(port: u16, routes: &[(&str, &str)]) -> Config {
        let route = |&(from, to): &(&str, &str)| {
            let (host, path) = from.split_at(from.find('/').unwrap());
            let to = match to {
                "app" => Destination::App { app: AppId::FIRST, prefix: Prefix::Keep },
                location => Destination::Redirect(redirect(location)),
            };
            Route { host: host.parse().unwrap(), path: path.parse().unwrap(), to }
        };
        let listener = Listener::new(SocketAddr::from(([0, 0, 0, 0], port)));
        let routes = routes.iter().map(route).collect();
        Config { listeners: vec![listener], routes, ..Config::default() }
    }

    #[test]
    fn a_route_that_leads_to_itself_is_found() {
        for routes in [
            &[("*/a", "/a")][..],
            &[("*/a", "/a/b"), ("*/", "app")],
            &[("*/", "/new{path}")],
            &[("a.example/x", "/y"), ("a.example/y", "/x{path}"), ("*/", "app")],
            &[("*/", "http://{host}{path}")],
            &[("a.example/", "http://b.example/"), ("*.example/", "http://A.EXAMPLE:80")],
            &[("*.a.example/", "http://{host}/b")],
        ] {
            let found = config(80, routes).redirect_loop();
            assert_eq!(found, Some(Redirecting::Route(0)), "{routes:?}");
        }
    }

    #[test]
    fn a_redirect_that_arrives_or_leaves_is_none() {
        for routes in [
            &[("*/", "/new{path}"), ("*/new", "app")][..],
            &[("*/", "/a{path}"), ("*/a/a/a", "app")],
            &[("*/a", "/"), ("*/", "app")],
            &[("a.example/", "http://b.example/"), ("*/", "app")],
            &[("*/", "http://b.example{path}")],
            &[("a.example/", "http://{host}:8080/")],
            &[("*/", "https://{host}{path}")],
        ] {
            assert_eq!(config(80, routes).redirect_loop(), None, "{routes:?}");
        }
        assert_eq!(config(8080, &[("*/", "http://{host}/")]).redirect_loop(), None);
    }

    #[test]
    fn listeners_are_followed_too() {
        let mut config = config(80, &[]);
        config.listeners[0].redirect = Some(redirect("/elsewhere"));
        assert_eq!(config.redirect_loop(), Some(Redirecting::Listener(0)));
        config.listeners[0].redirect = Some(redirect("https://{host}{path}"));
        assert_eq!(config.redirect_loop(), None, "nobody knows who is there");
        let mut secure = Listener::new(SocketAddr::from(([0, 0, 0, 0], 443)));
        secure.tls = Some(Tls::new("", ""));
        config.listeners.push(secure);
        assert_eq!(config.redirect_loop(), None, "it serves");
        config.listeners[1].redirect = Some(redirect("http://{host}{path}"));
        assert_eq!(config.redirect_loop(), Some(Redirecting::Listener(0)));
    }
}
