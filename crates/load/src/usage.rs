//! What the generator itself takes from the machine: CPU, waiting for a CPU, open files.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Nanos, SECOND};

/// Files beyond connections: listeners, logs and pipes of the program around the generator.
const OTHER_FILES: u64 = 256;

/// Of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Nanos,
    /// Runnable, but without a CPU. `None` where the kernel does not say.
    pub(crate) run_wait: Option<Nanos>,
}

/// Reads the usage of the thread that made it.
#[derive(Debug)]
pub(crate) struct UsageMeter {
    schedstat: Option<File>,
}

impl Usage {
    pub(crate) fn since(self, earlier: Usage) -> Usage {
        let wait = self.run_wait.zip(earlier.run_wait);
        Usage {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            run_wait: wait.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

impl UsageMeter {
    pub(crate) fn for_this_thread() -> UsageMeter {
        UsageMeter { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    pub(crate) fn read(&self) -> Usage {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Usage {
            cpu: cpu.tv_sec as Nanos * SECOND + cpu.tv_nsec as Nanos,
            run_wait: self.run_wait(),
        }
    }

    /// The second of three numbers (kernel documentation, sched-stats.rst).
    fn run_wait(&self) -> Option<Nanos> {
        let mut text = [0; 96];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Makes room for so many connections, as far as the hard limit allows. The soft limit is raised
/// only to what is needed: some programs walk through all files that they might have open, and
/// instances started later inherit it. Returns the limit, and the files that were wanted.
pub(crate) fn allow_connections(connections: usize) -> (u64, u64) {
    let wanted = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    if soft >= wanted {
        return (soft, wanted);
    }
    let raised = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    let set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    (if set.is_ok() { raised } else { soft }, wanted)
}

/// Connections that fit under a limit on open files.
pub(crate) fn connections_within(limit: u64) -> usize {
    limit.saturating_sub(OTHER_FILES).max(limit / 2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_thread_uses_cpu() {
        let meter = UsageMeter::for_this_thread();
        let before = meter.read();
        let mut sum = 0u64;
        while meter.read().since(before).cpu < SECOND / 1000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(meter.read().cpu > before.cpu);
    }

    #[test]
    fn limit_on_files_leaves_room_for_others() {
        let (limit, wanted) = allow_connections(2);
        assert_eq!(wanted, 2 + OTHER_FILES);
        assert!(limit >= wanted, "{limit}");
        assert_eq!(connections_within(1024), 768);
        assert_eq!(connections_within(100), 50);
    }
}
