//! What the generator itself uses of the machine: CPU, and time without a CPU.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::time::{Nanos, SECOND};

/// The usage of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Nanos,
    /// The time in which it was runnable without a CPU. `None` if the kernel does not say.
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
}
