//! The control groups that hold instances to their limits, of version 1, 2 or both mixed.
//!
//! - `readback`: whether the kernel holds a process to limits that somebody else has set.
//! - `parent_groups`: below which group Tenfold may make its own, and what to do where it may not.
//!
//! Kernel documentation: admin-guide/cgroup-v2.rst; admin-guide/cgroup-v1/memory.rst and
//! scheduler/sched-bwc.rst for version 1.

mod parent_groups;
pub(crate) mod readback;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StartError;
use crate::guard::cgroup_removal::{self, procs};
use crate::guard::{Guard, Key};
use crate::limits::{Cpus, Limits};
pub(crate) use parent_groups::RIGHTS;
use parent_groups::{Controller, ParentGroup, Refusal, Version, set};

/// One instance's group, in each hierarchy that it needs. Dropping it kills what is in it and
/// removes it.
#[derive(Debug)]
pub(crate) struct Cgroup {
    directories: Vec<PathBuf>,
    /// Where memory is limited, and to how many bytes.
    memory: Option<(Version, PathBuf, u64)>,
    /// The guard that ends it if Tenfold is killed.
    guard: Option<(Arc<Guard>, Key)>,
}

/// Tries whether instances can be held to such limits.
pub(crate) fn check(limits: &Limits, guard: Option<&Arc<Guard>>) -> Result<(), StartError> {
    Cgroup::make(limits, guard).map(drop)
}

/// Ends what Tenfolds that were killed, with their guards, have left behind.
pub(crate) fn clear() {
    parent_groups::known().iter().for_each(|parent| cgroup_removal::clear(parent));
}

/// The controllers that these limits need.
fn controllers(limits: &Limits) -> Vec<Controller> {
    let cpu = limits.cpus.map(|_| Controller::Cpu);
    cpu.into_iter().chain(limits.memory.map(|_| Controller::Memory)).collect()
}

// === impl Cgroup ===

impl Cgroup {
    /// An empty group with these limits. The guard knows where it is going to be before it is there, so
    /// there is no moment at which it could be left behind.
    pub(crate) fn make(limits: &Limits, guard: Option<&Arc<Guard>>) -> Result<Cgroup, StartError> {
        /// Makes the names of this process's groups unique.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let refused = |refusal: Refusal| refusal.of(limits);
        let name = cgroup_removal::name(MADE.fetch_add(1, Ordering::Relaxed));
        let parents = parent_groups::find(&controllers(limits)).map_err(refused)?;
        let directories: Vec<_> =
            parents.iter().map(|parent| parent.directory.join(&name)).collect();
        let guard = guard.map(|guard| (Arc::clone(guard), guard.list_cgroups(&directories)));
        let mut cgroup = Cgroup { directories: Vec::new(), memory: None, guard };
        for (parent, directory) in parents.iter().zip(&directories) {
            cgroup.add(parent, directory, limits).map_err(refused)?;
        }
        Ok(cgroup)
    }

    fn add(
        &mut self,
        parent: &ParentGroup,
        directory: &Path,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        fs::create_dir(directory)
            .map_err(|error| Refusal::NotMade { parent: parent.directory.clone(), error })?;
        self.directories.push(directory.into());
        for controller in &parent.controllers {
            match (controller, limits.cpus, limits.memory) {
                (Controller::Cpu, Some(cpus), _) => limit_cpus(parent.version, directory, cpus)?,
                (Controller::Memory, _, Some(bytes)) => {
                    limit_memory(parent.version, directory, bytes)?;
                    self.memory = Some((parent.version, directory.into(), bytes));
                }
                (Controller::Cpu, None, _) | (Controller::Memory, _, None) => {}
            }
        }
        Ok(())
    }

    /// Files into which a process writes `0` to join.
    pub(crate) fn procs_files(&self) -> io::Result<Vec<File>> {
        let procs_file =
            |directory: &PathBuf| OpenOptions::new().write(true).open(procs(directory));
        self.directories.iter().map(procs_file).collect()
    }

    /// The memory limit in bytes, if the kernel has killed a process of this group at it.
    pub(crate) fn overrun(&self) -> Option<u64> {
        let (version, directory, limit) = self.memory.as_ref()?;
        has_killed(*version, directory).then_some(*limit)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            cgroup_removal::end(directory);
        }
        if let Some((guard, key)) = &self.guard {
            guard.remove(*key);
        }
    }
}

/// Whether the kernel has killed a process of this group at its memory limit.
fn has_killed(version: Version, directory: &Path) -> bool {
    let file = match version {
        Version::One => "memory.oom_control",
        Version::Two => "memory.events",
    };
    let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
    let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills.is_some_and(|kills| kills.trim() != "0")
}

fn limit_cpus(version: Version, directory: &Path, cpus: Cpus) -> Result<(), Refusal> {
    let (quota, period) = (cpus.quota_us(), Cpus::PERIOD_US);
    match version {
        Version::One => {
            set(directory, "cpu.cfs_period_us", &period.to_string())?;
            set(directory, "cpu.cfs_quota_us", &quota.to_string())
        }
        Version::Two => set(directory, "cpu.max", &format!("{quota} {period}")),
    }
}

/// Without swap beside it where the kernel counts that: a limit that is swapped around is none.
fn limit_memory(version: Version, directory: &Path, bytes: u64) -> Result<(), Refusal> {
    let (limit, swap) = match version {
        Version::One => (("memory.limit_in_bytes", bytes), ("memory.memsw.limit_in_bytes", bytes)),
        Version::Two => (("memory.max", bytes), ("memory.swap.max", 0)),
    };
    set(directory, limit.0, &limit.1.to_string())?;
    if directory.join(swap.0).exists() {
        set(directory, swap.0, &swap.1.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_two_gets_quota_memory_and_no_swap() {
        let top = tempfile::tempdir().unwrap();
        let parent = ParentGroup {
            version: Version::Two,
            directory: top.path().into(),
            controllers: vec![Controller::Cpu, Controller::Memory],
        };
        let limits = Limits { cpus: "0.25".parse().ok(), memory: Some(20_000_000) };
        let directory = top.path().join("one");
        let mut cgroup = Cgroup { directories: Vec::new(), memory: None, guard: None };
        cgroup.add(&parent, &directory, &limits).unwrap();
        let told = |file: &str| fs::read_to_string(directory.join(file)).unwrap();
        assert_eq!(
            (told("cpu.max"), told("memory.max")),
            ("25000 100000".into(), "20000000".into())
        );

        assert_eq!(cgroup.overrun(), None);
        fs::write(directory.join("memory.events"), "low 0\nmax 31\noom_kill 0\n").unwrap();
        assert_eq!(cgroup.overrun(), None);
        fs::write(directory.join("memory.events"), "max 31\noom_kill 2\n").unwrap();
        assert_eq!(cgroup.overrun(), Some(20_000_000));
    }
}
