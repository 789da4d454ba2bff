//! A file in memory: what a program writes that is read when it has ended.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};

/// It is gone with its last descriptor, and touches no disk.
pub(crate) struct MemoryFile(File);

impl MemoryFile {
    /// # Errors
    /// When the kernel gives none.
    pub(crate) fn new() -> io::Result<MemoryFile> {
        Ok(MemoryFile(memfd_create("tenfold", MemfdFlags::CLOEXEC)?.into()))
    }

    /// One to be read from its beginning.
    ///
    /// # Errors
    /// When the kernel gives none, or no room.
    pub(crate) fn with(text: &[u8]) -> io::Result<Stdio> {
        let MemoryFile(mut file) = MemoryFile::new()?;
        file.write_all(text)?;
        file.rewind()?;
        Ok(file.into())
    }

    /// The end that a program writes to. All of them share one position, so that texts follow one another.
    ///
    /// # Errors
    /// When there are too many open files.
    pub(crate) fn writer(&self) -> io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }

    /// All that was written.
    pub(crate) fn read(mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let _ = self.0.rewind().and_then(|()| self.0.read_to_end(&mut text));
        text
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn output_and_errors_are_kept_in_the_order_of_their_writing() {
        let said = MemoryFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "read line; echo $line; echo two >&2; echo three"]);
        command.stdin(MemoryFile::with(b"one\n").unwrap());
        command.stdout(said.writer().unwrap()).stderr(said.writer().unwrap());
        assert!(command.status().unwrap().success());
        assert_eq!(said.read(), b"one\ntwo\nthree\n");
    }
}
