//! What a measurement tells the process that started it.

use serde::{Deserialize, Serialize};

use super::plan::Probe;

/// A line of JSON on standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewsLine {
    /// A step begins; about so many seconds until the end of everything.
    Step { step: String, left_s: Option<u64> },
    /// A probe has ended.
    Measured(Box<Probe>),
    /// The answer is in the history, under this number.
    Kept { run: i64 },
}
