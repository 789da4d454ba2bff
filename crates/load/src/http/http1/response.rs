//! An HTTP/1.1 answer, read in whatever pieces it arrives (RFC 9112, sections 4 to 6).

use std::mem::MaybeUninit;

use super::chunked::ChunkReader;
use super::head::{Answer, AnswerBody, Fault, Framing, Head, Reuse};
use super::response_sink::ResponseSink;

/// The largest head; real servers stop at 8 to 16 KB.
const MAX_HEAD: usize = 32 * 1024;
/// Header lines in a head.
const MAX_HEADERS: usize = 96;
/// The largest body. An endless answer ends here, if not at its timeout.
const MAX_BODY: u64 = 1 << 30;
/// The largest buffer for a head in pieces that is kept for the next one.
const KEPT_CARRY: usize = 4 * 1024;

/// Reads one answer after another, in any split of their bytes.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: State,
    answer: Answer,
    received: Received,
    body: u64,
    /// The beginning of a head whose end has not arrived. Nearly all servers send a head in one piece, and need no
    /// memory here.
    carry: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    Partial,
    /// The answer is complete. It ended after this many bytes of the input.
    Complete(Answer, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Sized { left: u64 },
    Chunked(ChunkReader),
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Nothing,
    Something,
}

impl ResponseReader {
    pub(crate) fn new() -> ResponseReader {
        ResponseReader {
            state: State::Head,
            answer: Answer { status: 0, reuse: Reuse::No },
            received: Received::Nothing,
            body: 0,
            carry: Vec::new(),
        }
    }

    /// Makes ready for the next answer.
    pub(crate) fn restart(&mut self) {
        self.state = State::Head;
        self.received = Received::Nothing;
        self.body = 0;
        self.drop_carry();
    }

    /// Whether not a byte of the answer has arrived.
    pub(crate) fn is_untouched(&self) -> bool {
        self.received == Received::Nothing
    }

    /// Bytes of the answer's body so far, without the framing of chunks.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body
    }

    /// Reads on.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        body: AnswerBody,
        sink: &mut (impl ResponseSink + ?Sized),
    ) -> Result<Progress, Fault> {
        let mut at = 0;
        if !input.is_empty() {
            self.received = Received::Something;
        }
        while self.state == State::Head {
            let Some((head, used)) = self.read_head(&input[at..], body, sink)? else {
                return Ok(Progress::Partial);
            };
            at += used;
            self.answer = head.answer;
            match head.framing {
                Framing::Interim => {}
                Framing::Empty | Framing::Sized(0) => return Ok(self.complete(at)),
                Framing::Sized(length) if length > MAX_BODY => return Err(Fault::TooLarge),
                Framing::Sized(length) => self.state = State::Sized { left: length },
                Framing::Chunked => self.state = State::Chunked(ChunkReader::new()),
                Framing::UntilClose => self.state = State::UntilClose,
            }
        }
        self.read_body(input, at, sink)
    }

    /// The server closed the connection. That completes an answer only if nothing else does.
    pub(crate) fn close(&self) -> Option<Answer> {
        (self.state == State::UntilClose).then_some(self.answer)
    }

    fn read_body(
        &mut self,
        input: &[u8],
        at: usize,
        sink: &mut (impl ResponseSink + ?Sized),
    ) -> Result<Progress, Fault> {
        let rest = &input[at..];
        match &mut self.state {
            State::Sized { left } => {
                let take = (*left).min(rest.len() as u64);
                sink.body(&rest[..take as usize]);
                *left -= take;
                self.body += take;
                if *left == 0 {
                    return Ok(self.complete(at + take as usize));
                }
            }
            State::Chunked(reader) => {
                let chunks = reader.read(rest, MAX_BODY - self.body, sink)?;
                self.body += chunks.body;
                if let Some(used) = chunks.end {
                    return Ok(self.complete(at + used));
                }
            }
            State::UntilClose => {
                sink.body(rest);
                self.body += rest.len() as u64;
                if self.body > MAX_BODY {
                    return Err(Fault::TooLarge);
                }
            }
            State::Head => {}
        }
        Ok(Progress::Partial)
    }

    fn complete(&self, used: usize) -> Progress {
        Progress::Complete(self.answer, used)
    }

    /// A head, and how much of `input` it took.
    fn read_head(
        &mut self,
        input: &[u8],
        body: AnswerBody,
        sink: &mut (impl ResponseSink + ?Sized),
    ) -> Result<Option<(Head, usize)>, Fault> {
        let before = self.carry.len();
        if before == 0 {
            // Nothing beyond the limit is read: the outcome must not depend on how the bytes are split.
            let visible = &input[..input.len().min(MAX_HEAD)];
            let head = match sink.recall(visible) {
                Some(head) => Some(head),
                None => parse_head(visible, body, sink)?,
            };
            if let Some(head) = head {
                let used = head.length;
                return Ok(Some((head, used)));
            }
        }
        let room = MAX_HEAD - before;
        self.carry.extend_from_slice(&input[..input.len().min(room)]);
        if before > 0
            && let Some(head) = parse_head(&self.carry, body, sink)?
        {
            let used = head.length - before;
            self.drop_carry();
            return Ok(Some((head, used)));
        }
        if self.carry.len() == MAX_HEAD {
            return Err(Fault::TooLarge);
        }
        Ok(None)
    }

    fn drop_carry(&mut self) {
        self.carry.clear();
        if self.carry.capacity() > KEPT_CARRY {
            self.carry = Vec::new();
        }
    }
}

