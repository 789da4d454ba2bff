//! The guard process, which undoes what a killed Tenfold has left.

use std::io;

use super::compose::stack;
use super::docker::owned_container;
use super::systemd::leftovers;
use super::systemd::template::restoration;
use crate::guard;

/// The body of the guard process: returns when Tenfold has ended, and nothing of it is left.
///
/// # Errors
/// When its signals cannot be taken.
pub fn run_guard() -> io::Result<()> {
    guard::run(carry_out)
}

/// Undoes what a driver has listed with the guard. The first word says which driver.
pub(crate) fn carry_out(listed: &str) {
    match listed.split_once(' ') {
        Some((owned_container::WORD, line)) => owned_container::undo(line),
        Some((stack::WORD, line)) => stack::undo(line),
        Some((leftovers::WORD, line)) => leftovers::undo(line),
        Some((restoration::WORD, line)) => restoration::undo(line),
        _ => {}
    }
}
