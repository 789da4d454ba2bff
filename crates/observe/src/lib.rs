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
//! Inside, `cgroup`, `machine` and `process` read and parse one part of `/proc` and
//! `/sys/fs/cgroup` each, all through `kernel_file`; `counters` are the plain values that they
//! give, and `difference` is the arithmetic of two samples.
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

mod cgroup;
mod counters;
mod difference;
mod kernel_file;
mod machine;
mod observer;
mod process;
mod recorder;
mod socket;
mod source;
mod usage;

pub use cgroup::{MemoryCounters, QuotaCounters};
pub use counters::{Counters, CpuTime, Switches, Task, TaskId, TaskState, Thread};
pub use machine::{
    ListenCounters, Machine, MachineCounters, MachineCpuTime, Memory, PressureTotals, Stalled,
};
pub use observer::{Observer, Sample, Scope, Target};
pub use recorder::{Record, Recorder};
pub use socket::Sockets;
pub use source::Source;
pub use usage::{
    Absence, BusiestThread, ListenUsage, MachineCpu, MachineUsage, MemoryLimit, Pressure, Stall,
    TargetUsage, Throttling, Usage, fullest,
};
