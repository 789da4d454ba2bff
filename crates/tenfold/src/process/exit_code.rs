//! How a command ends, as an exit code.
//!
//! 0: done and goal met, 1: failed to run, 2: wrong usage or configuration, 3: goal not met,
//! 4: measurement invalid; 129, 130 and 143 on signals.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use rustix::io::Errno;
use rustix::termios::tcgetattr;

/// A command that ran to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    GoalNotMet,
    Invalid,
    Stopped(Signal),
    /// Requests failed, and this code was asked for then.
    Failed(u8),
}

/// The signal that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
    /// The terminal has gone.
    Hangup,
}

/// Wrong usage or configuration, in one sentence with a remedy.
#[derive(Debug)]
pub struct Misuse(pub String);

/// A signal came while all was still being prepared.
#[derive(Debug)]
pub struct Interrupted(pub Signal);

// === impl Outcome ===

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::GoalNotMet => 3,
            Outcome::Invalid => 4,
            Outcome::Stopped(signal) => signal.code(),
            Outcome::Failed(code) => code,
        })
    }
}

// === impl Signal ===

impl Signal {
    /// The exit code, as shells have it: 128 and the signal's number.
    pub fn code(self) -> u8 {
        match self {
            Signal::Hangup => 129,
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

// === impl Misuse ===

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// A [`Misuse`] as an error to return with `?`.
pub fn misuse(sentence: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Misuse(sentence.into()))
}

// === impl Interrupted ===

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted before an instance ran")
    }
}

impl std::error::Error for Interrupted {}

/// The exit code of an error.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref::<Interrupted>() {
        Some(Interrupted(signal)) => signal.code(),
        None if error.is::<Misuse>() => 2,
        None if is_hangup(error) => Signal::Hangup.code(),
        None => 1,
    })
}

/// Whether a write failed because its terminal has gone. The kernel answers EIO to all that uses such a
/// terminal. The signal may come later than that, or not at all.
fn is_hangup(error: &anyhow::Error) -> bool {
    let failed = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let is_lost = |error: &io::Error| error.raw_os_error() == Some(Errno::IO.raw_os_error());
    let gone = |fd: BorrowedFd<'_>| matches!(tcgetattr(fd), Err(Errno::IO));
    let standard = [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()].map(gone);
    failed.into_iter().any(is_lost) && standard.contains(&true)
}
