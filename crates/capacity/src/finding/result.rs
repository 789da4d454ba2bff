//! A finding, and how clearly numbers show it.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// One diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// How clearly the numbers show it: 0.5 at the threshold, towards 1 far beyond it or where a trial
    /// agreed.
    pub confidence: f64,
    /// The numbers, in a sentence.
    pub evidence: String,
    /// What to do about it, in a sentence.
    pub remedy: String,
}

/// 0.5 at the threshold, 0.99 at `full`.
pub(super) fn clarity(value: f64, threshold: f64, full: f64) -> f64 {
    let distance = ((value - threshold) / (full - threshold)).clamp(0.0, 1.0);
    (50.0 + 49.0 * distance).round() / 100.0
}

pub(super) fn found(
    kind: Kind,
    confidence: f64,
    evidence: String,
    remedy: &str,
) -> Option<Finding> {
    Some(Finding { kind, confidence, evidence, remedy: remedy.to_owned() })
}
