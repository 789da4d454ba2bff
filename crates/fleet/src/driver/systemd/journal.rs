//! The last lines that an instance wrote.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;

use super::transient::Output;
use crate::driver::process::output::tail::Tail;
use crate::driver::process::sockets;

/// More of a file is not read for its last lines.
const TAIL_BYTES: u64 = 400_000;

/// At most `n`. `invocation` is the one of the unit that is meant, in hexadecimal digits.
pub(super) async fn last_lines(output: &Output, invocation: &str, n: usize) -> Vec<String> {
    let (output, invocation) = (output.clone(), invocation.to_owned());
    let bytes = sockets::aside(move || match output {
        Output::Journal => in_journal(&invocation, n),
        Output::File(path) => in_file(&path),
    });
    let mut tail = Tail::default();
    tail.push(&bytes.await.flatten().unwrap_or_default());
    tail.last(n)
}

fn in_journal(invocation: &str, n: usize) -> Option<Vec<u8>> {
    let mut command = Command::new("journalctl");
    command.args(["--quiet", "--no-pager", "--output=cat", &format!("--lines={n}")]);
    command.arg(format!("_SYSTEMD_INVOCATION_ID={invocation}"));
    command.output().ok().map(|output| output.stdout)
}

fn in_file(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
