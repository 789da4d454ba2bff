//! Ids for requests without one: 128 random bits. They tell requests apart and are not secret.

use std::cell::RefCell;

use rand::rngs::SmallRng;
use rand::{Rng, make_rng};

/// The longest id that a trusted proxy may give.
const MAX_ID_BYTES: usize = 128;

thread_local! {
    /// Seeded by the system, once for each thread.
    static GENERATOR: RefCell<SmallRng> = RefCell::new(make_rng());
}

/// Writes an id of 32 hexadecimal digits.
pub(crate) fn write(out: &mut Vec<u8>) {
    let (high, low) = GENERATOR
        .with_borrow_mut(|generator: &mut SmallRng| (generator.next_u64(), generator.next_u64()));
    let mut digits = [0; 32];
    let halves = digits.as_chunks_mut::<2>().0.iter_mut();
    for (pair, byte) in halves.zip([high, low].map(u64::to_be_bytes).as_flattened()) {
        *pair = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
    }
    out.extend_from_slice(&digits);
}

const HEX: [u8; 16] = *b"0123456789abcdef";

/// Whether an id may be passed on and logged: visible characters, and not too long.
pub(crate) fn is_valid(name: &[u8]) -> bool {
    (1..=MAX_ID_BYTES).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names: Vec<_> = (0..1000)
            .map(|_| {
                let mut name = Vec::new();
                write(&mut name);
                assert!(
                    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit) && is_valid(&name)
                );
                name
            })
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 1000);
        assert!(![&b""[..], b"a b", b"a\n", &[b'a'; 129]].into_iter().any(is_valid));
    }
}
