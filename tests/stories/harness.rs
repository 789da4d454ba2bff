//! What stories are told with: the program, a place of its own for what it keeps, and the machine.

pub mod clients;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

static MACHINE: RwLock<()> = RwLock::new(());

/// The machine to oneself, to measure.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine beside others.
pub fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A state directory and a working directory that go when the story is over.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Home {
        Home { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The program with `arguments`, separated by blanks.
    pub fn tenfold(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
        command.args(arguments.split_whitespace());
        self.settle(&mut command);
        command
    }

    /// The command in a shell that has run `setting` first. It ends with its terminal even if the tests run
    /// under nohup, since an ignored signal is inherited and no shell gives it back.
    pub fn within(&self, setting: &str, command: &Command) -> Command {
        let mut shell = Command::new("env");
        shell
            .args(["--default-signal=HUP", "sh", "-c"])
            .arg(format!("{setting} && exec \"$0\" \"$@\""));
        shell.arg(command.get_program()).args(command.get_args());
        self.settle(&mut shell);
        shell
    }

    /// The command without the terminal that the tests may have.
    pub fn as_service(&self, command: &Command) -> Command {
        let mut service = Command::new("setsid");
        service.arg(command.get_program()).args(command.get_args());
        self.settle(&mut service);
        service
    }

    fn settle(&self, command: &mut Command) {
        command.env("TENFOLD_STATE_DIR", self.path().join("state"));
        // Those who run the tests may be a service.
        command.env_remove("INVOCATION_ID").env_remove("NOTIFY_SOCKET");
        command.current_dir(self.path()).stdin(Stdio::null());
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &str) -> Output {
        self.tenfold(arguments).output().unwrap()
    }

    /// Runs a measurement to its end. It is repeated, as its user would do, while the program says that the
    /// machine was too busy. It runs three times at most.
    pub fn measure(&self, arguments: &str) -> Output {
        let mut output = self.run(arguments);
        for _ in 0..2 {
            let report = serde_json::from_slice::<Value>(&output.stdout);
            let is_doubtful = report.is_ok_and(|report| report["verdict"] != "valid");
            if !is_doubtful && output.status.code() != Some(4) {
                break;
            }
            output = self.run(arguments);
        }
        output
    }

    /// The names of all files that contain this text.
    pub fn files_with(&self, text: &str) -> Vec<String> {
        let text = format!("--regexp={text}");
        let listed = Command::new("grep")
            .args(["--recursive", "--files-with-matches", "--text", &text, "."])
            .current_dir(self.path())
            .output()
            .unwrap();
        String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Starts `up` or `balance` with a socket of its own and waits until it serves.
    pub fn serve(&self, arguments: &str) -> Serving {
        Serving::start(&mut self.tenfold(arguments))
    }
}

/// A running `up` or `balance`; killed when the story is over.
pub struct Serving {
    pub address: SocketAddr,
    pub child: Child,
    _output: BufReader<ChildStdout>,
    /// What it has said on standard error.
    told: Arc<Mutex<String>>,
}

impl Serving {
    /// Starts it and waits until it serves.
    pub fn start(command: &mut Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let told = overhear(child.stderr.take().unwrap());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).and_then(|rest| rest.split([',', '\n']).next());
        let address = address.unwrap_or_else(|| panic!("not serving: {line}"));
        Serving { address: address.trim().parse().unwrap(), child, _output: output, told }
    }

    /// Waits until it says this on standard error.
    pub fn tells(&self, what: &str) {
        eventually(what, || self.told.lock().unwrap().contains(what));
    }

    /// The body of `GET /`, or what went wrong.
    pub fn get(&self) -> Result<String, String> {
        get(self.address, "/")
    }

    /// Sends a signal and returns the exit code.
    pub fn end(&mut self, signal: Signal) -> Option<i32> {
        send(self.child.id(), signal);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on what a process says, and keeps it.
fn overhear(said: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let told = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&told);
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            eprintln!("{line}");
            kept.lock().unwrap().push_str(&(line + "\n"));
        }
    });
    told
}

/// A GET on a connection of its own. An answer other than 200 is an error.
pub fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|e| e.to_string())?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => Err(answer),
    }
}

/// An address that nobody listens on, and that nobody gets until it is used. Its port is below those that
/// the kernel gives out by itself (`net.ipv4.ip_local_port_range`). Each story gets another one.
pub fn free_address() -> String {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let taken = std::process::id() % 200 * 100 + TAKEN.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 10_000 + taken % 20_000);
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// A signal to a process that the story started.
pub fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// The folder of an example.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// A command's output as one text, for messages.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Standard output as JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)))
}

/// The machine was disturbed, so the rest of a story would judge nothing. `make test` counts these.
pub fn cannot_judge(why: &str) {
    note("cannot judge", why);
}

/// This user may not do what the rest of a story needs.
pub fn cannot_run(why: &str) {
    note("cannot run", why);
}

/// Writes past the capture of output, which libtest shows only for failed tests, and to the file that
/// `scripts/test` reads at the end.
fn note(what: &str, why: &str) {
    let story = std::thread::current();
    let story = story.name().unwrap_or("a story");
    let line = format!("{story} {what}: {why}\n");
    std::io::stderr().write_all(format!("\n{line}").as_bytes()).unwrap();
    if let Some(file) = std::env::var_os("TENFOLD_STORY_NOTES") {
        let file = std::fs::File::options().append(true).create(true).open(file);
        // One write, since stories run side by side.
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// A plan that Tenfold stands for: what rests on rates holds of no other.
pub fn sound(plan: Value) -> Option<Value> {
    let is_sound = plan["verdict"] == "valid";
    if !is_sound {
        assert!(!plan["verdict_reasons"].as_array().unwrap().is_empty(), "{plan:#}");
        cannot_judge(&format!("the measurement is not valid: {}", plan["verdict_reasons"]));
    }
    is_sound.then_some(plan)
}

/// Waits for something that must come; fails with `what` after a minute, which no busy machine needs.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Pids of living processes whose command line, words separated by blanks, contains `mark`.
pub fn processes(mark: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(mark)
        })
        .collect()
}
