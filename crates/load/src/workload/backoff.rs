//! How long a user waits after a failure, so that a dead target does not cost a CPU.

use crate::clock::time::{MILLISECOND, Nanos, SECOND};

const FIRST: Nanos = 10 * MILLISECOND;
const LONGEST: Nanos = SECOND;

/// The pause after so many earlier failures in a row: 10 ms at first, then twice as long each time, up to a
/// second.
pub fn backoff(failures: u32) -> Nanos {
    (FIRST << failures.min(20)).min(LONGEST)
}
