//! Finds the end of a message header while it arrives. Each byte is examined once.

use crate::h1::Flaw;

/// How far a growing header has been examined.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scanner {
    /// Everything before is complete lines.
    line: usize,
    /// Everything before has no line end.
    seen: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The header has this many bytes, including its empty line.
    Complete(usize),
    Partial,
    Flawed(Flaw),
}

impl Scanner {
    /// Whether nothing has been examined.
    pub(crate) fn is_new(&self) -> bool {
        self.seen == 0
    }

    /// Examines `bytes`, which begin where they began last time. RFC 9112 2.2 allows a lone LF as a line
    /// end. Peers that disagree about it disagree about where a message ends, so it is refused.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Scan {
        while let Some(at) = memchr::memchr(b'\n', &bytes[self.seen..]) {
            let end = self.seen + at;
            if end == self.line || bytes[end - 1] != b'\r' {
                return Scan::Flawed("a line ends with LF without CR");
            }
            if end == self.line + 1 {
                return Scan::Complete(end + 1);
            }
            (self.line, self.seen) = (end + 1, end + 1);
        }
        self.seen = bytes.len();
        Scan::Partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_however_the_bytes_arrive() {
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for step in 1..bytes.len() {
            let mut scanner = Scanner::default();
            let mut upto = 0;
            let found = loop {
                upto = (upto + step).min(bytes.len());
                match scanner.scan(&bytes[..upto]) {
                    Scan::Partial => assert!(upto < 27, "missed the end"),
                    found => break found,
                }
            };
            assert_eq!(found, Scan::Complete(27), "step {step}");
        }
    }

    #[test]
    fn rfc9112_2_2_lone_lf_is_refused() {
        for bytes in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\n",
        ] {
            assert!(
                matches!(Scanner::default().scan(bytes.as_bytes()), Scan::Flawed(_)),
                "{bytes:?}"
            );
        }
    }
}
