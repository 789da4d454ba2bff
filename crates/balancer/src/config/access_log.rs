//! Where the access log goes and how its lines are written.

use std::fmt;
use std::path::PathBuf;

/// The access log: one line for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The target.
    pub to: LogTarget,
    /// The format of a line.
    pub format: LogFormat,
}

/// Where the access log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The standard output.
    Stdout,
    /// This file. Lines are appended, and the file is created if it is missing.
    File(PathBuf),
}

/// How a line of an access log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined log format of nginx and Apache, byte for byte.
    #[default]
    Combined,
    /// One JSON object for each line, with times in milliseconds and all known fields.
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
