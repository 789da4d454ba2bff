//! The thread that writes the lines of all other threads.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::config::access_log::{LogFormat, LogTarget};
use crate::log::buffers::LogBuffers;
use crate::log::foreign_link::open_named;
use crate::net::clock;

/// How long lines wait for more, so that one system call writes many.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);

/// The file that is written to.
pub(crate) struct Sink {
    file: File,
    to: LogTarget,
    notice: fn(&str),
    state: SinkState,
}

/// Whether the last write succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SinkState {
    Writing,
    /// A line may have been written without its end.
    Failing,
}

pub(crate) struct Writer {
    shared: Arc<LogBuffers>,
    sink: Sink,
    /// The lines that are being written. A buffer gets this memory in exchange for its lines.
    lines: Vec<u8>,
    /// Dropped lines that the log does not mention yet.
    unreported: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<LogBuffers>, sink: Sink) -> Self {
        Writer { shared, sink, lines: Vec::new(), unreported: 0 }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) {
        loop {
            let stop = self.shared.stop.load(Ordering::SeqCst);
            let reopen = self.shared.reopen.swap(false, Ordering::SeqCst);
            let wrote = self.drain();
            if reopen {
                self.sink.reopen();
            }
            if stop {
                break;
            }
            if wrote {
                std::thread::park_timeout(WRITE_INTERVAL);
            } else {
                self.sleep();
            }
        }
    }

    /// Waits for the next line.
    fn sleep(&mut self) {
        self.shared.asleep.store(true, Ordering::SeqCst);
        // A thread that added a line before this look did not see that the writer sleeps.
        let lines = (0..self.shared.buffers.len()).any(|t| !self.shared.buffer(t).lines.is_empty());
        let asked =
            self.shared.stop.load(Ordering::SeqCst) || self.shared.reopen.load(Ordering::SeqCst);
        if !lines && !asked {
            while self.shared.asleep.load(Ordering::SeqCst) {
                std::thread::park();
            }
        }
        self.shared.asleep.store(false, Ordering::SeqCst);
    }

    /// Writes the waiting lines. Returns whether there were any.
    fn drain(&mut self) -> bool {
        let mut wrote = false;
        for thread in 0..self.shared.buffers.len() {
            self.lines.clear();
            let dropped = {
                let mut buffer = self.shared.buffer(thread);
                std::mem::swap(&mut buffer.lines, &mut self.lines);
                std::mem::take(&mut buffer.dropped)
            };
            wrote |= !self.lines.is_empty();
            self.lost(dropped);
            if !self.lines.is_empty() && !self.sink.write(&self.lines) {
                self.lost(memchr::memchr_iter(b'\n', &self.lines).count() as u64);
            }
        }
        if self.unreported > 0 {
            let line = self.line_of_loss();
            if self.sink.write(&line) {
                self.unreported = 0;
            }
        }
        wrote
    }

    fn lost(&mut self, lines: u64) {
        self.unreported += lines;
        self.shared.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    /// Uses the log's own format, so that its readers can parse the line.
    fn line_of_loss(&self) -> Vec<u8> {
        let (mut line, now) = (Vec::new(), clock::since_1970());
        let count = self.unreported;
        // Writing to memory succeeds.
        let _ = match self.shared.format {
            LogFormat::Combined => {
                line.extend_from_slice(b"- - - [");
                clock::write_combined(&mut line, now);
                writeln!(line, "] \"-\" 0 0 \"-\" \"{count} lines dropped\"")
            }
            LogFormat::Json => {
                line.extend_from_slice(b"{\"time\":\"");
                clock::write_iso(&mut line, now);
                writeln!(line, "\",\"lines_dropped\":{count}}}")
            }
        };
        line
    }
}

impl Sink {
    pub(crate) fn open(to: LogTarget, notice: fn(&str)) -> io::Result<Self> {
        let file = match &to {
            LogTarget::Stdout => File::from(io::stdout().as_fd().try_clone_to_owned()?),
            LogTarget::File(path) => append_to(path)?,
        };
        Ok(Sink { file, to, notice, state: SinkState::Writing })
    }

    /// Writes lines. Returns whether it wrote all of them. Reports the first failure in a row.
    fn write(&mut self, lines: &[u8]) -> bool {
        let torn = self.state == SinkState::Failing && !lines.is_empty();
        let written = match torn {
            true => self.file.write_all(b"\n").and_then(|()| self.file.write_all(lines)),
            false => self.file.write_all(lines),
        };
        match written {
            Ok(()) => self.state = SinkState::Writing,
            Err(error) => {
                if self.state == SinkState::Writing {
                    (self.notice)(&format!(
                        "cannot write the access log {}: {error}; lines are lost until that is mended, requests are served",
                        self.to
                    ));
                }
                self.state = SinkState::Failing;
            }
        }
        self.state == SinkState::Writing
    }

    /// Reopens the file by its name. On failure it continues with the old file.
    fn reopen(&mut self) {
        let LogTarget::File(path) = &self.to else { return };
        match append_to(path) {
            Ok(file) => (self.file, self.state) = (file, SinkState::Writing),
            Err(error) => (self.notice)(&format!(
                "cannot reopen the access log {}: {error}; it goes on in the file that was open: mend that, and reopen again",
                self.to
            )),
        }
    }
}

/// A new file is readable by its owner and group only, because it has addresses and queries.
fn append_to(path: &Path) -> io::Result<File> {
    open_named(path, OpenOptions::new().create(true).append(true).mode(0o640))
}
