//! Where a script comes from, which decides what it may read.

use std::path::Path;

/// Where a script comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'p> {
    /// A file of whoever runs it: it may read what they may.
    File(&'p Path),
    /// The text of somebody else: it reads nothing of this machine.
    Sent,
}

impl<'p> Source<'p> {
    /// The folder that files are relative to; `None` for a script that may name none.
    pub(super) fn folder(self) -> Option<&'p Path> {
        match self {
            Source::File(path) => Some(path.parent().unwrap_or(Path::new(""))),
            Source::Sent => None,
        }
    }
}
