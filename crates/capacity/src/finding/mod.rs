//! Findings: named diagnoses, each with the numbers that show it and a remedy.
//!
//! A signature in the counters comes first; where it fits two explanations, a trial decides
//! ([`Trial`]). What limits first comes first: what spoils or would stop everything, then what limits
//! the recommended count, then the rest from the instance outwards.
//!
//! - `evidence`: what was seen, and what follows from it in yes or no.
//! - `trial`: what was changed to tell two explanations apart.
//! - `room`: how many requests can be in flight while something is measured.
//! - `measuring`: errors, and what limits the measurement.
//! - `instance`: what limits each instance by itself.
//! - `memory`: when it is short, or will be.
//! - `company`: what instances do to each other.
//! - `reason`: what limits the recommended count, where one instance and two did not show it.

mod company;
mod evidence;
mod instance;
mod measuring;
mod memory;
mod reason;
mod room;
#[cfg(test)]
mod tests;
mod trial;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Model;
pub use evidence::{Admission, Evidence, Kept, Load, Memory, Pool};
pub use reason::explain;
pub(crate) use reason::{advises_instances, no_more_helps};
pub use room::{Room, Shortage};
pub use trial::{Change, Question, Trial};

/// What limits a system, or threatens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Requests fail.
    Failing,
    /// The load generator is at its own limit.
    GeneratorBound,
    /// The balancer is at its own limit.
    BalancerBound,
    /// A CPU quota stops the instances.
    CpuThrottled,
    /// Memory is short.
    MemoryPressure,
    /// Connections are refused or dropped, or an instance has too few of its own to what it uses.
    ConnectionLimited,
    /// Instances steal CPU from each other.
    Oversubscribed,
    /// Something that all instances share limits them.
    SharedDependency,
    /// An instance serves one request at a time.
    Serialized,
    /// The CPU is the limit.
    CpuBound,
    /// Requests wait (sleep, I/O, a remote call) while the CPU idles.
    Waiting,
    /// Nothing limits yet.
    Headroom,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Failing => "failing",
            Kind::GeneratorBound => "generator_bound",
            Kind::BalancerBound => "balancer_bound",
            Kind::CpuThrottled => "cpu_throttled",
            Kind::MemoryPressure => "memory_pressure",
            Kind::ConnectionLimited => "connection_limited",
            Kind::Oversubscribed => "oversubscribed",
            Kind::SharedDependency => "shared_dependency",
            Kind::Serialized => "serialized",
            Kind::CpuBound => "cpu_bound",
            Kind::Waiting => "waiting",
            Kind::Headroom => "headroom",
        })
    }
}

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

/// Every finding that the evidence supports, what limits first before the rest.
pub fn diagnose(model: &Model, e: &Evidence) -> Vec<Finding> {
    let threats = [measuring::failing(e), memory::pressure(e)];
    // Of an app with room to spare only what strikes at any load is said: the rest is no limit yet,
    // and stands in the evidence of the headroom.
    if let Some(headroom) = company::headroom(model, e).filter(|_| e.has_room()) {
        return threats.into_iter().flatten().chain([headroom]).collect();
    }
    let all = [
        measuring::generator(e),
        measuring::balancer(e),
        instance::throttled(e),
        instance::refused(e),
        company::oversubscribed(model, e),
        company::shared(model, e),
        instance::pool(model, e),
        instance::serialized(model, e),
        instance::cpu_bound(model, e),
        instance::waiting(model, e),
        company::headroom(model, e),
    ];
    let found: Vec<Finding> = threats.into_iter().chain(all).flatten().collect();
    if found.is_empty() { instance::nearest(model, e).into_iter().collect() } else { found }
}

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

/// 0.5 at the threshold, 0.99 at `full`.
fn clarity(value: f64, threshold: f64, full: f64) -> f64 {
    let distance = ((value - threshold) / (full - threshold)).clamp(0.0, 1.0);
    (50.0 + 49.0 * distance).round() / 100.0
}

fn found(kind: Kind, confidence: f64, evidence: String, remedy: &str) -> Option<Finding> {
    Some(Finding { kind, confidence, evidence, remedy: remedy.to_owned() })
}
