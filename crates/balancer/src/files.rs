//! Open files, of which each connection is one.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;
use crate::limits::Limits;

/// So many connections are worth no word where nobody has asked for more.
const MANY: u64 = 1000;

/// Files for everything but connections: event loops, listeners, logs, certificates.
const SPARE: u64 = 128;
const SPARE_A_THREAD: u64 = 8;

/// Raises the process's limit as far as is needed and allowed. Where that is not enough, fewer clients
/// are let in, so that there is always a file for a connection to a backend; returns what to tell
/// the operator then.
pub(crate) fn provide(config: &mut Config) -> Option<String> {
    let limits = &mut config.limits;
    let spare = SPARE + SPARE_A_THREAD * config.threads as u64;
    let wanted = limits.connections as u64;
    let allowed = raise(wanted.saturating_mul(2).saturating_add(spare))?;
    let connections = (allowed.saturating_sub(spare) / 2).max(1);
    let asked = limits.connections != Limits::default().connections;
    limits.connections = connections as usize;
    if limits.client_connections == Limits::default().client_connections {
        // Still there is a rest for others.
        let most = (limits.connections / 4 * 3).max(1);
        limits.client_connections = limits.client_connections.min(most);
    }
    if connections >= MANY && !asked {
        return None;
    }
    Some(format!(
        "{allowed} open files are allowed, enough for {connections} connections of clients, not for {wanted}; \
         raise the limit (ulimit -Hn, LimitNOFILE= of systemd), or lower connections in the limits"
    ))
}

/// How many files there may be, if these are fewer than wanted.
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

/// A connection failed for want of something here; it says nothing about who is at the other end.
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
        assert_eq!(provide(&mut config), None);
        assert_eq!(config.limits.connections, 100);
        // More than any system allows.
        config.limits.connections = 1 << 40;
        let notice = provide(&mut config).unwrap();
        let allowed = getrlimit(Resource::Nofile).current.unwrap();
        assert!(notice.starts_with(&format!("{allowed} open files")), "{notice}");
        assert!((config.limits.connections as u64) < allowed / 2);
        assert!(config.limits.client_connections <= config.limits.connections / 4 * 3);
        config.limits.client_connections = 2;
        config.limits.connections = 1 << 40;
        provide(&mut config);
        assert_eq!(config.limits.client_connections, 2, "as was asked for");
    }
}
