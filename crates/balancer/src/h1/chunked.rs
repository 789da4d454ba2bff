//! The chunked coding (RFC 9112 7.1), read strictly: hexadecimal sizes, CR LF everywhere, extensions
//! dropped, trailer fields filtered.

use std::ops::Range;

use crate::h1::fields::{Field, classify, is_ambiguous};
use crate::h1::{Flaw, MAX_FIELDS};

/// What a piece of input was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Bytes of input that belong to the body, with its framing.
    pub(crate) consumed: usize,
    /// Bytes of content, moved to the front of the input.
    pub(crate) content: usize,
    /// Whether the body is complete. What follows is not part of it.
    pub(crate) end: bool,
}

/// Reads a chunked body in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    state: State,
    sender: Sender,
    /// Bytes of the current size line or of all trailers so far.
    line: usize,
    /// The trailer line that is being read.
    trailer: Vec<u8>,
    /// Complete trailer fields.
    fields: usize,
    passed: Vec<u8>,
}

/// The sender of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sender {
    /// A client. Names with underscores and blanks after a size are refused, because another reader may
    /// understand them differently.
    #[default]
    Client,
    /// A backend. Names may have underscores, and blanks may follow a size.
    Backend,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    #[default]
    SizeStart,
    Size(u64),
    /// After a size and a blank.
    Blank(u64),
    Extension(u64),
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    Trailer,
    TrailerLf,
    End,
}

/// Extensions are not used on the open web, and an endless one is an attack.
const MAX_SIZE_LINE_BYTES: usize = 256;

const MAX_TRAILER_BYTES: usize = 8 * 1024;

impl Chunked {
    /// Names with underscores mean nothing to a client, and gRPC uses them.
    pub(crate) fn of_answer() -> Self {
        Chunked { sender: Sender::Backend, ..Chunked::default() }
    }

    pub(crate) fn decode(&mut self, input: &mut [u8]) -> Result<Decoded, Flaw> {
        let (mut at, mut content) = (0, 0);
        loop {
            let piece = self.next_content(input, &mut at)?;
            if piece.is_empty() {
                return Ok(Decoded { consumed: at, content, end: self.has_ended() });
            }
            let len = piece.len();
            input.copy_within(piece, content);
            content += len;
        }
    }

