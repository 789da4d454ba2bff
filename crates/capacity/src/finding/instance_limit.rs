//! What keeps one instance from doing more.

use super::evidence::{self, Evidence};
use super::memory;
use crate::limit_kind::Kind;
use crate::model::network::Model;

/// What keeps a single saturated instance from doing more.
pub fn instance_limit(model: &Model, e: &Evidence) -> Kind {
    if e.is_generator_bound(model) {
        Kind::GeneratorBound
    } else if e.is_balancer_bound() {
        Kind::BalancerBound
    } else if memory::is_short(&e.memory) {
        Kind::MemoryPressure
    } else if e.is_quota_full() {
        Kind::CpuThrottled
    } else if e.is_cpu_bound(model) {
        Kind::CpuBound
    } else if e.is_pooled(model) {
        Kind::ConnectionLimited
    } else if evidence::is_serial(model) {
        Kind::Serialized
    } else {
        e.nearest(model)
    }
}
