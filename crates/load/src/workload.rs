//! Who sends when, as pure functions of time: users, arrivals, rates and traces.

pub(crate) mod arrivals;
pub(crate) mod backoff;
pub(crate) mod phase;
pub(crate) mod plan;
pub(crate) mod rate;
pub(crate) mod rate_curve;
pub(crate) mod schedule;
pub(crate) mod spec;
mod strata;
pub(crate) mod thread_share;
pub(crate) mod trace;
pub(crate) mod user_count;
pub(crate) mod users;
