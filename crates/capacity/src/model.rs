//! The model: what N instances complete, and how long their answers take.
//!
//! - [`saturation`]: a measurement of so many instances; [`ladder`]: one instance under doubling concurrency.
//! - [`model_inputs`]: everything that the model is fitted to, as a plan keeps it.
//! - [`network`]: N instances of concurrency k on C shared cores; `contention`: what they complete together.
//! - [`sharing`]: what limits instances beside the cores, decided by the data.
//! - [`quota`]: instances that the kernel stops until the next period.
//! - [`prediction`]: throughput and latency under a workload, with intervals.
//! - `latency_correction`: what the model does not know of response times.
//! - [`outcome`]: a measurement beside its prediction.
//! - [`precision`]: the count at which one more measurement says most.
//! - [`warm_up`]: whether instances still get faster.
//! - [`core_speed`]: whether the cores kept their speed.

mod contention;
pub mod core_speed;
pub mod ladder;
mod latency_correction;
pub mod model_inputs;
pub mod network;
pub mod outcome;
pub mod precision;
pub mod prediction;
pub mod quota;
pub mod saturation;
pub mod sharing;
pub mod warm_up;
