//! What is kept of an answer while it is read.

/// Told of an answer's parts as they are read. Generic, so that a load that looks at no answer
/// pays nothing.
pub(crate) trait Keep {
    /// The header lines of the final head; interim ones are passed over.
    fn head(&mut self, lines: &[httparse::Header<'_>]);

    /// The next bytes of the body, transfer coding removed.
    fn body(&mut self, bytes: &[u8]);
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ignore;

impl Keep for Ignore {
    fn head(&mut self, _lines: &[httparse::Header<'_>]) {}

    fn body(&mut self, _bytes: &[u8]) {}
}
