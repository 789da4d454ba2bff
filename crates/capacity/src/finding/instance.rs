//! What limits each instance by itself.

use super::evidence::{Evidence, is_serial};
use super::instance_limit::instance_limit;
use super::result::{Finding, clarity, found};
use super::scaling::is_all_shared;
use crate::calibration::{
    FILES_FULL, NEAREST_CONFIDENCE, THREAD_FULL, THROTTLED_PERIODS, WAITING_CPU_SHARE,
};
use crate::kind::Kind;
use crate::model::network::Model;
use crate::words::{rate, time};

pub(super) fn throttled(e: &Evidence) -> Option<Finding> {
    let share = e.throttled.filter(|share| *share >= THROTTLED_PERIODS)?;
    found(
        Kind::CpuThrottled,
        clarity(share, THROTTLED_PERIODS, 0.5),
        format!(
            "the CPU quota stopped the app in {:.0} % of its periods, at {:.2} cores",
            share * 100.0,
            e.one.app_cores()
        ),
        "raise the quota (--cpus, or that of the cgroup), or run more instances with a quota each",
    )
}

/// Connections that never came about.
pub(super) fn refused(e: &Evidence) -> Option<Finding> {
    let files = e.open_files.filter(|(open, limit)| *open as f64 >= FILES_FULL * *limit as f64);
    if e.connect_failures == 0 && files.is_none() {
        return None;
    }
    let mut seen = Vec::new();
    if e.connect_failures > 0 {
        seen.push(format!("{} connections to the app were refused or dropped", e.connect_failures));
    }
    if let Some((open, limit)) = files {
        seen.push(format!("an instance has {open} of {limit} files open"));
    }
    found(
        Kind::ConnectionLimited,
        if seen.len() == 2 { 0.95 } else { 0.8 },
        seen.join("; "),
        "raise the app's listen backlog and its limit of open files (ulimit -n)",
    )
}

/// Requests are let in, and wait inside for one of a few connections.
pub(super) fn pool(model: &Model, e: &Evidence) -> Option<Finding> {
    (e.is_pooled(model) && !is_all_shared(model, e)).then(|| pool_found(model, e))?
}

/// The same, whatever else may explain it.
pub(super) fn pool_found(model: &Model, e: &Evidence) -> Option<Finding> {
    let a = e.admission.as_ref()?;
    let (served, inside) = (model.ladder.served(), a.inside());
    let waits = format!(
        "of {} requests in flight one instance had taken in {inside} and served {served} at a time, its CPU idle",
        a.offered
    );
    match e.pool(model) {
        Some(pool) => found(
            Kind::ConnectionLimited,
            0.9,
            format!("{waits}; it has {} connections to {}", pool.connections, pool.to),
            "make the app's pool of connections larger if what they lead to can take more, or add \
             instances: each brings a pool of its own",
        ),
        None => found(
            Kind::ConnectionLimited,
            0.7,
            format!(
                "{waits}: the others wait inside for one of {served} places or fewer, as in a pool of connections \
                 or threads"
            ),
            "look for a pool of at most that size in the app's configuration and make it larger, or add \
             instances: each brings its own",
        ),
    }
}

pub(super) fn serialized(model: &Model, e: &Evidence) -> Option<Finding> {
    // A quota, too, lets no more through with many in flight than with one.
    let is_own = !e.is_carrier_bound(model)
        && !e.is_quota_full()
        && !e.is_cpu_bound(model)
        && !is_all_shared(model, e);
    (is_serial(model) && is_own).then(|| serialized_found(model))?
}

/// The same, whatever else may explain it.
pub(super) fn serialized_found(model: &Model) -> Option<Finding> {
    let light = 1.0 / model.ladder.light_service();
    let gain = model.ladder.peak() / light - 1.0;
    found(
        Kind::Serialized,
        clarity(0.5 - gain, 0.0, 0.5),
        format!(
            "one instance completes {} requests/s with one request in flight and {} with more: it serves \
             one at a time, {} each",
            rate(light),
            rate(model.ladder.peak()),
            time(model.ladder.light_service())
        ),
        "add instances, or let the app serve several requests at once (threads, async)",
    )
}

pub(super) fn cpu_bound(model: &Model, e: &Evidence) -> Option<Finding> {
    (e.is_cpu_bound(model) && !e.is_carrier_bound(model)).then_some(())?;
    let cores = e.one.app_cores();
    let relay = e.one.throughput * e.one.relay_demand;
    let thread = e.busiest_thread.unwrap_or(cores).max(e.one.own_cores() / model.cores);
    found(
        Kind::CpuBound,
        e.confidence(Kind::CpuBound, clarity(thread, THREAD_FULL - 0.1, 1.0)),
        format!(
            "a saturated instance keeps {cores:.2} of {:.0} cores busy, {} of CPU a request; balancer and \
             load generator use {relay:.2} beside it",
            model.cores,
            time(model.app_demand)
        ),
        if e.is_quota_full() {
            "raise the quota first: within it only less CPU per request helps"
        } else if cores > 1.2 {
            "one instance uses several cores already: only less CPU per request or more cores help"
        } else {
            "run one instance per core at most; beyond that only less CPU per request or more cores help"
        },
    )
}

pub(super) fn waiting(model: &Model, e: &Evidence) -> Option<Finding> {
    // What a quota holds back waits for the CPU, and what is not asked for more waits for nothing.
    let is_own = !e.is_cpu_bound(model) && !e.is_quota_full() && !e.is_carrier_bound(model);
    (e.is_idle(model) && is_own).then(|| waiting_found(model, e))?
}

/// The same, however little of its time a request waits.
pub(super) fn waiting_found(model: &Model, e: &Evidence) -> Option<Finding> {
    let busy = e.cpu_share(model);
    found(
        Kind::Waiting,
        clarity(1.0 - busy, WAITING_CPU_SHARE, 1.0),
        format!(
            "of the {} that a request takes, {:.1} % are CPU; the rest it sleeps or waits for I/O",
            time(model.ladder.light_service()),
            100.0 * busy
        ),
        if is_all_shared(model, e) {
            "shorten what they all wait for: the CPU has room, and instances alone do not help"
        } else {
            "the CPU can serve others meanwhile: add instances, or threads in each"
        },
    )
}

/// What comes nearest where nothing was seen at its limit.
pub(super) fn nearest(model: &Model, e: &Evidence) -> Option<Finding> {
    let kind = instance_limit(model, e);
    found(
        kind,
        NEAREST_CONFIDENCE,
        format!(
            "nothing was seen at its limit: a saturated instance keeps {:.2} of {:.0} cores busy, balancer and load \
             generator use {:.2} beside it, and {:.0} % of the {} that a request takes alone are CPU",
            e.one.app_cores(),
            model.cores,
            e.one.own_cores() - e.one.app_cores(),
            100.0 * e.cpu_share(model),
            time(model.ladder.light_service())
        ),
        "look for a lock or a queue inside the app; one instance more shows whether it is the instance's own",
    )
}
