//! Below which group Tenfold may make its own.
//!
//! In version 2 a group that has processes cannot hand controllers on to groups below it. So the
//! parent is the nearest group, from Tenfold's own upwards, that hands on what is needed already. Where
//! nobody else is in Tenfold's own group, that is the parent, and Tenfold moves into a group below it.
//! A search upwards never leaves a limit that Tenfold itself is under.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use procfs::ProcessCGroups;
use procfs::process::{MountInfos, Process};
use rustix::fs::{Access, access};

use crate::error::StartError;
use crate::guard::cgroup_removal::{self, procs};
use crate::limits::Limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Cpu,
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// A group in which others can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParentGroup {
    pub(super) version: Version,
    pub(super) directory: PathBuf,
    /// What groups made here can limit.
    pub(super) controllers: Vec<Controller>,
}

/// Why a limit cannot be set.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Nothing says where groups are.
    Unreadable(procfs::ProcError),
    /// No mounted hierarchy has the controller.
    NoHierarchy(Controller),
    /// No group on the way up has all controllers to hand on.
    NotDelegated {
        group: PathBuf,
        controllers: String,
    },
    /// This user may not make groups there.
    NotAllowed {
        group: PathBuf,
    },
    /// Others are in the group too, and nothing above it may be used.
    NotAlone {
        group: PathBuf,
    },
    /// Tenfold is under a limit itself, and cannot make groups that remain under it.
    Limited {
        group: PathBuf,
    },
    NotMade {
        parent: PathBuf,
        error: io::Error,
    },
    NotSet {
        path: PathBuf,
        value: String,
        error: io::Error,
    },
}

/// A mounted hierarchy, and Tenfold's own group in it.
struct Hierarchy {
    top: PathBuf,
    own: PathBuf,
}

/// Who is in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occupancy {
    Alone,
    Others,
}

/// A parent for each of these controllers; one parent has several where a hierarchy has.
pub(super) fn find(wanted: &[Controller]) -> Result<Vec<ParentGroup>, Refusal> {
    let me = Process::myself().map_err(Refusal::Unreadable)?;
    let mounts = me.mountinfo().map_err(Refusal::Unreadable)?;
    let groups = me.cgroups().map_err(Refusal::Unreadable)?;
    let mut parents = Vec::new();
    let mut in_unified = Vec::new();
    for &controller in wanted {
        match legacy(&mounts, &groups, controller) {
            Some(hierarchy) => add(&mut parents, in_legacy(&hierarchy.own, controller)?),
            None => in_unified.push(controller),
        }
    }
    if let Some(&first) = in_unified.first() {
        let hierarchy = unified(&mounts, &groups).ok_or(Refusal::NoHierarchy(first))?;
        parents.push(hierarchy.parent(&in_unified, occupancy)?);
    }
    Ok(parents)
}

/// Where a Tenfold that was started like this one may have made groups: Tenfold's own group and those
/// above it, in each hierarchy.
pub(super) fn known() -> Vec<PathBuf> {
    let me = Process::myself();
    let Ok((mounts, groups)) = me.and_then(|me| Ok((me.mountinfo()?, me.cgroups()?))) else {
        return Vec::new();
    };
    let controllers = [Controller::Cpu, Controller::Memory].into_iter();
    let mut known: Vec<PathBuf> = controllers
        .filter_map(|controller| legacy(&mounts, &groups, controller))
        .chain(unified(&mounts, &groups))
        .flat_map(|Hierarchy { top, own }| {
            let within = own.ancestors().take_while(|group| group.starts_with(&top));
            within.map(Path::to_path_buf).collect::<Vec<_>>()
        })
        .collect();
    known.sort();
    known.dedup();
    known
}

/// A process's own group in the hierarchy that has this controller.
pub(super) fn of_process(pid: i32, controller: Controller) -> Option<(Version, PathBuf)> {
    let mounts = Process::myself().and_then(|me| me.mountinfo()).ok()?;
    let groups = Process::new(pid).and_then(|process| process.cgroups()).ok()?;
    match legacy(&mounts, &groups, controller) {
        Some(hierarchy) => Some((Version::One, hierarchy.own)),
        None => unified(&mounts, &groups).map(|hierarchy| (Version::Two, hierarchy.own)),
    }
}

/// A directory is a parent once, with all that it can limit.
fn add(parents: &mut Vec<ParentGroup>, parent: ParentGroup) {
    match parents.iter_mut().find(|known| known.directory == parent.directory) {
        Some(known) => known.controllers.extend(parent.controllers),
        None => parents.push(parent),
    }
}

