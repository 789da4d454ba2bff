//! A machine that systemd has booted, as far as a story can tell. It has namespaces in which a real systemd
//! is process 1, with a bus, a journal and a user's own systemd beside it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::harness::{Home, Serving, cannot_run, eventually, get, said};
use crate::sandbox::{Sandbox, is_installed};

/// Without these a service cannot be started. They do nothing here.
const TARGETS: [&str; 5] =
    ["sysinit.target", "basic.target", "sockets.target", "shutdown.target", "default.target"];

/// The user whose systemd runs beside the machine's: nobody.
const USER: u32 = 65534;

/// A booted machine. All of it ends with the story.
pub struct Machine {
    /// Dropped first: what is in it uses the folder.
    sandbox: Sandbox,
    home: Home,
}

impl Machine {
    /// Nothing where this user may make no namespaces, or without systemd.
    pub fn boot() -> Option<Machine> {
        let programs = ["dbus-daemon", "systemctl", "nsenter"];
        if let Some(absent) = programs.into_iter().find(|program| !is_installed(program)) {
            cannot_run(&format!("there is no {absent} here"));
            return None;
        }
        let may_unshare = Command::new("unshare").args(["--cgroup", "--mount", "true"]).output();
        if !may_unshare.is_ok_and(|output| output.status.success()) {
            cannot_run("this user may make no namespaces");
            return None;
        }
        let home = Home::new();
        write_units(&home);
        let script = home.path().join("boot.sh");
        std::fs::write(&script, include_str!("systemd_machine/boot.sh")).unwrap();
        let group = format!("tenfold-story-{}", home.path().file_name().unwrap().to_str().unwrap());
        let log = std::fs::File::create(home.path().join("boot.log")).unwrap();
        let mut boot = Command::new("sh");
        boot.arg(script).arg(home.path()).arg(&group).arg(env!("CARGO_BIN_EXE_tenfold"));
        boot.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let boot = boot.spawn().unwrap();
        eventually("namespaces are made", || home.path().join("made").exists());
        let sandbox = Sandbox::around(boot, group);
        let machine = Machine { sandbox, home };
        eventually("systemd has booted", || {
            machine
                .systemctl("is-active default.target journal.service")
                .starts_with("active\nactive")
        });
        Some(machine)
    }

    /// What `systemctl` prints.
    pub fn systemctl(&self, arguments: &str) -> String {
        said(&self.run(&format!("systemctl --no-pager {arguments}")))
    }

    /// What the user's `systemctl` prints.
    pub fn user_systemctl(&self, arguments: &str) -> String {
        let mut command = Command::new("systemctl");
        command.args(["--user", "--no-pager"]).args(arguments.split_whitespace());
        said(&self.as_user(&command).output().unwrap())
    }

    /// Runs it inside; its words are separated by blanks.
    pub fn run(&self, line: &str) -> Output {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        self.sandbox.enter(&command).output().unwrap()
    }

    /// Tenfold, inside, as root.
    pub fn tenfold(&self, arguments: &str) -> Command {
        let mut command = self.sandbox.enter(&self.program(arguments));
        command.env("TENFOLD_STATE_DIR", self.home.path().join("state"));
        command
    }

    /// Tenfold, inside, as the user.
    pub fn tenfold_of_user(&self, arguments: &str) -> Command {
        let mut command = self.as_user(&self.program(arguments));
        command.env("TENFOLD_STATE_DIR", "/tmp/state");
        command
    }

    pub fn serve(&self, arguments: &str) -> Serving {
        Serving::start(&mut self.tenfold(arguments))
    }

    /// `GET path`, inside.
    pub fn get(&self, serving: &Serving, path: &str) -> Result<String, String> {
        self.sandbox.network(|| get(serving.address, path))
    }

    /// What this does with sockets happens inside.
    pub fn network<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.sandbox.network(work)
    }

    /// Starts the user's own systemd.
    pub fn start_user_systemd(&self) {
        assert_eq!(self.systemctl("start user.service"), "");
        assert_eq!(self.user_systemctl("start dbus.socket"), "");
    }

    /// A file in the folder that is the same inside and outside.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Files of Tenfold's that have this text.
    pub fn files_with(&self, text: &str) -> Vec<String> {
        self.home.files_with(text)
    }

    /// The number, outside, of a process inside.
    pub fn pid_outside(&self, inside: u32) -> u32 {
        let own = format!("/proc/{}/ns/pid", self.sandbox.init());
        let namespace = std::fs::read_link(own).unwrap();
        let is_it = |pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let number = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            std::fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|of| of == namespace)
                && number.and_then(|line| line.split_whitespace().last()?.parse().ok())
                    == Some(inside)
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(is_it).expect("it runs")
    }

    fn program(&self, arguments: &str) -> Command {
        let mut command = Command::new(self.home.path().join("tenfold"));
        command.args(arguments.split_whitespace()).current_dir("/");
        command
    }

    fn as_user(&self, command: &Command) -> Command {
        let mut changed = Command::new("setpriv");
        changed.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"]);
        changed.arg(command.get_program()).args(command.get_args());
        changed.env("XDG_RUNTIME_DIR", format!("/run/user/{USER}")).current_dir("/");
        self.sandbox.enter(&changed)
    }
}

/// All that its systemd knows, and its user's: empty targets, a bus and a journal.
fn write_units(home: &Home) {
    let units = home.path().join("units");
    std::fs::create_dir(&units).unwrap();
    let write = |name: &str, text: &str| std::fs::write(units.join(name), text).unwrap();
    for target in TARGETS {
        write(target, "[Unit]\nDefaultDependencies=no\n");
    }
    write("default.target", "[Unit]\nDefaultDependencies=no\nWants=dbus.socket journal.service\n");
    let bus = |which: &str| {
        format!(
            "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nExecStart=/usr/bin/dbus-daemon --{which} \
             --address=systemd: --nofork --nopidfile --systemd-activation --syslog-only\n"
        )
    };
    let socket =
        |at: &str| format!("[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream={at}\n");
    write("dbus.service", &bus("system"));
    write("dbus.socket", &socket("/run/dbus/system_bus_socket"));
    write(
        "journal.service",
        "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nExecStart=/lib/systemd/systemd-journald\n",
    );
    let user = units.join("user");
    std::fs::create_dir(&user).unwrap();
    let folder = format!("/run/user/{USER}");
    write(
        "user.service",
        &format!(
            "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nUser={USER}\nDelegate=yes\n\
             ExecStartPre=+install --directory --owner={USER} {folder}\n\
             Environment=XDG_RUNTIME_DIR={folder} SYSTEMD_UNIT_PATH={}\nExecStart=/lib/systemd/systemd --user\n",
            user.display()
        ),
    );
    let write = |name: &str, text: &str| std::fs::write(user.join(name), text).unwrap();
    for target in TARGETS {
        write(target, "[Unit]\nDefaultDependencies=no\n");
    }
    write("dbus.service", &bus("session"));
    write("dbus.socket", &socket("%t/bus"));
}
