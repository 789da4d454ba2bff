//! What is kept of an answer while it is read.

use super::head::Head;

/// Longer heads are read each time.
const MAX_CACHED_HEAD: usize = 1024;

/// Receives the parts of an answer as they are read. The reader is generic over it, so that a load that looks
/// at no answer pays nothing.
pub trait ResponseSink {
    /// The header lines of the final head. Interim heads are left out.
    fn head(&mut self, lines: &[httparse::Header<'_>]);

    /// The next bytes of the body, transfer coding removed.
    fn body(&mut self, bytes: &[u8]);

    /// The meaning of the final head that `bytes` begin with, if it is known.
    fn recall(&self, _bytes: &[u8]) -> Option<Head> {
        None
    }

    /// Takes note of what the final head of these bytes means.
    fn learn(&mut self, _bytes: &[u8], _head: Head) {}
}

/// Keeps the meaning of the last head, and nothing else. A server mostly repeats its head to the byte until
/// its clock moves on, and comparing bytes costs a fifth of parsing them.
#[derive(Debug, Clone)]
pub(crate) struct HeadCache {
    bytes: Vec<u8>,
    head: Option<Head>,
}

impl HeadCache {
    pub(crate) fn new() -> HeadCache {
        HeadCache { bytes: Vec::with_capacity(MAX_CACHED_HEAD), head: None }
    }
}

impl ResponseSink for HeadCache {
    fn head(&mut self, _lines: &[httparse::Header<'_>]) {}

    fn body(&mut self, _bytes: &[u8]) {}

    fn recall(&self, bytes: &[u8]) -> Option<Head> {
        self.head.filter(|_| bytes.starts_with(&self.bytes))
    }

    fn learn(&mut self, bytes: &[u8], head: Head) {
        if bytes.len() <= MAX_CACHED_HEAD {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = Some(head);
        }
    }
}

/// Keeps nothing at all.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ignore;

#[cfg(test)]
impl ResponseSink for Ignore {
    fn head(&mut self, _lines: &[httparse::Header<'_>]) {}

    fn body(&mut self, _bytes: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http1::head::AnswerBody;
    use crate::http::http1::response::{Progress, ResponseReader};

    fn status(head_cache: &mut HeadCache, answer: &[u8]) -> Option<u16> {
        match ResponseReader::new().read(answer, AnswerBody::AsFramed, head_cache) {
            Ok(Progress::Complete(complete, used)) if used == answer.len() => Some(complete.status),
            _ => None,
        }
    }

    #[test]
    fn a_cached_head_is_recalled_and_a_changed_one_is_parsed() {
        let mut head_cache = HeadCache::new();
        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let longer = b"HTTP/1.1 201 OK\r\nContent-Length: 3\r\n\r\nabc";
        let long = [
            b"HTTP/1.1 202 OK\r\nX: ",
            [b'x'; MAX_CACHED_HEAD].as_slice(),
            b"\r\nContent-Length: 0\r\n\r\n",
        ]
        .concat();
        for _ in 0..2 {
            assert_eq!(status(&mut head_cache, ok), Some(200));
            assert_eq!(head_cache.recall(ok).map(|head| head.length), Some(ok.len() - 2));
            assert_eq!(status(&mut head_cache, longer), Some(201));
            assert_eq!(head_cache.recall(ok), None);
            assert_eq!(status(&mut head_cache, &long), Some(202));
            assert_eq!(head_cache.recall(&long), None);
        }
    }
}
