//! What is recorded of an answer: its head, and its body if a step looks at it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::io::{self, Read};
use std::ops::Range;

use load::ResponseSink;
use serde_json::Value;

/// The largest body that steps can look at, before and after it is decoded. Larger ones are not kept, and a step
/// that looks at them fails.
const MAX_BODY: usize = 16 << 20;
/// The largest buffer that is kept for the next answer.
const KEPT_BUFFER: usize = 64 * 1024;

/// The parts of one answer, in buffers that serve one answer after another.
#[derive(Debug, Default)]
pub(crate) struct RecordedResponse {
    /// Names and values of the header lines, one after the other.
    text: Vec<u8>,
    lines: Vec<(Range<usize>, Range<usize>)>,
    body: Vec<u8>,
    /// Bytes of the body that have arrived, kept or not.
    received: u64,
    recording: Recording,
}

/// Whether a step looks at the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Recording {
    #[default]
    Head,
    Body,
}

/// A complete answer.
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    recorded: &'a RecordedResponse,
    text: OnceCell<Option<Cow<'a, str>>>,
    json: OnceCell<Option<Value>>,
}

impl ResponseSink for RecordedResponse {
    fn head(&mut self, lines: &[httparse::Header<'_>]) {
        for line in lines {
            let start = self.text.len();
            self.text.extend_from_slice(line.name.as_bytes());
            let middle = self.text.len();
            self.text.extend_from_slice(line.value);
            self.lines.push((start..middle, middle..self.text.len()));
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if self.recording == Recording::Body && self.received <= MAX_BODY as u64 {
            self.body.extend_from_slice(bytes);
        }
    }
}

impl RecordedResponse {
    /// Makes ready for the next answer.
    pub(crate) fn restart(&mut self, recording: Recording) {
        self.text.clear();
        self.lines.clear();
        self.body.clear();
        self.body.shrink_to(KEPT_BUFFER);
        self.received = 0;
        self.recording = recording;
    }

    /// Bytes of the body as they were sent, framing removed.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The value of the first line with this name.
    pub(crate) fn header<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.headers(name).next()
    }

    /// The values of all lines with this name.
    pub(crate) fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.lines.iter().filter(move |(line, _)| {
            line.len() == name.len()
                && self.text[line.clone()].eq_ignore_ascii_case(name.as_bytes())
        });
        named.map(|(_, value)| &self.text[value.clone()])
    }

    /// The body without its encoding; `None` if it is too large or does not decode.
    fn decoded(&self) -> Option<Cow<'_, [u8]>> {
        if self.received > MAX_BODY as u64 {
            return None;
        }
        let encoding = self.header("content-encoding").unwrap_or_default().trim_ascii();
        let decoded = if encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity") {
            return Some(Cow::Borrowed(&self.body));
        } else if encoding.eq_ignore_ascii_case(b"gzip") || encoding.eq_ignore_ascii_case(b"x-gzip")
        {
            read_all(flate2::read::MultiGzDecoder::new(&self.body[..]))
        } else if encoding.eq_ignore_ascii_case(b"deflate") {
            // It should be zlib (RFC 9110, 8.4.1.2), but some send it raw.
            read_all(flate2::read::ZlibDecoder::new(&self.body[..]))
                .or_else(|_| read_all(flate2::read::DeflateDecoder::new(&self.body[..])))
        } else if encoding.eq_ignore_ascii_case(b"br") {
            read_all(brotli_decompressor::Decompressor::new(&self.body[..], 4096))
        } else {
            return None;
        };
        decoded.ok().map(Cow::Owned)
    }
}

fn read_all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(MAX_BODY as u64 + 1).read_to_end(&mut out)?;
    match out.len() > MAX_BODY {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(out),
    }
}

/// Bytes as text. Mostly they are UTF-8 and need no copy.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

