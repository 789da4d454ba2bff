//! Which processes are in a group, and who listens where, as /proc tells.
//!
//! What cannot be read, because it belongs to somebody else, counts as not there.

use std::collections::HashSet;

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process, Stat, all_processes};
use rustix::process::Pid;

/// Some process of the group has not ended.
pub(super) fn has_members(group: Pid) -> bool {
    let group = group.as_raw_nonzero().get();
    processes().any(|(_, stat)| is_member(&stat, group))
}

/// TCP ports on which processes of the group listen, ascending.
pub(super) fn listening(group: u32) -> Vec<u16> {
    let group = group.cast_signed();
    let mut sockets = HashSet::new();
    for (process, stat) in processes() {
        if is_member(&stat, group) {
            sockets.extend(inodes(&process));
        }
    }
    let mut ports: Vec<u16> = listeners()
        .filter(|listener| sockets.contains(&listener.inode))
        .map(|listener| listener.local_address.port())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Who listens on the port: program and process id.
pub(super) fn holder(port: u16) -> Option<String> {
    let holders = holders(port);
    holders.first().map(|(process, stat)| describe(process, stat))
}

/// Who else listens on the port, when nobody of the group does. A process that was started after the
/// group counts as its own: `docker run -p` listens through a process that is not its child.
pub(super) fn stranger(port: u16, group: u32) -> Option<String> {
    let group = group.cast_signed();
    if listening(group.cast_unsigned()).contains(&port) {
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
            assert!(listening(group.cast_unsigned()).contains(&port));
        }
    }
}
