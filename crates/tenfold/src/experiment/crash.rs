//! Instances that died while something was measured.

use capacity::Crashes;
use fleet::Past;

/// The deaths of one instance.
pub fn crashes(name: &str, times: u32, past: &Past) -> Crashes {
    Crashes { name: name.to_owned(), times, cause: past.last_crash.clone() }
}
