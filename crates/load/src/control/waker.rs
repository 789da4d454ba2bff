//! Wakes a sleeping driver through an eventfd.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes one thread's driver. The driver holds a clone and watches it edge-triggered. Nobody reads it, because
/// the counter has room for more wake-ups than there will be.
#[derive(Debug, Clone)]
pub(crate) struct Waker {
    fd: Arc<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> std::io::Result<Waker> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Waker { fd: Arc::new(fd) })
    }

    pub(crate) fn wake(&self) {
        // The write fails only when 2^64 wake-ups have not been read.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
