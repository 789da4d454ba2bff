//! Removes the control groups of instances, and those that killed Tenfolds left behind.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::{Pid, Signal, kill_process};

/// Groups are named `tenfold-PID-START-N`, with the pid and the start time of the Tenfold that made them.
/// So the groups of a dead Tenfold can be told from those of a live one.
const PREFIX: &str = "tenfold-";

/// How long killed processes may take to go.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How often it is tried to remove a group: soon at first, then less often.
const END_INTERVAL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// The name of this process's group number `count`.
pub(crate) fn name(count: u64) -> String {
    format!("{}-{count}", name_of_own())
}

/// The name of the group into which this process itself steps down.
pub(crate) fn name_of_own() -> String {
    let pid = std::process::id();
    format!("{PREFIX}{pid}-{}", started(pid.cast_signed()).unwrap_or_default())
}

/// Kills what is in a group and in those that the app has made below it, and removes them. Only
/// groups of a Tenfold end like this.
pub(crate) fn end(group: &Path) {
    if !is_tenfolds(group) {
        return;
    }
    let deadline = Instant::now() + END_LIMIT;
    let mut interval = END_INTERVAL.0;
    while let Err(error) = remove(group) {
        if error.kind() == ErrorKind::NotFound || Instant::now() > deadline {
            return;
        }
        kill(group);
        thread::sleep(interval);
        interval = (interval * 2).min(END_INTERVAL.1);
    }
}

/// Removes child groups first, since a group with children cannot be removed.
fn remove(group: &Path) -> io::Result<()> {
    for below in groups_below(group) {
        // Where one stays, so does this.
        let _ = remove(&below);
    }
    fs::remove_dir(group)
}

fn kill(group: &Path) {
    // Version 2 has it from Linux 5.14 on: for all below too, and no fork gets away.
    let all = OpenOptions::new().write(true).open(group.join("cgroup.kill"));
    if all.and_then(|mut all| all.write_all(b"1")).is_ok() {
        return;
    }
    for below in groups_below(group) {
        kill(&below);
    }
    for pid in members(group) {
        if let Some(pid) = Pid::from_raw(pid) {
            // Fails when it has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn groups_below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|group| group.path()).collect()
}

/// Ends the groups in `parent` whose Tenfold is dead.
pub(crate) fn clear(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_str().is_some_and(is_orphan) {
            end(&entry.path());
        }
    }
}

/// The processes of a group. Those of another pid namespace read as 0 and are left out.
pub(crate) fn members(group: &Path) -> Vec<i32> {
    let text = fs::read_to_string(procs(group)).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 1).collect()
}

fn is_tenfolds(group: &Path) -> bool {
    let name = group.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| maker(name).is_some())
}

fn is_orphan(name: &str) -> bool {
    maker(name).is_some_and(|(pid, start)| started(pid) != Some(start))
}

/// Pid and start of the Tenfold that made a group of this name.
fn maker(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// In clock ticks since boot.
fn started(pid: i32) -> Option<u64> {
    let stat = Process::new(pid).and_then(|process| process.stat());
    stat.ok().map(|stat| stat.starttime)
}

/// The file that lists the processes of a group, and into which a process writes to join it.
pub(crate) fn procs(directory: &Path) -> PathBuf {
    directory.join("cgroup.procs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_dead_tenfolds_are_orphans() {
        let own = name(3);
        assert!(!is_orphan(&own), "{own}");
        let pid = std::process::id();
        assert!(is_orphan(&format!("tenfold-{pid}-1-0")));
        for other in ["system.slice", "tenfold-", "tenfold-x-1", "tenfold.service"] {
            assert!(!is_orphan(other), "{other}");
        }
    }

    #[test]
    fn only_groups_of_tenfold_are_ended() {
        let parent = tempfile::tempdir().unwrap();
        let orphan = parent.path().join(format!("tenfold-{}-1-0", std::process::id()));
        let other = parent.path().join("other");
        fs::create_dir(&orphan).unwrap();
        fs::create_dir(&other).unwrap();
        clear(parent.path());
        end(&other);
        assert!(!orphan.exists() && other.exists());
    }

    #[test]
    fn child_groups_end_first() {
        let parent = tempfile::tempdir().unwrap();
        let group = parent.path().join(name(7));
        fs::create_dir_all(group.join("of/the/app")).unwrap();
        fs::create_dir(group.join("other")).unwrap();
        end(&group);
        assert!(!group.exists());
    }
}
