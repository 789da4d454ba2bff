//! Which processes are in a group, and who listens where, as /proc tells.
//!
//! What cannot be read, because it belongs to somebody else, counts as not there.

use std::collections::HashSet;
use std::thread;

use procfs::net::{TcpNetEntry, TcpState, UnixNetEntry, UnixState};
use procfs::process::{FDTarget, Process, Stat, all_processes};
use rustix::process::Pid;
use tokio::sync::oneshot;

/// SOCK_STREAM in /proc/net/unix.
const SOCK_STREAM: u16 = 1;

/// Reads /proc on a thread of its own, for that takes a while. Nothing where this user may have no more
/// threads; the runtime's own pool would panic then.
pub(crate) async fn aside<T: Send + 'static>(
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, seen) = oneshot::channel();
    let thread = thread::Builder::new().name("sockets".into());
    thread.spawn(move || drop(sender.send(look()))).ok()?;
    seen.await.ok()
}

/// Where a process group listens.
#[derive(Debug, Clone, Default)]
pub(in crate::driver) struct Listening {
    /// TCP ports, ascending.
    pub(in crate::driver) ports: Vec<u16>,
    /// Paths of Unix sockets, in alphabetical order.
    pub(in crate::driver) unix: Vec<String>,
    /// CPU time that its processes have used.
    pub(in crate::driver) cpu_seconds: f64,
}

/// Some process of the group has not ended.
pub(in crate::driver) fn has_members(group: Pid) -> bool {
    let group = group.as_raw_nonzero().get();
    processes().any(|(_, stat)| is_member(&stat, group))
}

/// Where processes of the group listen, and what CPU they have used.
pub(in crate::driver) fn listening(group: u32) -> Listening {
    let group = group.cast_signed();
    let mut sockets = HashSet::new();
    let mut ticks = 0;
    for (process, stat) in processes() {
        if is_member(&stat, group) {
            sockets.extend(inodes(&process));
            ticks += stat.utime + stat.stime;
        }
    }
    let ports = ports_of(&sockets);
    let mut unix: Vec<String> = unix_listeners()
        .filter(|listener| sockets.contains(&listener.inode))
        .filter_map(|listener| Some(listener.path?.to_string_lossy().into_owned()))
        .collect();
    unix.sort_unstable();
    unix.dedup();
    Listening { ports, unix, cpu_seconds: ticks as f64 / procfs::ticks_per_second() as f64 }
}

/// TCP ports where these processes listen, ascending.
pub(in crate::driver) fn ports(pids: &[u32]) -> Vec<u16> {
    let processes = pids.iter().filter_map(|pid| Process::new(pid.cast_signed()).ok());
    ports_of(&processes.flat_map(|process| inodes(&process).collect::<Vec<_>>()).collect())
}

fn ports_of(sockets: &HashSet<u64>) -> Vec<u16> {
    let mut ports: Vec<u16> = listeners()
        .filter(|listener| sockets.contains(&listener.inode))
        .map(|listener| listener.local_address.port())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The process that listens on the port, with its id.
pub(in crate::driver) fn holder(port: u16) -> Option<String> {
    let holders = holders(port);
    holders.first().map(|(process, stat)| describe(process, stat))
}

/// The process that listens on the port; of several the one that runs longest, which has started the others.
pub(crate) fn listener(port: u16) -> Option<i32> {
    let oldest = holders(port).into_iter().min_by_key(|(_, stat)| stat.starttime);
    oldest.map(|(process, _)| process.pid())
}

/// Who else listens on the port, when nobody of the group does. A process that was started after the
/// group counts as its own: `docker run -p` listens through a process that is not its child.
pub(in crate::driver) fn stranger(port: u16, group: u32) -> Option<String> {
    let group = group.cast_signed();
    if listening(group.cast_unsigned()).ports.contains(&port) {
        return None;
    }
    let leader = Process::new(group).and_then(|leader| leader.stat()).ok()?;
    let holders = holders(port);
    let (process, stat) = holders.first()?;
    let younger = holders.iter().any(|(_, stat)| stat.starttime >= leader.starttime);
    (!younger).then(|| describe(process, stat))
}

fn describe(process: &Process, stat: &Stat) -> String {
    format!("{} (pid {})", stat.comm, process.pid())
}

fn holders(port: u16) -> Vec<(Process, Stat)> {
    let sockets: HashSet<u64> = listeners()
        .filter(|listener| listener.local_address.port() == port)
        .map(|listener| listener.inode)
        .collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    processes()
        .filter(|(process, _)| inodes(process).any(|inode| sockets.contains(&inode)))
        .collect()
}

fn processes() -> impl Iterator<Item = (Process, Stat)> {
    let processes = all_processes().into_iter().flatten().flatten();
    processes.filter_map(|process| {
        let stat = process.stat().ok()?;
        Some((process, stat))
    })
}

fn is_member(stat: &Stat, group: i32) -> bool {
    stat.pgrp == group && !matches!(stat.state, 'Z' | 'X')
}

fn listeners() -> impl Iterator<Item = TcpNetEntry> {
    let v4 = procfs::net::tcp().unwrap_or_default();
    let v6 = procfs::net::tcp6().unwrap_or_default();
    let all = v4.into_iter().chain(v6);
    all.filter(|entry| entry.state == TcpState::Listen)
}

/// Unix sockets that are bound to a path and not connected.
fn unix_listeners() -> impl Iterator<Item = UnixNetEntry> {
    let all = procfs::net::unix().unwrap_or_default();
    all.into_iter()
        .filter(|entry| entry.socket_type == SOCK_STREAM && entry.state == UnixState::UNCONNECTED)
}

fn inodes(process: &Process) -> impl Iterator<Item = u64> {
    let files = process.fd().into_iter().flatten().flatten();
    files.filter_map(|file| match file.target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpListener};

    use super::*;

    #[test]
    fn finds_the_holder_of_a_port_also_behind_ipv6() {
        for listener in
            [TcpListener::bind(("127.0.0.1", 0)), TcpListener::bind((Ipv6Addr::LOCALHOST, 0))]
        {
            // A machine may do without IPv6.
            let Ok(listener) = listener else { continue };
            let port = listener.local_addr().unwrap().port();
            let holder = holder(port).unwrap();
            assert!(holder.ends_with(&format!("(pid {})", std::process::id())));

            let group = rustix::process::getpgrp().as_raw_nonzero().get();
            assert!(listening(group.cast_unsigned()).ports.contains(&port));
            assert!(ports(&[std::process::id()]).contains(&port));
        }
    }

    #[test]
    fn finds_unix_sockets_by_their_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        let path = path.to_string_lossy().into_owned();
        assert!(listening(group.cast_unsigned()).unix.contains(&path));
    }
}
