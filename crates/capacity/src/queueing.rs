//! Queueing theory: laws and stations that know nothing of apps.
//!
//! - [`laws`]: the operational laws and the asymptotic bounds.
//! - [`workload`]: users who think, or arrivals at a rate.
//! - `birth_death`: the balance of a station with load-dependent rates.
//! - [`service_shape`]: how a service time varies.
//! - `core_sharing`: requests that share a core, and those that have one for themselves.
//! - `throughput_table`: completion rates by requests in service.
//! - [`response`], `response_distribution`: response times and their percentiles.
//! - `queue`: all of these as one queue under a workload.

pub(crate) mod birth_death;
pub(crate) mod core_sharing;
pub mod laws;
pub(crate) mod queue;
pub mod response;
pub(crate) mod response_distribution;
pub mod service_shape;
pub(crate) mod throughput_table;
pub mod workload;
