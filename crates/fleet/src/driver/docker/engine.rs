//! The connection to a container engine: Docker, or Podman, which speaks the same API.

use std::fmt;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{SystemInfo, SystemVersion};
use bollard::{API_DEFAULT_VERSION, Docker};

use procfs::process::all_processes;

use super::host::{Address, Host};
use crate::driver::{Dependency, Extent};
use crate::error::StartError;
use crate::image::Reach;
use crate::limits::Limits;

/// The oldest version of the API that Tenfold is tested with: that of Docker 20.10 and Podman 4.
const OLDEST_API: ApiVersion = ApiVersion(1, 41);

/// How long the engine may take to answer. It starts containers one after another, and a busy machine
/// takes seconds for each.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A container engine that answers.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) api: Docker,
    pub(crate) host: Host,
    pub(crate) product: Product,
    /// As in `20.10.24`.
    version: String,
    /// How its containers can be reached at best.
    pub(crate) reach: Reach,
    /// What the kernel lets it limit.
    can_limit: CanLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CanLimit {
    cpus: bool,
    memory: bool,
}

/// Who has made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Docker,
    Podman,
}

/// A version of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ApiVersion(u32, u32);

// === impl Engine ===

impl Engine {
    /// Finds the engine, and asks what it is.
    ///
    /// # Errors
    /// When it is absent or too old, or this user may not use it.
    pub(crate) async fn connect() -> Result<Engine, StartError> {
        let host = Host::find()?;
        host.try_connection().await?;
        let api = client(&host.address).map_err(|error| unreachable(&host, &error))?;
        let unreachable = |error| unreachable(&host, &error);
        let version = api.version().await.map_err(unreachable)?;
        let (product, number) = identify(&version)?;
        let info = api.info().await.map_err(unreachable)?;
        let reach = reach(&host.address, &info)?;
        // One that does not say it is put to the test by the first instance.
        let can_limit = CanLimit {
            cpus: info.cpu_cfs_quota != Some(false),
            memory: info.memory_limit != Some(false),
        };
        Ok(Engine { api, host, product, version: number, reach, can_limit })
    }

    /// Whether it can hold containers to such limits.
    ///
    /// # Errors
    /// When the kernel, or this user's rights, do not let it.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), StartError> {
        let cannot =
            |what| self.unlimited(limits, format!("{self} says that it cannot limit {what} here"));
        match self.can_limit {
            CanLimit { cpus: false, .. } if limits.cpus.is_some() => Err(cannot("CPU time")),
            CanLimit { memory: false, .. } if limits.memory.is_some() => Err(cannot("memory")),
            CanLimit { .. } => Ok(()),
        }
    }

    /// Says why an instance is not held to its limits.
    pub(crate) fn unlimited(&self, limits: &Limits, reason: String) -> StartError {
        let remedy = match self.reach {
            Reach::Best => {
                "boot with the control groups that it needs (`cgroup_enable=memory`), or leave the limit out"
            }
            Reach::PublishedPort => {
                "let systemd delegate the controllers to this user (`Delegate=cpu memory`), run the engine as root, or \
                 leave the limit out"
            }
        };
        StartError::Unlimited { limits: limits.to_string(), reason, remedy: remedy.into() }
    }

    /// An error of the engine about a container with these limits: they may be what it refuses.
    pub(crate) fn refusal(&self, asked: &str, error: &Error, limits: &Limits) -> StartError {
        match error {
            Error::DockerResponseServerError { message, .. }
                if !limits.is_empty() && is_about_limits(message) =>
            {
                StartError::Unlimited {
                    limits: limits.to_string(),
                    reason: format!("{self} refuses: {}", message.trim().trim_end_matches('.')),
                    remedy: "choose other limits".into(),
                }
            }
            error => self.error(asked, error),
        }
    }

    /// What passes on requests to published ports: its CPU time is in no container's control group.
    pub(crate) fn port_proxy(&self) -> Option<Dependency> {
        let (process, name) = match (self.product, self.reach) {
            (Product::Docker, Reach::Best) => ("dockerd", "docker-proxy"),
            (Product::Docker, Reach::PublishedPort) => ("rootlesskit", "rootlesskit"),
            // The kernel passes them on.
            (Product::Podman, Reach::Best) => return None,
            (Product::Podman, Reach::PublishedPort) => ("rootlessport", "rootlessport"),
        };
        let stats = all_processes().ok()?.flatten().filter_map(|process| process.stat().ok());
        let group = stats.filter(|stat| stat.comm == process).map(|stat| stat.pgrp).next()?;
        let extent = Extent::ProcessGroup(u32::try_from(group).ok()?);
        Some(Dependency { name: name.into(), extent })
    }

    /// What an error of the engine means, where it was asked to do something, as in `start web-1`.
    pub(crate) fn error(&self, asked: &str, error: &Error) -> StartError {
        let Engine { host, product, .. } = self;
        let log = match product {
            Product::Docker => "journalctl -u docker",
            Product::Podman => "journalctl -u podman",
        };
        let (reason, remedy) = match error {
            Error::DockerResponseServerError { message, .. } => {
                let message = message.trim().trim_end_matches('.');
                (
                    format!("{self} cannot {asked}: {message}"),
                    format!("correct that, or see its log (`{log}`)"),
                )
            }
            Error::RequestTimeoutError => (
                format!("{self} did not {asked} within {} s", PATIENCE.as_secs()),
                format!("see what it does (`{log}`), or start it again"),
            ),
            error => (
                format!(
                    "{self} at {host} was to {asked}, and does not answer: {}",
                    root_cause(error)
                ),
                format!("start {product} again (`sudo systemctl start {}`)", product.command()),
            ),
        };
        StartError::Engine { reason, remedy }
    }
}

