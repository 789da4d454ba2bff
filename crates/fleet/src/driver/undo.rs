//! The guard process, which undoes what a killed Tenfold has left.

use std::io;

use super::docker::custody;
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
    if let Some((custody::WORD, line)) = listed.split_once(' ') {
        custody::undo(line);
    }
}
