//! A real systemd as the manager of a user's services, which can harm nothing of the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::harness::{cannot_run, eventually, said, send};
use crate::sandbox::is_installed;

/// Where it finds its units and keeps its sockets, in its own mounts.
const UNITS: &str = "/run/units";
const RUNTIME: &str = "/run/runtime";
/// A folder that services may write to. It is gone with the manager.
pub const SCRATCH: &str = "/run/scratch";

/// Makes mounts that hide the machine: `$1` are the manager's units, and what follows stays visible.
///
/// Rules for temporary files, such as systemd's own, delete what they find in /run, /tmp, /var and /root. So all
/// of these are empty here, and /etc is a copy. Visible paths are read-only.
const MOUNTS: &str = r#"
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/visible "$RUNTIME" "$SCRATCH" /run/home
cp -rL "$1" "$UNITS"
cp -a /etc /run/etc
shift
count=0
for path; do
    count=$((count + 1))
    if [ -d "$path" ]; then mkdir "/run/visible/$count"; else touch "/run/visible/$count"; fi
    mount --bind "$path" "/run/visible/$count"
done
mount --bind /run/etc /etc
for at in /tmp /var /root; do mount -t tmpfs tmpfs "$at"; done
count=0
for path; do
    count=$((count + 1))
    mkdir -p "${path%/*}"
    if [ -d "/run/visible/$count" ]; then mkdir -p "$path"; elif [ ! -e "$path" ]; then touch "$path"; fi
    mount --bind "/run/visible/$count" "$path"
    mount -o remount,bind,ro "$path"
done
exec /lib/systemd/systemd --user
"#;

/// A manager with units of its own. It and its services end with the story, even where that is killed.
///
/// It sees the machine's network and processes, so that a story can ask and kill its services. Of the machine's
/// files it can change none in /run, /tmp, /var, /root and /etc.
pub struct UserManager {
    process: Child,
}

impl UserManager {
    /// Knows the units in a folder. Services find the visible paths where they are, and can only read them.
    ///
    /// Nothing where there is no systemd, or where this user may not mount.
    pub fn start(units: &Path, visible: &[&Path]) -> Option<UserManager> {
        if !Path::new("/lib/systemd/systemd").exists() || !is_installed("systemctl") {
            cannot_run("there is no systemd here");
            return None;
        }
        let mut mount = Command::new("unshare");
        mount.args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"]);
        if !mount.output().is_ok_and(|output| output.status.success()) {
            cannot_run("this user may not mount");
            return None;
        }
        let whole = |path: &Path| -> PathBuf { path.canonicalize().unwrap() };
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "setpriv", "--pdeathsig", "TERM", "sh", "-c", MOUNTS, "sh"])
            .arg(whole(units))
            .args(visible.iter().map(|path| whole(path)))
            // This one may be hidden, and Puma does not start where `PWD` names nothing.
            .current_dir("/")
            .env_remove("PWD")
            .env("RUNTIME", RUNTIME)
            .env("SCRATCH", SCRATCH)
            .env("UNITS", UNITS)
            .env("HOME", "/run/home")
            .env("XDG_RUNTIME_DIR", RUNTIME)
            .env("SYSTEMD_UNIT_PATH", format!("{UNITS}:/usr/lib/systemd/user"));
        let manager = UserManager { process: command.spawn().unwrap() };
        eventually("systemd runs", || manager.ask("is-system-running").contains("running"));
        Some(manager)
    }

    /// What `systemctl` prints.
    pub fn ask(&self, arguments: &str) -> String {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.process.id().to_string(), "--mount"]);
        command.args(["systemctl", "--user", "--no-pager"]).args(arguments.split(' '));
        said(&command.env("XDG_RUNTIME_DIR", RUNTIME).output().unwrap())
    }
}

impl Drop for UserManager {
    fn drop(&mut self) {
        send(self.process.id(), Signal::TERM);
        let _ = self.process.wait();
    }
}
