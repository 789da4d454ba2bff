//! Text that a terminal shows and does not obey.

use std::borrow::Cow;

/// The text with its control characters escaped, all but line ends and tabs. Names of apps, scripts and servers may
/// contain them, and so may answers.
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
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\n\tb ä 検索"), "a\n\tb ä 検索");
        assert_eq!(visible("\u{1b}[2J\r\u{9b}1m"), r"\u{1b}[2J\u{d}\u{9b}1m");
    }
}
