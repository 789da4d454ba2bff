//! The last lines of an output, within fixed bounds whatever is written.

use std::collections::VecDeque;

/// Lines kept.
const LINES: usize = 200;

/// Bytes kept of a line; the rest is dropped until the line ends.
const LINE_BYTES: usize = 2_000;

/// The last lines; at most 400 kB.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: VecDeque<Vec<u8>>,
    /// A line that has not ended yet.
    partial: Vec<u8>,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = LINE_BYTES - self.partial.len();
            self.partial.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                let line = std::mem::take(&mut self.partial);
                self.lines.push_back(line);
                if self.lines.len() > LINES {
                    self.lines.pop_front();
                }
            }
        }
    }

    /// At most `n` lines, oldest first, without blank ones at the end.
    pub(crate) fn last(&self, n: usize) -> Vec<String> {
        let lines = self.lines.iter().chain(std::iter::once(&self.partial));
        let mut lines: Vec<String> = lines.map(|line| printable(line)).collect();
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        let first = lines.len().saturating_sub(n);
        lines.split_off(first)
    }
}

/// Removes colours and other control sequences, so that a terminal can show it.
fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut printable = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            // ECMA-48: parameters, then one final byte from @ to ~.
            while characters.next_if(|next| !('@'..='~').contains(next)).is_some() {}
            characters.next();
        } else if character == '\u{1b}'
            && characters.next_if(|next| "]P_^X".contains(*next)).is_some()
        {
            // A string, as a link (OSC 8) or a title is, up to BEL or ST.
            while characters.next_if(|next| !matches!(next, '\u{7}' | '\u{1b}')).is_some() {}
            if characters.next() == Some('\u{1b}') {
                characters.next_if_eq(&'\\');
            }
        } else if character == '\t' || !character.is_control() {
            printable.push(character);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_lines_and_the_one_under_way() {
        let mut tail = Tail::default();
        tail.push(b"one\ntwo\r\nth");
        tail.push(b"ree");
        assert_eq!(tail.last(2), ["two", "three"]);
        tail.push(b"\n\n\n");
        assert_eq!(tail.last(9), ["one", "two", "three"]);
    }

    #[test]
    fn the_kept_output_is_bounded() {
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            tail.push(&[0xff; 100]);
        }
        assert_eq!(tail.partial.len(), LINE_BYTES);
        tail.push(&b"\n".repeat(10_000));
        tail.push(b"after");
        assert_eq!(tail.lines.len(), LINES);
        assert_eq!(tail.last(1), ["after"]);
    }

    #[test]
    fn shows_no_control_sequences() {
        assert_eq!(printable(b"\x1b[1;31mred\x1b[0m \x07\xff\tok\x1b["), "red \u{fffd}\tok");
        let link = "\x1b]8;;http://evil.example\x1b\\text\x1b]8;;\x07 end";
        assert_eq!(printable(link.as_bytes()), "text end");
        assert_eq!(printable(b"\x1b]0;title that never ends"), "");
    }
}
