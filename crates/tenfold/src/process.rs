//! This process: how it ends, which signals it hears, and what it asks of the kernel.
//!
//! - [`exit_code`]: how a command ends, as an exit code.
//! - [`signal`]: SIGINT, SIGTERM and SIGHUP as a value to wait for.
//! - [`reaper`]: waits for orphans where Tenfold is the first process.
//! - [`heap`]: gives free memory back to the system.
//! - [`sched_slice`]: how soon threads get a CPU.

pub mod exit_code;
pub mod heap;
mod reaper;
pub mod sched_slice;
pub mod signal;
