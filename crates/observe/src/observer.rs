//! What is watched, and samples of it.

use crate::kernel::cgroup;
use crate::kernel::cgroup::{Controller, Hierarchies};
use crate::kernel::counters::{Counters, TaskId};
use crate::kernel::file::KernelFiles;
use crate::kernel::machine::MachineCounters;
use crate::kernel::process::{TaskReader, numbered_entries, parent_of};
use crate::kernel::sample::Sample;
use crate::kernel::socket::Sockets;
use crate::kernel::source::Source;
use nix::unistd::{Pid, getpgid};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Something to watch, under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The key in samples and usage, such as an instance's name.
    pub name: String,
    /// Which processes or threads it is.
    pub scope: Scope,
}

/// Which processes or threads a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// An instance with all that it starts: every process of a process group, and what these have started.
    /// Some servers start processes in groups of their own, as a database does with its workers. Some put
    /// them into a control group that is theirs alone, as background processes.
    ProcessGroup(i32),
    /// A container or a unit with all that it starts: every process of this process's control group, and of
    /// the groups below it. The group is looked up once, and outlives the process.
    ControlGroup(i32),
    /// A process with all that it and its children have started: a server that something else runs.
    ProcessTree(i32),
    /// Some threads of one process, such as a balancer's in our own. They have CPU, waiting and
    /// switches; memory and open files belong to no thread.
    Threads {
        /// The process.
        pid: i32,
        /// Its threads that count.
        tids: Vec<i32>,
    },
    /// One process, without its children.
    Process(i32),
}

/// Reads the counters of everything that is watched.
pub struct Observer {
    targets: BTreeMap<String, Watched>,
    hierarchies: Hierarchies,
    tasks: TaskReader,
    files: KernelFiles,
    /// Processes of no watched group, with the group that has started them, if one has.
    outsiders: HashMap<i32, Option<i32>>,
}

struct Watched {
    scope: Scope,
    /// The process or threads first met: later owners of the same ids are strangers. Unused for a
    /// process group, whose members come and go.
    first_met: HashMap<i32, TaskId>,
    /// Where its control group is, if it is one and was found.
    directory: Option<PathBuf>,
}

// === impl Target ===

impl Target {
    /// Every process of the group `pgid`.
    pub fn group(name: impl Into<String>, pgid: i32) -> Self {
        Self::new(name, Scope::ProcessGroup(pgid))
    }

    /// Every process of the control group of `pid`, and of those below it.
    pub fn control_group(name: impl Into<String>, pid: i32) -> Self {
        Self::new(name, Scope::ControlGroup(pid))
    }

    /// The process `pid` with all that it has started.
    pub fn tree(name: impl Into<String>, pid: i32) -> Self {
        Self::new(name, Scope::ProcessTree(pid))
    }

    /// The threads `tids` of the process `pid`.
    pub fn threads(name: impl Into<String>, pid: i32, tids: impl Into<Vec<i32>>) -> Self {
        let tids = tids.into();
        Self::new(name, Scope::Threads { pid, tids })
    }

    /// The process `pid`.
    pub fn process(name: impl Into<String>, pid: i32) -> Self {
        Self::new(name, Scope::Process(pid))
    }

    fn new(name: impl Into<String>, scope: Scope) -> Self {
        Self { name: name.into(), scope }
    }
}

// === impl Observer ===

impl Observer {
    /// Watches the machine and, so far, nothing on it.
    pub fn new() -> Self {
        let mut files = KernelFiles::new();
        Self {
            targets: BTreeMap::new(),
            hierarchies: Hierarchies::read(&mut files),
            tasks: TaskReader::new(&mut files),
            files,
            outsiders: HashMap::new(),
        }
    }

    /// Watches `target` from the next sample on. Replaces one of the same name: a restarted
    /// instance keeps its name and brings its new process group.
    pub fn watch(&mut self, target: Target) {
        let directory = match target.scope {
            Scope::ControlGroup(pid) => self.group_directory(pid),
            _ => None,
        };
        let watched = Watched { scope: target.scope, first_met: HashMap::new(), directory };
        // Its earlier children must be looked up again.
        self.outsiders.clear();
        self.targets.insert(target.name, watched);
    }

    /// Forgets a target; nothing happens if there is none of that name.
    pub fn unwatch(&mut self, name: &str) {
        self.targets.remove(name);
    }

    /// Reads all counters now. Takes some 0.15 ms for each process, and more for many busy threads.
    pub fn sample(&mut self) -> Sample {
        let at = Instant::now();
        let since_boot = clock_gettime(ClockId::Boottime).try_into().unwrap_or_default();
        let mut missing = BTreeSet::new();
        let machine = MachineCounters::read(&mut self.files, &mut missing);
        let groups = self.group_members();
        let mut reading = Reading {
            hierarchies: &self.hierarchies,
            tasks: &mut self.tasks,
            files: &mut self.files,
            missing: &mut missing,
            limits: HashMap::new(),
        };
        let mut targets = BTreeMap::new();
        let mut absent = BTreeSet::new();
        for (name, watched) in &mut self.targets {
            let counters = reading.target(watched, &groups);
            if counters.is_alive() {
                targets.insert(name.clone(), counters);
            } else {
                absent.insert(name.clone());
            }
        }
        self.tasks.end_round();
        Sample { at, since_boot, machine, targets, absent, missing }
    }

