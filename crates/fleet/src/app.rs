//! How instances of an app behave, and how to tell that one is ready.

use std::time::Duration;

use crate::error::InvalidPath;
use crate::limits::Limits;
use crate::restart::RestartPolicy;

/// An app that is run as several identical instances, whatever a driver makes them of.
#[derive(Debug, Clone)]
pub struct App {
    /// Instances are named after it: `NAME-1`, `NAME-2` and so on.
    pub name: String,
    /// What each instance may use at most.
    pub limits: Limits,
    /// When an instance may get requests.
    pub readiness: Readiness,
    /// What happens when an instance dies by itself.
    pub restart: RestartPolicy,
    /// Time between being asked to end and being killed.
    pub grace: Duration,
    /// Time that requests in flight get to finish before it is asked to end.
    pub drain: Duration,
    /// Whether instances outlive this Tenfold.
    pub custody: Custody,
}

/// What becomes of instances when Tenfold ends, whatever ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Custody {
    /// They end as well.
    #[default]
    WithUs,
    /// They run on, and the next Tenfold takes them over, where the driver is able to do so.
    Beyond,
}

/// When an instance counts as ready.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// What is tried.
    pub probe: ReadyProbe,
    /// How long it may take from the start of the process.
    pub deadline: Duration,
}

/// How readiness is tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadyProbe {
    /// The port accepts a connection.
    Tcp,
    /// `GET path` is answered with 2xx.
    Http {
        /// Starts with `/`; see [`ReadyProbe::http`].
        path: String,
    },
}

impl App {
    /// An app with the defaults: no limits, ready when it accepts a connection within 30 s, 10 s of
    /// grace, 30 s of drain.
    pub fn named(name: impl Into<String>) -> App {
        App {
            name: name.into(),
            limits: Limits::default(),
            readiness: Readiness::default(),
            restart: RestartPolicy::default(),
            grace: Duration::from_secs(10),
            drain: Duration::from_secs(30),
            custody: Custody::default(),
        }
    }
}

impl Default for Readiness {
    fn default() -> Readiness {
        Readiness { probe: ReadyProbe::Tcp, deadline: Duration::from_secs(30) }
    }
}

impl ReadyProbe {
    /// A probe by HTTP.
    ///
    /// # Errors
    /// When `path` does not start with `/` or holds a character that a request line cannot.
    pub fn http(path: &str) -> Result<ReadyProbe, InvalidPath> {
        let printable = path.bytes().all(|byte| byte.is_ascii_graphic());
        if path.starts_with('/') && printable {
            Ok(ReadyProbe::Http { path: path.into() })
        } else {
            Err(InvalidPath { path: path.into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_path_is_one_word_that_starts_with_a_slash() {
        assert!(ReadyProbe::http("/health?deep=1").is_ok());
        for bad in ["", "health", "/a b", "/a\r\nHost: x"] {
            assert!(ReadyProbe::http(bad).is_err(), "{bad:?}");
        }
    }
}
