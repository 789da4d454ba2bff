//! Text of others that is shown: what would hide or turn what follows is written out.

/// The text with control characters and marks of direction as escapes. Tabs stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if (c.is_control() && c != '\t') || is_bidirectional(c) => {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

/// Whether it changes the direction of what follows.
pub fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_written_out() {
        assert_eq!(visible("a\u{202e}b\0\u{1b}[1m\tc"), "a\\u{202e}b\\u{0}\\u{1b}[1m\tc");
    }
}
