//! `[[routes]]`: which app a request is for, or where it is sent instead.

use balancer::{
    AppId, Destination, HostPattern, Listener, PathPrefix, Prefix, Redirect, RedirectStatus,
    Redirecting, Route,
};
use serde::Deserialize;

use super::source::{Key, Wrong};
use super::value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    #[serde(default, deserialize_with = "value::parsed")]
    host: Option<HostPattern>,
    #[serde(default, deserialize_with = "value::parsed")]
    path: Option<PathPrefix>,
    app: Option<String>,
    #[serde(default)]
    strip_prefix: bool,
    redirect: Option<String>,
    status: Option<u16>,
}

/// All routes, for apps of these names in this order and requests from these listeners. Each app must
/// be within reach.
pub fn resolve(
    routes: &[RouteTable],
    apps: &[&str],
    listeners: &[Listener],
) -> Result<Vec<Route>, Wrong> {
    let root = Key::of(&["routes"]);
    let mut resolved: Vec<Route> = Vec::new();
    for (index, table) in routes.iter().enumerate() {
        let at = root.then(&index);
        let route = table.resolve(apps, &at)?;
        let same = |other: &Route| other.host == route.host && other.path == route.path;
        if resolved.iter().any(same) {
            let Route { host, path, .. } = &route;
            return Err(at.wrong(&format!(
                "there is a route for host {host} and path {path} already: remove one of them, or change its host or path"
            )));
        }
        resolved.push(route);
    }
    let has_tls = listeners.iter().any(|listener| listener.tls.is_some());
    let dead_end = resolved.iter().position(|route| route.is_dead_end_over_tls(&resolved));
    if let Some(index) = dead_end.filter(|_| has_tls) {
        return Err(root.then(&index).then("redirect").wrong(
            "nobody would serve what this sends to https: write redirect = \"https\" at the listener without tls \
             instead, or add a route with an app for a shorter path of the same host",
        ));
    }
    let is_routed = |index: usize| {
        resolved.iter().any(
            |route| matches!(&route.to, Destination::App { app, .. } if *app == AppId::nth(index)),
        )
    };
    let is_reached = |index: usize| if routes.is_empty() { index == 0 } else { is_routed(index) };
    match (0..apps.len()).find(|&index| !is_reached(index)) {
        None => Ok(resolved),
        Some(index) => Err(Key::of(&["apps", apps[index]]).wrong(&format!(
            "no route leads to app {0}, so that it would get no request: add [[routes]] with app = \"{0}\" and a \
             host or a path",
            apps[index]
        ))),
    }
}

/// Refuses redirects that lead back to themselves.
pub fn refuse_loops(config: &balancer::Config) -> Result<(), Wrong> {
    let at = match config.redirect_loop() {
        None => return Ok(()),
        Some(Redirecting::Listener(index)) => Key::of(&["balancer", "listeners"]).then(&index),
        Some(Redirecting::Route(index)) => Key::of(&["routes"]).then(&index),
    };
    Err(at.then("redirect").wrong(
        "the redirect leads back to itself, and clients would follow it until they give up: redirect to where an \
         app answers, or add a route with an app for that path",
    ))
}

impl RouteTable {
    fn resolve(&self, apps: &[&str], at: &Key) -> Result<Route, Wrong> {
        let redirect = redirect(self.redirect.as_deref(), self.status, at)?;
        let to = match (&self.app, redirect) {
            (Some(_), Some(_)) => {
                return Err(at
                    .then("redirect")
                    .wrong("a route leads to an app or redirects: remove app or redirect"));
            }
            (None, None) => {
                return Err(at.wrong(
                    "the route leads nowhere: write app = \"NAME\" or redirect = \"LOCATION\"",
                ));
            }
            (None, Some(_)) if self.strip_prefix => {
                return Err(at
                    .then("strip_prefix")
                    .wrong("a redirect has no app to strip the prefix for: remove strip_prefix"));
            }
            (None, Some(redirect)) => Destination::Redirect(redirect),
            (Some(name), None) => {
                let found = apps.iter().position(|app| app == name).ok_or_else(|| {
                    at.then("app").wrong(&format!(
                        "there is no app {name}: write one of {}, or add [apps.{name}]",
                        apps.join(", ")
                    ))
                })?;
                let prefix = if self.strip_prefix { Prefix::Strip } else { Prefix::Keep };
                Destination::App { app: AppId::nth(found), prefix }
            }
        };
        let (host, path) =
            (self.host.clone().unwrap_or_default(), self.path.clone().unwrap_or_default());
        Ok(Route { host, path, to })
    }
}

/// `https` alone is the same host and path over TLS.
pub fn redirect(
    location: Option<&str>,
    status: Option<u16>,
    at: &Key,
) -> Result<Option<Redirect>, Wrong> {
    let status = match (location, status) {
        (None, Some(_)) => {
            return Err(at.then("status").wrong(
                "status belongs to a redirect: remove it, or write redirect = \"LOCATION\"",
            ));
        }
        (_, None) => RedirectStatus::default(),
        (_, Some(code)) => {
            RedirectStatus::try_from(code).map_err(|error| at.then("status").wrong(&error))?
        }
    };
    let to = |location: &str| match location {
        "https" => Ok(Redirect::to_https(status, 443)),
        location => {
            Redirect::new(status, location).map_err(|error| at.then("redirect").wrong(&error))
        }
    };
    location.map(to).transpose()
}
