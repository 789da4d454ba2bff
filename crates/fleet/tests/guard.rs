//! When Tenfold is killed with SIGKILL, neither an instance nor what it has started outlives it, nor
//! the control groups that limited it. Where its guard is killed, too, the next Tenfold ends them.
//!
//! This program plays three parts: the observer (without arguments), a supervisor with one instance,
//! and its guard. All that must die holds a FIFO open for writing, so the end of the FIFO is the
//! proof that nothing is left.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fleet::driver::fake::{FakeMembership, Journal};
use fleet::{App, Driver, Fleet, Limits, Logs, ProcessDriver, ProcessHost, Program, leftovers};
use procfs::process::Process;
use rustix::process::{Pid, Signal, kill_process};

/// An instance that ignores what is asked of it, as does what it has started. `$1` is the FIFO.
const INSTANCE: &str = r#"
exec 3>"$1"
trap "" TERM INT HUP
sleep 300 &
echo "instance $$ $!" >&3
wait
"#;

/// Much longer than it takes, for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "guard", fifo] => {
            let mut fifo = OpenOptions::new().write(true).open(fifo).unwrap();
            writeln!(fifo, "guard {}", std::process::id()).unwrap();
            fleet::run_guard().unwrap();
        }
        [program, "supervisor", fifo, logs, part] => {
            let guard = (*part == "guarded")
                .then(|| [*program, "guard", *fifo].map(str::to_owned).to_vec());
            supervise(fifo, logs, guard, part);
        }
        _ => {
            the_guard_ends_what_the_kernel_does_not();
            without_a_guard_only_the_instance_dies();
            the_next_tenfold_ends_what_is_left();
        }
    }
}

fn supervise(fifo: &str, logs: &str, guard: Option<Vec<String>>, part: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let script = match part {
            "nameless" => format!("unset TENFOLD_OWNER\n{INSTANCE}"),
            _ => INSTANCE.to_owned(),
        };
        let command = ["sh", "-c", &script, "sh", fifo].map(str::to_owned).to_vec();
        let host = Arc::new(ProcessHost::new(guard).unwrap());
        let program = Program::new(command, Logs::new(logs));
        let membership = FakeMembership::new(&Journal::default(), Duration::ZERO);
        let mut app = App::named("app");
        app.readiness.deadline = PATIENCE * 10;
        let limits = Limits { cpus: "0.9".parse().ok(), memory: Some(100_000_000) };
        let driver = ProcessDriver::new(program, host);
        let limited = App { limits, ..app.clone() };
        if part == "guarded" && driver.check(&limited).await.is_ok() {
            app = limited;
        }
        let fleet = Fleet::new(app, Arc::new(driver), Arc::new(membership));
        let _ = fleet.scale(1).await;
    });
}

fn the_guard_ends_what_the_kernel_does_not() {
    let mut stage = Stage::open("guarded");
    let guard = stage.line("guard")[0];
    stage.line("instance");
    // The guard is deaf to what ends other processes, once it runs.
    let deaf_to = [Signal::INT, Signal::TERM, Signal::HUP];
    let mask = deaf_to.iter().fold(0, |mask, signal| mask | 1 << (signal.as_raw() - 1));
    while Process::new(guard).unwrap().status().unwrap().sigcgt & mask != mask {
        thread::sleep(Duration::from_millis(2));
    }
    for signal in deaf_to {
        kill_process(Pid::from_raw(guard).unwrap(), signal).unwrap();
    }
    let groups = stage.cgroups();
    stage.kill_supervisor();
    stage.expect_end();
    let left: Vec<_> = groups.iter().filter(|group| group.exists()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Shows that the test above can fail, and how the next one is passed: the environment does not name
/// who started the instance.
fn without_a_guard_only_the_instance_dies() {
    let mut stage = Stage::open("nameless");
    let pids = stage.line("instance");
    stage.kill_supervisor();
    wait_for_the_end_of(pids[0]);
    leftovers::clear();
    assert!(lives(pids[1]));
    kill_process(Pid::from_raw(pids[1]).unwrap(), Signal::KILL).unwrap();
    stage.expect_end();
}

/// Without control groups, and with no guard any more.
fn the_next_tenfold_ends_what_is_left() {
    let mut stage = Stage::open("alone");
    let pids = stage.line("instance");
    leftovers::clear();
    assert!(pids.iter().all(|&pid| lives(pid)), "its Tenfold lives");
    stage.kill_supervisor();
    wait_for_the_end_of(pids[0]);
    leftovers::clear();
    stage.expect_end();
}

fn wait_for_the_end_of(pid: i32) {
    while lives(pid) {
        thread::sleep(Duration::from_millis(2));
    }
}

fn lives(pid: i32) -> bool {
    let stat = Process::new(pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

struct Stage {
    supervisor: Child,
    /// Lines of the FIFO; closed at its end.
    lines: mpsc::Receiver<String>,
    /// Lines that were not asked for yet.
    early: Vec<String>,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn open(part: &str) -> Stage {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let supervisor = Command::new(env::current_exe().unwrap())
            .arg("supervisor")
            .args([&fifo, &directory.path().join("logs")])
            .arg(part)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            // Returns from opening with the first writer, and ends with the last.
            for line in BufReader::new(File::open(fifo).unwrap()).lines() {
                sender.send(line.unwrap()).unwrap();
            }
        });
        Stage { supervisor, lines, early: Vec::new(), _directory: directory }
    }

    /// The numbers on the line that starts with `word`.
    fn line(&mut self, word: &str) -> Vec<i32> {
        loop {
            if let Some(line) = self.early.iter().find(|line| line.starts_with(word)) {
                return line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
            }
            self.early.push(self.lines.recv_timeout(PATIENCE).unwrap());
        }
    }

    /// Those of the supervisor's instances, where it may make any.
    fn cgroups(&self) -> Vec<PathBuf> {
        let name = format!("tenfold-{}-*", self.supervisor.id());
        let find = Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().unwrap();
        String::from_utf8(find.stdout).unwrap().lines().map(PathBuf::from).collect()
    }

    fn kill_supervisor(&mut self) {
        self.supervisor.kill().unwrap();
        self.supervisor.wait().unwrap();
    }

    fn expect_end(&self) {
        // The standby of the guard may have spoken meanwhile.
        let mut lines = std::iter::repeat_with(|| self.lines.recv_timeout(PATIENCE));
        let end = lines.find(|line| !line.as_ref().is_ok_and(|line| line.starts_with("guard")));
        assert_eq!(end, Some(Err(mpsc::RecvTimeoutError::Disconnected)));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.supervisor.kill();
    }
}
