//! Where the engine listens: `DOCKER_HOST`, the context of Docker's own client, or a socket at one of the
//! usual places, Podman's among them.

use std::env;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tokio::net::{TcpStream, UnixStream};

use crate::error::StartError;

/// Where Docker listens by default.
const SOCKET: &str = "/var/run/docker.sock";
/// Where a Podman that root runs listens.
const PODMAN_SOCKET: &str = "/run/podman/podman.sock";

/// Where an engine listens, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) address: Address,
    source: Source,
}

/// How it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// By this socket.
    Unix(PathBuf),
    /// By HTTP without TLS, at this host and port.
    Tcp(String),
}

/// Who has named the address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// A variable of the environment.
    Variable(&'static str),
    /// A context of Docker's client.
    Context(String),
    /// Nobody: it is one of the usual places.
    Usual,
}

/// What decides on the address.
#[derive(Debug, Default)]
struct Setting {
    docker_host: Option<String>,
    docker_context: Option<String>,
    container_host: Option<String>,
    /// Of Docker's client.
    config: Option<PathBuf>,
    /// Sockets at the usual places, the first preferred.
    sockets: Vec<PathBuf>,
}

// === impl Host ===

impl Host {
    /// The one that Docker's own client would use, or Podman's if there is none of Docker's.
    pub(crate) fn find() -> Result<Host, StartError> {
        Setting::read().host()
    }

    /// Whether there seems to be an engine. Only `try_connection` finds out for sure.
    pub(crate) fn seems_to_be_there(&self) -> bool {
        match &self.address {
            Address::Unix(path) => path.exists(),
            Address::Tcp(_) => true,
        }
    }

    /// The address as `DOCKER_HOST` has it.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        let address = |rest: &str| rest.trim_end_matches('/').to_owned();
        if let Some(path) = text.strip_prefix("unix://") {
            return path.starts_with('/').then(|| Address::Unix(path.into()));
        }
        let rest = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://"))?;
        Some(Address::Tcp(address(rest)))
    }

    fn named(text: &str, source: Source) -> Result<Host, StartError> {
        if let Some(address) = Host::parse(text) {
            return Ok(Host { address, source });
        }
        let remedy = match text.split_once("://").map(|(scheme, _)| scheme) {
            Some("ssh") => {
                "Tenfold measures containers of its own machine, so run it there".to_owned()
            }
            _ => format!("write it as unix://{SOCKET}"),
        };
        Err(StartError::Engine {
            reason: format!("`{text}`, which {source} says, is no address of an engine"),
            remedy,
        })
    }

    /// Whether something accepts connections there that this user may make.
    pub(crate) async fn try_connection(&self) -> Result<(), StartError> {
        let tried = match &self.address {
            Address::Unix(path) => UnixStream::connect(path).await.map(drop),
            Address::Tcp(address) => TcpStream::connect(address.as_str()).await.map(drop),
        };
        let Err(error) = tried else { return Ok(()) };
        let is_usual = self.source == Source::Usual;
        let start = "start Docker (`sudo systemctl start docker`)";
        let (reason, remedy) = match (error.kind(), &self.address) {
            (ErrorKind::NotFound, _) if is_usual => (
                format!("no container engine runs here: there is neither {SOCKET} nor a socket of Podman"),
                format!("install and {start}, or say by DOCKER_HOST where it listens"),
            ),
            (ErrorKind::NotFound, _) => (
                format!("there is no socket {self}, which {} says", self.source),
                format!("{start}, or correct {}", self.source),
            ),
            (ErrorKind::PermissionDenied, Address::Unix(path)) => (
                format!("this user may not use the engine's socket {}", path.display()),
                "add the user to the socket's group (`sudo usermod -aG docker $USER`) and log in again, or run \
                 Tenfold as root"
                    .to_owned(),
            ),
            (ErrorKind::ConnectionRefused, _) => {
                (format!("no container engine answers at {self}"), format!("{start} again"))
            }
            _ => (format!("the container engine at {self} cannot be reached: {error}"), start.to_owned()),
        };
        Err(StartError::Engine { reason, remedy })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Display for Address {
    /// As `DOCKER_HOST` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Variable(name) => f.write_str(name),
            Source::Context(name) => write!(f, "Docker's context `{name}`"),
            Source::Usual => f.write_str("nobody"),
        }
    }
}

// === impl Setting ===

impl Setting {
    fn read() -> Setting {
        let said = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let home = || said("HOME").map(|home| Path::new(&home).join(".docker"));
        let own = said("XDG_RUNTIME_DIR").map(PathBuf::from).into_iter().flat_map(|directory| {
            [directory.join("docker.sock"), directory.join("podman/podman.sock")]
        });
        Setting {
            docker_host: said("DOCKER_HOST"),
            docker_context: said("DOCKER_CONTEXT"),
            container_host: said("CONTAINER_HOST"),
            config: said("DOCKER_CONFIG").map(PathBuf::from).or_else(home),
            sockets: [SOCKET.into()].into_iter().chain(own).chain([PODMAN_SOCKET.into()]).collect(),
        }
    }

