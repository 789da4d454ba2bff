//! Whether a measurement can be trusted, and why not.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a measurement can be trusted. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Valid,
    Suspect,
    Invalid,
}

impl From<load::Verdict> for Verdict {
    fn from(verdict: load::Verdict) -> Verdict {
        match verdict {
            load::Verdict::Valid => Verdict::Valid,
            load::Verdict::Suspect => Verdict::Suspect,
            load::Verdict::Invalid => Verdict::Invalid,
        }
    }
}

/// Reasons, each once: of those that differ in their numbers alone, the first is enough.
pub fn distinct<'a>(reasons: impl Iterator<Item = &'a String>) -> Vec<String> {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let mut distinct: Vec<String> = Vec::new();
    for reason in reasons {
        if !distinct.iter().any(|known| words(known) == words(reason)) {
            distinct.push(reason.clone());
        }
    }
    distinct
}
