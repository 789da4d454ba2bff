//! `load` on a real terminal: a pseudo-terminal that script(1) opens.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;

use crate::harness::{Home, eventually, processes, said, send, shared};
use crate::nginx::Nginx;

const ROWS: u16 = 30;
const COLUMNS: u16 = 100;

/// A terminal with the program in it, and what its screen shows.
struct Terminal {
    script: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<vt100::Parser>>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    /// Runs the program and then says its exit code.
    fn open(home: &Home, arguments: &str) -> Terminal {
        Terminal::run(home, &format!("{} {arguments}; echo code $?", env!("CARGO_BIN_EXE_tenfold")))
    }

    /// Runs a line of shell. The terminal's settings before and after go to files.
    fn run(home: &Home, line: &str) -> Terminal {
        let line =
            format!("stty rows {ROWS} cols {COLUMNS}; stty -a > before; {line}; stty -a > after");
        // A shell that ignores hangups, as under nohup, would outlive its terminal, and all that it runs too.
        let mut script = Command::new("env")
            .args(["--default-signal=HUP", "script", "-q", "-f", "-c", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env("TENFOLD_STATE_DIR", home.path().join("state"))
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (screen, mut output) = (Arc::clone(&seen), script.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..count]);
            }
        });
        Terminal { keys: script.stdin.take().unwrap(), script, seen, reader }
    }

    fn waits_for(&self, what: &str) {
        let shows = || self.seen.lock().unwrap().screen().contents().contains(what);
        eventually(what, shows);
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What stands there when the program has ended; it has left the terminal as it found it.
    fn closed(mut self, home: &Path) -> String {
        self.script.wait().unwrap();
        self.reader.join().unwrap();
        let settings = |name: &str| std::fs::read_to_string(home.join(name)).unwrap();
        assert_eq!(settings("before"), settings("after"));
        let seen = self.seen.lock().unwrap();
        assert!(!seen.screen().alternate_screen() && !seen.screen().hide_cursor());
        seen.screen().contents()
    }
}

#[test]
fn keys_change_the_load_and_end_it_with_a_summary() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = format!("load http://{}/ --rate 100 --duration 10m", nginx.address);
    let mut terminal = Terminal::open(&home, &load);
    terminal.waits_for("100 requests/s offered");
    terminal.press("+");
    terminal.waits_for("110 requests/s offered");
    terminal.press("-");
    terminal.waits_for("100 requests/s offered");
    terminal.press("250\r");
    terminal.waits_for("250 requests/s offered");
    terminal.press("?");
    terminal.waits_for("pause, and go on");
    terminal.press("?p");
    terminal.waits_for("paused");
    terminal.press("p");
    terminal.waits_for("last 5 s");
    terminal.press("q");
    let text = terminal.closed(home.path());
    assert!(text.contains("100 requests/s, changed while it ran"), "{text}");
    assert!(text.contains("status 200") && text.contains("code 0"), "{text}");
}

#[test]
fn ctrl_c_and_signals_restore_the_terminal() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = format!("load http://{}/ --users 2 --think 50ms --duration 10m", nginx.address);
    let mut terminal = Terminal::open(&home, &load);
    terminal.waits_for("2 users");
    terminal.press("\x03");
    let text = terminal.closed(home.path());
    assert!(text.contains("2 users (thinking 50 ms) for") && text.contains("code 130"), "{text}");
    let terminal = Terminal::open(&home, &load);
    terminal.waits_for("2 users");
    let mark = format!("{} load http://{}/", env!("CARGO_BIN_EXE_tenfold"), nginx.address);
    let is_load = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "tenfold\n")
    };
    let pid = processes(&mark).into_iter().find(is_load).unwrap();
    send(pid, Signal::TERM);
    let text = terminal.closed(home.path());
    assert!(text.contains("2 users (thinking 50 ms) for") && text.contains("code 143"), "{text}");
}

#[test]
fn results_are_kept_when_the_terminal_closes() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = format!("load http://{}/ --users 2 --think 50ms --duration 10m", nginx.address);
    let mut terminal = Terminal::open(&home, &load);
    terminal.waits_for("2 users");
    terminal.script.kill().unwrap();
    terminal.script.wait().unwrap();
    eventually("the run is kept", || said(&home.run("runs")).contains("2 users"));
    let mark = format!("load http://{}/", nginx.address);
    eventually("nothing is left", || processes(&mark).is_empty());
}

