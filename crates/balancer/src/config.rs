//! The configuration of a balancer, as plain data.

pub(crate) mod access_log;
pub(crate) mod acme;
pub(crate) mod address;
pub(crate) mod app;
pub(crate) mod backend;
pub(crate) mod forwarding;
pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod policy;
pub(crate) mod route;
pub(crate) mod start_error;
pub(crate) mod tls;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::access_log::AccessLog;
use crate::config::acme::Acme;
use crate::config::app::AppConfig;
use crate::config::forwarding::Forwarding;
use crate::config::limits::{Limits, Timeouts};
use crate::config::listener::Listener;
use crate::config::route::Route;

/// Everything that [`Balancer::start`](crate::Balancer::start) needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses that clients connect to. At least one.
    pub listeners: Vec<Listener>,
    /// Data-plane threads, each with its own listener and event loop. At least 1.
    pub threads: usize,
    /// The apps, each with its own backends and queue. At least one. Without routes, the first app gets
    /// all requests.
    pub apps: Vec<AppConfig>,
    /// Which app gets a request. A request without a route is answered 421 if no route names its host,
    /// else 404.
    pub routes: Vec<Route>,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How large each thing may be.
    pub limits: Limits,
    /// The fields that are added to requests and answers.
    pub forwarding: Forwarding,
    /// How certificates for the TLS listeners are issued by an authority.
    pub acme: Option<Acme>,
    /// Receives sentences for the operator that no request shows, such as a replaced certificate. It is
    /// called from the balancer's threads and must not block for long.
    pub notice: fn(&str),
    /// Where answers are kept that clients read slowly, in one file without a name. It should be on a disk: in
    /// a file system in memory, they take memory that no limit counts.
    pub spool_folder: PathBuf,
    /// The access log. Off by default, because it fills a disk.
    pub access_log: Option<AccessLog>,
}

impl Config {
    /// The largest number of [`Config::apps`].
    pub const MAX_APPS: usize = 1024;

    /// Returns what is wrong, in one sentence with a remedy.
    pub fn check(&self) -> Result<(), String> {
        if self.listeners.is_empty() {
            return Err("there is no address to listen on; give at least one".into());
        }
        for listener in &self.listeners {
            listener.check()?;
            if self.acme.is_none()
                && listener.tls.as_ref().is_some_and(|tls| tls.certificates.is_empty())
            {
                let address = &listener.address;
                return Err(format!(
                    "TLS on {address} has no certificate; give at least one, or hosts for ACME"
                ));
            }
        }
        if let Some(acme) = &self.acme {
            acme.check()?;
            if self.listeners.iter().all(|listener| listener.tls.is_some()) {
                return Err("ACME needs a listener without TLS; give one on port 80".into());
            }
            if self.listeners.iter().all(|listener| listener.tls.is_none()) {
                return Err("ACME needs a listener with TLS; give one on port 443".into());
            }
        }
        if self.threads == 0 || self.threads > 1024 {
            return Err(format!("{} threads are impossible; use 1 to 1024", self.threads));
        }
        let least = Limits::MIN_MEMORY_BYTES.saturating_mul(self.threads);
        if self.limits.memory_bytes < least {
            return Err(format!(
                "{} bytes of memory are too few for {} threads; use at least {least}",
                self.limits.memory_bytes, self.threads
            ));
        }
        self.limits.check()?;
        self.timeouts.check()?;
        self.check_apps()?;
        Route::check_all(&self.routes, self.apps.len())
    }

    fn check_apps(&self) -> Result<(), String> {
        let (count, most) = (self.apps.len(), Self::MAX_APPS);
        if !(1..=most).contains(&count) {
            return Err(format!("{count} apps are impossible; use 1 to {most}"));
        }
        for (index, app) in self.apps.iter().enumerate() {
            if self.apps[..index].iter().any(|other| other.name == app.name) {
                return Err(format!("two apps are named {}; rename one", app.name));
            }
            app.check().map_err(|wrong| format!("app {}: {wrong}", app.name))?;
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listeners: vec![Listener::new(SocketAddr::from(([127, 0, 0, 1], 0)))],
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            apps: vec![AppConfig::default()],
            routes: Vec::new(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            forwarding: Forwarding::default(),
            acme: None,
            // A closed standard error is no reason to stop.
            notice: |text| drop(writeln!(std::io::stderr(), "{text}")),
            spool_folder: spool_folder(),
            access_log: None,
        }
    }
}

/// The folder for large temporary files (file-hierarchy(7)). `/tmp` may be in memory.
fn spool_folder() -> PathBuf {
    let large = || Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir());
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty()).map(PathBuf::from);
    named.or_else(large).unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::app::AppId;
    use crate::config::route::{Destination, Prefix};

    #[test]
    fn impossible_values_are_refused_with_a_remedy() {
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check()
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert!(with(|c| c.threads = 0).unwrap_err().contains("use 1 to"));
        assert!(with(|c| c.listeners.clear()).unwrap_err().contains("at least one"));
        assert!(with(|c| c.limits.headers = 1000).unwrap_err().contains("use 1 to 128"));
        assert!(with(|c| c.limits.header_bytes = 10).unwrap_err().contains("use 1024 to"));
        assert!(with(|c| c.limits.target_bytes = 0).unwrap_err().contains("use 1 to 16384"));
        assert!(with(|c| c.limits.client_connections = 0).unwrap_err().contains("at least 1"));
        assert!(with(|c| c.apps[0].attempts = 9).unwrap_err().contains("use 1 to 4"));
        assert!(
            with(|c| c.timeouts.idle = Duration::ZERO).unwrap_err().contains("idle time of 0ns")
        );
        let endless = with(|c| c.apps[0].queue.wait = Duration::MAX).unwrap_err();
        assert!(endless.contains("queue wait") && endless.contains("at most a day"), "{endless}");
        assert_eq!(with(|c| c.timeouts.tunnel = Timeouts::MAX), Ok(()));
        assert!(with(|c| c.apps.clear()).unwrap_err().contains("use 1 to"));
        let twice = with(|c| c.apps.push(AppConfig::default())).unwrap_err();
        assert!(twice.contains("two apps are named app"), "{twice}");
        let to = Destination::App { app: AppId::nth(1), prefix: Prefix::Keep };
        let route = Route { host: "a.example".parse().unwrap(), path: "/b/".parse().unwrap(), to };
        let mut config = Config { routes: vec![route.clone()], ..Config::default() };
        let nowhere = config.check().unwrap_err();
        assert!(nowhere.contains("a.example/b leads to an app that does not exist"), "{nowhere}");
        config.apps.push(AppConfig::named("other"));
        assert_eq!(config.check(), Ok(()));
        config.routes.push(route);
        assert!(config.check().unwrap_err().contains("two routes for a.example/b"));
    }
}