/// The version 1 hierarchy that has the controller. One that it has is not in version 2.
fn legacy(
    mounts: &MountInfos,
    groups: &ProcessCGroups,
    controller: Controller,
) -> Option<Hierarchy> {
    let name = controller.name();
    // A later mount hides an earlier one.
    let mount = mounts
        .iter()
        .rfind(|mount| mount.fs_type == "cgroup" && mount.super_options.contains_key(name))?;
    let group =
        groups.0.iter().find(|group| group.controllers.iter().any(|known| known == name))?;
    Hierarchy::new(&mount.root, &mount.mount_point, &group.pathname)
}

fn unified(mounts: &MountInfos, groups: &ProcessCGroups) -> Option<Hierarchy> {
    let mount = mounts.iter().rfind(|mount| mount.fs_type == "cgroup2")?;
    let group = groups.0.iter().find(|group| group.hierarchy == 0)?;
    Hierarchy::new(&mount.root, &mount.mount_point, &group.pathname)
}

/// Version 1 lets groups with processes have groups below them.
fn in_legacy(own: &Path, controller: Controller) -> Result<ParentGroup, Refusal> {
    match is_open(own) {
        true => Ok(ParentGroup {
            version: Version::One,
            directory: own.into(),
            controllers: vec![controller],
        }),
        false => Err(Refusal::NotAllowed { group: own.into() }),
    }
}

impl Hierarchy {
    /// Nothing when the mount does not show Tenfold's own group.
    fn new(root: &str, point: &Path, group: &str) -> Option<Hierarchy> {
        let below = Path::new(group).strip_prefix(root).ok()?;
        // Without the slash that joining nothing leaves.
        let mut own: PathBuf = point.join(below).components().collect();
        if own.ends_with(cgroup_removal::name_of_own()) {
            // Stepped down from there before.
            own.pop();
        }
        Some(Hierarchy { top: point.into(), own })
    }

    /// In version 2.
    fn parent(
        &self,
        wanted: &[Controller],
        occupancy: impl Fn(&Path) -> Occupancy,
    ) -> Result<ParentGroup, Refusal> {
        let mut first = None;
        for group in self.own.ancestors().take_while(|group| group.starts_with(&self.top)) {
            match self.offer(group, wanted, &occupancy) {
                Ok(()) => {
                    return Ok(ParentGroup {
                        version: Version::Two,
                        directory: group.into(),
                        controllers: wanted.to_vec(),
                    });
                }
                Err(refusal) => first = first.or(Some(refusal)),
            }
            if group != self.top && is_limited(group) {
                return Err(Refusal::Limited { group: group.into() });
            }
        }
        // The nearest group is the one that the user can do something about.
        Err(first.unwrap_or(Refusal::NoHierarchy(wanted[0])))
    }

    /// Makes `group` hand on what is wanted, if it does not yet and it may be changed.
    fn offer(
        &self,
        group: &Path,
        wanted: &[Controller],
        occupancy: impl Fn(&Path) -> Occupancy,
    ) -> Result<(), Refusal> {
        let has = |file: &str| {
            let text = fs::read_to_string(group.join(file)).unwrap_or_default();
            let named = |controller: &Controller| {
                text.split_whitespace().any(|word| word == controller.name())
            };
            (wanted.iter().all(named), text)
        };
        let (available, controllers) = has("cgroup.controllers");
        if !available {
            return Err(Refusal::NotDelegated { group: group.into(), controllers });
        }
        if !is_open(group) {
            return Err(Refusal::NotAllowed { group: group.into() });
        }
        if has("cgroup.subtree_control").0 {
            return Ok(());
        }
        // The machine's own top group alone may have processes and hand on; it has no type.
        let is_root = group == self.top && !group.join("cgroup.type").exists();
        if !is_root && (group != self.own || occupancy(group) == Occupancy::Others) {
            return Err(Refusal::NotAlone { group: group.into() });
        }
        if !is_root {
            step_down(group)?;
        }
        let enable: Vec<String> = wanted.iter().map(|c| format!("+{}", c.name())).collect();
        set(group, "cgroup.subtree_control", &enable.join(" "))
    }
}