    /// Reads on from `at`, to the end of the next piece of content. Returns where that is. Nothing means that
    /// the input or the body ends here.
    pub(crate) fn next_content(
        &mut self,
        input: &[u8],
        at: &mut usize,
    ) -> Result<Range<usize>, Flaw> {
        while *at < input.len() && !self.has_ended() {
            if let State::Data(left) = self.state {
                let begin = *at;
                *at += (input.len() - begin).min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - (*at - begin) as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data(left) };
                return Ok(begin..*at);
            }
            self.state = self.step(input[*at])?;
            *at += 1;
        }
        Ok(*at..*at)
    }

    /// Whether the body is complete.
    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::End
    }

    pub(crate) fn trailers(&self) -> &[u8] {
        &self.passed
    }

    fn step(&mut self, byte: u8) -> Result<State, Flaw> {
        self.line += 1;
        let sized = matches!(self.state, State::Size(_) | State::Blank(_) | State::Extension(_));
        if sized && self.line > MAX_SIZE_LINE_BYTES {
            return Err("a chunk's size line is too long");
        }
        match (self.state, byte) {
            (State::SizeStart, _) => {
                self.line = 1;
                Ok(State::Size(digit(byte).ok_or("a chunk's size is not hexadecimal")?))
            }
            (State::Size(size) | State::Blank(size), b'\r') => Ok(State::SizeLf(size)),
            (State::Size(size) | State::Blank(size), b';') => Ok(State::Extension(size)),
            // RFC 9112 7.1.1, RFC 9110 5.6.3: blanks before an extension are bad, but must be accepted.
            // Some servers pad sizes with them.
            (State::Size(size) | State::Blank(size), b' ' | b'\t')
                if self.sender == Sender::Backend =>
            {
                Ok(State::Blank(size))
            }
            (State::Blank(_), _) => Err("a chunk's size is not hexadecimal"),
            (State::Size(size), _) => {
                let digit = digit(byte).ok_or("a chunk's size is not hexadecimal")?;
                let size = size.checked_mul(16).filter(|&size| size < 1 << 62);
                Ok(State::Size(size.ok_or("a chunk's size is too large")? + digit))
            }
            (State::Extension(size), b'\r') => Ok(State::SizeLf(size)),
            (State::Extension(size), b'\t' | b' '..=b'~' | 0x80..) => Ok(State::Extension(size)),
            (State::Extension(_), _) => Err("a chunk's extension has control characters"),
            (State::SizeLf(0), b'\n') => {
                self.line = 0;
                Ok(State::Trailer)
            }
            (State::SizeLf(size), b'\n') => Ok(State::Data(size)),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::SizeStart),
            (State::Trailer, b'\r') => Ok(State::TrailerLf),
            (State::Trailer, b'\n') => Err("a trailer line ends with LF without CR"),
            (State::Trailer, _) if self.line > MAX_TRAILER_BYTES => {
                Err("the trailers are too long")
            }
            (State::Trailer, _) => {
                self.trailer.push(byte);
                Ok(State::Trailer)
            }
            (State::TrailerLf, b'\n') if self.trailer.is_empty() => Ok(State::End),
            (State::TrailerLf, b'\n') => {
                self.pass_trailer()?;
                Ok(State::Trailer)
            }
            (State::DataCr | State::DataLf, _) => Err("a chunk is longer than its size"),
            _ => Err("a line of the chunked coding does not end with CR LF"),
        }
    }

    /// RFC 9110 6.5.1: a trailer must not change framing, routing, trust, or how the message is
    /// processed.
    fn pass_trailer(&mut self) -> Result<(), Flaw> {
        const FLAW: Flaw = "a trailer field is malformed";
        let line = std::mem::take(&mut self.trailer);
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err("the trailers have too many fields");
        }
        let colon = memchr::memchr(b':', &line).filter(|&colon| colon > 0).ok_or(FLAW)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
        let name = std::str::from_utf8(name)
            .ok()
            .filter(|name| name.as_bytes().iter().all(is_token))
            .ok_or(FLAW)?;
        if !value.iter().all(is_text) {
            return Err(FLAW);
        }
        const NEVER: [&str; 22] = [
            "age",
            "authorization",
            "cache-control",
            "content-encoding",
            "content-range",
            "content-type",
            "cookie",
            "date",
            "expires",
            "if-match",
            "if-modified-since",
            "if-none-match",
            "if-range",
            "if-unmodified-since",
            "location",
            "pragma",
            "range",
            "retry-after",
            "set-cookie",
            "trailer",
            "vary",
            "www-authenticate",
        ];
        let allowed = classify(name) == Field::EndToEnd
            && (self.sender == Sender::Backend || !is_ambiguous(name))
            && !NEVER.iter().any(|never| name.eq_ignore_ascii_case(never));
        if allowed {
            crate::h1::fields::write_field(&mut self.passed, name, value);
        }
        Ok(())
    }
}

