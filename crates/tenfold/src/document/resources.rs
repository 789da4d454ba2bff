//! The machine, what instances may use of it, and what they used.

use std::cmp::Ordering;

use observe::{TargetUsage, Usage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The machine that everything shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Machine {
    pub cores: f64,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
}

/// What an instance may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Limits {
    pub cpus: Option<f64>,
    pub memory_bytes: Option<u64>,
}

/// How its limits affected an instance, whoever set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Limited {
    /// Quota in cores.
    pub cpus: Option<f64>,
    /// Share of the quota's periods in which it was used up and the instance stood still.
    pub throttled_ratio: Option<f64>,
    /// Seconds that it stood still for it, a second; several cores' waiting adds up.
    pub throttled_cores: Option<f64>,
    pub memory_bytes: Option<u64>,
    /// By all processes that the limit holds, page cache included.
    pub memory_used_bytes: Option<u64>,
    /// Times a second that the memory limit was met, so that something had to be given back first.
    pub memory_hits: Option<f64>,
}

/// Who used the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CpuCores {
    pub app: Option<f64>,
    pub balancer: Option<f64>,
    pub generator: Option<f64>,
    pub machine: Option<f64>,
    /// Cores that a virtual machine's host gave to others instead (steal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
}

impl Machine {
    /// The machine as a plan shows it.
    pub fn of(machine: &observe::Machine) -> Machine {
        Machine {
            cores: machine.cores as f64,
            memory_bytes: machine.memory_bytes,
            kernel: machine.kernel.clone(),
        }
    }
}

impl Limits {
    /// Nothing when there are none.
    pub fn of(limits: &fleet::Limits) -> Option<Limits> {
        let cpus = limits.cpus.map(fleet::Cpus::cores);
        (!limits.is_empty()).then_some(Limits { cpus, memory_bytes: limits.memory })
    }
}

impl Limited {
    /// Limits of one instance in an interval; `None` without limits.
    pub fn of(usage: &TargetUsage, seconds: f64) -> Option<Limited> {
        let (quota, memory) = (usage.throttling, usage.memory.as_ref());
        let ratio = |t: observe::Throttling| {
            (t.periods > 0).then(|| t.throttled_periods as f64 / t.periods as f64)
        };
        (quota.is_some() || memory.is_some()).then(|| Limited {
            cpus: quota.map(|q| q.quota_cores),
            throttled_ratio: quota.and_then(ratio).map(to_thousandths),
            throttled_cores: quota.map(|q| to_thousandths(q.throttled_seconds / seconds)),
            memory_bytes: memory.map(|m| m.limit_bytes),
            memory_used_bytes: memory.map(|m| m.used_bytes),
            memory_hits: memory.map(|m| to_thousandths(m.hits as f64 / seconds)),
        })
    }
}

impl Limited {
    /// Limits of the instance of this name. What a control group uses that holds others, too, as a container
    /// with Tenfold in it does, says nothing of the instance.
    pub fn of_one(usage: &Usage, name: &str) -> Option<Limited> {
        let target = usage.targets.get(name)?;
        let group = |target: &TargetUsage| target.memory.as_ref().map(|m| m.directory.clone());
        let of_group = |other: &&TargetUsage| group(other) == group(target);
        let mut limited = Limited::of(target, usage.seconds)?;
        if usage.targets.values().filter(of_group).count() > 1 {
            limited.memory_used_bytes = None;
        }
        Some(limited)
    }

    /// The instance that was throttled most; of those that were not, the fullest.
    pub fn most<'a>(
        usages: impl Iterator<Item = &'a TargetUsage>,
        seconds: f64,
    ) -> Option<Limited> {
        let key = |l: &Limited| (l.throttled_ratio.unwrap_or(0.0), l.memory_used_bytes);
        let limited = usages.filter_map(|usage| Limited::of(usage, seconds));
        limited.max_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal))
    }
}

fn to_thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
