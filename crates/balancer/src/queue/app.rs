//! An app at run time: its queue with its backends, and its counters.

use std::sync::{Mutex, PoisonError};

use tokio::sync::broadcast;

use crate::backends::health::HealthEvent;
use crate::config::app::{AppConfig, AppId};
use crate::queue::counters::AppTally;
use crate::queue::shared_queue::SharedQueue;

pub(crate) struct App {
    pub(crate) config: AppConfig,
    pub(crate) queue: SharedQueue,
    /// By thread.
    pub(crate) tallies: Box<[Mutex<AppTally>]>,
}

impl App {
    pub(crate) fn new(
        id: AppId,
        config: AppConfig,
        threads: usize,
        events: broadcast::Sender<HealthEvent>,
    ) -> Self {
        App {
            queue: SharedQueue::new(id, &config, threads, events),
            tallies: (0..threads).map(|_| Mutex::default()).collect(),
            config,
        }
    }

    pub(crate) fn tally(&self, thread: usize, count: impl FnOnce(&mut AppTally)) {
        count(&mut self.tallies[thread].lock().unwrap_or_else(PoisonError::into_inner));
    }
}