impl fmt::Display for Engine {
    /// As in `Docker 20.10.24`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product, self.version)
    }
}

/// A connection. Nothing is asked of the engine yet.
pub(crate) fn client(address: &Address) -> Result<Docker, Error> {
    let (patience, version) = (PATIENCE.as_secs(), API_DEFAULT_VERSION);
    match address {
        Address::Unix(path) => {
            Docker::connect_with_unix(&path.to_string_lossy(), patience, version)
        }
        Address::Tcp(address) => Docker::connect_with_http(address, patience, version),
    }
}

/// As in `Minimum memory limit allowed is 6MB` and `Range of CPUs is from 0.01 to 2.00`.
fn is_about_limits(message: &str) -> bool {
    ["memory limit", "memory.limit", "memory.max", "Range of CPUs", "cpu.cfs", "cpu.max"]
        .iter()
        .any(|words| message.to_lowercase().contains(&words.to_lowercase()))
}

/// Who answers, if it is new enough.
fn identify(version: &SystemVersion) -> Result<(Product, String), StartError> {
    let components = version.components.iter().flatten();
    let is_podman = components.into_iter().any(|component| component.name.contains("Podman"));
    let product = if is_podman { Product::Podman } else { Product::Docker };
    let number = version.version.clone().unwrap_or_default();
    let api = version.api_version.as_deref().and_then(ApiVersion::parse);
    match api {
        Some(api) if api >= OLDEST_API => Ok((product, number)),
        Some(ApiVersion(major, minor)) => Err(StartError::Engine {
            reason: format!(
                "{product} {number} is too old: it speaks version {major}.{minor} of its API, and Tenfold needs {}.{}",
                OLDEST_API.0, OLDEST_API.1
            ),
            remedy: match product {
                Product::Docker => "update to Docker 20.10 or later",
                Product::Podman => "update to Podman 4 or later",
            }
            .into(),
        }),
        None => Err(StartError::Engine {
            reason: "what answers as container engine does not say which version it is".into(),
            remedy: "let DOCKER_HOST name the socket of Docker or Podman".into(),
        }),
    }
}

