//! The main process of a unit: that it has ended, and whether the kernel killed it for its memory.

use std::os::fd::OwnedFd;

use procfs::process::{Process, StatFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::bus::ServiceState;
use crate::cgroup::readback::MemoryGroup;
use crate::exit::Exit;

/// A process that somebody else has started, held by a descriptor. So its end is seen at once, also while
/// its manager is away.
pub(super) struct MainProcess {
    pub(super) pid: u32,
    /// What it is held to, in bytes.
    pub(super) memory_limit: Option<u64>,
    /// The memory limit in bytes at which a process of its group was killed.
    pub(super) overrun: Option<u64>,
    /// Nothing when it had ended already.
    descriptor: Option<AsyncFd<OwnedFd>>,
    memory: Option<MemoryGroup>,
}

impl MainProcess {
    #[expect(unsafe_code, reason = "tokio cannot see that the descriptor stays open")]
    pub(super) fn watch(pid: u32, memory_limit: Option<u64>) -> MainProcess {
        let descriptor = Pid::from_raw(pid.cast_signed())
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            // SAFETY: the descriptor is moved in, and so stays open for as long.
            .and_then(|fd| unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok());
        let memory = memory_limit.and_then(|limit| MemoryGroup::of(pid, limit));
        MainProcess { pid, memory_limit, overrun: None, descriptor, memory }
    }

    /// Returns when it has ended. May be dropped and called again.
    pub(super) async fn ended(&mut self) {
        if let Some(descriptor) = &self.descriptor {
            // An error means that nobody can tell any more.
            let _ = descriptor.readable().await.map(|mut ready| ready.retain_ready());
        }
        // At once, for its group goes with it.
        if let Some(limit) = self.memory.take().and_then(|memory| memory.overrun()) {
            self.overrun = Some(limit);
        }
    }

    /// How it ended, by what its manager says of it.
    pub(super) fn exit_of(&self, state: &ServiceState) -> Exit {
        const EXITED: i32 = 1;
        let exit = match state.code {
            EXITED => Exit::Code(state.status),
            2.. => Exit::Signal(state.status),
            // It was stopped, and its manager has forgotten it.
            _ => Exit::Signal(rustix::process::Signal::TERM.as_raw()),
        };
        let overrun = match state.result.as_str() {
            "oom-kill" => self.memory_limit,
            _ => self.overrun,
        };
        overrun.map_or(exit, |limit| exit.at_memory_limit(limit))
    }

    /// Whether it has ended already, or is about to and in none of its control groups any more. Its manager may not
    /// have taken note of it yet.
    pub(super) fn has_ended(&self) -> bool {
        let stat = Process::new(self.pid.cast_signed()).and_then(|process| process.stat());
        self.descriptor.is_none() || stat.map_or(true, |stat| is_over(stat.state, stat.flags))
    }
}

/// By `state` and `flags` of proc_pid_stat(5). Control groups of version 1 show a process in their root from the moment
/// at which it begins to exit. One that was killed for its memory can take a while until it is a zombie.
fn is_over(state: char, flags: u32) -> bool {
    matches!(state, 'Z' | 'X') || flags & StatFlags::PF_EXITING.bits() != 0
}

#[cfg(test)]
mod tests {
    use super::is_over;

    #[test]
    fn a_process_that_begins_to_exit_is_over() {
        // A kernel of version 6 has flags that no library knows.
        let alive = 0x4040_0100;
        assert!(!is_over('S', alive) && !is_over('D', alive));
        assert!(is_over('D', alive | 0x4) && is_over('R', 0x4) && is_over('Z', alive));
    }
}
