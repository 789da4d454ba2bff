//! Outputs that may be closed: a reader that has seen enough is no error, and no reason to end.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Writes `text` as it is.
pub fn print(text: impl Display) {
    let _ = deliver(text);
}

/// The same for what somebody waits for: a disk that is full is an error.
pub fn deliver(text: impl Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Writes `text` and a newline.
pub fn line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Writes `text` and a newline to standard error.
pub fn tell(text: impl Display) {
    tell_on(format_args!("{text}\n"));
}

/// Writes `text` to standard error as it is. `eprint!` would panic where nobody reads any more.
pub fn tell_on(text: impl Display) {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}