    /// The TCP connections of a target now; `None` for one that is not watched or does not run. Takes
    /// as long as the machine has connections: a millisecond for some hundred.
    pub fn sockets(&mut self, name: &str) -> Option<Sockets> {
        let pids = match self.targets.get(name)?.scope {
            Scope::ProcessGroup(id) | Scope::ProcessTree(id) => self.group_members().remove(&id)?,
            Scope::ControlGroup(_) => {
                cgroup::processes(self.targets.get(name)?.directory.as_deref()?, &mut self.files)
            }
            Scope::Threads { pid, .. } | Scope::Process(pid) => vec![pid],
        };
        Some(Sockets::read(&pids, &mut self.files))
    }

    /// Where the control group of a process is.
    fn group_directory(&mut self, pid: i32) -> Option<PathBuf> {
        let membership = self.control_group(pid)?;
        self.hierarchies.directory(&membership)
    }

    /// The processes of each watched group and tree, by the number of its first process. Asking every
    /// process of the machine for its group by system call costs a twentieth of reading its `stat`.
    fn group_members(&mut self) -> HashMap<i32, Vec<i32>> {
        let wanted: HashSet<i32> = self
            .targets
            .values()
            .filter_map(|watched| match watched.scope {
                Scope::ProcessGroup(pgid) => Some(pgid),
                Scope::ProcessTree(_)
                | Scope::ControlGroup(_)
                | Scope::Threads { .. }
                | Scope::Process(_) => None,
            })
            .collect();
        let roots = self.roots();
        if wanted.is_empty() && roots.is_empty() {
            return HashMap::new();
        }
        let mut group_of = HashMap::new();
        let mut outside = Vec::new();
        for pid in numbered_entries(Path::new("/proc")) {
            // An error says that the process has just gone.
            let Ok(group) = getpgid(Some(Pid::from_raw(pid))) else { continue };
            if wanted.contains(&group.as_raw()) {
                group_of.insert(pid, group.as_raw());
            } else if roots.contains(&pid) {
                group_of.insert(pid, pid);
            } else {
                outside.push(pid);
            }
        }
        self.adopt(&outside, &roots, &mut group_of);
        let mut members: HashMap<i32, Vec<i32>> = HashMap::new();
        for (pid, group) in group_of {
            members.entry(group).or_default().push(pid);
        }
        members
    }

    /// Adds those whose parent is a member, or that are confined with one. Who started a process is asked
    /// once.
    fn adopt(&mut self, outside: &[i32], roots: &HashSet<i32>, group_of: &mut HashMap<i32, i32>) {
        let mut orphans = Vec::new();
        for &pid in outside {
            match self.outsiders.get(&pid) {
                Some(group) => group_of.extend(group.map(|group| (pid, group))),
                None => orphans.extend(parent_of(pid, &mut self.files).map(|of| (pid, of))),
            }
        }
        if !orphans.is_empty() {
            let confined = self.confined(roots, group_of);
            for (pid, _) in orphans.iter().filter(|_| !confined.is_empty()) {
                let group = self.control_group(*pid).and_then(|own| confined.get(&own).copied());
                group_of.extend(group.map(|group| (*pid, group)));
            }
        }
        join_parents(orphans, group_of);
        self.outsiders = outside.iter().map(|pid| (*pid, group_of.get(pid).copied())).collect();
    }

    /// The groups by the control group that one is confined to: who has left its parent is still there.
    fn confined(
        &mut self,
        roots: &HashSet<i32>,
        group_of: &HashMap<i32, i32>,
    ) -> HashMap<Vec<u8>, i32> {
        let Some(ours) = self.control_group(std::process::id().cast_signed()) else {
            return HashMap::new();
        };
        // Others may run beside what something else has started.
        let members = group_of.iter().filter(|(_, group)| !roots.contains(group));
        let of = |(pid, group): (&i32, &i32)| Some((self.control_group(*pid)?, *group));
        let pairs: Vec<_> = members.filter_map(of).collect();
        alone(pairs.into_iter(), &ours)
    }

    /// The first processes of watched trees.
    fn roots(&self) -> HashSet<i32> {
        let root = |watched: &Watched| match watched.scope {
            Scope::ProcessTree(pid) => Some(pid),
            _ => None,
        };
        self.targets.values().filter_map(root).collect()
    }

    /// The group in `/proc/PID/cgroup`; `None` when the process is gone.
    fn control_group(&mut self, pid: i32) -> Option<Vec<u8>> {
        self.files.bytes(format!("/proc/{pid}/cgroup")).map(<[u8]>::to_vec).ok()
    }
}

