//! Finds pseudo-header fields in trailers. RFC 9113 8.1 calls such a message malformed. The library drops
//! these fields and takes the rest, so the bytes are checked before it gets them.
//!
//! A field may be named by its place in a table that all header blocks of the connection fill (RFC 7541
//! 2.3). So each block is followed as far as needed to know which entries are pseudo-header fields. No
//! string is decoded.

use std::ops::RangeInclusive;

/// The header blocks that one end has sent.
#[derive(Debug, Default)]
pub(super) struct TrailerCheck {
    /// Whether the present block may be trailers.
    is_trailers: bool,
    /// Whether the next byte is the length of the padding.
    is_padded: bool,
    /// Bytes before the block, and those of the block in this frame.
    ahead: usize,
    left: usize,
    /// Which entries of the dynamic table are pseudo-header fields, the newest in the lowest bit. The library
    /// allows 4,096 bytes, and an entry takes 32 at least. What was dropped cannot be named any more.
    table: u128,
    next: Next,
    field: Field,
}

/// What the next byte of a block is.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    /// The first byte of a field.
    #[default]
    Field,
    /// A further byte of a number (RFC 7541 5.1).
    Number { of: Number, value: usize, shift: u32 },
    /// The first byte of a string's length (RFC 7541 5.2).
    Length(Part),
    /// The first byte of a name that is not in the table.
    Name { is_compressed: bool, length: usize },
    /// A byte of a name or value that says nothing, of which so many are left.
    Rest(Part, usize),
}

/// What a number tells.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The place of a whole field in the table.
    Entry,
    /// The place of a name in the table, or 0 for a name that follows.
    Name,
    /// A new size of the table.
    TableSize,
    Length {
        part: Part,
        is_compressed: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Name,
    Value,
}

/// The field that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Field {
    is_pseudo: bool,
    /// Whether it goes into the table.
    is_kept: bool,
}

const PADDED: u8 = 0x8;

const PRIORITY: u8 = 0x20;

/// Bytes of a priority (RFC 9113 6.2).
const PRIORITY_BYTES: usize = 5;

/// The first entries of the static table are pseudo-header fields (RFC 7541, appendix A).
const STATIC_PSEUDO: RangeInclusive<usize> = 1..=14;

const STATIC_ENTRIES: usize = 61;

/// The code of a colon, 7 bits (RFC 7541, appendix B).
const COMPRESSED_COLON: u8 = 0x5c;

impl TrailerCheck {
    /// Begins a HEADERS frame.
    pub(super) fn begin(&mut self, is_trailers: bool, flags: u8, length: usize) {
        self.is_trailers = is_trailers;
        self.is_padded = flags & PADDED > 0;
        self.ahead = if flags & PRIORITY > 0 { PRIORITY_BYTES } else { 0 };
        self.left = length.saturating_sub(self.ahead);
        self.next = Next::Field;
    }

    /// Begins a CONTINUATION frame.
    pub(super) fn go_on(&mut self, length: usize) {
        (self.is_padded, self.ahead, self.left) = (false, 0, length);
    }

    /// Reads a piece of the frame's payload. Returns whether trailers have a pseudo-header field.
    pub(super) fn finds(&mut self, mut bytes: &[u8]) -> bool {
        if let (true, [padding, rest @ ..]) = (self.is_padded, bytes) {
            self.left = self.left.saturating_sub(1 + usize::from(*padding));
            (self.is_padded, bytes) = (false, rest);
        }
        let ahead = self.ahead.min(bytes.len());
        self.ahead -= ahead;
        let count = (bytes.len() - ahead).min(self.left);
        self.left -= count;
        self.follow(&bytes[ahead..ahead + count]) && self.is_trailers
    }

    /// Reads a piece of a block. Returns whether a pseudo-header field is in it.
    fn follow(&mut self, mut block: &[u8]) -> bool {
        let mut found = false;
        while let [byte, rest @ ..] = block {
            block = rest;
            self.next = match self.next {
                Next::Field => self.field(*byte),
                Next::Number { of, value, shift } => {
                    let digit = usize::from(byte & 0x7f);
                    // The library refuses greater numbers.
                    let value = value.saturating_add(digit << shift.min(28));
                    match byte & 0x80 {
                        0 => self.number(of, value),
                        _ => Next::Number { of, value, shift: shift + 7 },
                    }
                }
                Next::Length(part) => {
                    self.prefix(Number::Length { part, is_compressed: byte & 0x80 > 0 }, *byte, 7)
                }
                Next::Name { is_compressed, length } => {
                    self.field.is_pseudo = match is_compressed {
                        true => byte >> 1 == COMPRESSED_COLON,
                        false => *byte == b':',
                    };
                    self.rest(Part::Name, length - 1)
                }
                Next::Rest(part, left) => {
                    let count = (left - 1).min(block.len());
                    block = &block[count..];
                    self.rest(part, left - 1 - count)
                }
            };
            found |= self.field.is_pseudo;
        }
        found
    }

