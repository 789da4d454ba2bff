//! A log file that is rotated when it has reached its size.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a log that cannot be written is left alone. Output of that time is lost, but a chatty app
/// does not hammer a full disk.
const RETRY: Duration = Duration::from_secs(1);

/// Appends to `path`; older output is in `path.1` (newest) to `path.KEEP`.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    keep: usize,
    file: Option<(File, u64)>,
    retry_at: Option<Instant>,
}

impl LogFile {
    /// Nothing is opened before something is written.
    pub(crate) fn new(path: PathBuf, max_bytes: u64, keep: usize) -> LogFile {
        LogFile { path, max_bytes: max_bytes.max(1), keep, file: None, retry_at: None }
    }

    /// Returns a sentence when the log cannot be written, and stays silent until it is tried again.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.retry_at.is_some_and(|retry_at| Instant::now() < retry_at) {
            return Ok(());
        }
        self.write(bytes).map_err(|error| {
            self.file = None;
            self.retry_at = Some(Instant::now() + RETRY);
            format!(
                "cannot write {}: {error}; make room or let another directory have the logs",
                self.path.display()
            )
        })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (file, size) = match &mut self.file {
                Some(open) => open,
                closed => closed.insert(open(&self.path)?),
            };
            let now = portion(bytes, *size, self.max_bytes);
            if now == 0 {
                self.rotate()?;
                continue;
            }
            file.write_all(&bytes[..now])?;
            *size += now as u64;
            bytes = &bytes[now..];
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        if self.keep == 0 {
            return if_there(fs::remove_file(&self.path));
        }
        for age in (1..self.keep).rev() {
            if_there(fs::rename(self.aged(age), self.aged(age + 1)))?;
        }
        if_there(fs::rename(&self.path, self.aged(1)))
    }

    fn aged(&self, age: usize) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{age}"));
        path.into()
    }
}

/// A file that others removed needs no rotation.
fn if_there(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

fn open(path: &PathBuf) -> io::Result<(File, u64)> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    // What an app writes may hold secrets.
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// How many of the bytes go into a file of this size; whole lines while there are any. 0: rotate.
fn portion(bytes: &[u8], size: u64, max_bytes: u64) -> usize {
    let room = usize::try_from(max_bytes.saturating_sub(size)).unwrap_or(usize::MAX);
    if bytes.len() <= room {
        return bytes.len();
    }
    let lines = bytes[..room].iter().rposition(|byte| *byte == b'\n');
    match lines {
        Some(end) => end + 1,
        // A line that no file holds is cut.
        None if size == 0 => room,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &LogFile, age: usize) -> String {
        let path = if age == 0 { log.path.clone() } else { log.aged(age) };
        fs::read_to_string(path).unwrap_or_else(|_| "-".into())
    }

    #[test]
    fn only_its_owner_reads_what_an_app_writes() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let (folder, path) = (directory.path().join("new"), directory.path().join("new/app-1.log"));
        LogFile::new(path.clone(), 10, 2).append(b"secret\n").unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder), mode(path)), (0o700, 0o600));
    }

    #[test]
    fn logs_rotate_at_line_ends_and_old_ones_go() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = LogFile::new(directory.path().join("new/app-1.log"), 10, 2);
        for line in ["aaaa\n", "bbbb\n", "cccc\n", "dddd\neeee\n", "f\n"] {
            log.append(line.as_bytes()).unwrap();
        }
        assert_eq!(read(&log, 0), "eeee\nf\n");
        assert_eq!(read(&log, 1), "cccc\ndddd\n");
        assert_eq!(read(&log, 2), "aaaa\nbbbb\n");
        log.append(b"0123456789abcdefghij\n").unwrap();
        assert_eq!((read(&log, 0), read(&log, 1)), ("\n".into(), "abcdefghij".into()));
        assert_eq!(read(&log, 3), "-");
    }

    #[test]
    fn a_log_continues_after_an_earlier_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app-1.log");
        fs::write(&path, "earlier\n").unwrap();
        let mut log = LogFile::new(path, 10, 0);
        log.append(b"x\n").unwrap();
        assert_eq!(read(&log, 0), "earlier\nx\n");
        log.append(b"y\n").unwrap();
        assert_eq!(read(&log, 0), "y\n");
    }

    #[test]
    fn a_removed_log_is_created_again() {
        for keep in [0, 2] {
            let directory = tempfile::tempdir().unwrap();
            let mut log = LogFile::new(directory.path().join("app-1.log"), 4, keep);
            log.append(b"a\nb\n").unwrap();
            fs::remove_file(&log.path).unwrap();
            log.append(b"c\n").unwrap();
            assert_eq!((read(&log, 0), read(&log, 1)), ("c\n".into(), "-".into()));
        }
    }

    #[test]
    fn a_write_error_is_reported_then_retried_later() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let mut log = LogFile::new(directory.path().join("file/app-1.log"), 10, 0);
        let warning = log.append(b"x").unwrap_err();
        assert!(warning.contains("file/app-1.log: "), "{warning}");
        assert_eq!(log.append(b"x"), Ok(()));
    }
}
