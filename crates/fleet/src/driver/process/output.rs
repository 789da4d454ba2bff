//! What instances write: the last lines in memory, all of it in rotated files.

mod log;
pub(crate) mod memory_file;
pub(crate) mod tail;

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

pub(super) use log::LogFile;
use tail::Tail;

use crate::driver::Notice;

/// What the rest of a pipe may take to read once its writer has ended. Longer when something that
/// left the process group holds it open, and then it is not waited for.
const REST: Duration = Duration::from_millis(500);

/// Reads the output of one instance, for as long as anybody writes it.
pub(super) struct Capture {
    tail: Arc<Mutex<Tail>>,
    notice: Notice,
    /// Closed when the output has ended.
    open: watch::Receiver<()>,
}

impl Capture {
    /// Starts a thread that reads: a slow disk must not hold up a runtime that serves requests.
    pub(super) fn start(
        name: &str,
        reader: PipeReader,
        log: Arc<Mutex<LogFile>>,
    ) -> io::Result<Capture> {
        let (opened, open) = watch::channel(());
        let capture = Capture { tail: Arc::default(), notice: Notice::default(), open };
        let (tail, notice) = (capture.tail.clone(), capture.notice.clone());
        thread::Builder::new().name(format!("{name} output")).spawn(move || {
            read(reader, &tail, &log, &notice);
            drop(opened);
        })?;
        Ok(capture)
    }

    pub(super) fn last_lines(&self, n: usize) -> Vec<String> {
        lock(&self.tail).last(n)
    }

    pub(super) fn notice(&self) -> Notice {
        self.notice.clone()
    }

    /// Returns when all that a dead process wrote has been read.
    pub(super) async fn finished(&mut self) {
        let _ = timeout(REST, self.open.changed()).await;
    }
}

/// Reads on whatever happens to the log, or the app would block when it writes.
fn read(mut reader: PipeReader, tail: &Mutex<Tail>, log: &Mutex<LogFile>, notice: &Notice) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let bytes = match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        lock(tail).push(bytes);
        if let Err(warning) = lock(log).append(bytes) {
            notice.get_or_init(|| warning);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn an_unwritable_log_is_reported_once_and_output_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        // Every write to this device fails as on a full disk.
        let log = Arc::new(Mutex::new(LogFile::new("/dev/full".into(), u64::MAX, 1)));
        let mut capture = Capture::start("app-1", reader, log).unwrap();
        // More than a pipe holds: a reader that had stopped would block this.
        thread::spawn(move || {
            for _ in 0..100 {
                writer.write_all(&[b'x'; 4096]).unwrap();
            }
            writer.write_all(b"\nthe end\n").unwrap();
        })
        .join()
        .unwrap();
        capture.finished().await;
        assert_eq!(capture.last_lines(1), ["the end"]);
        let notice = capture.notice();
        let warning = notice.get().unwrap();
        assert!(warning.contains("/dev/full: No space left"), "{warning}");
    }
}
