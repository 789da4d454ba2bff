//! Namespaces for engines: a network, mounts and processes of their own, which all end with the story.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::harness::cannot_run;

/// Namespaces with a loopback and an empty /run. Everything in them is killed when the story is over.
pub struct Sandbox {
    /// Outside; its child is the first process inside.
    unshare: Child,
    init: u32,
    /// The control group below which the engine puts those of its containers.
    group: String,
}

impl Sandbox {
    /// Nothing where this user may make no namespaces, or lacks one of these programs.
    pub fn make(programs: &[&str]) -> Option<Sandbox> {
        for program in programs {
            if !is_installed(program) {
                cannot_run(&format!("there is no {program} here"));
                return None;
            }
        }
        let inside = "mount -t tmpfs tmpfs /run && ip link set lo up && echo ready && exec tini -s -- sleep infinity";
        // It ends with the story, even where that is killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "unshare"])
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["sh", "-c", inside])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut unshare = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(unshare.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            let _ = unshare.wait();
            cannot_run("this user may make no namespaces");
            return None;
        }
        let init = only_child(unshare.id());
        Some(Sandbox { group: format!("tenfold-story-{init}"), unshare, init })
    }

    /// Those that this `unshare` has made, with control groups of this name.
    pub fn around(unshare: Child, group: String) -> Sandbox {
        Sandbox { init: only_child(unshare.id()), unshare, group }
    }

    /// The number, outside, of the first process inside.
    pub fn init(&self) -> u32 {
        self.init
    }

    /// The control group for `--cgroup-parent`.
    pub fn cgroup_parent(&self) -> String {
        format!("/{}", self.group)
    }

    /// The command, to be run inside.
    pub fn enter(&self, command: &Command) -> Command {
        let mut entered = Command::new("nsenter");
        entered.args(["--target", &self.init.to_string(), "--mount", "--net", "--pid", "--cgroup"]);
        // The folder is given up with the mounts, so the command is told to go there.
        if let Some(directory) = command.get_current_dir() {
            entered.arg(format!("--wdns={}", directory.display()));
        }
        entered.arg("--");
        entered.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => entered.env(key, value),
                None => entered.env_remove(key),
            };
        }
        entered.stdin(Stdio::null());
        entered
    }

    /// What this does with sockets happens in the network inside.
    pub fn network<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let network = std::fs::File::open(format!("/proc/{}/ns/net", self.init)).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(
                    std::os::fd::AsFd::as_fd(&network),
                    Some(LinkNameSpaceType::Network),
                )
                .unwrap();
                work()
            });
            inside.join().unwrap()
        })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
        // A group can be removed when the last of its processes is gone, which takes the kernel a moment.
        for _ in 0..100 {
            let hierarchies = std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten();
            let groups = hierarchies.map(|hierarchy| hierarchy.path().join(&self.group));
            let mut groups: Vec<_> = groups.collect();
            groups.push(Path::new("/sys/fs/cgroup").join(&self.group));
            groups.iter().for_each(|group| remove(group));
            if groups.iter().all(|group| !group.exists()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// The process that `nsenter` or `unshare` has started.
pub fn only_child(pid: u32) -> u32 {
    loop {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        if let Some(child) = children.unwrap().split_whitespace().next() {
            return child.parse().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Servers live in sbin, which is not in everybody's path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Groups below first. What was paused dies when it goes on.
fn remove(group: &Path) {
    let _ = std::fs::write(group.join("freezer.state"), "THAWED");
    let _ = std::fs::write(group.join("cgroup.freeze"), "0");
    for below in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if below.path().is_dir() {
            remove(&below.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}