fn parse_head(
    bytes: &[u8],
    body: AnswerBody,
    sink: &mut (impl ResponseSink + ?Sized),
) -> Result<Option<Head>, Fault> {
    match parse_lines(bytes, bytes, body, sink) {
        Err(Fault::Malformed) => match unfolded(bytes) {
            Some(lines) => parse_lines(&lines, bytes, body, sink),
            None => Err(Fault::Malformed),
        },
        parsed => parsed,
    }
}

/// The head with its folded lines joined; `None` without any. A user agent must accept them, and reads each fold as
/// blanks (RFC 9112, 5.2). The first field cannot be folded onto the status line (2.2). Lengths stay.
fn unfolded(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut lines = bytes.to_vec();
    let ends = |bytes: &[u8], from: usize| bytes[from..].iter().position(|b| *b == b'\n');
    let mut start = ends(bytes, 0)? + 1;
    let mut folds = 0;
    while let Some(length) = ends(bytes, start) {
        let end = start + length;
        if matches!(&bytes[start..end], b"" | b"\r") {
            break;
        }
        // A status line that is followed by a blank is left to the parser, which refuses it.
        if folds == 0 && bytes[start].is_ascii_whitespace() {
            return None;
        }
        if matches!(bytes.get(end + 1), Some(b' ' | b'\t')) {
            folds += 1;
            lines[end] = b' ';
            if bytes[end - 1] == b'\r' {
                lines[end - 1] = b' ';
            }
        }
        start = end + 1;
    }
    (folds > 0).then_some(lines)
}

/// Reads `lines`, which arrived as `bytes`.
fn parse_lines(
    lines: &[u8],
    bytes: &[u8],
    body: AnswerBody,
    sink: &mut (impl ResponseSink + ?Sized),
) -> Result<Option<Head>, Fault> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let mut parser = httparse::ParserConfig::default();
    // A recipient may be lenient about blanks (RFC 9112, 4 and 5.1). Browsers and curl are.
    parser
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .allow_spaces_after_header_name_in_responses(true);
    let parsed = parser.parse_response_with_uninit_headers(&mut response, lines, &mut headers);
    match parsed {
        Ok(httparse::Status::Complete(length)) => {
            let head = judge_head(&response, length, body)?;
            if !matches!(head.framing, Framing::Interim) {
                sink.head(response.headers);
                sink.learn(&bytes[..length], head);
            }
            Ok(Some(head))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Fault::TooLarge),
        Err(_) => Err(Fault::Malformed),
    }
}

fn judge_head(
    response: &httparse::Response<'_, '_>,
    length: usize,
    body: AnswerBody,
) -> Result<Head, Fault> {
    let status = response.code.unwrap_or(0);
    let one_point_one = response.version == Some(1);
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        fields.note(header.name, header.value)?;
    }
    let framing = match (status, body) {
        // Nobody asked for another protocol.
        (101, _) => return Err(Fault::Malformed),
        (100..=199, _) => Framing::Interim,
        (0..=99 | 1000.., _) => return Err(Fault::Malformed),
        (204 | 304, _) | (_, AnswerBody::Never) => Framing::Empty,
        _ => fields.framing(),
    };
    let closes = fields.close || fields.is_faulty(one_point_one);
    let persistent = match (closes, one_point_one) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => fields.keep_alive,
    };
    let reusable = persistent && !matches!(framing, Framing::UntilClose);
    Ok(Head {
        length,
        answer: Answer { status, reuse: if reusable { Reuse::Yes } else { Reuse::No } },
        framing,
    })
}

/// The header fields that decide framing and persistence.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    transfer: Transfer,
    close: bool,
    keep_alive: bool,
}

#[derive(Default, PartialEq, Eq)]
enum Transfer {
    #[default]
    None,
    /// Codings that end with chunked.
    Chunked,
    /// Codings without chunked. The body ends with the connection.
    Other,
}

impl Fields {
    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), Fault> {
        // Lengths first: most headers are none of these three.
        match name.len() {
            14 if name.eq_ignore_ascii_case("content-length") => self.note_length(value),
            17 if name.eq_ignore_ascii_case("transfer-encoding") => self.note_transfer(value),
            10 if name.eq_ignore_ascii_case("connection") => {
                for token in tokens(value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Repeated lengths are fine as long as they agree (RFC 9112, 6.3).
    fn note_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        for token in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
            if token.is_empty() || !token.iter().all(u8::is_ascii_digit) {
                return Err(Fault::Malformed);
            }
            let length = std::str::from_utf8(token)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or(Fault::TooLarge)?;
            if self.content_length.is_some_and(|known| known != length) {
                return Err(Fault::Malformed);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn note_transfer(&mut self, value: &[u8]) -> Result<(), Fault> {
        for token in tokens(value) {
            // Chunked is applied once, and last.
            if self.transfer == Transfer::Chunked {
                return Err(Fault::Malformed);
            }
            self.transfer = match token.eq_ignore_ascii_case(b"chunked") {
                true => Transfer::Chunked,
                false => Transfer::Other,
            };
        }
        Ok(())
    }

    /// A coding overrides a length (RFC 9112, 6.3).
    fn framing(&self) -> Framing {
        match (&self.transfer, self.content_length) {
            (Transfer::None, Some(length)) => Framing::Sized(length),
            (Transfer::Chunked, _) => Framing::Chunked,
            (Transfer::None | Transfer::Other, _) => Framing::UntilClose,
        }
    }

    /// Whether another recipient may see the end of the answer elsewhere. Both a coding and a length allow response
    /// smuggling, and HTTP/1.0 knows no codings. So the connection is not used again (RFC 9112, 6.1).
    fn is_faulty(&self, one_point_one: bool) -> bool {
        self.transfer != Transfer::None && (self.content_length.is_some() || !one_point_one)
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests;
