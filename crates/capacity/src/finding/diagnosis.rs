//! Every finding that the numbers show.

use super::evidence::Evidence;
use super::result::Finding;
use super::{failures, instance, load_limits, memory, scaling, uneven};
use crate::model::network::Model;

/// Every finding that the evidence supports, what limits first before the rest.
pub fn diagnose(model: &Model, e: &Evidence) -> Vec<Finding> {
    let mut threats = [failures::failing(e), memory::pressure(e)];
    if e.dies_of_memory() {
        threats.reverse();
    }
    let threats = threats.into_iter().chain([uneven::uneven(e)]).flatten();
    // An app with room to spare has no limit yet. Only findings that strike at any load are reported beside
    // the headroom. Its evidence contains the rest.
    if let Some(headroom) = scaling::headroom(model, e).filter(|_| e.has_room()) {
        return threats.chain([headroom]).collect();
    }
    let all = [
        load_limits::generator(e),
        load_limits::balancer(e),
        instance::throttled(e),
        instance::refused(e),
        scaling::oversubscribed(model, e),
        scaling::shared(model, e),
        instance::pool(model, e),
        instance::serialized(model, e),
        instance::cpu_bound(model, e),
        instance::waiting(model, e),
        scaling::headroom(model, e),
    ];
    let found: Vec<Finding> = threats.chain(all.into_iter().flatten()).collect();
    if found.is_empty() { instance::nearest(model, e).into_iter().collect() } else { found }
}

#[cfg(test)]
mod tests;
