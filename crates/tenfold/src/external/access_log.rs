//! What the program says of each request, through a pipe: a line each.
//!
//! Datagrams, as of syslog, are lost where ten of them wait, which is what Linux allows a Unix socket by default. A
//! pipe of this size holds some ten thousand lines.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use balancer::Unserved;
use rustix::fs::{FileType, Mode, mknodat};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;

/// Bytes that may wait for this process.
const PIPE_BYTES: usize = 1 << 20;

/// A request, as the program logged it. `S` names a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged<S> {
    /// Who answered, and how long that took.
    pub served: Option<(S, Duration)>,
    /// Servers that were tried before.
    pub tried: Vec<S>,
    pub queue: Duration,
    pub response: Duration,
    pub status: u16,
    pub bytes: u64,
    pub unserved: Unserved,
}

impl Logged<String> {
    /// The same with ids; unknown servers have left.
    pub fn of_ids(self, ids: &HashMap<String, u64>) -> Logged<u64> {
        let id = |server: &String| ids.get(server).copied();
        Logged {
            served: self.served.and_then(|(server, time)| Some((id(&server)?, time))),
            tried: self.tried.iter().filter_map(id).collect(),
            queue: self.queue,
            response: self.response,
            status: self.status,
            bytes: self.bytes,
            unserved: self.unserved,
        }
    }
}

/// Makes the pipe, and opens it to read.
pub fn open(path: &Path) -> io::Result<pipe::Receiver> {
    let _ = std::fs::remove_file(path);
    mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::from(0o600), 0)?;
    // Open to write as well, it never ends while nobody else writes.
    let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(path)?;
    // Not everybody may have so large a one; then it holds less.
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
    Ok(pipe)
}

/// Opens it to write.
pub fn writer(path: &Path) -> io::Result<OwnedFd> {
    Ok(File::options().write(true).open(path)?.into())
}

/// Passes on each line.
pub async fn read(pipe: pipe::Receiver, mut line: impl FnMut(&str)) {
    let mut lines = BufReader::new(pipe);
    let mut bytes = Vec::new();
    while lines.read_until(b'\n', &mut bytes).await.is_ok_and(|read| read > 0) {
        line(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
}
