//! Reading the kernel's small text files into one buffer that is used again and again.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A buffer for files of `/proc` and `/sys`, which are made anew at each read.
pub(crate) struct KernelFiles {
    buffer: Vec<u8>,
}

impl KernelFiles {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::with_capacity(16 * 1024) }
    }

    pub(crate) fn bytes(&mut self, path: impl AsRef<Path>) -> io::Result<&[u8]> {
        self.buffer.clear();
        File::open(path)?.read_to_end(&mut self.buffer)?;
        Ok(&self.buffer)
    }

    /// Reads a file as text. Only the name of a thread may contain other characters than ASCII.
    pub(crate) fn text(&mut self, path: impl AsRef<Path>) -> io::Result<&str> {
        std::str::from_utf8(self.bytes(path)?)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }
}
