//! An instance that listens, but not on the port that it was given.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::sockets::{self, Listening};
use crate::error::{Output, StartError};

/// How often it is looked at. A look reads /proc for some milliseconds.
const LOOK: Duration = Duration::from_millis(500);

/// Cores. Who works harder than this is still starting, and may listen on its port later: a port for
/// metrics or a debugger often comes first.
const MAX_IDLE_CORES: f64 = 0.1;

/// Returns where the process group listens once it has listened there, not on `port`, and has been idle
/// for as long as `patience`.
pub(in crate::driver) async fn settled(group: u32, port: u16, patience: Duration) -> Listening {
    let mut first: Option<(Instant, Listening)> = None;
    loop {
        sleep(LOOK.min(patience)).await;
        let now = listening(group).await;
        if now.is_nowhere() || now.ports.contains(&port) {
            first = None;
            continue;
        }
        match &first {
            Some((since, before)) if before.is_idle_until(&now, since.elapsed()) => {
                if since.elapsed() >= patience {
                    return now;
                }
            }
            _ => first = Some((Instant::now(), now)),
        }
    }
}

/// Where the process group listens now.
pub(in crate::driver) async fn listening(group: u32) -> Listening {
    sockets::aside(move || sockets::listening(group)).await.unwrap_or_default()
}

/// The error of an instance that listens elsewhere, if it does.
pub(in crate::driver) fn error(
    name: &str,
    port: u16,
    at: &Listening,
    output: Output,
) -> Option<StartError> {
    let (address, remedy) = match (at.ports.first(), at.unix.first()) {
        _ if at.ports.contains(&port) => return None,
        (Some(other), _) => (
            format!("port {other}"),
            "pass {port} in the command, or let the app read PORT from its environment",
        ),
        (None, Some(path)) => (
            format!("the Unix socket {path}"),
            "requests reach an instance by TCP, so let it listen on 127.0.0.1:{port}",
        ),
        (None, None) => return None,
    };
    let (name, remedy) = (name.to_owned(), remedy.to_owned());
    Some(StartError::WrongAddress { name, address, port, remedy, output })
}

impl Listening {
    fn is_nowhere(&self) -> bool {
        self.ports.is_empty() && self.unix.is_empty()
    }

    /// Whether it listened at the same addresses and hardly worked until `later`.
    fn is_idle_until(&self, later: &Listening, elapsed: Duration) -> bool {
        let worked = later.cpu_seconds - self.cpu_seconds;
        (&self.ports, &self.unix) == (&later.ports, &later.unix)
            && worked <= MAX_IDLE_CORES * elapsed.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_app_or_a_new_port_has_not_settled() {
        let at = |ports: &[u16], cpu_seconds: f64| Listening {
            ports: ports.to_vec(),
            unix: Vec::new(),
            cpu_seconds,
        };
        let second = Duration::from_secs(1);
        assert!(at(&[80], 1.0).is_idle_until(&at(&[80], 1.05), second));
        assert!(!at(&[80], 1.0).is_idle_until(&at(&[80], 1.5), second), "it still starts");
        assert!(!at(&[80], 1.0).is_idle_until(&at(&[80, 81], 1.0), second), "one more port");
    }

    #[test]
    fn the_remedy_is_for_where_it_listens() {
        let told = |ports: &[u16], unix: &[&str]| {
            let unix = unix.iter().map(|&path| path.to_owned()).collect();
            let at = Listening { ports: ports.to_vec(), unix, cpu_seconds: 0.0 };
            error("app-1", 4001, &at, Output::default()).map(|error| error.to_string())
        };
        assert_eq!(
            told(&[3000], &["/run/a.sock"]).unwrap(),
            "app-1 listens on port 3000, not on port 4001 that it was given: pass {port} in the command, \
             or let the app read PORT from its environment"
        );
        assert_eq!(
            told(&[], &["/run/a.sock"]).unwrap(),
            "app-1 listens on the Unix socket /run/a.sock, not on port 4001 that it was given: requests \
             reach an instance by TCP, so let it listen on 127.0.0.1:{port}"
        );
        assert_eq!((told(&[], &[]), told(&[3000, 4001], &[])), (None, None));
    }
}
