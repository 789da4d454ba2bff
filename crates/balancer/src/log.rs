//! The access log: one line for each request. Each data-plane thread puts its lines into a buffer of its
//! own, and a writer thread empties the buffers. Requests never wait for a disk or a reader. If a buffer
//! is full, lines are dropped and counted, and the log says how many.

pub(crate) mod buffers;
pub(crate) mod foreign_link;
pub(crate) mod line;
pub(crate) mod record;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::Thread;
use std::time::Duration;

use crate::config::access_log::AccessLog;
use crate::log::buffers::LogBuffers;
use crate::log::line::Line;
use crate::log::writer::{Sink, Writer};

/// A log that is being written.
pub(crate) struct Log {
    shared: Arc<LogBuffers>,
    notice: fn(&str),
    writer: Thread,
    /// Disconnected when the writer has written everything.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// Bytes of lines that may wait in one thread's buffer: some thousand requests.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// How long a stop waits for a disk or a reader that takes nothing.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

impl Log {
    /// Opens the target, and starts the writer.
    pub(crate) fn start(log: &AccessLog, threads: usize, notice: fn(&str)) -> io::Result<Log> {
        let sink = Sink::open(log.to.clone(), notice)?;
        let shared = Arc::new(LogBuffers::new(log.format, threads));
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
        let mut buffer = self.shared.buffer(thread);
        let before = buffer.lines.len();
        line.write(&mut buffer.lines, self.shared.format);
        let after = buffer.lines.len();
        if after > MAX_WAITING_BYTES {
            buffer.lines.truncate(before);
            buffer.dropped += 1;
            return;
        }
        drop(buffer);
        // Wakes it once when the buffer is half full. Later lines find it awake, or busy with a slow
        // disk.
        let fills = before < MAX_WAITING_BYTES / 2 && after >= MAX_WAITING_BYTES / 2;
        if fills || self.shared.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Writes the waiting lines, and then reopens the file by its name.
    pub(crate) fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Writes the waiting lines and ends. Call it when nobody adds lines any more. The first call waits.
    pub(crate) fn stop(&self) {
        if self.shared.stop.swap(true, Ordering::SeqCst) {
            return;
        }
        self.wake();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(FLUSH_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            (self.notice)(
                "the access log takes no more bytes, so its last lines are lost; look at who reads it, or at its disk",
            );
        }
    }

    /// Lines that were dropped so far.
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
