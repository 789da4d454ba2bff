//! The central queue, the slots of the backends and the policies that pick one.

pub(crate) mod affinity_key;
pub(crate) mod app;
pub(crate) mod counters;
pub(crate) mod shared_queue;
