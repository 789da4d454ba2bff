//! The lines that wait to be written, in a buffer for each data-plane thread.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::access_log::LogFormat;

/// What data-plane threads and the writer share.
pub(crate) struct LogBuffers {
    pub(crate) format: LogFormat,
    /// By thread.
    pub(crate) buffers: Box<[Mutex<LineBuffer>]>,
    /// The writer sleeps until the next line.
    pub(crate) asleep: AtomicBool,
    pub(crate) reopen: AtomicBool,
    pub(crate) stop: AtomicBool,
    /// Lines that were dropped so far.
    pub(crate) dropped: AtomicU64,
}

/// The waiting lines of one thread.
#[derive(Default)]
pub(crate) struct LineBuffer {
    pub(crate) lines: Vec<u8>,
    pub(crate) dropped: u64,
}

impl LogBuffers {
    pub(crate) fn new(format: LogFormat, threads: usize) -> Self {
        LogBuffers {
            format,
            buffers: (0..threads).map(|_| Mutex::default()).collect(),
            asleep: AtomicBool::new(false),
            reopen: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    pub(crate) fn buffer(&self, thread: usize) -> MutexGuard<'_, LineBuffer> {
        self.buffers[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
