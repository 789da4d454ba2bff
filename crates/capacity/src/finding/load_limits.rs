//! The generator and the balancer, where they limit what is measured instead of the app.

use super::evidence::Evidence;
use super::result::{Details, Finding, Remedy, clarity, found};
use crate::calibration::THREAD_FULL;
use crate::limit_kind::Kind;

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
