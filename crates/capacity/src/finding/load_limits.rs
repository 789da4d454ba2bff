//! Errors, and what limits the measurement instead of the app.

use super::evidence::Evidence;
use super::result::{Details, Finding, Remedy, clarity, found};
use crate::calibration::THREAD_FULL;
use crate::finding::evidence::Failing;
use crate::limit_kind::Kind;

pub(super) fn failing(e: &Evidence) -> Option<Finding> {
    let Some((share, most)) = e.errors.as_ref().filter(|(share, _)| *share > e.error_limit) else {
        return dying(e);
    };
    let crashes = e.crashes.clone();
    let remedy = if crashes.is_some() { Remedy::MendCrashes } else { Remedy::MendErrors };
    found(
        Kind::Failing,
        clarity(*share, e.error_limit, 4.0 * e.error_limit.max(0.01)),
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

pub(super) fn generator(e: &Evidence) -> Option<Finding> {
    if let Some(shortage) = e.shortage {
        // Files are counted, not sampled.
        let (certain, files) = (clarity(1.0, 0.0, 1.0), shortage.files());
        let details = Details::Files(shortage);
        return found(Kind::GeneratorBound, certain, details, Remedy::OpenFiles(files));
    }
    e.is_generator_full().then_some(())?;
    found(
        Kind::GeneratorBound,
        e.confidence(Kind::GeneratorBound, clarity(e.generator_thread, THREAD_FULL, 1.0)),
        Details::GeneratorThread { utilisation: e.generator_thread },
        Remedy::SecondMachine,
    )
}

pub(super) fn balancer(e: &Evidence) -> Option<Finding> {
    e.is_balancer_bound().then_some(())?;
    found(
        Kind::BalancerBound,
        e.confidence(Kind::BalancerBound, clarity(e.balancer_thread, THREAD_FULL, 1.0)),
        Details::BalancerThread { utilisation: e.balancer_thread },
        Remedy::BalancerThreads,
    )
}
