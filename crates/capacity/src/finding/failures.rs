//! Requests that fail, and instances that die.

use super::evidence::{Evidence, Failing};
use super::result::{Details, Finding, Remedy, clarity, found};
use crate::calibration::CLEARLY_FAILING;
use crate::limit_kind::Kind;

pub(super) fn failing(e: &Evidence) -> Option<Finding> {
    let Some((share, most)) = e.errors.as_ref().filter(|(share, _)| *share > e.error_limit) else {
        return dying(e);
    };
    let crashes = e.crashes.clone();
    let remedy = if crashes.is_some() { Remedy::MendCrashes } else { Remedy::MendErrors };
    found(
        Kind::Failing,
        clarity(*share, e.error_limit, CLEARLY_FAILING * e.error_limit.max(0.01)),
        Details::Errors { share: *share, most: most.clone(), crashes },
        remedy,
    )
}

/// An instance that dies again and again. Its requests may only wait until it runs again, and do not fail.
fn dying(e: &Evidence) -> Option<Finding> {
    let crashes = e.crashes.as_ref().filter(|_| matches!(e.failing, Some(Failing::Deaths(_))))?;
    // Crashes are counted, not sampled.
    let certain = clarity(1.0, 0.0, 1.0);
    found(Kind::Failing, certain, Details::Crashes(crashes.clone()), Remedy::MendCrashes)
}
