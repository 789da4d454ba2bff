//! The chunked transfer coding (RFC 9112, section 7.1), read byte by byte where it must be and
//! in bulk where it can be.

use super::head::Fault;
use super::response_sink::ResponseSink;

/// Extensions of one chunk, and all trailers together: far beyond any real use.
const LINE_LIMIT: u32 = 16 * 1024;

/// Where in the coding the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkReader {
    state: State,
    /// Bytes left of extensions (per chunk) or trailers before they are too large.
    budget: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { digits: u8, value: u64 },
    Extension { size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    LineStart,
    Trailer,
    TrailerLf,
    EndLf,
}

/// What became of a run of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Bytes of the body proper.
    pub(crate) body: u64,
    /// The number of bytes used, once the last one has been seen.
    pub(crate) end: Option<usize>,
}

impl ChunkReader {
    pub(crate) fn new() -> ChunkReader {
        ChunkReader { state: State::Size { digits: 0, value: 0 }, budget: LINE_LIMIT }
    }

    /// Reads on. `room` is the number of body bytes that may still come.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        room: u64,
        sink: &mut (impl ResponseSink + ?Sized),
    ) -> Result<Chunks, Fault> {
        let mut body = 0;
        let mut at = 0;
        while at < input.len() {
            if let State::Data { left } = self.state {
                let take = left.min((input.len() - at) as u64);
                sink.body(&input[at..at + take as usize]);
                body += take;
                at += take as usize;
                self.state = match left - take {
                    0 => State::DataCr,
                    left => State::Data { left },
                };
                continue;
            }
            let byte = input[at];
            at += 1;
            if self.state == State::EndLf {
                expect(byte, b'\n')?;
                return Ok(Chunks { body, end: Some(at) });
            }
            self.state = self.step(byte, room - body.min(room))?;
        }
        Ok(Chunks { body, end: None })
    }

    fn step(&mut self, byte: u8, room: u64) -> Result<State, Fault> {
        Ok(match (self.state, byte) {
            (State::Size { digits, value }, _) if byte.is_ascii_hexdigit() => {
                // 15 digits stay clear of overflow, and no body is that long.
                if digits == 15 {
                    return Err(Fault::TooLarge);
                }
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                State::Size { digits: digits + 1, value: value * 16 + u64::from(digit) }
            }
            (State::Size { digits: 0, .. }, _) => return Err(Fault::Malformed),
            (State::Size { value, .. }, _) if value > room => return Err(Fault::TooLarge),
            (State::Size { value, .. }, b'\r') => State::SizeLf { size: value },
            (State::Size { value, .. }, b';' | b' ' | b'\t') => State::Extension { size: value },
            (State::Extension { size }, b'\r') => State::SizeLf { size },
            (State::Extension { size }, _) => {
                self.spend(byte)?;
                State::Extension { size }
            }
            (State::SizeLf { size }, b'\n') => {
                self.budget = LINE_LIMIT;
                match size {
                    0 => State::LineStart,
                    left => State::Data { left },
                }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { digits: 0, value: 0 },
            (State::LineStart, b'\r') => State::EndLf,
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::LineStart | State::Trailer, _) => {
                self.spend(byte)?;
                State::Trailer
            }
            (State::TrailerLf, b'\n') => State::LineStart,
            _ => return Err(Fault::Malformed),
        })
    }

    fn spend(&mut self, byte: u8) -> Result<(), Fault> {
        if byte == b'\n' || byte == 0 {
            return Err(Fault::Malformed);
        }
        self.budget = self.budget.checked_sub(1).ok_or(Fault::TooLarge)?;
        Ok(())
    }
}

fn expect(byte: u8, wanted: u8) -> Result<(), Fault> {
    if byte == wanted { Ok(()) } else { Err(Fault::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http1::response_sink::Ignore;

    fn read(input: &[u8]) -> Result<Chunks, Fault> {
        ChunkReader::new().read(input, 1000, &mut Ignore)
    }

    #[test]
    fn chunks_extensions_and_trailers_end_at_the_last_byte() {
        let input = b"5;a=b\r\nhello\r\n0A \r\n0123456789\r\n0\r\nX: y\r\n\r\nHTTP";
        assert_eq!(read(input), Ok(Chunks { body: 15, end: Some(input.len() - 4) }));
    }

    #[test]
    fn broken_framing_is_malformed() {
        for input in [
            &b"\r\n"[..],
            b"g\r\n",
            b"-1\r\n",
            b"5\nhello",
            b"5\rhello",
            b"5\r\nhelloX",
            b"5\r\nhello\rX",
            b"5;\nhello",
            b"0\r\n\rX",
            b"0\r\nX: y\n\r\n",
        ] {
            assert_eq!(read(input), Err(Fault::Malformed), "{input:?}");
        }
    }

    #[test]
    fn sizes_and_lines_have_limits() {
        assert_eq!(read(b"3e9\r\n"), Err(Fault::TooLarge));
        assert_eq!(read(b"ffffffffffffffff\r\n"), Err(Fault::TooLarge));
        let long = [b"1;".to_vec(), vec![b'x'; LINE_LIMIT as usize + 1]].concat();
        assert_eq!(read(&long), Err(Fault::TooLarge));
    }
}
