//! Tenfold under a real systemd that manages a user's services. Systemd learns when Tenfold serves, and who
//! serves after a takeover. It starts another one when Tenfold dies.

use std::path::Path;

use rustix::process::Signal;

use crate::harness::{Home, alone, eventually, free_address, get, processes, send};
use crate::user_manager::{SCRATCH, UserManager};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// The unit of the guide.
fn service(address: &str) -> String {
    let guide = include_str!("../../docs/balancer.md");
    let unit = guide.split("```ini\n").nth(1).unwrap().split("```").next().unwrap();
    let start = format!("ExecStart={APP} up -n 2 --listen {address} -- {APP} demo-app");
    let state = format!("Environment=TENFOLD_STATE_DIR={SCRATCH}");
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
    let (address, units) = (free_address(), Home::new());
    std::fs::write(units.path().join("story.service"), service(&address)).unwrap();
    let program = Path::new(APP);
    let Some(manager) = UserManager::start(units.path(), &[program]) else { return };
    let main_pid =
        || -> u32 { manager.ask("show story --property MainPID --value").trim().parse().unwrap() };
    let serves = || get(address.parse().unwrap(), "/").is_ok();
    assert_eq!(manager.ask("start story"), "");
    assert!(serves(), "started means that it serves");
    let first = main_pid();
    assert_eq!(manager.ask("reload story"), "");
    eventually("another one is the main process", || main_pid() != first);
    eventually("the first one has ended", || !Path::new(&format!("/proc/{first}")).exists());
    assert!(serves());
    let second = main_pid();
    send(second, Signal::KILL);
    eventually("a third one serves", || ![0, second].contains(&main_pid()) && serves());
    assert_eq!(manager.ask("stop story"), "");
    let end = manager.ask("show story --property ActiveState,Result");
    assert!(end.contains("ActiveState=inactive") && end.contains("Result=success"), "{end}");
    assert_eq!(processes(&address), Vec::<u32>::new());
}
