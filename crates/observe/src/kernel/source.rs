//! Names the sources of counters that a machine does not have.

use serde::Serialize;
use std::fmt;

/// A source of counters that is missing here. Its `Display` says what is missing, and what cannot be known
/// without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `/proc/stat`.
    MachineCpu,
    /// `/proc/meminfo`.
    Memory,
    /// `/proc/pressure/{cpu,memory,io}` (Linux 4.20, and not switched off).
    Pressure,
    /// `/proc/net/netstat`.
    ListenQueues,
    /// `/proc/PID/task/TID/schedstat` (needs `CONFIG_SCHEDSTATS`).
    Schedstat,
    /// The switch counters in `/proc/PID/task/TID/status`.
    Switches,
    /// `/proc/PID/fd`, which only the process's own user may list.
    OpenFiles,
    /// The cgroup of a process, from `/proc/PID/cgroup` and its mount.
    Cgroup,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MachineCpu => {
                "no machine CPU times (/proc/stat): what other programs use stays unknown"
            }
            Self::Memory => {
                "no memory totals (/proc/meminfo): a machine short of memory is not recognised"
            }
            Self::Pressure => {
                "no pressure counters (/proc/pressure): stalls on CPU, memory and disk are not told apart"
            }
            Self::ListenQueues => {
                "no listen-queue counters (/proc/net/netstat): connections refused by a full accept queue stay unseen"
            }
            Self::Schedstat => {
                "no run-queue wait (/proc/PID/schedstat): too many runnable threads show only in context switches"
            }
            Self::Switches => {
                "no context switches (/proc/PID/task/TID/status): waiting on locks and on the CPU are not told apart"
            }
            Self::OpenFiles => {
                "no count of open files (/proc/PID/fd, readable by the same user only): a limit of open files is not recognised"
            }
            Self::Cgroup => {
                "no cgroup of the instance (/proc/PID/cgroup or its mount): throttling by a CPU quota stays unseen"
            }
        })
    }
}