impl<'a> Response<'a> {
    pub(crate) fn new(status: u16, recorded: &'a RecordedResponse) -> Response<'a> {
        Response { status, recorded, text: OnceCell::new(), json: OnceCell::new() }
    }

    /// The values of a header, as one text.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut values = self.recorded.headers(name);
        let first = String::from_utf8_lossy(values.next()?).into_owned();
        Some(values.fold(first, |all, value| all + ", " + &String::from_utf8_lossy(value)))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text
            .get_or_init(|| {
                Some(match self.recorded.decoded()? {
                    Cow::Borrowed(bytes) => text_of(bytes),
                    Cow::Owned(bytes) => Cow::Owned(text_of(&bytes).into_owned()),
                })
            })
            .as_deref()
    }

    /// The body as JSON. It is parsed only once.
    pub(crate) fn json(&self) -> Option<&Value> {
        self.json.get_or_init(|| serde_json::from_str(self.text()?).ok()).as_ref()
    }

    /// Whether its head says that it is JSON.
    pub(crate) fn says_json(&self) -> bool {
        const TYPES: [&str; 3] =
            ["application/json", "application/problem+json", "application/ld+json"];
        let said = self.header("content-type").unwrap_or_default().to_ascii_lowercase();
        TYPES.iter().any(|one| said.contains(one))
    }
}

#[cfg(test)]
pub(crate) fn recorded(lines: &[(&str, &str)], body: &[u8]) -> RecordedResponse {
    let mut recorded = RecordedResponse::default();
    recorded.restart(Recording::Body);
    let lines: Vec<httparse::Header<'_>> = lines
        .iter()
        .map(|(name, value)| httparse::Header { name, value: value.as_bytes() })
        .collect();
    recorded.head(&lines);
    recorded.body(body);
    recorded
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn text_of(encoding: &str, body: &[u8]) -> Option<String> {
        let recorded = recorded(&[("Content-Encoding", encoding)], body);
        Response::new(200, &recorded).text().map(str::to_owned)
    }

    #[test]
    fn bodies_are_decoded() {
        let plain = "tenfold ".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(plain.as_bytes()).unwrap();
        assert_eq!(text_of("gzip", &gzip.finish().unwrap()), Some(plain.clone()));
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(plain.as_bytes()).unwrap();
        assert_eq!(text_of("Deflate", &zlib.finish().unwrap()), Some(plain.clone()));
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        raw.write_all(plain.as_bytes()).unwrap();
        assert_eq!(text_of("deflate", &raw.finish().unwrap()), Some(plain));
        // "hi" as an uncompressed meta-block (RFC 7932, 9.2), and the empty last one.
        assert_eq!(text_of("br", b"\x8b\x00\x80hi\x03"), Some("hi".into()));
        assert_eq!(text_of("identity", b"x"), Some("x".into()));
    }

    #[test]
    fn undecodable_bodies_have_no_text() {
        assert_eq!(text_of("gzip", b"no"), None);
        assert_eq!(text_of("zstd", b"no"), None);
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        bomb.write_all(&vec![0; MAX_BODY + 1]).unwrap();
        assert_eq!(text_of("gzip", &bomb.finish().unwrap()), None);
    }

    #[test]
    fn headers_are_found_in_any_case_and_joined() {
        let recorded =
            recorded(&[("X-A", "1"), ("x-a", "2"), ("Content-Type", "application/json")], b"[1]");
        let answer = Response::new(200, &recorded);
        assert_eq!(answer.header("X-a"), Some("1, 2".into()));
        assert_eq!(answer.header("x-b"), None);
        assert!(answer.says_json());
        assert_eq!(answer.json(), Some(&serde_json::json!([1])));
    }

    #[test]
    fn a_body_that_is_too_large_is_not_kept() {
        let mut recorded = recorded(&[], &vec![b'x'; MAX_BODY]);
        assert!(Response::new(200, &recorded).text().is_some());
        recorded.body(b"x");
        assert_eq!(Response::new(200, &recorded).text(), None);
        assert_eq!(recorded.received(), MAX_BODY as u64 + 1);
        recorded.restart(Recording::Head);
        recorded.body(b"x");
        assert!(recorded.body.is_empty() && recorded.body.capacity() <= KEPT_BUFFER);
    }
}
