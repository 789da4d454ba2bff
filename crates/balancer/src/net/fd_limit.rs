//! The limit of open files. Each connection is one.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;
use crate::config::limits::Limits;
use crate::config::start_error::StartError;

/// Below this number of connections, the operator is told about the limit even if it was not configured.
const NOTICE_BELOW_CONNECTIONS: u64 = 1000;

/// With fewer connections, a single browser, which opens six, would lock out all others.
const MIN_CONNECTIONS: u64 = 8;

/// Files of the program itself: event loop, signals, output, logs, and short-lived files such as
/// certificates. An idle program was measured with 16.
const PROGRAM_FILES: u64 = 32;

/// Event loop and listeners of a thread. With one listener, 6 were measured.
const FILES_PER_THREAD: u64 = 8;

/// Connections to `--admin` and to the control socket, which have limits of their own.
const CONTROL_FILES: u64 = 32;

/// Spare files where the limit is large: output of instances, their starts, certificates.
const SPARE_FILES: u64 = 128;

/// Raises the process's limit as far as needed and allowed. If it stays too low, fewer clients are let
/// in, so that a file is left for each connection to a backend. Returns what to tell the operator then.
pub(crate) fn provide(config: &mut Config) -> Result<Option<String>, StartError> {
    let limits = &mut config.limits;
    let wanted = limits.connections as u64;
    let base = PROGRAM_FILES + FILES_PER_THREAD * config.threads as u64 + CONTROL_FILES;
    let Some(allowed) = raise(wanted.saturating_mul(2).saturating_add(base + SPARE_FILES)) else {
        return Ok(None);
    };
    let threads = config.threads;
    let connections = connections(allowed, threads).map_err(|needed| StartError::TooFewFiles {
        allowed,
        needed,
        threads,
    })?;
    let asked = limits.connections != Limits::default().connections;
    limits.connections = limits.connections.min(connections as usize);
    if limits.client_connections == Limits::default().client_connections {
        // Some connections remain for other clients.
        let most = (limits.connections / 4 * 3).max(1);
        limits.client_connections = limits.client_connections.min(most);
    }
    if connections >= wanted || connections >= NOTICE_BELOW_CONNECTIONS && !asked {
        return Ok(None);
    }
    Ok(Some(format!(
        "{allowed} open files are allowed, enough for {connections} connections of clients, not for {wanted}; \
         raise the limit (ulimit -Hn, LimitNOFILE= of systemd), or lower connections in the limits"
    )))
}

/// How many client connections fit into this many files, if each needs another file for its backend. The
/// error is the number of files that would do.
fn connections(allowed: u64, threads: usize) -> Result<u64, u64> {
    let base = PROGRAM_FILES + FILES_PER_THREAD * threads as u64 + CONTROL_FILES;
    let spare = (allowed / 8).min(SPARE_FILES);
    let connections = allowed.saturating_sub(base + spare) / 2;
    if connections >= MIN_CONNECTIONS {
        return Ok(connections);
    }
    // The spare files are an eighth of all.
    Err((base + 2 * MIN_CONNECTIONS).saturating_mul(8).div_ceil(7))
}

/// Raises the limit. Returns the limit that is left if it is lower than wanted.
fn raise(wanted: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    let now = if set.is_ok() { Some(raised) } else { current };
    now.filter(|&now| now < wanted)
}

/// Whether a connection failed for lack of local resources, which says nothing about the peer.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [Errno; 5] =
        [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
    SHORTAGES.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_files_for_backends() {
        let mut config = Config::default();
        config.limits.connections = 100;
        assert!(provide(&mut config).unwrap().is_none());
        assert_eq!(config.limits.connections, 100);
        // More than any system allows.
        config.limits.connections = 1 << 40;
        let notice = provide(&mut config).unwrap().unwrap();
        let allowed = getrlimit(Resource::Nofile).current.unwrap();
        assert!(notice.starts_with(&format!("{allowed} open files")), "{notice}");
        assert!((config.limits.connections as u64) < allowed / 2);
        assert!(config.limits.client_connections <= config.limits.connections / 4 * 3);
        config.limits.client_connections = 2;
        config.limits.connections = 1 << 40;
        provide(&mut config).unwrap();
        assert_eq!(config.limits.client_connections, 2, "as was asked for");
    }

    #[test]
    fn few_files_are_for_clients_rather_than_spare() {
        assert_eq!(connections(128, 2), Ok(16));
        assert_eq!(connections(1024, 2), Ok(408));
        assert_eq!(connections(20_000, 2), Ok(9896));
    }

    #[test]
    fn the_file_limit_that_is_asked_for_is_enough() {
        for threads in [1, 2, 8, 64] {
            let needed = connections(32, threads).unwrap_err();
            assert!(connections(needed, threads).is_ok(), "{needed}");
            assert!(connections(needed - 2, threads).is_err(), "{needed}");
        }
    }
}
