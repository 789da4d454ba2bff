//! Where a body ends, for each way of framing it.

use crate::h1::Flaw;
use crate::h1::chunked::{Chunked, Decoded};

/// How a message's body is delimited (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Empty,
    /// This many bytes, at least 1.
    Length(u64),
    Chunked,
    /// Answers only: the body ends when the peer closes the connection.
    UntilClose,
}

/// Decodes a body as it arrives.
#[derive(Debug)]
pub(crate) enum Decoder {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Decoder {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Empty => Decoder::Length(0),
            Framing::Length(length) => Decoder::Length(length),
            Framing::Chunked => Decoder::Chunked(Chunked::default()),
            Framing::UntilClose => Decoder::UntilClose,
        }
    }

    /// The decoder of a backend's answer.
    pub(crate) fn of_answer(framing: Framing) -> Self {
        match framing {
            Framing::Chunked => Decoder::Chunked(Chunked::of_answer()),
            framing => Decoder::new(framing),
        }
    }

    pub(crate) fn decode(&mut self, input: &mut [u8]) -> Result<Decoded, Flaw> {
        match self {
            Decoder::Length(left) => {
                let content = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= content as u64;
                Ok(Decoded { consumed: content, content, end: *left == 0 })
            }
            Decoder::Chunked(chunked) => chunked.decode(input),
            Decoder::UntilClose => {
                Ok(Decoded { consumed: input.len(), content: input.len(), end: false })
            }
        }
    }

    /// Trailer fields that may be passed on, each with its line end. They are complete at the end of the
    /// body.
    pub(crate) fn trailers(&self) -> &[u8] {
        match self {
            Decoder::Chunked(chunked) => chunked.trailers(),
            Decoder::Length(_) | Decoder::UntilClose => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_ends_within_the_input() {
        let mut decoder = Decoder::new(Framing::Length(5));
        assert_eq!(
            decoder.decode(&mut b"abc".to_vec()),
            Ok(Decoded { consumed: 3, content: 3, end: false })
        );
        assert_eq!(
            decoder.decode(&mut b"deXY".to_vec()),
            Ok(Decoded { consumed: 2, content: 2, end: true })
        );
    }

    #[test]
    fn empty_ends_at_once() {
        let mut decoder = Decoder::new(Framing::Empty);
        assert_eq!(
            decoder.decode(&mut b"GET".to_vec()),
            Ok(Decoded { consumed: 0, content: 0, end: true })
        );
    }
}
