//! What the machine and processes do, seen without privileges: cumulative counters of the kernel
//! are sampled, and two samples give rates.
//!
//! - [`Observer`] watches named [`Target`]s (an instance, a process, some threads) and takes
//!   [`Sample`]s of them and of the machine.
//! - [`Usage`] is what happened between two samples: cores, waiting, switches, memory, pressure.
//! - [`Sockets`] are a target's connections, looked up when asked for.
//! - [`Recorder`] samples on a thread of its own and keeps a bounded series.
//! - [`Machine`] is what does not change: cores that may be used, memory, kernel.
//! - [`Source`] names what this machine does not tell, and what cannot be said without it.
//!
//! Inside, from the ground up: `kernel`, which reads and parses `/proc` and `/sys/fs/cgroup`,
//! `usage` with the arithmetic of two samples, `observer` and `recorder`.
//!
//! ```
//! use observe::{Observer, Target};
//!
//! let mut observer = Observer::new();
//! observer.watch(Target::process("me", std::process::id() as i32));
//! let before = observer.sample();
//! let usage = observer.sample().since(&before);
//! assert!(usage.targets["me"].cpu_cores >= 0.0);
//! ```

mod kernel;
mod observer;
mod recorder;
mod usage;

pub use kernel::cgroup::{MemoryCounters, QuotaCounters};
pub use kernel::counters::{Counters, CpuTime, Switches, Task, TaskId, TaskState, Thread, fullest};
pub use kernel::machine::{
    CoreTime, ListenCounters, Machine, MachineCounters, MachineCpuTime, Memory, PressureTotals,
    Stalled,
};
pub use kernel::sample::Sample;
pub use kernel::socket::Sockets;
pub use kernel::source::Source;
pub use observer::{Observer, Scope, Target};
pub use recorder::{Record, Recorder};
pub use usage::{
    Absence, BusiestThread, ListenUsage, MachineCpu, MachineUsage, MemoryLimit, Pressure, Stall,
    TargetUsage, Throttling, Usage,
};
