//! CPU quota, throttling and memory limit of a process's control group, version 1, 2 or both mixed.

use crate::kernel::file::KernelFiles;
use procfs::process::MountInfo;
use procfs::{FromBufRead, ProcessCGroups};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The tightest CPU quota that binds a process, and its counters since the group was made.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaCounters {
    /// The control group that has the quota, as a directory.
    pub directory: PathBuf,
    /// Quota over period: cores' worth of CPU time.
    pub cores: f64,
    /// Enforcement periods in which the group wanted to run.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// Time that the group stood still for it, summed over CPUs.
    pub throttled: Duration,
}

/// The tightest memory limit that binds a process, and its counters since the group was made.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryCounters {
    /// The control group that has the limit, as a directory.
    pub directory: PathBuf,
    /// Bytes that the group may use, page cache included.
    pub limit: u64,
    /// Bytes that it uses now.
    pub used: u64,
    /// Used bytes that the kernel takes back first: page cache that was not used lately.
    pub reclaimable: u64,
    /// How often it reached the limit, so that memory had to be reclaimed first.
    pub hits: u64,
    /// Processes that were killed because nothing could be reclaimed.
    pub kills: u64,
}

/// Where the machine mounts its cgroup hierarchies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hierarchies {
    unified: Option<Mount>,
    cpu: Option<Mount>,
    memory: Option<Mount>,
}

#[derive(Clone, Debug, PartialEq)]
struct Mount {
    /// The group that the mount shows as its top, as `/proc/PID/cgroup` would name it.
    root: String,
    point: PathBuf,
}

/// The controllers that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Cpu,
    Memory,
}

/// A process's group in the hierarchy that holds a controller.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cgroup {
    version: Version,
    directory: PathBuf,
    /// The mount point: nothing above it is visible.
    top: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// `nr_periods`, `nr_throttled` and the throttled time of a `cpu.stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuStat {
    periods: u64,
    throttled_periods: u64,
    throttled: Duration,
}

// === impl Hierarchies ===

impl Hierarchies {
    pub(crate) fn read(files: &mut KernelFiles) -> Self {
        files.text("/proc/self/mountinfo").map(Self::parse).unwrap_or_default()
    }

    /// From the text of `/proc/self/mountinfo`. A later mount hides an earlier one.
    fn parse(mountinfo: &str) -> Self {
        let mut found = Self::default();
        for line in mountinfo.lines().filter(|line| line.contains(" - cgroup")) {
            let Ok(info) = MountInfo::from_line(line) else {
                continue;
            };
            let mount = Some(Mount { root: info.root, point: info.mount_point });
            let holds = |controller: Controller| info.super_options.contains_key(controller.name());
            if info.fs_type == "cgroup2" {
                found.unified.clone_from(&mount);
                continue;
            }
            if holds(Controller::Cpu) {
                found.cpu.clone_from(&mount);
            }
            if holds(Controller::Memory) {
                found.memory.clone_from(&mount);
            }
        }
        found
    }

    /// The directory of the group that the text of a `/proc/PID/cgroup` names: where CPU time is counted,
    /// or else in the unified hierarchy.
    pub(crate) fn directory(&self, membership: &[u8]) -> Option<PathBuf> {
        self.locate(Controller::Cpu, membership).map(|group| group.directory)
    }

    /// The group that the text of a `/proc/PID/cgroup` names for `controller`. A controller that a
    /// version 1 hierarchy holds is not in the unified one.
    pub(crate) fn locate(&self, controller: Controller, membership: &[u8]) -> Option<Cgroup> {
        let groups = ProcessCGroups::from_buf_read(membership).ok()?;
        let v1_mount = match controller {
            Controller::Cpu => self.cpu.as_ref(),
            Controller::Memory => self.memory.as_ref(),
        };
        let v1_group = groups
            .0
            .iter()
            .find(|group| group.controllers.iter().any(|name| name == controller.name()));
        if let (Some(mount), Some(group)) = (v1_mount, v1_group) {
            return mount.group(Version::One, &group.pathname);
        }
        let group = groups.0.iter().find(|group| group.hierarchy == 0)?;
        self.unified.as_ref()?.group(Version::Two, &group.pathname)
    }
}

/// The processes of a group and of all groups below it.
pub(crate) fn processes(directory: &Path, files: &mut KernelFiles) -> Vec<i32> {
    let own = files.text(directory.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<i32> = own.lines().filter_map(|line| line.parse().ok()).collect();
    for below in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            pids.extend(processes(&below.path(), files));
        }
    }
    pids
}

