//! Cumulative counters of what is watched, as plain values.

use crate::kernel::cgroup::{MemoryCounters, QuotaCounters};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The counters of one target: of every process of an instance, or of each watched thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// By identity, so that a process that comes or goes does not disturb the others.
    pub tasks: BTreeMap<TaskId, Task>,
    /// The CPU quota that binds it, if one does.
    pub quota: Option<QuotaCounters>,
    /// The memory limit that binds it, if one does.
    pub memory: Option<MemoryCounters>,
}

/// Identifies a process or thread for as long as the machine runs. An id is reused, but an id with its
/// start is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// Process or thread id.
    pub id: i32,
    /// When it started, after boot, to 10 ms.
    pub started: Duration,
}

/// Cumulative counters of a process, or of a thread that is watched by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The process that made it.
    pub parent: i32,
    /// Whether it can still do anything.
    pub state: TaskState,
    /// CPU time of all its threads, including ended ones, to 10 ms.
    pub own: CpuTime,
    /// CPU time of children that ended and were waited for. None for a thread.
    pub reaped: CpuTime,
    /// Page faults that had to wait for a disk.
    pub major_faults: u64,
    /// Resident memory, pages shared with other processes included. None for a thread.
    pub rss_bytes: Option<u64>,
    /// Private memory that it may write, touched or not. This is what it has asked for. None for a thread.
    pub data_bytes: Option<u64>,
    /// Open file descriptors. None for a thread, or when they may not be read.
    pub open_files: Option<u64>,
    /// The threads that live, by id.
    pub threads: BTreeMap<i32, Thread>,
}

/// Whether a process still can do anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It runs or may run.
    Alive,
    /// It ended and its parent has not waited for it yet.
    Ended,
}

/// CPU time by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub user: Duration,
    /// In the kernel for it.
    pub system: Duration,
}

/// Cumulative counters of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its name, of at most 15 bytes; empty when the kernel does not tell.
    pub name: Arc<str>,
    /// Time on a core. In ns, or to 10 ms where the scheduler's statistics are missing.
    pub ran: Duration,
    /// Time it was runnable and waited for a core.
    pub waited: Option<Duration>,
    /// How often it left a core.
    pub switches: Option<Switches>,
}

/// How often a thread left a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It had to wait for something.
    pub voluntary: u64,
    /// Another thread was given the core.
    pub involuntary: u64,
}

// === impl Counters ===

impl Counters {
    pub(crate) fn is_alive(&self) -> bool {
        self.alive().next().is_some()
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = (&TaskId, &Task)> {
        self.tasks.iter().filter(|(_, task)| task.state == TaskState::Alive)
    }
}

// === impl CpuTime ===

impl CpuTime {
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self {
            user: self.user.saturating_sub(other.user),
            system: self.system.saturating_sub(other.system),
        }
    }
}

impl std::ops::Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }
}

/// The pair of use and limit that is nearest to its limit.
pub fn fullest(used: impl Iterator<Item = (u64, u64)>) -> Option<(u64, u64)> {
    let share = |(used, limit): &(u64, u64)| *used as f64 / (*limit).max(1) as f64;
    used.max_by(|a, b| share(a).total_cmp(&share(b)))
}
