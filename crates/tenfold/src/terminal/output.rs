//! Writes to outputs that may be closed or unread; neither is an error. What
//! somebody asked for is waited for; a message is not.

mod messages;

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use load::visible;
use messages::Messages;

/// Messages on standard output, and on standard error.
static ANNOUNCED: OnceLock<Messages> = OnceLock::new();
static TOLD: OnceLock<Messages> = OnceLock::new();

/// How long the end of the program waits for a reader of its last messages.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(500);

/// Writes `text` as it is. Somebody waits for it: a disk that is full is an error.
pub fn deliver(text: impl Display) -> std::io::Result<()> {
    // On a terminal both outputs are one.
    settle();
    let mut out = stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Writes `text` and a newline, for people.
pub fn line(text: impl Display) {
    let _ = deliver(visible(&format!("{text}\n")));
}

/// Writes `text` and a newline without waiting for a reader, for programs that serve meanwhile.
pub fn announce(text: impl Display) {
    let messages = ANNOUNCED.get_or_init(|| Messages::to(stdout()));
    messages.push(visible(&format!("{text}\n")).into_owned());
}

/// Writes `text` and a newline to standard error, without waiting for a reader.
pub fn tell(text: impl Display) {
    tell_on(format_args!("{}\n", visible(&text.to_string())));
}

/// Writes `text` to standard error as it is, without waiting for a reader.
pub fn tell_on(text: impl Display) {
    TOLD.get_or_init(|| Messages::to(stderr())).push(text.to_string());
}

/// Waits until all messages are written, but not for long: to be called before the program ends.
pub fn settle() {
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    [&TOLD, &ANNOUNCED].iter().filter_map(|it| it.get()).for_each(|it| it.settle(deadline));
}

/// Whether the terminal obeys no control characters, as those within editors.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
