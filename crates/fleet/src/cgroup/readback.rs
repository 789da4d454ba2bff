//! Whether the kernel holds a process to limits that somebody else has set for it.

use std::fs;
use std::path::PathBuf;

use super::has_killed;
use super::parent_groups::{self, Controller, Version};
use crate::limits::{Bytes, Cpus, Limits};

/// The group that accounts for the memory of a process.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    version: Version,
    directory: PathBuf,
    limit: u64,
}

/// Reads the limits of a process's own control groups.
///
/// # Errors
/// A clause: what it is not held to.
pub(crate) fn held_to(pid: u32, limits: &Limits) -> Result<(), String> {
    if let Some(cpus) = limits.cpus {
        let (version, directory) = group_of(pid, Controller::Cpu)?;
        let read = |file: &str| fs::read_to_string(directory.join(file)).unwrap_or_default();
        let quota = match version {
            Version::One => {
                format!("{} {}", read("cpu.cfs_quota_us").trim(), read("cpu.cfs_period_us").trim())
            }
            Version::Two => read("cpu.max"),
        };
        if !is_within(&quota, cpus) {
            return Err(format!("its control group {} has no such quota", directory.display()));
        }
    }
    if let Some(bytes) = limits.memory {
        let (version, directory) = group_of(pid, Controller::Memory)?;
        let file = match version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        let set = fs::read_to_string(directory.join(file)).ok();
        // The kernel rounds down to whole pages.
        let set: Option<u64> = set.and_then(|text| text.trim().parse().ok());
        if set.is_none_or(|set| set > bytes) {
            return Err(format!(
                "its control group {} is not limited to {}",
                directory.display(),
                Bytes(bytes)
            ));
        }
    }
    Ok(())
}

/// Whether `quota period`, in microseconds, is no more than these cores.
fn is_within(text: &str, cpus: Cpus) -> bool {
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(quota)), Some(Ok(period))) if quota > 0.0 && period > 0.0 => {
            // A manager may choose another period, and round.
            quota / period <= cpus.cores() * 1.01
        }
        _ => false,
    }
}

fn group_of(pid: u32, controller: Controller) -> Result<(Version, PathBuf), String> {
    let found = parent_groups::of_process(pid.cast_signed(), controller);
    found.ok_or_else(|| format!("no control group of process {pid} can be found"))
}

impl MemoryGroup {
    /// `limit` is what it is held to, in bytes.
    pub(crate) fn of(pid: u32, limit: u64) -> Option<MemoryGroup> {
        let (version, directory) = group_of(pid, Controller::Memory).ok()?;
        Some(MemoryGroup { version, directory, limit })
    }

    /// The limit, if the kernel has killed a process of the group at it. The group may be gone.
    pub(crate) fn overrun(&self) -> Option<u64> {
        has_killed(self.version, &self.directory).then_some(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_another_period_is_the_same_limit() {
        let half: Cpus = "0.5".parse().unwrap();
        for held in ["50000 100000\n", "5000 10000", "40000 100000"] {
            assert!(is_within(held, half), "{held}");
        }
        for free in ["max 100000", "-1 100000", "60000 100000", "", "50000"] {
            assert!(!is_within(free, half), "{free}");
        }
    }

    #[test]
    fn a_process_without_limits_is_not_held_to_any() {
        let limits = Limits { cpus: "0.01".parse().ok(), memory: None };
        assert!(held_to(std::process::id(), &limits).is_err());
        assert_eq!(held_to(std::process::id(), &Limits::default()), Ok(()));
    }
}
