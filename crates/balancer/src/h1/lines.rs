//! The lines of a header: checking their ends, and copying those that are passed on.

use std::ops::Range;

use httparse::Header;

use crate::h1::Flaw;
use crate::h1::fields::write_field;

/// Copies lines to another header. Neighbours that stay unchanged are copied together.
pub(crate) struct FieldCopier<'h, 'o> {
    head: &'h [u8],
    out: &'o mut Vec<u8>,
    /// Lines of `head` that are not copied yet.
    run: Range<usize>,
}

/// Checks a request. RFC 9112 2.2 allows a lone LF as a line end. Peers that disagree about it disagree about
/// where a message ends, so it is refused. The parser accepts it.
pub(crate) fn check_ends(head: &[u8], headers: &[Header<'_>]) -> Result<(), Flaw> {
    let ends = |at: usize| head[..at].ends_with(b"\r\n");
    let begins = headers.iter().map(|header| place(head, header.name.as_bytes()));
    let empty = head.len().saturating_sub(2);
    let right = ends(head.len()) && ends(empty) && begins.into_iter().all(ends);
    right.then_some(()).ok_or("a line ends with LF without CR")
}

/// RFC 9110 2.5: a later minor version of HTTP/1 is read as HTTP/1.1, which the parser does not do. None
/// if there is no such version at `version` in `bytes`.
#[cold]
pub(crate) fn as_http11(bytes: &[u8], version: usize) -> Option<Vec<u8>> {
    match bytes.get(version..version + 9)? {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', b'\r' | b' '] => {
            let mut copy = bytes.to_vec();
            copy[version + 7] = b'1';
            Some(copy)
        }
        _ => None,
    }
}

/// RFC 9112 5.2: an answer with spaces in place of its folds, or None if there is no fold. Positions stay. White
/// space after the first line is no fold (RFC 9112 2.2).
#[cold]
pub(crate) fn unfolded(head: &[u8]) -> Option<Vec<u8>> {
    let (mut copy, mut line, mut folds) = (head.to_vec(), 0, false);
    for end in memchr::memchr_iter(b'\n', head) {
        if let b"" | b"\r" = &head[line..end] {
            break;
        }
        if line > 0 && matches!(head.get(end + 1), Some(b' ' | b'\t')) {
            folds = true;
            copy[end] = b' ';
            if head[end - 1] == b'\r' {
                copy[end - 1] = b' ';
            }
        }
        line = end + 1;
    }
    folds.then_some(copy)
}

/// The bytes of the first line, with its end.
pub(crate) fn first_line(head: &[u8], headers: &[Header<'_>]) -> usize {
    headers.first().map_or(head.len() - 2, |header| place(head, header.name.as_bytes()))
}

/// The offset of a part. It is arbitrary for an empty slice, which may not be a part.
fn place(head: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr().wrapping_sub(head.as_ptr().addr())
}

impl<'h, 'o> FieldCopier<'h, 'o> {
    pub(crate) fn new(head: &'h [u8], out: &'o mut Vec<u8>) -> Self {
        FieldCopier { head, out, run: 0..0 }
    }

    /// Copies the first line.
    pub(crate) fn first_line(&mut self, len: usize) {
        self.run = 0..len;
    }

    /// Copies a field, as `Name: value`.
    pub(crate) fn field(&mut self, header: &Header<'_>) {
        let (name, value) = (header.name.as_bytes(), header.value);
        let start = place(self.head, name);
        let (colon, end) = (start + name.len(), start + name.len() + 2 + value.len());
        let plain = self.head[colon..].starts_with(b": ")
            && place(self.head, value) == colon + 2
            && self.head[end..].starts_with(b"\r\n");
        if !plain {
            write_field(self.written(), header.name, value);
        } else if start == self.run.end {
            self.run.end = end + 2;
        } else {
            self.written();
            self.run = start..end + 2;
        }
    }

    /// What is written, including all lines so far.
    pub(crate) fn written(&mut self) -> &mut Vec<u8> {
        self.out.extend_from_slice(&self.head[self.run.clone()]);
        self.run = 0..0;
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str, each: impl FnOnce(&[u8], &[Header<'_>])) {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut request = httparse::Request::new(&mut headers);
        assert!(request.parse(head.as_bytes()).unwrap().is_complete(), "{head}");
        each(head.as_bytes(), request.headers);
    }

    #[test]
    fn rfc9112_2_2_every_line_ends_with_cr_lf() {
        let lines = ["GET / HTTP/1.1", "A: b", "C:", "D:  e ", ""];
        for lone in 0..=lines.len() {
            let end = |line| if line == lone { "\n" } else { "\r\n" };
            let head: String =
                lines.iter().enumerate().map(|(n, line)| format!("{line}{}", end(n))).collect();
            parsed(&head, |head, headers| {
                assert_eq!(check_ends(head, headers).is_ok(), lone == lines.len(), "line {lone}");
            });
        }
        parsed("GET / HTTP/1.1\n\r\n", |head, headers| assert!(check_ends(head, headers).is_err()));
    }

    #[test]
    fn rfc9112_5_2_folds_become_spaces() {
        let status = "HTTP/1.1 200 OK\r\n";
        for (folded, spaces) in [
            ("A: b\r\n c\r\n\r\n", "A: b   c\r\n\r\n"),
            ("A: b\n\tc\n\n", "A: b \tc\n\n"),
            ("A:\r\n b\r\n c\r\nD: e\r\n\r\n", "A:   b   c\r\nD: e\r\n\r\n"),
            ("A: b\r\n \r\n\r\n", "A: b   \r\n\r\n"),
            ("A: b\r\n c", "A: b   c"),
            ("A: b\r\n c\r\n\r\n\r\n body\r\n too", "A: b   c\r\n\r\n\r\n body\r\n too"),
        ] {
            let whole = [status, folded].concat();
            assert_eq!(unfolded(whole.as_bytes()).unwrap(), [status, spaces].concat().as_bytes());
        }
        for none in ["A: b\r\n\r\n", " A: b\r\n\r\n", "A: b\r\n\r\nbody\r\n too", "A: b\r\n", ""] {
            assert_eq!(unfolded([status, none].concat().as_bytes()), None, "{none:?}");
        }
    }

    #[test]
    fn fields_are_written_alike_however_they_came() {
        let head =
            "GET / HTTP/1.1\r\nA: b\r\nC:d\r\nE: \r\nF:\r\nG:\th\r\nI: j \r\nK: l\r\nM: n\r\n\r\n";
        for left_out in 0..=8 {
            parsed(head, |head, headers| {
                let kept = headers.iter().enumerate().filter(|(n, _)| *n != left_out);
                let mut out = Vec::new();
                let mut copyist = FieldCopier::new(head, &mut out);
                copyist.first_line(first_line(head, headers));
                kept.clone().for_each(|(_, header)| copyist.field(header));
                copyist.written();
                let mut expected = b"GET / HTTP/1.1\r\n".to_vec();
                kept.for_each(|(_, header)| write_field(&mut expected, header.name, header.value));
                assert_eq!(out, expected, "without {left_out}");
            });
        }
    }
}
