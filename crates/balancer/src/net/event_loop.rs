//! The event loop of a thread.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};

/// A Tokio runtime that is made before its thread, so that errors reach the caller. It can be dropped
/// anywhere, even within another event loop. Dropping it does not wait for blocking work, such as
/// looking up a name.
pub(crate) struct EventLoop(Option<Runtime>);

/// Threads beside an event loop that read and write files and look up names. A disk is not faster for more
/// of them.
const MAX_BLOCKING_THREADS: usize = 4;

impl EventLoop {
    pub(crate) fn new() -> io::Result<Self> {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().max_blocking_threads(MAX_BLOCKING_THREADS);
        Ok(EventLoop(Some(builder.build()?)))
    }

    /// Runs until this future ends. Other tasks are dropped with the event loop.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("it is gone only once it is dropped").block_on(future)
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_loop_can_be_dropped_within_another() {
        drop(EventLoop::new().unwrap());
    }
}
