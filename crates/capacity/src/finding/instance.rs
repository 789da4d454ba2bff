//! What limits each instance by itself.

use super::evidence::{Evidence, is_serial};
use super::instance_limit::instance_limit;
use super::result::{Details, Finding, Remedy, clarity, found};
use super::scaling::is_all_shared;
use crate::calibration::{
    CLEARLY_THROTTLED, FILES_FULL, NEAREST_CONFIDENCE, POOL_CONFIDENCE, REFUSED_CONFIDENCE,
    SERIAL_GROWTH, SEVERAL_CORES, THREAD_NEARLY_FULL, THROTTLED_PERIODS, WAITING_CPU_SHARE,
};
use crate::limit_kind::Kind;
use crate::model::network::Model;

pub(super) fn throttled(e: &Evidence) -> Option<Finding> {
    let share = e.throttled.filter(|share| *share >= THROTTLED_PERIODS)?;
    found(
        Kind::CpuThrottled,
        clarity(share, THROTTLED_PERIODS, CLEARLY_THROTTLED),
        Details::Throttled { periods: share, cores: e.one.app_cores() },
        Remedy::Quota,
    )
}

/// Connections that never came about.
pub(super) fn refused(e: &Evidence) -> Option<Finding> {
    let files = e.open_files.filter(|(open, limit)| *open as f64 >= FILES_FULL * *limit as f64);
    if e.connect_failures == 0 && files.is_none() {
        return None;
    }
    let are_both = e.connect_failures > 0 && files.is_some();
    let (both, one) = REFUSED_CONFIDENCE;
    found(
        Kind::ConnectionLimited,
        if are_both { both } else { one },
        Details::Connections { failed: e.connect_failures, open_files: files },
        Remedy::Backlog,
    )
}

/// Requests are let in, and wait inside for one of a few connections.
pub(super) fn pool(model: &Model, e: &Evidence) -> Option<Finding> {
    (e.is_pooled(model) && !is_all_shared(model, e)).then(|| pool_found(model, e))?
}

/// The finding, whatever else may explain it.
pub(super) fn pool_found(model: &Model, e: &Evidence) -> Option<Finding> {
    let a = e.admission.as_ref()?;
    let pool = e.pool(model).cloned();
    let (seen, inferred) = POOL_CONFIDENCE;
    let (confidence, remedy) = match pool {
        Some(_) => (seen, Remedy::LargerPool),
        None => (inferred, Remedy::FindPool),
    };
    let (offered, inside, served) = (a.offered, a.inside(), model.ladder.served());
    let details = Details::Pooled { offered, inside, served, pool };
    found(Kind::ConnectionLimited, confidence, details, remedy)
}

pub(super) fn serialized(model: &Model, e: &Evidence) -> Option<Finding> {
    // A quota, too, lets through as little with many requests in flight as with one.
    let is_own = !e.is_relay_bound(model)
        && !e.is_quota_full()
        && !e.is_cpu_bound(model)
        && !is_all_shared(model, e);
    (is_serial(model) && is_own).then(|| serialized_found(model))?
}

/// The finding, whatever else may explain it.
pub(super) fn serialized_found(model: &Model) -> Option<Finding> {
    let light = 1.0 / model.ladder.light_service();
    let gain = model.ladder.peak() / light - 1.0;
    found(
        Kind::Serialized,
        clarity(SERIAL_GROWTH - gain, 0.0, SERIAL_GROWTH),
        Details::OneAtATime {
            light,
            peak: model.ladder.peak(),
            service: model.ladder.light_service(),
        },
        Remedy::Concurrency,
    )
}

pub(super) fn cpu_bound(model: &Model, e: &Evidence) -> Option<Finding> {
    (e.is_cpu_bound(model) && !e.is_relay_bound(model)).then_some(())?;
    let cores = e.one.app_cores();
    let relay = e.one.throughput * e.one.relay_demand;
    let thread = e.busiest_thread.unwrap_or(cores).max(e.one.own_cores() / model.cores);
    found(
        Kind::CpuBound,
        e.confidence(Kind::CpuBound, clarity(thread, THREAD_NEARLY_FULL, 1.0)),
        Details::BusyCores { busy: cores, cores: model.cores, demand: model.app_demand, relay },
        if e.is_quota_full() {
            Remedy::QuotaFirst
        } else if cores > SEVERAL_CORES {
            Remedy::LessCpu
        } else {
            Remedy::InstancePerCore
        },
    )
}

pub(super) fn waiting(model: &Model, e: &Evidence) -> Option<Finding> {
    // Requests that a quota holds back wait for the CPU. An instance behind a full generator or balancer is
    // not asked for more.
    let is_own = !e.is_cpu_bound(model) && !e.is_quota_full() && !e.is_relay_bound(model);
    (e.mostly_waits(model) && is_own).then(|| waiting_found(model, e))?
}

/// The finding, whatever the share of waiting.
pub(super) fn waiting_found(model: &Model, e: &Evidence) -> Option<Finding> {
    let busy = e.cpu_share(model);
    found(
        Kind::Waiting,
        clarity(1.0 - busy, WAITING_CPU_SHARE, 1.0),
        Details::Waits { service: model.ladder.light_service(), cpu_share: busy },
        if is_all_shared(model, e) { Remedy::ShorterWait } else { Remedy::IdleCpu },
    )
}

/// The nearest limit if none was reached.
pub(super) fn nearest(model: &Model, e: &Evidence) -> Option<Finding> {
    let kind = instance_limit(model, e);
    found(
        kind,
        NEAREST_CONFIDENCE,
        Details::NothingFull {
            busy: e.one.app_cores(),
            cores: model.cores,
            relay: e.one.own_cores() - e.one.app_cores(),
            cpu_share: e.cpu_share(model),
            service: model.ladder.light_service(),
        },
        Remedy::FindQueue,
    )
}
