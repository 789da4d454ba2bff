//! What instances do to each other, and what room they leave.

use super::evidence::{Evidence, Load};
use super::instance_limit::instance_limit;
use super::result::{Details, Finding, Remedy, clarity, found};
use super::trial::Change;
use super::uneven::Unevenness;
use crate::calibration::{
    ALL_SHARED_GAIN, CLEARLY_HEADROOM, CLEARLY_OVERSUBSCRIBED, CLEARLY_SHARED, CPU_FULL, FULL_GAIN,
    HEADROOM_UTILISATION, MIN_GAIN, SLOWER_GAIN,
};
use crate::limit_kind::Kind;
use crate::model::network::Model;

pub(super) fn is_oversubscribed(model: &Model, e: &Evidence) -> bool {
    !e.is_relay_bound(model)
        && e.second_gain().is_some_and(|gain| gain < least_gain(model, e))
        && e.two.is_some_and(|two| two.is_cpu_full(model.cores))
}

/// The gain from which on two instances are not said to compete.
fn least_gain(model: &Model, e: &Evidence) -> f64 {
    // All cores count here, not only those that other programs leave. It is not known that one instance
    // would fill cores that others use.
    let is_all = e.one.own_cores() >= CPU_FULL * model.cores;
    if is_all { MIN_GAIN } else { SLOWER_GAIN }
}

pub(super) fn is_shared(model: &Model, e: &Evidence) -> bool {
    !e.is_relay_bound(model)
        && !is_oversubscribed(model, e)
        && e.falls_short()
        // A slow instance is why, wherever its time goes.
        && !e.uneven.as_ref().is_some_and(Unevenness::costs_throughput)
        && !e.two.is_some_and(|two| two.is_relay_full())
        && match e.trial(Change::OneCoreLess) {
            Some(trial) => trial.shows == Kind::SharedDependency,
            None => model.sharing.is_shared() && !model.is_cpu_limited(2),
        }
}

/// Whether a second instance gains nothing because all of the limit is shared. Then the limit is not an
/// instance's own.
pub(super) fn is_all_shared(model: &Model, e: &Evidence) -> bool {
    is_shared(model, e) && e.second_gain().is_some_and(|gain| gain < ALL_SHARED_GAIN)
}

pub(super) fn oversubscribed(model: &Model, e: &Evidence) -> Option<Finding> {
    is_oversubscribed(model, e).then_some(())?;
    let gain = e.second_gain()?;
    found(
        Kind::Oversubscribed,
        clarity(least_gain(model, e) - gain, 0.0, CLEARLY_OVERSUBSCRIBED),
        Details::Competing { gain, run_wait: e.run_wait },
        Remedy::OneInstance,
    )
}

pub(super) fn shared(model: &Model, e: &Evidence) -> Option<Finding> {
    is_shared(model, e).then_some(())?;
    let (gain, two) = (e.second_gain()?, e.two?);
    let core_less = e.trial(Change::OneCoreLess);
    found(
        Kind::SharedDependency,
        e.confidence(Kind::SharedDependency, clarity(FULL_GAIN - gain, 0.0, CLEARLY_SHARED)),
        Details::FallsShort {
            gain,
            own_cores: two.own_cores(),
            cores: model.cores,
            core_less_gain: core_less.map(|trial| trial.after / e.one.throughput),
        },
        Remedy::InspectShared,
    )
}

pub(super) fn headroom(model: &Model, e: &Evidence) -> Option<Finding> {
    let load = e.load.filter(Load::leaves_room)?;
    let is_known = model.ladder.is_saturated();
    let capacity = is_known.then(|| (model.capacity(load.instances), instance_limit(model, e)));
    found(
        Kind::Headroom,
        clarity(HEADROOM_UTILISATION - load.share, 0.0, CLEARLY_HEADROOM),
        Details::Room { share: load.share, instances: load.instances, capacity },
        Remedy::Nothing,
    )
}
