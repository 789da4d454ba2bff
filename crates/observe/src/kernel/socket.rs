//! The TCP connections of a target, read on request: the kernel lists all of the machine's at once.

use crate::kernel::counters::fullest;
use crate::kernel::file::KernelFiles;
use crate::kernel::process::count_open_files;
use procfs::net::{TcpNetEntries, TcpNetEntry, TcpState};
use procfs::{FromBufReadSI, current_system_info};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::net::SocketAddr;

/// The established TCP connections of a target at one moment, and its open files beside their limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sockets {
    /// Ports that it listens on.
    #[serde(default)]
    pub listening: BTreeSet<u16>,
    /// Connections to its listening ports, including those that it has not accepted yet.
    pub inbound: usize,
    /// Connections among these with bytes that it has not read. A request is let in when it is read.
    pub unread: usize,
    /// Connections that it made, by where they lead.
    pub outbound: BTreeMap<SocketAddr, usize>,
    /// Open files and their limit, of the process that is nearest to its limit.
    pub open_files: Option<(u64, u64)>,
}

// === impl Sockets ===

impl Sockets {
    /// Sockets of these processes. A process that is gone or unreadable has none.
    pub(crate) fn read(pids: &[i32], files: &mut KernelFiles) -> Self {
        let owned: HashSet<u64> = pids.iter().flat_map(|pid| inodes(*pid)).collect();
        let entries: Vec<TcpNetEntry> = pids
            .first()
            .map(|pid| [format!("/proc/{pid}/net/tcp"), format!("/proc/{pid}/net/tcp6")])
            .into_iter()
            .flatten()
            .flat_map(|path| table(&path, files))
            .collect();
        let mut sockets = Self::sorted(&entries, &owned);
        sockets.open_files = fullest(pids.iter().filter_map(|pid| open_files(*pid, files)));
        sockets
    }

    fn sorted(entries: &[TcpNetEntry], owned: &HashSet<u64>) -> Self {
        let is_own = |entry: &&TcpNetEntry| owned.contains(&entry.inode);
        let listening: BTreeSet<u16> = entries
            .iter()
            .filter(is_own)
            .filter(|entry| entry.state == TcpState::Listen)
            .map(|entry| entry.local_address.port())
            .collect();
        let mut sockets = Self::default();
        for entry in entries.iter().filter(|entry| entry.state == TcpState::Established) {
            // A connection that waits to be accepted belongs to no process yet.
            if listening.contains(&entry.local_address.port()) {
                sockets.inbound += 1;
                sockets.unread += usize::from(entry.rx_queue > 0);
            } else if is_own(&entry) {
                *sockets.outbound.entry(entry.remote_address).or_default() += 1;
            }
        }
        sockets.listening = listening;
        sockets
    }
}

/// The sockets that a process has open.
fn inodes(pid: i32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let inode = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.filter_map(|entry| inode(entry.ok()?)).collect()
}

fn table(path: &str, files: &mut KernelFiles) -> Vec<TcpNetEntry> {
    let entries = files
        .bytes(path)
        .ok()
        .and_then(|text| TcpNetEntries::from_buf_read(text, current_system_info()).ok());
    entries.map_or_else(Vec::new, |entries| entries.0)
}

/// How many a process has, and may have.
fn open_files(pid: i32, files: &mut KernelFiles) -> Option<(u64, u64)> {
    let open = count_open_files(&format!("/proc/{pid}/fd")).ok()?;
    let text = files.text(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    Some((open, line.split_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    fn own() -> Sockets {
        Sockets::read(&[i32::try_from(std::process::id()).unwrap()], &mut KernelFiles::new())
    }

    #[test]
    fn a_request_is_let_in_when_it_is_read() {
        let entry = |local: &str, remote: &str, state, rx_queue, inode| {
            let line = format!(
                "0: {local} {remote} {state:02X} 00000000:{rx_queue:08X} 00:00000000 00000000 0 0 {inode} 1"
            );
            let text = format!("header\n{line}\n");
            let parsed = TcpNetEntries::from_buf_read(text.as_bytes(), current_system_info());
            parsed.unwrap().0.remove(0)
        };
        let (listens, established) = (10, 1);
        let entries = [
            entry("0100007F:1F90", "00000000:0000", listens, 0, 7),
            entry("0100007F:1F90", "0100007F:C000", established, 0, 8),
            entry("0100007F:1F90", "0100007F:C001", established, 90, 0),
            entry("0100007F:D000", "0100007F:1538", established, 0, 9),
            entry("0100007F:D001", "0100007F:1538", established, 0, 10),
            entry("0100007F:D002", "0100007F:1538", established, 0, 99),
        ];
        let sockets = Sockets::sorted(&entries, &[7, 8, 9, 10].into());
        assert_eq!((sockets.inbound, sockets.unread), (2, 1), "one waits to be accepted");
        assert_eq!(sockets.listening, [8080].into());
        assert_eq!(sockets.outbound, [("127.0.0.1:5432".parse().unwrap(), 2)].into());
    }

    #[test]
    fn own_connections_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"unread").unwrap();
        let sockets = own();
        // Both ends belong to this process. The end at a port on which it listens is inbound.
        assert!(sockets.inbound >= 1 && sockets.unread >= 1, "{sockets:?}");
        assert_eq!(sockets.outbound.get(&address), Some(&1));
    }

    // A server that has raised its own limit, started by a shell that has not.
    #[test]
    fn files_are_counted_beside_the_limit_of_the_process_that_has_them() {
        let mut shell = Command::new("sh")
            .args(["-c", "ulimit -n 64; read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pids = [&std::process::id(), &shell.id()].map(|pid| i32::try_from(*pid).unwrap());
        let limit = |pid: i32| open_files(pid, &mut KernelFiles::new()).unwrap().1;
        while limit(pids[1]) != 64 {
            std::thread::yield_now();
        }
        let _held: Vec<_> = (0..60).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let (open, most) = Sockets::read(&pids, &mut KernelFiles::new()).open_files.unwrap();
        assert!(10 * open < 9 * most, "{open} of {most}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
