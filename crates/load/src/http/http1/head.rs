//! What the head of an answer says about the bytes after it.

use crate::error::kind::ErrorKind;

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) reuse: Reuse,
}

/// Whether the server lets the connection serve another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Yes,
    No,
}

/// Whether the answer to a request has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBody {
    /// As its head says.
    AsFramed,
    /// Never, whatever its head says: the answer to HEAD.
    Never,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed,
    TooLarge,
}

/// What a head says about the bytes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub(crate) length: usize,
    pub(super) answer: Answer,
    pub(super) framing: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Interim,
    Empty,
    Sized(u64),
    Chunked,
    UntilClose,
}

impl From<Fault> for ErrorKind {
    fn from(fault: Fault) -> ErrorKind {
        match fault {
            Fault::Malformed => ErrorKind::Malformed,
            Fault::TooLarge => ErrorKind::TooLarge,
        }
    }
}