/// Where the engine runs containers in a network of its own, they are reached by ports alone.
fn reach(address: &Address, info: &SystemInfo) -> Result<Reach, StartError> {
    if let Address::Tcp(address) = address
        && !is_loopback(address)
    {
        return Err(StartError::Engine {
            reason: format!("the engine at {address} runs containers on another machine"),
            remedy: "run Tenfold there: what it measures, it must see".into(),
        });
    }
    let options = info.security_options.iter().flatten();
    let is_rootless = options.into_iter().any(|option| option.contains("name=rootless"));
    let system = info.operating_system.as_deref().unwrap_or_default();
    match is_rootless || system.contains("Docker Desktop") {
        true => Ok(Reach::PublishedPort),
        false => Ok(Reach::Best),
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

fn unreachable(host: &Host, error: &Error) -> StartError {
    let reason = match error {
        Error::RequestTimeoutError => {
            format!(
                "the container engine at {host} does not answer within {} s",
                PATIENCE.as_secs()
            )
        }
        Error::DockerResponseServerError { message, .. } => {
            format!("the container engine at {host} does not say what it is: {}", message.trim())
        }
        error => format!("what answers at {host} is no container engine: {}", root_cause(error)),
    };
    StartError::Engine {
        reason,
        remedy: "see its log (`journalctl -u docker`), or start it again".into(),
    }
}

/// The innermost cause, which says what happened to the connection.
fn root_cause(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

// === impl Product ===

impl Product {
    /// The program by which people use it.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Product::Docker => "docker",
            Product::Podman => "podman",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Product::Docker => "Docker",
            Product::Podman => "Podman",
        })
    }
}

// === impl ApiVersion ===

impl ApiVersion {
    fn parse(text: &str) -> Option<ApiVersion> {
        let (major, minor) = text.split_once('.')?;
        Some(ApiVersion(major.parse().ok()?, minor.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::SystemVersionComponents;

    use super::*;

    fn version(number: &str, api: &str) -> SystemVersion {
        let (version, api_version) = (Some(number.into()), Some(api.into()));
        SystemVersion { version, api_version, ..SystemVersion::default() }
    }

    #[test]
    fn an_old_engine_is_refused_with_the_version_to_update_to() {
        assert_eq!(
            identify(&version("20.10.24", "1.41")).unwrap(),
            (Product::Docker, "20.10.24".into())
        );
        assert!(identify(&version("29.0", "1.52")).is_ok());
        let old = identify(&version("19.03.15", "1.40")).unwrap_err().to_string();
        assert_eq!(
            old,
            "Docker 19.03.15 is too old: it speaks version 1.40 of its API, and Tenfold needs 1.41; update to \
             Docker 20.10 or later"
        );
        assert!(identify(&version("1", "1.9")).is_err());
        assert!(identify(&SystemVersion::default()).is_err());
    }

    #[test]
    fn podman_is_told_from_docker() {
        let name = "Podman Engine".to_owned();
        let component = SystemVersionComponents { name, ..SystemVersionComponents::default() };
        let podman =
            SystemVersion { components: Some(vec![component]), ..version("4.3.1", "1.41") };
        assert_eq!(identify(&podman).unwrap(), (Product::Podman, "4.3.1".into()));
    }

    #[test]
    fn containers_of_a_rootless_engine_are_reached_by_ports() {
        let socket = Address::Unix("/run/docker.sock".into());
        let info = |options: &[&str], system: &str| SystemInfo {
            security_options: Some(options.iter().map(|&option| option.into()).collect()),
            operating_system: Some(system.into()),
            ..SystemInfo::default()
        };
        let debian = "Debian GNU/Linux 12 (bookworm)";
        assert_eq!(
            reach(&socket, &info(&["name=seccomp,profile=default"], debian)).unwrap(),
            Reach::Best
        );
        assert_eq!(
            reach(&socket, &info(&["name=rootless"], debian)).unwrap(),
            Reach::PublishedPort
        );
        assert_eq!(reach(&socket, &info(&[], "Docker Desktop")).unwrap(), Reach::PublishedPort);
        let tcp = |address: &str| reach(&Address::Tcp(address.into()), &info(&[], debian));
        assert!(tcp("localhost:2375").is_ok());
        let far = tcp("10.0.0.7:2375").unwrap_err().to_string();
        assert!(far.ends_with("run Tenfold there: what it measures, it must see"), "{far}");
    }
}
