//! Outputs that may be closed: a reader that has seen enough is no error, and no reason to end.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Writes `text` as it is. Somebody waits for it: a disk that is full is an error.
pub fn deliver(text: impl Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Writes `text` and a newline, for people.
pub fn line(text: impl Display) {
    let _ = deliver(visible(&format!("{text}\n")));
}

/// Writes `text` and a newline to standard error.
pub fn tell(text: impl Display) {
    tell_on(format_args!("{}\n", visible(&text.to_string())));
}

/// Writes `text` to standard error as it is. `eprint!` would panic where nobody reads any more.
pub fn tell_on(text: impl Display) {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Whether the terminal obeys no control characters, as those within editors.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// What names of apps, scripts and servers must not do is shown instead: a terminal would obey
/// control characters.
pub fn visible(text: &str) -> Cow<'_, str> {
    let moves = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(moves) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match moves(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        assert_eq!(visible("a\n\tb ä 検索"), "a\n\tb ä 検索");
        assert_eq!(visible("\u{1b}[2J\r\u{9b}1m"), r"\u{1b}[2J\u{d}\u{9b}1m");
    }
}