impl Mount {
    fn group(&self, version: Version, pathname: &str) -> Option<Cgroup> {
        let below = Path::new(pathname).strip_prefix(&self.root).ok()?;
        Some(Cgroup { version, directory: self.point.join(below), top: self.point.clone() })
    }
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

// === impl Cgroup ===

impl Cgroup {
    /// The tightest quota on the way from this group up to the mount, with its counters.
    pub(crate) fn quota(&self, files: &mut KernelFiles) -> Option<QuotaCounters> {
        let (directory, cores) = self
            .with_ancestors()
            .filter_map(|directory| Some((directory, self.quota_of(directory, files)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let stat = CpuStat::parse(files.text(directory.join("cpu.stat")).ok()?);
        Some(QuotaCounters {
            directory: directory.to_owned(),
            cores,
            periods: stat.periods,
            throttled_periods: stat.throttled_periods,
            throttled: stat.throttled,
        })
    }

    /// The tightest memory limit on the way up, in bytes.
    pub(crate) fn memory_limit(&self, files: &mut KernelFiles) -> Option<u64> {
        self.tightest_memory(files).map(|(_, limit)| limit)
    }

    /// Reads the memory limit and its counters.
    pub(crate) fn memory(&self, files: &mut KernelFiles) -> Option<MemoryCounters> {
        let (directory, limit) = self.tightest_memory(files)?;
        let stat = directory.join("memory.stat");
        let (used, reclaimable, hits, kills) = match self.version {
            Version::One => (
                number(files, &directory.join("memory.usage_in_bytes"))?,
                count(files, &stat, "total_inactive_file"),
                number(files, &directory.join("memory.failcnt"))?,
                count(files, &directory.join("memory.oom_control"), "oom_kill"),
            ),
            Version::Two => (
                number(files, &directory.join("memory.current"))?,
                count(files, &stat, "inactive_file"),
                count(files, &directory.join("memory.events"), "max"),
                count(files, &directory.join("memory.events"), "oom_kill"),
            ),
        };
        let directory = directory.to_owned();
        Some(MemoryCounters { directory, limit, used, reclaimable, hits, kills })
    }

    fn tightest_memory(&self, files: &mut KernelFiles) -> Option<(&Path, u64)> {
        let file = match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        self.with_ancestors()
            .filter_map(|directory| Some((directory, number(files, &directory.join(file))?)))
            .filter(|(_, limit)| *limit < UNLIMITED)
            .min_by_key(|(_, limit)| *limit)
    }

    fn with_ancestors(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|directory| directory.starts_with(&self.top))
    }

    fn quota_of(&self, directory: &Path, files: &mut KernelFiles) -> Option<f64> {
        match self.version {
            Version::Two => parse_cpu_max(files.text(directory.join("cpu.max")).ok()?),
            Version::One => {
                // -1, no quota, is not a number of microseconds.
                let quota = number(files, &directory.join("cpu.cfs_quota_us"))?;
                let period = number(files, &directory.join("cpu.cfs_period_us"))?;
                cores(quota, period)
            }
        }
    }
}

impl CpuStat {
    /// Version 1 counts the throttled time in nanoseconds, version 2 in microseconds.
    fn parse(text: &str) -> Self {
        let mut stat = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(' ') else {
                continue;
            };
            let value = value.trim().parse().unwrap_or(0);
            match key {
                "nr_periods" => stat.periods = value,
                "nr_throttled" => stat.throttled_periods = value,
                "throttled_usec" => stat.throttled = Duration::from_micros(value),
                "throttled_time" => stat.throttled = Duration::from_nanos(value),
                _ => {}
            }
        }
        stat
    }
}

/// Version 1 expresses no limit as the largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

/// The count of `key` in a file with a key and a count on each line. It is 0 if the kernel does not give
/// it.
fn count(files: &mut KernelFiles, path: &Path, key: &str) -> u64 {
    let counted = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    files.text(path).ok().and_then(|text| text.lines().find_map(counted)).unwrap_or(0)
}

/// The text of `cpu.max` is "QUOTA PERIOD" in microseconds. A quota of "max" is none.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cores(quota.parse().ok()?, period.parse().ok()?)
}

fn cores(quota: u64, period: u64) -> Option<f64> {
    (period > 0).then(|| quota as f64 / period as f64)
}

fn number(files: &mut KernelFiles, path: &Path) -> Option<u64> {
    files.text(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn directory(mountinfo: &str, controller: Controller, membership: &str) -> Option<PathBuf> {
        Hierarchies::parse(mountinfo)
            .locate(controller, membership.as_bytes())
            .map(|group| group.directory)
    }

    #[test]
    fn hybrid_takes_the_version_that_holds_the_controller() {
        let membership = "4:memory:/box\n1:cpu,cpuacct:/app/one\n0::/unified-app\n";
        assert_eq!(
            directory(HYBRID, Controller::Cpu, membership),
            Some("/sys/fs/cgroup/cpu,cpuacct/app/one".into())
        );
        assert_eq!(
            directory(HYBRID, Controller::Memory, membership),
            Some("/sys/fs/cgroup/memory/box".into())
        );
        assert_eq!(
            directory(HYBRID, Controller::Cpu, "0::/unified-app\n"),
            Some("/sys/fs/cgroup/unified/unified-app".into())
        );
    }

    #[test]
    fn a_container_mounts_its_own_group_as_the_top() {
        let v1 = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        assert_eq!(
            directory(v1, Controller::Cpu, "1:cpu:/docker/abc/worker\n"),
            Some("/sys/fs/cgroup/cpu/worker".into())
        );
        assert_eq!(directory(v1, Controller::Cpu, "1:cpu:/elsewhere\n"), None);
        let v2 = "32 31 0:29 / /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        assert_eq!(directory(v2, Controller::Cpu, "0::/\n"), Some("/sys/fs/cgroup/".into()));
    }

    #[test]
    fn the_processes_of_groups_below_belong_to_a_group() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("container")).unwrap();
        std::fs::write(top.path().join("cgroup.procs"), "7\n").unwrap();
        std::fs::write(top.path().join("container/cgroup.procs"), "8\n9\n").unwrap();
        assert_eq!(processes(top.path(), &mut KernelFiles::new()), [7, 8, 9]);
        assert!(processes(Path::new("/no/such/group"), &mut KernelFiles::new()).is_empty());
    }

