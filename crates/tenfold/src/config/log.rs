//! `access_log` of `[balancer]`: a line for each request.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use balancer::{AccessLog, LogFormat, LogTarget};
use serde::Deserialize;

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
    /// Paths count from the file's directory.
    pub fn resolve(&self, directory: Option<&Path>) -> AccessLog {
        let file = || directory.map_or_else(|| PathBuf::from(&self.to), |d| d.join(&self.to));
        AccessLog {
            to: match self.to.as_str() {
                "stdout" | "-" => LogTarget::Stdout,
                _ => LogTarget::File(file()),
            },
            format: match self.format {
                Format::Combined => LogFormat::Combined,
                Format::Json => LogFormat::Json,
            },
        }
    }

    /// The same format, elsewhere.
    pub fn elsewhere(&self, to: &str) -> LogTable {
        LogTable { to: to.to_owned(), ..self.clone() }
    }
}

impl FromStr for LogTable {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(LogTable { to: text.to_owned(), format: Format::default() })
    }
}