fn digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content, the trailers and what is left, or the flaw; the same whatever the pieces.
    fn decode(input: &str) -> Result<(String, String, String), Flaw> {
        let whole = in_pieces(input, usize::MAX);
        for step in [1, 2, 3, 7] {
            assert_eq!(in_pieces(input, step), whole, "pieces of {step}");
        }
        whole
    }

    fn in_pieces(input: &str, step: usize) -> Result<(String, String, String), Flaw> {
        let (mut chunked, mut content, mut left) = (Chunked::default(), Vec::new(), Vec::new());
        let mut end = false;
        for piece in input.as_bytes().chunks(step) {
            let mut piece = piece.to_vec();
            if end {
                left.extend(piece);
                continue;
            }
            let decoded = chunked.decode(&mut piece)?;
            content.extend_from_slice(&piece[..decoded.content]);
            left.extend_from_slice(&piece[decoded.consumed..]);
            end = decoded.end;
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        if end {
            Ok((text(&content), text(chunked.trailers()), text(&left)))
        } else {
            Err("unfinished")
        }
    }

    fn ok(content: &str, trailers: &str, left: &str) -> Result<(String, String, String), Flaw> {
        Ok((content.into(), trailers.into(), left.into()))
    }

    #[test]
    fn rfc9112_7_1_chunks_and_what_follows() {
        assert_eq!(
            decode("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET"),
            ok("abc0123456789", "", "GET")
        );
        assert_eq!(decode("0003\r\nabc\r\n000\r\n\r\n"), ok("abc", "", ""));
    }

    #[test]
    fn rfc9112_7_1_1_extensions_are_dropped() {
        assert_eq!(decode("3;a=b;c=\"d\"\r\nabc\r\n0;x\r\n\r\n"), ok("abc", "", ""));
    }

    #[test]
    fn rfc9110_6_5_1_trailers_are_filtered() {
        let input = "0\r\nDigest: x\r\nContent-Length: 5\r\nHost: a\r\nX-Forwarded-For: b\r\nAuthorization: c\r\n\r\n";
        assert_eq!(decode(input), ok("", "Digest: x\r\n", ""));
    }

    #[test]
    fn names_with_underscores_are_for_clients() {
        for (mut chunked, passed) in
            [(Chunked::default(), &b""[..]), (Chunked::of_answer(), b"a_b: c\r\n")]
        {
            assert!(chunked.decode(&mut b"0\r\na_b: c\r\n\r\n".to_vec()).unwrap().end);
            assert_eq!(chunked.trailers(), passed);
        }
    }

    #[test]
    fn rfc9112_7_1_1_blanks_after_a_size_are_for_backends() {
        let body = b"2 \r\nab\r\n1 \t;a = b\r\nc\r\n0  \r\n\r\n";
        for step in [1, 2, 5, body.len()] {
            let (mut chunked, mut content) = (Chunked::of_answer(), Vec::new());
            let decoded = body.chunks(step).map(|piece| {
                let mut piece = piece.to_vec();
                let decoded = chunked.decode(&mut piece).unwrap();
                content.extend_from_slice(&piece[..decoded.content]);
                decoded.end
            });
            assert_eq!(decoded.last(), Some(true));
            assert_eq!(content, b"abc");
        }
        let long = format!("2{}\r\nab\r\n0\r\n\r\n", " ".repeat(300));
        for bad in ["2 0\r\n", "2 a\r\n", " 2\r\n", &long] {
            assert!(Chunked::of_answer().decode(&mut bad.as_bytes().to_vec()).is_err(), "{bad}");
        }
        assert!(Chunked::default().decode(&mut b"2 ;a\r\n".to_vec()).is_err());
    }

    #[test]
    fn malformed_chunks_are_refused() {
        let long_extension = format!("3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(300));
        let many_trailers = format!("0\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS + 1));
        let long_trailer = format!("0\r\na: {}\r\n\r\n", "b".repeat(9000));
        for bad in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1 \r\n",
            "1_0\r\n",
            "3\nabc\r\n0\r\n\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "3\r\nabcX0\r\n\r\n",
            "3;a\nb\r\nabc\r\n0\r\n\r\n",
            "3;a\r\rabc\r\n0\r\n\r\n",
            "3\rXabc\r\n0\r\n\r\n",
            "10000000000000000\r\n",
            "ffffffffffffffff\r\n",
            "8000000000000000\r\n",
            "0\r\n\n",
            "0\r\na: b\n\r\n",
            "0\r\n a: b\r\n\r\n",
            "0\r\na : b\r\n\r\n",
            "0\r\n: b\r\n\r\n",
            "0\r\nab\r\n\r\n",
            "0\r\na: b\x01\r\n\r\n",
            "0\r\na: b\rc\r\n\r\n",
            &long_extension,
            &long_trailer,
            &many_trailers,
        ] {
            let flaw = decode(bad).unwrap_err();
            assert_ne!(flaw, "unfinished", "{bad:?}");
        }
    }
}
