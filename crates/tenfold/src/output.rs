//! Standard output that may be closed: a reader that has seen enough is no error.

use std::fmt::Display;
use std::io::Write;

/// Writes `text` as it is.
pub fn print(text: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Writes `text` and a newline.
pub fn line(text: impl Display) {
    print(format_args!("{text}\n"));
}
