//! What the user says that instances depend on, such as a database that something else runs.

use std::fmt;
use std::str::FromStr;

use procfs::process::all_processes;

use super::process::{aside, listener};
use super::{Dependency, Extent};
use crate::error::StartError;

/// Something that instances depend on: watched, and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// As the user calls it.
    pub name: String,
    /// Where it is found.
    pub place: Place,
}

/// Where a server is found that something else runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The process of this number, with all that it has started.
    Process(u32),
    /// The process that listens on this port, with all that it has started.
    Port(u16),
    /// The control group of a unit of systemd, or of a container by the beginning of its id.
    ControlGroup(String),
}

/// Why a text says nothing that can be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` says nothing to watch: write NAME= and a process id, a port as in db=:5432, a unit of systemd, or a \
     container id"
)]
pub struct NothingToWatch(String);

/// The beginning of a container's id must be so long, as engines print it.
const SHORT_ID: usize = 12;

impl Watched {
    /// Looks for it.
    ///
    /// # Errors
    /// When it does not run, or belongs to somebody whose processes this user may not see.
    pub async fn find(&self) -> Result<Dependency, StartError> {
        let (place, name) = (self.place.clone(), self.name.clone());
        let found = aside(move || place.find()).await;
        let extent = found.unwrap_or_else(|| Err("no thread can be started to look".to_owned()));
        let extent = extent.map_err(|reason| StartError::NotWatched {
            name: name.clone(),
            place: self.place.to_string(),
            reason,
        })?;
        Ok(Dependency { name, extent })
    }
}

impl FromStr for Watched {
    type Err = NothingToWatch;

    fn from_str(text: &str) -> Result<Watched, NothingToWatch> {
        let wrong = || NothingToWatch(text.to_owned());
        let (name, place) = text.split_once('=').ok_or_else(wrong)?;
        let place = place.parse().map_err(|()| wrong())?;
        let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        match !name.is_empty() && name.chars().all(is_word) {
            true => Ok(Watched { name: name.to_owned(), place }),
            false => Err(wrong()),
        }
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        let number = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0).map(Place::Port).ok_or(()),
            None if text.is_empty() || text.contains(['/', '\0']) => Err(()),
            // An id of a container may be made of digits only.
            None if number && text.len() < SHORT_ID => {
                text.parse().ok().filter(|pid| *pid > 1).map(Place::Process).ok_or(())
            }
            None => Ok(Place::ControlGroup(text.to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Process(pid) => write!(f, "{pid}"),
            Place::Port(port) => write!(f, ":{port}"),
            Place::ControlGroup(name) => write!(f, "{name}"),
        }
    }
}

impl Place {
    fn find(&self) -> Result<Extent, String> {
        match self {
            Place::Process(pid) => match procfs::process::Process::new(pid.cast_signed()) {
                Ok(process) if process.is_alive() => Ok(Extent::ProcessTree(*pid)),
                _ => Err(format!("no process has the number {pid}")),
            },
            Place::Port(port) => {
                let listener = listener(*port).map(|pid| Extent::ProcessTree(pid.cast_unsigned()));
                listener.ok_or_else(|| {
                    format!("no process that this user may see listens on port {port}")
                })
            }
            Place::ControlGroup(name) => control_group(name)
                .map(Extent::ControlGroup)
                .ok_or_else(|| format!("no unit and no container {name} runs here")),
        }
    }
}

/// A process in the control group of a unit or a container.
fn control_group(name: &str) -> Option<u32> {
    let processes = all_processes().into_iter().flatten().flatten();
    let mut found = processes.filter(|process| {
        let groups = process.cgroups().into_iter().flatten();
        groups.into_iter().any(|group| group.pathname.split('/').any(|part| is_named(part, name)))
    });
    found.next().map(|process| process.pid.cast_unsigned())
}

/// Whether a part of a control group's path is that of a unit, or of a container by its id.
fn is_named(part: &str, name: &str) -> bool {
    let id = part.strip_suffix(".scope").unwrap_or(part);
    let id = id.strip_prefix("docker-").or_else(|| id.strip_prefix("libpod-")).unwrap_or(id);
    let is_id = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    part == name
        || part.strip_suffix(".service") == Some(name)
        || (name.len() >= SHORT_ID && id.len() == 64 && is_id(id) && id.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_process_port_unit_or_container() {
        let place = |text: &str| text.parse::<Watched>().map(|watched| watched.place);
        assert_eq!(place("db=4711"), Ok(Place::Process(4711)));
        assert_eq!(place("db=:5432"), Ok(Place::Port(5432)));
        let unit = Place::ControlGroup("postgresql@15-main".to_owned());
        assert_eq!(place("db=postgresql@15-main"), Ok(unit));
        assert_eq!(place("c=012345678901"), Ok(Place::ControlGroup("012345678901".to_owned())));
        for bad in ["db", "=:5432", "db=", "db=:0", "db=:x", "db=1", "a b=:1", "db=a/b"] {
            let error = bad.parse::<Watched>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{bad}` says nothing to watch")), "{error}");
        }
    }

    #[test]
    fn control_groups_are_known_by_unit_and_by_the_id_of_a_container() {
        let id = "3f".repeat(32);
        assert!(is_named("postgresql.service", "postgresql"));
        assert!(is_named("redis.service", "redis.service"));
        assert!(is_named(&id, &id[..12]) && is_named(&format!("docker-{id}.scope"), &id[..12]));
        assert!(!is_named(&id, "3f3f"), "too short to be meant");
        assert!(!is_named("user.slice", "user"));
    }

    #[tokio::test]
    async fn the_process_that_listens_on_a_port_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let watched = Watched { name: "me".into(), place: Place::Port(port) };
        let found = watched.find().await.unwrap();
        assert_eq!(found.extent, Extent::ProcessTree(std::process::id()));
        drop(socket);
        let error = watched.find().await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("correct --watch me=:{port}")), "{error}");
    }
}
