//! Nanoseconds since a run was set up, and a timer that wakes a thread at one of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// A moment or a length of time in nanoseconds; times count from the epoch of the run's clock.
pub type Nanos = u64;

/// A second.
pub const SECOND: Nanos = 1_000_000_000;
/// A millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// The monotonic clock, shared by all threads of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Nanos,
}

/// Wakes an epoll loop at an absolute time. epoll's own timeout is rounded to milliseconds, and
/// the kernel adds its timer slack (50 us); a timerfd suffers neither.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: OwnedFd,
    epoch: Nanos,
    armed: Nanos,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { epoch: monotonic() }
    }

    pub(crate) fn now(&self) -> Nanos {
        monotonic() - self.epoch
    }

    pub(crate) fn timer(&self) -> io::Result<Timer> {
        Ok(Timer {
            fd: timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?,
            epoch: self.epoch,
            armed: Nanos::MAX,
        })
    }
}

impl Timer {
    /// Makes sure that the timer fires at `at` or before. A timer that is armed for earlier stays: one needless
    /// wake-up costs less than a system call in each turn of the loop.
    pub(crate) fn wake_by(&mut self, at: Nanos, now: Nanos) -> io::Result<()> {
        let still_to_fire = self.armed > now;
        if still_to_fire && self.armed <= at {
            return Ok(());
        }
        let absolute = self.epoch + at;
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (absolute / SECOND) as i64,
                tv_nsec: (absolute % SECOND) as i64,
            },
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &value)?;
        self.armed = at;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A length of time in nanoseconds, at most a century. So sums stay within the clock's range.
pub(crate) fn nanos(length: Duration) -> Nanos {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
    length.min(CENTURY).as_nanos() as Nanos
}

fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    // The monotonic clock counts from boot: never negative.
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}
