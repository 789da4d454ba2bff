//! The access log: a line a request. A data-plane thread puts its lines into a buffer of its own,
//! a writer empties the buffers. Nobody who serves requests waits for a disk or a reader: when a
//! buffer is full, lines are dropped and counted, and the log says how many.

mod line;
mod record;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::Thread;
use std::time::Duration;

pub(crate) use line::{Line, Transport};
pub(crate) use record::Record;
use writer::{Sink, Writer};

/// Where a line for each request goes, and in which words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where to.
    pub to: LogTarget,
    /// In which words.
    pub format: LogFormat,
}

/// Where an access log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The standard output.
    Stdout,
    /// The end of this file, which is created where there is none.
    File(PathBuf),
}

/// How a line of an access log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined format of other servers, byte for byte.
    #[default]
    Combined,
    /// An object a line, with times in milliseconds and everything that is known.
    Json,
}

/// A log that is being written.
pub(crate) struct Log {
    shared: Arc<Shared>,
    notice: fn(&str),
    writer: Thread,
    /// Disconnected when the writer has written everything.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// What data-plane threads and the writer share.
struct Shared {
    format: LogFormat,
    /// By thread.
    lanes: Box<[Mutex<Lane>]>,
    /// The writer waits to be woken by the next line.
    asleep: AtomicBool,
    reopen: AtomicBool,
    stop: AtomicBool,
    /// Lines that were not written, so far.
    dropped: AtomicU64,
}

/// Lines of one thread.
#[derive(Default)]
struct Lane {
    lines: Vec<u8>,
    dropped: u64,
}

/// Bytes of lines that one thread may have waiting: some thousand requests.
const CAPACITY: usize = 1 << 20;

/// How long lines wait for others, so that a system call writes many.
const DRAIN: Duration = Duration::from_millis(50);

/// How long a stop waits for a disk or a reader that takes no more.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogTarget::Stdout => f.write_str("on standard output"),
            LogTarget::File(path) => path.display().fmt(f),
        }
    }
}

impl Log {
    /// Opens the target, and starts the writer.
    pub(crate) fn start(log: &AccessLog, threads: usize, notice: fn(&str)) -> io::Result<Log> {
        let sink = Sink::open(log.to.clone(), notice)?;
        let shared = Arc::new(Shared {
            format: log.format,
            lanes: (0..threads).map(|_| Mutex::default()).collect(),
            asleep: AtomicBool::new(false),
            reopen: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        });
        let (end, ended) = mpsc::channel();
        let writer = Writer::new(Arc::clone(&shared), sink);
        let thread = std::thread::Builder::new().name("access-log".into()).spawn(move || {
            writer.run();
            drop(end);
        })?;
        Ok(Log { shared, notice, writer: thread.thread().clone(), ended: Mutex::new(ended) })
    }

    /// Adds a line of this thread.
    pub(crate) fn write(&self, thread: usize, line: &Line<'_>) {
        let mut lane = self.shared.lane(thread);
        let before = lane.lines.len();
        line.write(&mut lane.lines, self.shared.format);
        let after = lane.lines.len();
        if after > CAPACITY {
            lane.lines.truncate(before);
            lane.dropped += 1;
            return;
        }
        drop(lane);
        // Once when it fills up; later lines find it awake, or busy with a slow disk.
        let fills = before < CAPACITY / 2 && after >= CAPACITY / 2;
        if fills || self.shared.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Writes what waits, and goes on with the file that has the name now.
    pub(crate) fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Writes what waits, and ends; to be called when nobody adds lines any more. The first call waits.
    pub(crate) fn stop(&self) {
        if self.shared.stop.swap(true, Ordering::SeqCst) {
            return;
        }
        self.wake();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(LAST_WORDS) == Err(mpsc::RecvTimeoutError::Timeout) {
            (self.notice)(
                "the access log takes no more bytes, so its last lines are lost; look at who reads it, or at its disk",
            );
        }
    }

    /// Lines that were not written, so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        self.shared.asleep.store(false, Ordering::SeqCst);
        self.writer.unpark();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lane(&self, thread: usize) -> MutexGuard<'_, Lane> {
        self.lanes[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