/// The groups by a control group that is one's alone: neither another's nor ours.
fn alone(pairs: impl Iterator<Item = (Vec<u8>, i32)>, ours: &[u8]) -> HashMap<Vec<u8>, i32> {
    let mut groups: HashMap<Vec<u8>, BTreeSet<i32>> = HashMap::new();
    for (text, group) in pairs.filter(|(text, _)| text != ours) {
        groups.entry(text).or_default().insert(group);
    }
    let only = |(text, groups): (Vec<u8>, BTreeSet<i32>)| match groups.len() {
        1 => groups.first().map(|group| (text, *group)),
        _ => None,
    };
    groups.into_iter().filter_map(only).collect()
}

/// Gives processes (with their parents) the group of their nearest ancestor that has one. `/proc` lists by
/// number, and numbers begin anew when they have run out: a parent may come after its children.
fn join_parents(mut orphans: Vec<(i32, i32)>, group_of: &mut HashMap<i32, i32>) {
    loop {
        let before = orphans.len();
        orphans.retain(|(pid, parent)| {
            let group = group_of.get(parent).copied();
            group_of.extend(group.map(|group| (*pid, group)));
            group.is_none()
        });
        if orphans.len() == before {
            return;
        }
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Instances under limits, or in one unit of systemd, look like this.
    #[test]
    fn only_an_own_control_group_tells_the_owner() {
        let pairs = [("a", 1), ("a", 1), ("b", 2), ("b", 3), ("ours", 4)];
        let pairs = pairs.map(|(text, group)| (text.as_bytes().to_vec(), group));
        assert_eq!(alone(pairs.into_iter(), b"ours"), HashMap::from([(b"a".to_vec(), 1)]));
    }

    // Each in a group of its own, once process numbers have begun anew.
    #[test]
    fn children_with_lower_numbers_than_their_parents_belong_to_them() {
        let mut group_of = HashMap::from([(900, 900)]);
        join_parents(vec![(7, 8), (8, 900), (9, 1), (950, 7)], &mut group_of);
        assert_eq!(group_of, HashMap::from([(900, 900), (8, 900), (7, 900), (950, 900)]));
    }
}

/// The limits of a control group.
#[derive(Clone, Default)]
struct GroupLimits {
    quota: Option<cgroup::QuotaCounters>,
    memory: Option<cgroup::MemoryCounters>,
}

/// One round through the targets.
struct Reading<'a> {
    hierarchies: &'a Hierarchies,
    tasks: &'a mut TaskReader,
    files: &'a mut KernelFiles,
    missing: &'a mut BTreeSet<Source>,
    /// By the text of `/proc/PID/cgroup`: instances mostly share a group.
    limits: HashMap<Vec<u8>, GroupLimits>,
}

// === impl Reading ===

impl Reading<'_> {
    fn target(&mut self, watched: &mut Watched, groups: &HashMap<i32, Vec<i32>>) -> Counters {
        let mut counters = Counters::default();
        let mut found = Vec::new();
        match &watched.scope {
            Scope::ProcessGroup(id) | Scope::ProcessTree(id) => {
                for &pid in groups.get(id).into_iter().flatten() {
                    found.extend(self.tasks.process(pid, self.files, self.missing));
                }
            }
            Scope::ControlGroup(_) => {
                let directory = watched.directory.as_deref();
                let pids = directory.map(|directory| cgroup::processes(directory, self.files));
                for pid in pids.into_iter().flatten() {
                    found.extend(self.tasks.process(pid, self.files, self.missing));
                }
            }
            Scope::Process(pid) => {
                found.extend(self.tasks.process(*pid, self.files, self.missing));
                found.retain(|(id, _)| watched.first_met.entry(id.id).or_insert(*id) == id);
            }
            Scope::Threads { pid, tids } => {
                for &tid in tids {
                    found.extend(self.tasks.single_thread(*pid, tid, self.files, self.missing));
                }
                found.retain(|(id, _)| watched.first_met.entry(id.id).or_insert(*id) == id);
            }
        }
        counters.tasks.extend(found);
        let one_alive = counters.alive().next().map(|(id, _)| id.id);
        if let Some(limits) = one_alive.and_then(|id| self.limits(id)) {
            counters.quota = limits.quota;
            counters.memory = limits.memory;
        }
        counters
    }

    /// Limits of one process of the target, since an instance lives in one group.
    fn limits(&mut self, id: i32) -> Option<GroupLimits> {
        let path = format!("/proc/{id}/cgroup");
        let Ok(membership) = self.files.bytes(path).map(<[u8]>::to_vec) else {
            self.missing.insert(Source::Cgroup);
            return None;
        };
        if let Some(limits) = self.limits.get(&membership) {
            return Some(limits.clone());
        }
        let group = self.hierarchies.locate(Controller::Cpu, &membership);
        if group.is_none() {
            self.missing.insert(Source::Cgroup);
        }
        let quota = group.and_then(|group| group.quota(self.files));
        let group = self.hierarchies.locate(Controller::Memory, &membership);
        let memory = group.and_then(|group| group.memory(self.files));
        let limits = GroupLimits { quota, memory };
        self.limits.insert(membership, limits.clone());
        Some(limits)
    }
}
