//! Errors, and what limits the measurement instead of the app.

use super::evidence::Evidence;
use super::in_flight_limit::Shortage;
use super::result::{Finding, clarity, found};
use crate::calibration::THREAD_FULL;
use crate::finding::evidence::Failing;
use crate::kind::Kind;
use crate::words::percent;

const MEND: &str = "mend what ends the instance first, by its last output and the app's log";

pub(super) fn failing(e: &Evidence) -> Option<Finding> {
    let Some((share, what)) = e.errors.as_ref().filter(|(share, _)| *share > e.error_limit) else {
        return dying(e);
    };
    let failed = format!("{} of the requests failed, most of them with: {what}", percent(*share));
    let (evidence, remedy) = match &e.deaths {
        Some(deaths) => (format!("{failed}; {deaths}"), MEND),
        None => (
            failed,
            "read the app's log and mend the errors first: a fast failure is no throughput",
        ),
    };
    found(
        Kind::Failing,
        clarity(*share, e.error_limit, 4.0 * e.error_limit.max(0.01)),
        evidence,
        remedy,
    )
}

/// Requests that wait until the instance runs again do not fail.
fn dying(e: &Evidence) -> Option<Finding> {
    let deaths = e.deaths.as_ref().filter(|_| matches!(e.failing, Some(Failing::Deaths(_))))?;
    // They are counted, not sampled.
    found(Kind::Failing, clarity(1.0, 0.0, 1.0), deaths.clone(), MEND)
}

pub(super) fn generator(e: &Evidence) -> Option<Finding> {
    if let Some(shortage) = e.shortage {
        return found(
            Kind::GeneratorBound,
            // Files are counted, not sampled.
            clarity(1.0, 0.0, 1.0),
            lacks_files(shortage),
            &format!(
                "raise the limit on open files (`ulimit -n {}`, LimitNOFILE= of systemd, --ulimit nofile= of \
                 docker) and plan again, or ask for less at once",
                shortage.files()
            ),
        );
    }
    e.is_generator_full().then_some(())?;
    found(
        Kind::GeneratorBound,
        e.confidence(Kind::GeneratorBound, clarity(e.generator_thread, THREAD_FULL, 1.0)),
        format!("the load generator used {:.0} % of its core", e.generator_thread * 100.0),
        "measure from a second machine (`tenfold load`), or read the figures as \"at least\"",
    )
}

/// A workload that cannot be sent, in words.
fn lacks_files(shortage: Shortage) -> String {
    format!(
        "the goal's workload holds {} requests at once, and {} files, which is all that this process may \
         open, are enough for {}",
        shortage.needed, shortage.limit.files, shortage.limit.requests
    )
}

pub(super) fn balancer(e: &Evidence) -> Option<Finding> {
    e.is_balancer_bound().then_some(())?;
    found(
        Kind::BalancerBound,
        e.confidence(Kind::BalancerBound, clarity(e.balancer_thread, THREAD_FULL, 1.0)),
        format!("the balancer used {:.0} % of its core", e.balancer_thread * 100.0),
        "give the balancer more threads, and cores for them: `tenfold up --threads 2`",
    )
}