/// Moves every process of `group`, all of them Tenfold's own, into a group below it.
fn step_down(group: &Path) -> Result<(), Refusal> {
    let members = cgroup_removal::members(group);
    if members.is_empty() {
        return Ok(());
    }
    let below = group.join(cgroup_removal::name_of_own());
    fs::create_dir(&below).map_err(|error| Refusal::NotMade { parent: group.into(), error })?;
    for pid in members {
        set(&below, "cgroup.procs", &pid.to_string())?;
    }
    Ok(())
}

/// Whether all in the group are this process and its children, such as the guard.
fn occupancy(group: &Path) -> Occupancy {
    let own = std::process::id().cast_signed();
    let is_ours = |pid: i32| {
        let stat = Process::new(pid).and_then(|process| process.stat());
        pid == own || stat.is_ok_and(|stat| stat.ppid == own)
    };
    match cgroup_removal::members(group).into_iter().all(is_ours) {
        true => Occupancy::Alone,
        false => Occupancy::Others,
    }
}

/// Whether groups can be made here, and processes moved into them.
fn is_open(group: &Path) -> bool {
    [group, &procs(group)].iter().all(|path| access(*path, Access::WRITE_OK).is_ok())
}

/// Whether the CPU or the memory of this group is limited. A group above it would be out of both limits.
fn is_limited(group: &Path) -> bool {
    ["cpu.max", "memory.max"]
        .iter()
        .any(|file| fs::read_to_string(group.join(file)).is_ok_and(|text| !text.starts_with("max")))
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Memory => "memory",
        }
    }
}

// === impl Refusal ===

/// For a user without rights; a scope of one's own needs none of root's.
pub(crate) const RIGHTS: &str =
    "run it as root, or under `systemd-run --user --scope -p Delegate=yes tenfold ...`";