    /// The first byte of a field (RFC 7541 6).
    fn field(&mut self, byte: u8) -> Next {
        self.field = Field { is_pseudo: false, is_kept: byte & 0xc0 == 0x40 };
        match byte {
            0x80.. => self.prefix(Number::Entry, byte, 7),
            0x40.. => self.prefix(Number::Name, byte, 6),
            0x20.. => self.prefix(Number::TableSize, byte, 5),
            _ => self.prefix(Number::Name, byte, 4),
        }
    }

    /// A number that begins with the lowest bits of a byte.
    fn prefix(&mut self, of: Number, byte: u8, bits: u32) -> Next {
        let most = (1 << bits) - 1;
        match usize::from(byte) & most {
            value if value == most => Next::Number { of, value, shift: 0 },
            value => self.number(of, value),
        }
    }

    fn number(&mut self, of: Number, value: usize) -> Next {
        match of {
            Number::Entry => self.field.is_pseudo = self.is_pseudo(value),
            Number::TableSize => {}
            Number::Name if value == 0 => return Next::Length(Part::Name),
            Number::Name => {
                self.field.is_pseudo = self.is_pseudo(value);
                return Next::Length(Part::Value);
            }
            Number::Length { part: Part::Name, is_compressed } if value > 0 => {
                return Next::Name { is_compressed, length: value };
            }
            Number::Length { part, .. } => return self.rest(part, value),
        }
        Next::Field
    }

    /// So many bytes are left of a name or value.
    fn rest(&mut self, part: Part, left: usize) -> Next {
        match part {
            _ if left > 0 => Next::Rest(part, left),
            Part::Name => Next::Length(Part::Value),
            Part::Value => {
                if self.field.is_kept {
                    self.table = self.table << 1 | u128::from(self.field.is_pseudo);
                }
                Next::Field
            }
        }
    }

    fn is_pseudo(&self, entry: usize) -> bool {
        match entry.checked_sub(STATIC_ENTRIES + 1) {
            None => STATIC_PSEUDO.contains(&entry),
            Some(place @ 0..128) => self.table >> place & 1 == 1,
            Some(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in each of the header blocks, some of which are trailers, in pieces of so many bytes.
    fn found(blocks: &[(bool, &[u8])], piece: usize) -> Vec<bool> {
        let mut check = TrailerCheck::default();
        let blocks = blocks.iter().map(|(is_trailers, block)| {
            check.begin(*is_trailers, 0, block.len());
            // Each piece is read.
            block.chunks(piece).fold(false, |found, piece| found | check.finds(piece))
        });
        blocks.collect()
    }

    /// `:path: /x`, which goes into the table, and `a: b`, which goes before it.
    const REQUEST: &[u8] = &[0x82, 0x44, 2, b'/', b'x', 0x40, 1, b'a', 1, b'b'];

    #[test]
    fn pseudo_header_fields_are_found_however_they_are_written() {
        let trailers: [&[u8]; 7] = [
            &[0x84],
            &[0x20, 0x84],
            &[0x04, 1, b'/'],
            &[0x44, 0x82, 0x60, 0x3f],
            &[0x00, 2, b':', b'x', 0],
            &[0x10, 0x83, 0xb9, 0x28, 0x3f, 1, b'y'],
            // From the table: `:path: /x`.
            &[0xbf],
        ];
        for (block, piece) in trailers.into_iter().flat_map(|block| [(block, 1), (block, 64)]) {
            assert_eq!(
                found(&[(false, REQUEST), (true, block)], piece),
                [false, true],
                "{block:x?}"
            );
            assert_eq!(
                found(&[(false, REQUEST), (false, block)], piece),
                [false, false],
                "{block:x?}"
            );
        }
    }

    #[test]
    fn fields_of_trailers_are_none() {
        let trailers: [&[u8]; 5] = [
            // From the table: `a: b`.
            &[0xbe],
            &[0x0f, 0x2f, 1, b'b'],
            &[0x00, 1, b'x', 2, b':', b'y'],
            &[0x00, 0x82, 0xf2, 0xb4, 1, b'y'],
            &[0x0f, 13, 1, b'0'],
        ];
        for (block, piece) in trailers.into_iter().flat_map(|block| [(block, 1), (block, 64)]) {
            assert_eq!(
                found(&[(false, REQUEST), (true, block)], piece),
                [false, false],
                "{block:x?}"
            );
        }
    }

    #[test]
    fn padding_and_priority_are_no_fields() {
        let mut check = TrailerCheck::default();
        check.begin(false, 0, 1);
        assert!(!check.finds(&[0x82]));
        let frame = [&[2][..], &[0x84; 5], &[0xbe, 0x84, 0x84]].concat();
        for piece in [1, 4, 64] {
            check.begin(true, PADDED | PRIORITY, frame.len());
            let found = frame.chunks(piece).fold(false, |found, piece| found | check.finds(piece));
            assert!(!found, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_block_goes_on_in_the_next_frame() {
        let mut check = TrailerCheck::default();
        check.begin(false, 0, 1);
        assert!(!check.finds(&[0x82]));
        check.begin(true, 0, 2);
        assert!(!check.finds(&[0x00, 2]));
        check.go_on(3);
        assert!(check.finds(&[b':', b'x', 0]));
    }
}
