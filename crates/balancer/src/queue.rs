//! The central queue, the slots of the backends and the policies that pick one.

pub(crate) mod affinity_key;
pub(crate) mod app;
pub(crate) mod counters;
pub(crate) mod dispatch;
pub(crate) mod shared_queue;

use std::time::Duration;

/// How often the queues of all apps are told that time passes.
pub(crate) const TICK: Duration = Duration::from_millis(100);