impl Refusal {
    pub(super) fn of(&self, limits: &Limits) -> StartError {
        let remedy = match self {
            Refusal::NoHierarchy(_) | Refusal::Unreadable(_) => {
                "mount one (`mount -t cgroup2 none /sys/fs/cgroup`), or leave --cpus and --memory out"
            }
            Refusal::Limited { .. } => "run it where nothing limits it, or in a group of its own",
            Refusal::NotSet { .. } => "choose other limits",
            Refusal::NotDelegated { .. }
            | Refusal::NotAllowed { .. }
            | Refusal::NotAlone { .. }
            | Refusal::NotMade { .. } => RIGHTS,
        };
        StartError::Unlimited {
            limits: limits.to_string(),
            reason: self.to_string(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unreadable(error) => write!(f, "the control groups cannot be read ({error})"),
            Refusal::NoHierarchy(controller) => {
                write!(f, "no control groups with the {} controller are mounted", controller.name())
            }
            Refusal::NotDelegated { group, controllers } => {
                let have = match controllers.trim() {
                    "" => "no controllers",
                    have => have,
                };
                write!(f, "the control group {} has only {have}", group.display())
            }
            Refusal::NotAllowed { group } => {
                write!(f, "this user may not change the control group {}", group.display())
            }
            Refusal::NotAlone { group } => write!(
                f,
                "other programs are in the control group {} too, so that it cannot be divided",
                group.display()
            ),
            Refusal::Limited { group } => write!(
                f,
                "Tenfold's own control group {} has a limit and cannot be divided",
                group.display()
            ),
            Refusal::NotMade { parent, error } => {
                write!(f, "no control group can be made in {} ({error})", parent.display())
            }
            Refusal::NotSet { path, value, error } => {
                write!(f, "the kernel does not take {value} for {} ({error})", path.display())
            }
        }
    }
}

/// Writes `value` to a file of a group.
pub(super) fn set(directory: &Path, file: &str, value: &str) -> Result<(), Refusal> {
    let path = directory.join(file);
    fs::write(&path, value).map_err(|error| Refusal::NotSet { path, value: value.into(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Controller; 2] = [Controller::Cpu, Controller::Memory];

    #[test]
    fn a_hierarchy_with_both_controllers_is_one_parent() {
        let mut parents = Vec::new();
        for controller in BOTH {
            let directory = PathBuf::from("/sys/fs/cgroup/cpu,memory");
            let controllers = vec![controller];
            add(&mut parents, ParentGroup { version: Version::One, directory, controllers });
        }
        assert_eq!((parents.len(), parents[0].controllers.len()), (1, 2));
    }

    /// A tree of version 2 as plain files: `/` with `user.slice` and in it `run.scope`, which is ours.
    struct Tree {
        directory: tempfile::TempDir,
    }

    impl Tree {
        /// The machine's top hands on everything, as systemd sets it up; nobody else does.
        fn new() -> Tree {
            let tree = Tree { directory: tempfile::tempdir().unwrap() };
            fs::create_dir_all(tree.path("user.slice/run.scope")).unwrap();
            for group in ["", "user.slice", "user.slice/run.scope"] {
                tree.write(group, "cgroup.controllers", "cpuset cpu io memory pids\n");
                tree.write(group, "cgroup.subtree_control", "");
                tree.write(group, "cgroup.procs", "");
            }
            for group in ["user.slice", "user.slice/run.scope"] {
                tree.write(group, "cgroup.type", "domain\n");
                tree.write(group, "cpu.max", "max 100000\n");
                tree.write(group, "memory.max", "max\n");
            }
            tree
        }

        fn path(&self, group: &str) -> PathBuf {
            self.directory.path().join(group).components().collect()
        }

        fn write(&self, group: &str, file: &str, text: &str) {
            fs::write(self.path(group).join(file), text).unwrap();
        }

        fn read(&self, group: &str, file: &str) -> String {
            fs::read_to_string(self.path(group).join(file)).unwrap()
        }

        fn parent(&self, occupancy: Occupancy) -> Result<PathBuf, String> {
            self.parent_for(&BOTH, occupancy)
        }

        fn parent_for(
            &self,
            wanted: &[Controller],
            occupancy: Occupancy,
        ) -> Result<PathBuf, String> {
            let hierarchy = Hierarchy::new("/", self.directory.path(), "/user.slice/run.scope");
            let parent = hierarchy.unwrap().parent(wanted, |_| occupancy);
            parent.map(|parent| parent.directory).map_err(|refusal| refusal.to_string())
        }
    }

    #[test]
    fn our_own_scope_becomes_the_parent() {
        let tree = Tree::new();
        tree.write("user.slice/run.scope", "cgroup.procs", "41\n42\n");
        assert_eq!(tree.parent(Occupancy::Alone), Ok(tree.path("user.slice/run.scope")));
        assert_eq!(tree.read("user.slice/run.scope", "cgroup.subtree_control"), "+cpu +memory");
        let below = format!("user.slice/run.scope/{}", cgroup_removal::name_of_own());
        assert_eq!(tree.read(&below, "cgroup.procs"), "42");
    }

    #[test]
    fn beside_others_the_nearest_delegating_group_is_the_parent() {
        let tree = Tree::new();
        tree.write("user.slice", "cgroup.subtree_control", "memory pids\n");
        tree.write("", "cgroup.subtree_control", "cpu memory pids\n");
        assert_eq!(tree.parent(Occupancy::Others), Ok(tree.path("")));
        tree.write("user.slice", "cgroup.subtree_control", "cpu memory\n");
        assert_eq!(tree.parent(Occupancy::Others), Ok(tree.path("user.slice")));
        assert_eq!(tree.read("user.slice/run.scope", "cgroup.subtree_control"), "");
    }

    #[test]
    fn the_root_group_is_made_to_delegate() {
        let tree = Tree::new();
        assert_eq!(tree.parent(Occupancy::Others), Ok(tree.path("")));
        assert_eq!(tree.read("", "cgroup.subtree_control"), "+cpu +memory");
        // In a container the top is a group like others.
        let tree = Tree::new();
        tree.write("", "cgroup.type", "domain\n");
        let refused = tree.parent(Occupancy::Others).unwrap_err();
        assert!(refused.contains("run.scope too, so that it cannot be divided"), "{refused}");
    }

    #[test]
    fn limits_on_tenfold_itself_are_not_escaped() {
        let tree = Tree::new();
        tree.write("", "cgroup.subtree_control", "cpu memory pids\n");
        tree.write("user.slice/run.scope", "memory.max", "1000000\n");
        let refused = tree.parent(Occupancy::Others).unwrap_err();
        assert!(refused.contains("has a limit and cannot be divided"), "{refused}");
        let cpu_alone = tree.parent_for(&[Controller::Cpu], Occupancy::Others);
        assert_eq!(cpu_alone, Err(refused), "its memory would have no limit");
    }

    #[test]
    fn a_missing_controller_is_named() {
        let tree = Tree::new();
        for group in ["", "user.slice", "user.slice/run.scope"] {
            tree.write(group, "cgroup.controllers", "memory pids\n");
        }
        let refused = tree.parent(Occupancy::Alone).unwrap_err();
        assert!(refused.ends_with("run.scope has only memory pids"), "{refused}");
    }
}