    /// Docker's own order: the variable, then the context. After it Podman's variable.
    fn host(&self) -> Result<Host, StartError> {
        if let Some(host) = &self.docker_host {
            return Host::named(host, Source::Variable("DOCKER_HOST"));
        }
        if let Some(name) = self.context() {
            let source = Source::Context(name.clone());
            return match self.address_of_context(&name) {
                Some(address) => Host::named(&address, source),
                None => Err(StartError::Engine {
                    reason: format!("{source} is not known"),
                    remedy: "choose another one (`docker context use default`)".into(),
                }),
            };
        }
        if let Some(host) = &self.container_host {
            return Host::named(host, Source::Variable("CONTAINER_HOST"));
        }
        let socket = self.sockets.iter().find(|socket| socket.exists()).or(self.sockets.first());
        let socket = socket.cloned().unwrap_or_else(|| SOCKET.into());
        Ok(Host { address: Address::Unix(socket), source: Source::Usual })
    }

    fn context(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Config {
            #[serde(rename = "currentContext")]
            current: Option<String>,
        }
        let chosen = || {
            let text = fs::read_to_string(self.config.as_ref()?.join("config.json")).ok()?;
            serde_json::from_str::<Config>(&text).ok()?.current
        };
        self.docker_context.clone().or_else(chosen).filter(|name| name != "default")
    }

    /// Each context is a folder that is named by a checksum. What it is called stands in its file.
    fn address_of_context(&self, name: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Meta {
            #[serde(rename = "Name")]
            name: String,
            #[serde(rename = "Endpoints")]
            endpoints: Endpoints,
        }
        #[derive(Deserialize)]
        struct Endpoints {
            docker: Endpoint,
        }
        #[derive(Deserialize)]
        struct Endpoint {
            #[serde(rename = "Host")]
            host: String,
        }
        let folders = fs::read_dir(self.config.as_ref()?.join("contexts/meta")).ok()?;
        let metas = folders.flatten().filter_map(|folder| {
            let text = fs::read_to_string(folder.path().join("meta.json")).ok()?;
            serde_json::from_str::<Meta>(&text).ok()
        });
        metas.into_iter().find(|meta| meta.name == name).map(|meta| meta.endpoints.docker.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address, or the sentence.
    fn host(setting: &Setting) -> String {
        setting.host().map_or_else(|error| error.to_string(), |host| host.to_string())
    }

    #[test]
    fn the_variable_comes_before_the_context_and_podman_last() {
        let config = tempfile::tempdir().unwrap();
        let meta = config.path().join("contexts/meta/3f2a");
        fs::create_dir_all(&meta).unwrap();
        fs::write(config.path().join("config.json"), r#"{"currentContext":"rootless"}"#).unwrap();
        let file =
            r#"{"Name":"rootless","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///r.sock"}}}"#;
        fs::write(meta.join("meta.json"), file).unwrap();
        let mut setting = Setting {
            docker_host: Some("tcp://127.0.0.1:2375/".into()),
            container_host: Some("unix:///podman.sock".into()),
            config: Some(config.path().into()),
            sockets: vec![SOCKET.into()],
            ..Setting::default()
        };
        assert_eq!(host(&setting), "tcp://127.0.0.1:2375");
        setting.docker_host = None;
        assert_eq!(host(&setting), "unix:///r.sock");
        setting.docker_context = Some("gone".into());
        assert!(host(&setting).starts_with("Docker's context `gone` is not known; choose"));
        setting.docker_context = Some("default".into());
        assert_eq!(host(&setting), "unix:///podman.sock");
        setting.container_host = None;
        assert_eq!(host(&setting), "unix:///var/run/docker.sock");
    }

    #[test]
    fn the_first_socket_that_is_there_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("podman.sock");
        fs::write(&there, "").unwrap();
        let sockets = vec![directory.path().join("docker.sock"), there.clone()];
        let setting = Setting { sockets, ..Setting::default() };
        assert_eq!(host(&setting), format!("unix://{}", there.display()));
    }

    #[test]
    fn an_address_that_cannot_be_used_is_refused_with_a_remedy() {
        let said =
            |text: &str| host(&Setting { docker_host: Some(text.into()), ..Setting::default() });
        assert!(
            said("ssh://me@server")
                .contains("which DOCKER_HOST says, is no address of an engine; Tenfold measures")
        );
        assert!(said("docker.sock").contains("write it as unix:///var/run/docker.sock"));
    }

    #[tokio::test]
    async fn a_refused_or_absent_engine_is_explained() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("docker.sock");
        let tried = async |source| {
            let host = Host { address: Address::Unix(path.clone()), source };
            host.try_connection().await.unwrap_err().to_string()
        };
        let absent = tried(Source::Usual).await;
        assert!(absent.starts_with("no container engine runs here"), "{absent}");
        let absent = tried(Source::Variable("DOCKER_HOST")).await;
        assert!(absent.contains("which DOCKER_HOST says; start Docker"), "{absent}");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let dead = tried(Source::Usual).await;
        assert!(dead.starts_with("no container engine answers at unix://"), "{dead}");
    }
}
