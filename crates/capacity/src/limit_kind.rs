//! The names of what limits a system.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What limits a system, or threatens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Requests fail.
    Failing,
    /// One instance is slower than its peers, or fails more.
    UnevenInstances,
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

/// The name that documents and texts use.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Failing => "failing",
            Kind::UnevenInstances => "uneven_instances",
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
