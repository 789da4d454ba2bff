//! The thread that writes the lines of all others.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::config::access_log::{LogFormat, LogTarget};
use crate::log::buffers::LogBuffers;
use crate::net::clock;

/// How long lines wait for others, so that a system call writes many.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);

/// What is written to.
pub(crate) struct Sink {
    file: File,
    to: LogTarget,
    notice: fn(&str),
    state: SinkState,
}

/// How the last write ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SinkState {
    Writing,
    /// Bytes of a line may have been written without its end.
    Failing,
}

pub(crate) struct Writer {
    shared: Arc<LogBuffers>,
    sink: Sink,
    /// Lines on their way, and the memory that a buffer gets for them.
    lines: Vec<u8>,
    /// Lines that were not written and that the log does not tell of yet.
    untold: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<LogBuffers>, sink: Sink) -> Self {
        Writer { shared, sink, lines: Vec::new(), untold: 0 }
    }

    /// Until it is told to stop.
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

    /// Waits for the next line, however long that takes.
    fn sleep(&mut self) {
        self.shared.asleep.store(true, Ordering::SeqCst);
        // Who added a line before this look has not seen that nobody is awake.
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

    /// Writes what there is; whether there was anything.
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
        if self.untold > 0 {
            let line = self.line_of_loss();
            if self.sink.write(&line) {
                self.untold = 0;
            }
        }
        wrote
    }

    fn lost(&mut self, lines: u64) {
        self.untold += lines;
        self.shared.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    /// In the log's own words, so that what reads it goes on.
    fn line_of_loss(&self) -> Vec<u8> {
        let (mut line, now) = (Vec::new(), clock::since_1970());
        let count = self.untold;
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

    /// Whether all was written. The first failure in a row is told.
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

    /// Goes on with the file that has the name now; without one, with the old one.
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

/// A new file is for its owner and its group: addresses and queries are not for everybody.
fn append_to(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}
