//! Why a script cannot be run.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a script cannot be run: the place, the problem, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// `None` if the script is a text that somebody sent.
    file: Option<PathBuf>,
    /// Counted from 1; `None` if it is about the whole file.
    line: Option<u32>,
    what: String,
}

/// What is wrong at a line. The caller knows the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) line: Option<u32>,
    pub(super) what: String,
}

impl Refusal {
    pub(super) fn at(line: u32, what: impl Into<String>) -> Refusal {
        Refusal { line: Some(line), what: what.into() }
    }

    pub(super) fn whole(what: impl Into<String>) -> Refusal {
        Refusal { line: None, what: what.into() }
    }

    pub(super) fn of(self, file: &Path) -> ScriptError {
        ScriptError { file: Some(file.to_owned()), line: self.line, what: self.what }
    }

    pub(super) fn of_sent(self) -> ScriptError {
        ScriptError { file: None, line: self.line, what: self.what }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ScriptError {}
