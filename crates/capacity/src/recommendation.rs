//! How many instances to run, and why.
//!
//! - [`search`]: the curve, the smallest count that holds the goal, and its interval.
//! - `throughput_goal`: what is enough for users where no latency is asked for.
//! - `next_limit`: what limits after the present limit.
//! - [`instance_capacity`]: what one instance and two carry, where no workload was given.
//! - [`reason`]: why, as values; `reasoning`: what fills them.
//! - [`bisection`]: the smallest count that passes, by measurements alone.

pub mod bisection;
pub mod instance_capacity;
mod next_limit;
pub mod reason;
mod reasoning;
pub mod search;
mod throughput_goal;