    #[test]
    fn quota_is_cores_and_max_is_none() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max(""), None);
        assert_eq!(cores(10_000, 0), None);
    }

    #[test]
    fn throttled_time_has_the_unit_of_its_version() {
        let v2 = "usage_usec 9\nnr_periods 40\nnr_throttled 31\nthrottled_usec 2500\n";
        let v1 = "nr_periods 40\nnr_throttled 31\nthrottled_time 2500000\n";
        let expected =
            CpuStat { periods: 40, throttled_periods: 31, throttled: Duration::from_micros(2500) };
        assert_eq!(CpuStat::parse(v2), expected);
        assert_eq!(CpuStat::parse(v1), expected);
    }

    #[test]
    fn the_tightest_quota_on_the_way_up_counts() {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().to_owned();
        let leaf = top.join("outer/inner");
        std::fs::create_dir_all(&leaf).unwrap();
        let write = |name: &str, text: &str| std::fs::write(top.join(name), text).unwrap();
        write("outer/cpu.max", "50000 100000\n");
        write("outer/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_usec 70\n");
        write("outer/inner/cpu.max", "200000 100000\n");
        write("outer/inner/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
        write("outer/inner/memory.max", "max\n");
        write("outer/memory.max", "20971520\n");
        write("outer/memory.current", "20971000\n");
        write("outer/memory.events", "low 0\nhigh 0\nmax 31\noom 2\noom_kill 1\n");
        write(
            "outer/memory.stat",
            "anon 4096\ninactive_anon 9\ninactive_file 8192\nactive_file 7\n",
        );
        let group = Cgroup { version: Version::Two, directory: leaf, top: top.clone() };
        let mut files = KernelFiles::new();
        let quota = group.quota(&mut files).unwrap();
        let limit = group.memory_limit(&mut files);
        assert_eq!(quota.directory, top.join("outer"));
        assert_eq!((quota.cores, quota.throttled_periods), (0.5, 3));
        assert_eq!(limit, Some(20 << 20));
        let expected = MemoryCounters {
            directory: top.join("outer"),
            limit: 20 << 20,
            used: 20_971_000,
            reclaimable: 8192,
            hits: 31,
            kills: 1,
        };
        assert_eq!(group.memory(&mut files), Some(expected));
    }

    #[test]
    fn version_one_has_other_files_and_a_number_for_no_limit() {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().to_owned();
        let leaf = top.join("one");
        std::fs::create_dir(&leaf).unwrap();
        let write = |name: &str, text: &str| std::fs::write(leaf.join(name), text).unwrap();
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "4096\n");
        write("memory.failcnt", "7\n");
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        write("memory.stat", "inactive_file 512\ntotal_inactive_file 1024\n");
        let group = Cgroup { version: Version::One, directory: leaf.clone(), top };
        let mut files = KernelFiles::new();
        assert_eq!(group.memory(&mut files), None);
        write("memory.limit_in_bytes", "10000\n");
        let memory = group.memory(&mut files).unwrap();
        assert_eq!((memory.limit, memory.used, memory.reclaimable), (10_000, 4096, 1024));
        assert_eq!((memory.hits, memory.kills), (7, 3));
    }
}
