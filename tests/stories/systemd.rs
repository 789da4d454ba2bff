//! Under a real systemd, as its manager of a user's services: it is told when Tenfold serves, who serves
//! after a takeover, and starts another one where it died.

use std::path::Path;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::harness::{Home, alone, eventually, free_address, get, processes, said, send};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// A systemd of its own; ended when the story is over.
struct Manager {
    process: Child,
    home: Home,
}

impl Manager {
    /// Knows this service as `story`.
    fn start(service: &str) -> Manager {
        let home = Home::new();
        std::fs::write(home.path().join("story.service"), service).unwrap();
        // It wants to see that systemd has booted the machine, here in a view of its own.
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]).arg(
            "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec /lib/systemd/systemd --user",
        );
        let process = command.envs(environment(&home)).spawn().unwrap();
        let manager = Manager { process, home };
        eventually("systemd runs", || manager.ask("is-system-running").contains("running"));
        manager
    }

    /// What `systemctl` prints.
    fn ask(&self, arguments: &str) -> String {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.process.id().to_string(), "--mount"]);
        command.args(["systemctl", "--user", "--no-pager"]).args(arguments.split(' '));
        said(&command.envs(environment(&self.home)).output().unwrap())
    }

    fn main_pid(&self) -> u32 {
        self.ask("show story --property MainPID --value").trim().parse().unwrap()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        send(self.process.id(), Signal::TERM);
        let _ = self.process.wait();
    }
}

fn environment(home: &Home) -> [(&'static str, String); 2] {
    let path = home.path().display();
    [
        ("XDG_RUNTIME_DIR", path.to_string()),
        ("SYSTEMD_UNIT_PATH", format!("{path}:/usr/lib/systemd/user")),
    ]
}

/// The unit of the guide.
fn service(address: &str, state: &Path) -> String {
    let guide = include_str!("../../docs/balancer.md");
    let unit = guide.split("```ini\n").nth(1).unwrap().split("```").next().unwrap();
    let start = format!("ExecStart={APP} up -n 2 --listen {address} -- {APP} demo-app");
    let state = format!("Environment=TENFOLD_STATE_DIR={}", state.display());
    let line = |line: &str| match line.split('=').next() {
        Some("ExecStart") => start.clone(),
        Some("Environment") => state.clone(),
        Some("StateDirectory") => String::new(),
        _ => line.to_owned(),
    };
    unit.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "needs the right to mount; `make soak` runs it"]
fn systemd_starts_reloads_restarts_and_stops_it() {
    let _machine = alone();
    let (address, state) = (free_address(), Home::new());
    let manager = Manager::start(&service(&address, state.path()));
    let serves = || get(address.parse().unwrap(), "/").is_ok();
    assert_eq!(manager.ask("start story"), "");
    assert!(serves(), "started means that it serves");
    let first = manager.main_pid();
    assert_eq!(manager.ask("reload story"), "");
    eventually("another one is the main process", || manager.main_pid() != first);
    eventually("the first one has ended", || !Path::new(&format!("/proc/{first}")).exists());
    assert!(serves());
    let second = manager.main_pid();
    send(second, Signal::KILL);
    eventually("a third one serves", || ![0, second].contains(&manager.main_pid()) && serves());
    assert_eq!(manager.ask("stop story"), "");
    let end = manager.ask("show story --property ActiveState,Result");
    assert!(end.contains("ActiveState=inactive") && end.contains("Result=success"), "{end}");
    assert_eq!(processes(&address), Vec::<u32>::new());
}
