//! Where the access log goes and how its lines are written.

use std::fmt;
use std::path::PathBuf;

/// Where a line for each request goes, and in which words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where to.
    pub to: LogTarget,
    /// In which words.
    pub format: LogFormat,
}

/// Where an access log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The standard output.
    Stdout,
    /// The end of this file, which is created where there is none.
    File(PathBuf),
}

/// How a line of an access log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined format of other servers, byte for byte.
    #[default]
    Combined,
    /// An object a line, with times in milliseconds and everything that is known.
    Json,
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogTarget::Stdout => f.write_str("on standard output"),
            LogTarget::File(path) => path.display().fmt(f),
        }
    }
}
