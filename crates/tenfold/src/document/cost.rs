//! What a plan costs, and where the prices come from.

use capacity::cost::price::CpuKind;
use serde::{Deserialize, Serialize};

/// Where prices come from, and how old they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Origin {
    /// The list's name, or the file.
    pub prices: String,
    pub currency: String,
    /// The day of the oldest; nothing when none is dated.
    pub as_of: Option<String>,
    pub sources: Vec<String>,
    pub warnings: Vec<String>,
}

/// The machines that hold a plan, and their price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Cost {
    pub origin: Origin,
    pub needs: Needs,
    /// Price of the balancer a month, where it is known.
    pub balancer_month: Option<f64>,
    /// Cheapest first: those with cores of one's own, then others.
    pub offers: Vec<Offer>,
}

/// What is set aside for each instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Needs {
    pub instances: usize,
    pub cores_each: f64,
    pub cores_from: NeedsFrom,
    pub memory_bytes_each: u64,
    pub memory_from: NeedsFrom,
}

/// Where a need comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum NeedsFrom {
    /// The instance is held to it.
    Limit,
    /// It was seen to use so much, and gets some room above.
    Measured,
}

/// The plan on machines of one type, one more of them than must run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Offer {
    pub vendor: String,
    pub region: String,
    pub machine: String,
    /// Cores as the vendor counts them.
    pub cores: f64,
    pub memory_gib: f64,
    pub cpu_kind: CpuKind,
    pub month_each: f64,
    pub instances_each: usize,
    pub machines: usize,
    /// Price of all machines and the balancer a month.
    pub month: f64,
    pub month_per_thousand: Option<f64>,
}
