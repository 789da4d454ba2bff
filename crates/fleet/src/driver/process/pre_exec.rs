//! What a child does between fork and exec. It asks the kernel to be killed with its parent, and lists
//! itself with the guard, so that it cannot outlive Tenfold. It joins the control group of its limits,
//! so that nothing of it ever runs without them. One of two places with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::guard::Announcement;

/// Says that the control group could not be joined: no execution fails with this number.
const OUTSIDE: Errno = Errno::XDEV;

/// `procs_files` are files into which a process writes `0` to join a control group. The program has `inherited`
/// under their numbers here.
///
/// The child gets SIGKILL when the *thread* that spawns it ends (prctl(2), `PR_SET_PDEATHSIG`).
/// So the caller must spawn from a thread that lives at least as long as the child.
pub(super) fn before_exec(
    command: &mut Command,
    announcement: Option<Announcement>,
    procs_files: Vec<File>,
    inherited: Vec<Arc<OwnedFd>>,
) {
    let parent = std::process::id().cast_signed();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have died between the fork and the line above; then no signal will come.
        match getppid() {
            Some(pid) if pid.as_raw_nonzero().get() == parent => {}
            _ => return Err(io::Error::from(Errno::SRCH)),
        }
        if let Some(announcement) = &announcement {
            announcement.send();
        }
        for mut procs_file in &procs_files {
            // Not buffered: one system call.
            procs_file.write_all(b"0").map_err(|_| io::Error::from(OUTSIDE))?;
        }
        for descriptor in &inherited {
            // The others are closed on exec.
            fcntl_setfd(&**descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The closure makes
    // system calls, compares integers and prints them into an array, and makes an error from a
    // number; it neither allocates nor locks.
    unsafe {
        command.pre_exec(ask);
    }
}
