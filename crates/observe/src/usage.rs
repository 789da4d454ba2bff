//! What happened between two samples, as rates.

mod difference;

use crate::kernel::machine::Memory;
use crate::kernel::source::Source;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What happened between two samples. Rates are per second; "cores" are CPU seconds per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// Length of the interval.
    pub seconds: f64,
    /// The whole machine.
    pub machine: MachineUsage,
    /// Each target that both samples have.
    pub targets: BTreeMap<String, TargetUsage>,
    /// Each other target, and why it has no usage.
    pub absent: BTreeMap<String, Absence>,
    /// What this machine did not tell.
    pub missing: BTreeSet<Source>,
}

/// Why a target has no usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// It ran at the start of the interval and no longer at its end.
    Gone,
    /// The earlier sample does not have it.
    New,
    /// It runs in neither sample.
    NotRunning,
}

/// The whole machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineUsage {
    /// CPU by kind.
    pub cpu: Option<MachineCpu>,
    /// How busy each online core was, 0 to 1. Empty where cores came or went.
    pub cores: Vec<f64>,
    /// Share of the interval in which work stood still for each resource.
    pub pressure: Option<Pressure>,
    /// At the end of the interval.
    pub memory: Option<Memory>,
    /// Accept queues, in this network namespace.
    pub listen: Option<ListenUsage>,
}

/// CPU by kind in cores; the kinds sum to the cores online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MachineCpu {
    /// Programs.
    pub user: f64,
    /// Programs of low priority.
    pub nice: f64,
    /// The kernel for programs.
    pub system: f64,
    /// Nothing to do.
    pub idle: f64,
    /// Nothing to do while a thread waits for a disk; an unreliable figure, see `pressure` instead.
    pub iowait: f64,
    /// Interrupts.
    pub irq: f64,
    /// The kernel's deferred work, most of it network packets.
    pub softirq: f64,
    /// Wanted, but given to another virtual machine by the host.
    pub steal: f64,
    /// Context switches per second.
    pub context_switches: f64,
    /// Threads running or waiting for a core at the end of the interval.
    pub runnable: Option<u32>,
}

/// Stalls for each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// Waiting for a core.
    pub cpu: Stall,
    /// Waiting for memory.
    pub memory: Stall,
    /// Waiting for a disk.
    pub io: Stall,
}

/// Shares of the interval, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stall {
    /// At least one task stood still.
    pub some: f64,
    /// All that were not idle did.
    pub full: Option<f64>,
}

/// Connections lost at full accept queues, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ListenUsage {
    /// The queue was full.
    pub overflows: f64,
    /// Dropped for any reason, overflows included.
    pub drops: f64,
}

/// One target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetUsage {
    /// CPU, children that ended included.
    pub cpu_cores: f64,
    /// The part of it in the program.
    pub user_cores: f64,
    /// The part of it in the kernel.
    pub system_cores: f64,
    /// Seconds per second for which its threads were runnable and had no core. Time for which a CPU quota
    /// held them back counts, too (seen on Linux 6.18). See `throttling`.
    pub run_queue_wait: Option<f64>,
    /// Per second: a thread left its core because it had to wait.
    pub voluntary_switches: Option<f64>,
    /// Per second: a thread left its core because another got it.
    pub involuntary_switches: Option<f64>,
    /// Per second: page faults that waited for a disk.
    pub major_faults: f64,
    /// The thread that used most. Near 1.0, it is what limits a program that has one worker.
    pub busiest_thread: Option<BusiestThread>,
    /// Bytes a second by which the memory grew. Only processes that ran all along count.
    pub rss_growth: f64,
    /// Growth of the private memory that they allocated, touched or not.
    pub data_growth: f64,
    /// At the end of the interval, as are the next three. Shared pages count in each process.
    pub rss_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_files: Option<u64>,
    /// Threads.
    pub threads: usize,
    /// Processes; for a target made of threads, these threads.
    pub processes: usize,
    /// Processes that came in the interval and are still there.
    pub processes_started: usize,
    /// Processes that went in the interval: an instance that has more than it had starts is crashing.
    pub processes_ended: usize,
    /// Only for a target under a CPU quota.
    pub throttling: Option<Throttling>,
    /// Only for a target under a memory limit.
    pub memory: Option<MemoryLimit>,
}

/// A thread and what it used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusiestThread {
    /// Name as the kernel has it, at most 15 bytes.
    pub name: String,
    /// Its id.
    pub tid: i32,
    /// Time on a core, at most 1.
    pub cores: f64,
}

/// What a CPU quota did in the interval. Targets of one control group share it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throttling {
    /// The quota.
    pub quota_cores: f64,
    /// Enforcement periods in which the group wanted to run.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// Time that the group stood still for it, summed over CPUs.
    pub throttled_seconds: f64,
}

/// What a memory limit did in the interval. Targets of one control group share it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryLimit {
    /// The control group that has it, as a directory.
    pub directory: PathBuf,
    /// The limit.
    pub limit_bytes: u64,
    /// Used at the end of the interval, page cache included.
    pub used_bytes: u64,
    /// Page cache of that which nobody has used lately: the kernel takes it back first.
    pub reclaimable_bytes: u64,
    /// Times that the limit was met, so that something had to be given back first.
    pub hits: u64,
    /// Processes that were killed at it.
    pub kills: u64,
}

impl MemoryLimit {
    /// Bytes that can still be taken: page cache gives way.
    pub fn left(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes.saturating_sub(self.reclaimable_bytes))
    }

    /// Processes that were killed at any of these, each control group counted once.
    pub fn kills<'a>(limits: impl Iterator<Item = &'a MemoryLimit>) -> u64 {
        let groups: BTreeMap<&Path, u64> =
            limits.map(|limit| (limit.directory.as_path(), limit.kills)).collect();
        groups.into_values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(group: &str, kills: u64) -> MemoryLimit {
        MemoryLimit {
            directory: group.into(),
            limit_bytes: 512 << 20,
            used_bytes: 510 << 20,
            reclaimable_bytes: 300 << 20,
            hits: 0,
            kills,
        }
    }

    #[test]
    fn page_cache_gives_way() {
        assert_eq!(limit("/box", 0).left(), 302 << 20);
        let counted_later = MemoryLimit { reclaimable_bytes: 600 << 20, ..limit("/box", 0) };
        assert_eq!(counted_later.left(), 512 << 20);
    }

    #[test]
    fn a_kill_in_a_group_of_several_is_one() {
        let shared = [limit("/box", 1), limit("/box", 1), limit("/box", 1)];
        assert_eq!(MemoryLimit::kills(shared.iter()), 1);
        assert_eq!(MemoryLimit::kills([limit("/app-1", 1), limit("/app-2", 2)].iter()), 3);
    }
}
