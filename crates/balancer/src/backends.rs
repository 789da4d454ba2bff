//! The backends: their connections, their health and their counters.

pub(crate) mod backend_id;
pub(crate) mod backend_state;
pub(crate) mod backend_stream;
pub(crate) mod counters;
pub(crate) mod health;
pub(crate) mod health_state;
pub(crate) mod report;
