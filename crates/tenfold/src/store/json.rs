//! A value as JSON.

use std::path::Path;

use serde::Serialize;

use super::file;

/// Writes `value` to `to`; see [`file::write`].
pub fn write(value: &impl Serialize, to: &Path) -> anyhow::Result<()> {
    file::write(&text(value)?, to)
}

/// `value`, indented, with a newline at the end.
pub fn text(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
