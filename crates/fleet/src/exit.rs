//! How a process ended, in words.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::limits::Bytes;

/// What to do about [`Exit::OutOfMemory`].
pub(crate) const MORE_MEMORY: &str = "raise --memory, or let it use less";

/// How an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// The kernel killed a process of it at its memory limit, and it ended with that.
    OutOfMemory {
        /// The limit in bytes.
        limit: u64,
        /// What the leader returned, unless it was the one to be killed.
        code: Option<i32>,
    },
    /// Its container was removed by somebody else.
    Removed,
    /// It is out of reach: the kernel did not end it although it was killed.
    Unknown,
}

impl Exit {
    /// This exit, with the memory limit at which the kernel killed a process.
    pub(crate) fn at_memory_limit(self, limit: u64) -> Exit {
        match self {
            Exit::Code(0) | Exit::Removed | Exit::Unknown => self,
            Exit::Code(code) => Exit::OutOfMemory { limit, code: Some(code) },
            Exit::Signal(_) | Exit::OutOfMemory { .. } => Exit::OutOfMemory { limit, code: None },
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Exit {
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exit::Code(code) => write!(f, "exited with code {code}"),
            Exit::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Exit::OutOfMemory { limit, code: None } => {
                write!(f, "was killed at its limit of {} of memory", Bytes(limit))
            }
            Exit::OutOfMemory { limit, code: Some(code) } => write!(
                f,
                "exited with code {code} after a process of it was killed at its limit of {} of memory",
                Bytes(limit)
            ),
            Exit::Removed => write!(f, "was removed by somebody else"),
            Exit::Unknown => write!(f, "did not end although it was killed"),
        }
    }
}

/// Signals that end a process, with the numbers of Linux on x86 and Arm.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_described() {
        let exit = |raw| Exit::from(ExitStatus::from_raw(raw)).to_string();
        assert_eq!(exit(3 << 8), "exited with code 3");
        assert_eq!(exit(9), "was killed by signal 9 (SIGKILL)");
        assert_eq!(exit(40), "was killed by signal 40");
        let at_limit = |exit: Exit| exit.at_memory_limit(20_000_000).to_string();
        assert_eq!(at_limit(Exit::Signal(9)), "was killed at its limit of 20 MB of memory");
        assert!(at_limit(Exit::Code(137)).starts_with("exited with code 137 after a process"));
        assert_eq!(at_limit(Exit::Code(0)), "exited with code 0");
    }
}
