//! `access_log` of `[balancer]`: a line for each request.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use balancer::{AccessLog, LogFormat, LogTarget};
use serde::Deserialize;

use super::source::{Key, Wrong};
use super::tls::within;

/// Also its target alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogTable {
    to: String,
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Combined,
    Json,
}

impl LogTable {
    /// In the default format.
    pub fn to(to: &str) -> LogTable {
        LogTable { to: to.to_owned(), format: Format::default() }
    }

    /// Paths count from the file's directory.
    pub fn resolve(&self, directory: Option<&Path>, at: &Key) -> Result<AccessLog, Wrong> {
        let to = match self.to.as_str() {
            "stdout" | "-" => LogTarget::Stdout,
            name => LogTarget::File(writable(within(directory, name.as_ref()), at)?),
        };
        let format = match self.format {
            Format::Combined => LogFormat::Combined,
            Format::Json => LogFormat::Json,
        };
        Ok(AccessLog { to, format })
    }

    /// This format, written elsewhere.
    pub fn elsewhere(&self, to: &str) -> LogTable {
        LogTable { to: to.to_owned(), ..self.clone() }
    }
}

impl FromStr for LogTable {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(LogTable::to(text))
    }
}

/// A file in a directory that is there. It is not opened: to check makes no file.
fn writable(file: PathBuf, at: &Key) -> Result<PathBuf, Wrong> {
    let above = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    match above {
        // An empty TENFOLD_LOG= means no log.
        _ if file.as_os_str().is_empty() => {
            Err(at.wrong("the access log has no name: name a file, or - for standard output"))
        }
        Some(directory) if !directory.is_dir() => Err(at.wrong(&format!(
            "there is no directory {} for the access log: make it, or name another file",
            directory.display()
        ))),
        _ if file.is_dir() => Err(at.wrong(&format!(
            "{} is a directory: name a file in it for the access log",
            file.display()
        ))),
        _ => Ok(file),
    }
}