#[test]
fn sighup_ends_a_load_unless_ignored() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = home.tenfold(&format!("load http://{}/ --rate 50 --duration 3s", nginx.address));
    for (setting, codes) in [("true", [129, 129]), ("trap '' HUP", [0, 4])] {
        let mut load = home.within(setting, &load);
        let mut load = load.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(load.stderr.take().unwrap()).lines();
        assert!(told.next().unwrap().unwrap().starts_with("50 requests/s on"), "it has begun");
        send(load.id(), Signal::HUP);
        // The terminal and its shell both send one.
        send(load.id(), Signal::HUP);
        let code = load.wait().unwrap().code().unwrap();
        assert!(codes.contains(&code), "{setting}: {code}");
    }
}

#[test]
fn a_closed_terminal_ends_what_serves_there() {
    let _machine = shared();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let up = format!("{program} up --listen 127.0.0.1:0 --env MARK=closed -- {program} demo-app");
    let balance = format!("{program} balance --listen 127.0.0.1:0 --to 127.0.0.1:1");
    let code = home.path().join("code");
    for line in [up, balance] {
        // A shell of its own outlives the terminal, to keep the code.
        let line = format!("env --default-signal=HUP {line}; echo $? > code");
        let line = format!("sh -c 'trap \"\" HUP; {line}'");
        let mut terminal = Terminal::run(&home, &line);
        terminal.waits_for("tenfold status");
        terminal.script.kill().unwrap();
        terminal.script.wait().unwrap();
        eventually("it ends", || std::fs::read_to_string(&code).is_ok_and(|code| code == "129\n"));
        std::fs::remove_file(&code).unwrap();
    }
}

#[test]
fn a_closed_terminal_ends_what_measures_there() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let program = env!("CARGO_BIN_EXE_tenfold");
    let code = home.path().join("code");
    // Where the signal does not come, as in a session that the shell has left, the terminal only fails.
    for signal in ["env --default-signal=HUP", "setsid -w"] {
        for (command, shown) in [
            (
                format!("load http://{}/ --users 2 --think 50ms --duration 4s", nginx.address),
                "2 users",
            ),
            (format!("plan --users 2 --budget 10s -- {program} demo-app"), "starting the app"),
        ] {
            let line = format!("{signal} {program} {command}; echo $? > code");
            let line = format!("sh -c 'trap \"\" HUP; {line}'");
            let mut terminal = Terminal::run(&home, &line);
            terminal.waits_for(shown);
            terminal.script.kill().unwrap();
            terminal.script.wait().unwrap();
            let ended = || std::fs::read_to_string(&code).unwrap_or_default();
            eventually("it ends", || !ended().is_empty());
            let line = ended();
            assert_eq!(line, "129\n", "{signal} {command}");
            std::fs::remove_file(&code).unwrap();
        }
    }
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let _machine = shared();
    let home = Home::new();
    let plan = format!("{} plan --users 1 -- false", env!("CARGO_BIN_EXE_tenfold"));
    Terminal::run(&home, &format!("TERM=dumb script -q -c '{plan}' raw; true")).closed(home.path());
    let raw = std::fs::read_to_string(home.path().join("raw")).unwrap();
    assert!(raw.contains("starting the app") && !raw.contains('\u{1b}'), "{raw:?}");
}

#[test]
fn a_background_job_leaves_the_terminal_alone() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    // With -m, a job has a process group of its own: touching the terminal would stop it.
    let job = format!(
        "set -m; {} load http://{}/ -n 20 & wait; true",
        env!("CARGO_BIN_EXE_tenfold"),
        nginx.address
    );
    let text = Terminal::run(&home, &job).closed(home.path());
    assert!(text.contains("status 200: 20"), "{text}");
}

#[test]
fn without_a_terminal_it_prints_a_line_a_second() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let output = home.run(&format!("load http://{}/ --steps 50:1s,80:3s", nginx.address));
    let lines = String::from_utf8(output.stderr).unwrap();
    let mut lines = lines.lines().filter(|line| line.contains(" s  "));
    let first = lines.next().unwrap();
    assert!(
        first.contains(" s  50.0 requests/s offered  "),
        "of its second, not the next: {first}"
    );
    assert!(lines.all(|line| line.contains("  80.0 requests/s offered  ")));
    let quiet = home.run(&format!("load http://{}/ -n 5 --quiet", nginx.address));
    assert_eq!(String::from_utf8(quiet.stderr).unwrap(), "");
}
