//! Finds the frames in bytes that come or go in pieces of any size (RFC 9113 4.1).

/// Follows the frames of one direction.
#[derive(Debug)]
pub(crate) struct FrameHeaders {
    /// Bytes until the next frame header, in the preface or a payload.
    skip: usize,
    header: [u8; FRAME_HEADER_BYTES],
    have: usize,
}

/// What comes next in a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'b> {
    /// Of the payload of the last frame, or of the preface. It may be empty.
    Payload(&'b [u8]),
    Header(FrameHeader),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

pub(crate) const FRAME_HEADER_BYTES: usize = 9;

/// The highest number of a stream. The bit above it is reserved.
const MAX_STREAM: u32 = (1 << 31) - 1;

impl FrameHeaders {
    /// The first frame comes after so many bytes.
    pub(crate) fn after(skip: usize) -> Self {
        FrameHeaders { skip, header: [0; FRAME_HEADER_BYTES], have: 0 }
    }

    /// Takes a part from the start of `bytes`. None if no whole part is left.
    pub(crate) fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Option<Part<'b>> {
        if self.skip > 0 && !bytes.is_empty() {
            let (payload, rest) = bytes.split_at(self.skip.min(bytes.len()));
            (self.skip, *bytes) = (self.skip - payload.len(), rest);
            return Some(Part::Payload(payload));
        }
        let (part, rest) = bytes.split_at(bytes.len().min(FRAME_HEADER_BYTES - self.have));
        self.header[self.have..self.have + part.len()].copy_from_slice(part);
        (self.have, *bytes) = (self.have + part.len(), rest);
        if self.have < FRAME_HEADER_BYTES {
            return None;
        }
        let [high, middle, low, kind, flags, stream @ ..] = self.header;
        self.skip = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.have = 0;
        let stream = u32::from_be_bytes(stream) & MAX_STREAM;
        Some(Part::Header(FrameHeader { length: self.skip, kind, flags, stream }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_they_arrive() {
        let bytes = b"ab\0\0\x03\x01\x05\x80\0\0\x07xyz\0\0\0\x06\0\0\0\0\0";
        for step in [1, 2, 8, 100] {
            let (mut headers, mut seen, mut payload) = (FrameHeaders::after(2), vec![], vec![]);
            for mut piece in bytes.chunks(step) {
                while let Some(part) = headers.next(&mut piece) {
                    match part {
                        Part::Payload(bytes) => payload.extend_from_slice(bytes),
                        Part::Header(header) => seen.push(header),
                    }
                }
            }
            let header = |length, kind, flags, stream| FrameHeader { length, kind, flags, stream };
            assert_eq!(seen, [header(3, 1, 5, 7), header(0, 6, 0, 0)], "pieces of {step}");
            assert_eq!(payload, b"abxyz");
        }
    }
}
