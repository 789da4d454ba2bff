//! The process that outlives Tenfold for a moment, so that nothing else does.
//!
//! The kernel kills an instance when Tenfold dies, but not what the instance has started. The guard
//! holds the list of process groups and control groups. Its standard input ends only when Tenfold has
//! ended, in whatever way. Then the guard kills the groups that are still listed, and removes the
//! control groups.
//!
//! A guard that dies is replaced at once. It may be killed together with Tenfold, so each guard has a
//! *standby*: a process of the same kind that hears the same lines from it, in a session of its own. It acts
//! if Tenfold is dead and the guard has not said that its work is done. A parent-death signal could not do
//! that: what instances start does not inherit it.
//!
//! What runs elsewhere, as a container does, is undone by its driver's words for it.
//!
//! The protocol is a line per change: `+KEY PGID`, `=KEY DIRECTORY`, `!KEY UNDO` and `-KEY`, and a last
//! `.` where the other end has not been killed. An instance lists itself before it
//! executes anything, so there is no moment at which it could have started something unlisted. Hence
//! the key: when the execution fails, Tenfold never learns the number of the process.

pub(crate) mod cgroup_removal;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, setsid, waitid};
use tokio::signal::unix::{SignalKind, signal};

use crate::driver::process::leftovers::{self, OWNER, Owner};

/// How long a guard is waited for once its input has ended. It needs a millisecond to kill, and more to undo: a
/// container may take ten seconds to stop.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a guard may take to hear a line when it has not read for so long that its socket is
/// full. Starts of instances wait meanwhile.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// In the environment of a guard that is a standby.
const STANDBY: &str = "TENFOLD_GUARD_STANDBY";

/// The last line of Tenfold, and of a guard to its standby: the rest of the work was done.
const DONE: &str = ".";

/// How much later than its guard Tenfold may die, so that a standby takes it for one event.
const DEATH_TIMEOUT: Duration = Duration::from_secs(2);

/// From one look after a guard that could not be started, or had just been started, to the next.
const RESTART_PAUSE: Duration = Duration::from_millis(50);

/// The body of the guard process: returns when standard input has ended and the groups are dead.
/// `undo` gets what drivers have listed.
///
/// # Errors
/// When the signals cannot be taken.
pub(crate) fn run(undo: impl Fn(&str)) -> io::Result<()> {
    // A session of its own: Ctrl-C in the terminal is not for the guard. Fails when it has one.
    let _ = setsid();
    // The working directory must not be kept busy. Nothing is opened by name later.
    let _ = std::env::set_current_dir("/");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // Listening replaces the default action, so each is ignored; nobody reads them.
    let _ignored = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let owner = std::env::var(OWNER).ok().and_then(|owner| owner.parse::<Owner>().ok());
    let is_standby = std::env::var_os(STANDBY).is_some();
    let standby = (!is_standby).then(start_standby).and_then(Result::ok);
    let mut groups = Groups::default();
    let mut is_killed = true;
    // An error means that Tenfold is gone as much as the end does.
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if line == DONE {
            is_killed = false;
            break;
        }
        groups.apply(&line);
        if let Some(standby) = &standby {
            let _ = standby.write(&format!("{line}\n"));
        }
    }
    // A guard that was killed alone has a successor by now, with a standby of its own.
    if is_standby && !(is_killed && dies(owner)) {
        return Ok(());
    }
    groups.kill();
    if let Some(owner) = owner.filter(|_| is_killed && dies(owner)) {
        leftovers::end_all_of(owner);
    }
    groups.undo.values().for_each(|listed| undo(listed));
    Ok(())
}

/// Starts the same program again, to do the work if this process is killed.
fn start_standby() -> io::Result<GuardProcess> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(STANDBY, "1");
    GuardProcess::spawn_command(command)
}

/// Whether Tenfold is dead or dies now.
fn dies(owner: Option<Owner>) -> bool {
    let deadline = Instant::now() + DEATH_TIMEOUT;
    while owner.is_none_or(Owner::is_alive) {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Listed groups by key.
#[derive(Default)]
struct Groups {
    by_key: BTreeMap<u64, Group>,
    /// Directories of control groups. An instance has none, one, or one for each hierarchy.
    cgroups: Vec<(u64, PathBuf)>,
    /// Words of drivers.
    undo: BTreeMap<u64, String>,
}

struct Group {
    /// The number of the group and of its leader.
    leader: i32,
    /// When the leader was started, in clock ticks since boot.
    started: Option<u64>,
}

/// Under which something is listed. Never used for anything else.
pub(crate) type Key = u64;

/// Tenfold's end of a guard. A guard that dies is started again.
#[derive(Debug)]
pub(crate) struct Guard {
    state: Arc<Mutex<State>>,
}

/// What a process needs to list itself between fork and exec.
pub(crate) struct Announcement {
    key: Key,
    socket: Option<Arc<UnixStream>>,
}

#[derive(Debug)]
struct State {
    command: Vec<String>,
    last_key: Key,
    entries: BTreeMap<Key, Entry>,
    process: Option<GuardProcess>,
    /// No guard is needed any more.
    is_over: bool,
}

/// The groups that the guard will end.
#[derive(Debug)]
enum Entry {
    /// A process group.
    Processes(u32),
    /// Directories of control groups.
    Cgroups(Vec<PathBuf>),
    /// A driver's words for what it has to undo; one line.
    Undo(String),
}

#[derive(Debug)]
struct GuardProcess {
    child: Child,
    /// Closed on exec, as all that the standard library opens, so no instance keeps it open.
    socket: Arc<UnixStream>,
}

// === impl Groups ===

impl Groups {
    fn apply(&mut self, line: &str) {
        if let Some((key, leader)) = line.strip_prefix('+').and_then(parse_entry) {
            // Listed twice: by the process itself, and by Tenfold in case the first was not heard.
            let group = || Group { leader, started: start_time(leader) };
            self.by_key.entry(key).or_insert_with(group);
        } else if let Some((key, directory)) = line.strip_prefix('=').and_then(parse_text) {
            self.cgroups.push((key, directory.into()));
        } else if let Some((key, undo)) = line.strip_prefix('!').and_then(parse_text) {
            self.undo.insert(key, undo.to_owned());
        } else if let Some(key) = line.strip_prefix('-').and_then(|key| key.parse().ok()) {
            self.by_key.remove(&key);
            self.undo.remove(&key);
            self.cgroups.retain(|(listed, _)| *listed != key);
        }
    }

    fn kill(&self) {
        for group in self.by_key.values() {
            // A number is not given away while its group has a member. So when a process has it
            // that was not the leader, the group is gone and the number means somebody else.
            let now = start_time(group.leader);
            let same = now.is_none() || now == group.started;
            if same && let Some(leader) = Pid::from_raw(group.leader) {
                let _ = kill_process_group(leader, Signal::KILL);
            }
        }
        for (_, cgroup) in &self.cgroups {
            cgroup_removal::end(cgroup);
        }
    }
}

/// Nothing below 2: killing group 0 or 1 would kill the guard's own group, or everything.
fn parse_entry(entry: &str) -> Option<(u64, i32)> {
    let (key, group) = entry.split_once(' ')?;
    let group = group.parse().ok().filter(|group| *group > 1)?;
    Some((key.parse().ok()?, group))
}

fn parse_text(entry: &str) -> Option<(u64, &str)> {
    let (key, text) = entry.split_once(' ')?;
    Some((key.parse().ok()?, text))
}

fn start_time(pid: i32) -> Option<u64> {
    let stat = Process::new(pid).and_then(|process| process.stat());
    stat.ok().map(|stat| stat.starttime)
}

// === impl Guard ===

impl Guard {
    /// Starts the guard: `command` must end up in [`run`].
    pub(crate) fn start(command: Vec<String>) -> io::Result<Guard> {
        let process = Some(GuardProcess::spawn(&command)?);
        let state =
            State { command, last_key: 0, entries: BTreeMap::new(), process, is_over: false };
        let state = Arc::new(Mutex::new(state));
        let watched = Arc::downgrade(&state);
        // Without the thread, a dead guard is replaced at the next change.
        let _ = thread::Builder::new().name("guard".into()).spawn(move || watch(&watched));
        Ok(Guard { state })
    }

    /// For a process that is about to be started.
    pub(crate) fn announce(&self) -> Announcement {
        let mut state = self.state();
        let key = state.next_key();
        let socket = state.process.as_ref().map(|process| process.socket.clone());
        Announcement { key, socket }
    }

    pub(crate) fn add(&self, key: Key, group: u32) {
        self.list(&mut self.state(), key, Entry::Processes(group));
    }

    /// Lists the control groups of an instance, which need not be there yet.
    pub(crate) fn list_cgroups(&self, directories: &[PathBuf]) -> Key {
        let mut state = self.state();
        let key = state.next_key();
        self.list(&mut state, key, Entry::Cgroups(directories.to_vec()));
        key
    }

    /// Lists what a driver has to undo, before it is done.
    pub(crate) fn list_undo(&self, undo: &str) -> Key {
        let mut state = self.state();
        let key = state.next_key();
        self.list(&mut state, key, Entry::Undo(undo.replace('\n', " ")));
        key
    }

    fn list(&self, state: &mut State, key: Key, entry: Entry) {
        let lines = entry.lines(key);
        state.entries.insert(key, entry);
        self.tell(state, &lines);
    }

    pub(crate) fn remove(&self, key: Key) {
        let mut state = self.state();
        state.entries.remove(&key);
        self.tell(&mut state, &format!("-{key}\n"));
    }

    fn tell(&self, state: &mut State, line: &str) {
        if let Some(process) = &state.process
            && process.write(line).is_ok()
        {
            return;
        }
        state.restart();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The thread that watches the guard may hold the state for a moment longer.
        let mut state = self.state();
        state.is_over = true;
        state.process = None;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces a guard as soon as it has died. Ends with Tenfold's end of it.
fn watch(state: &Weak<Mutex<State>>) {
    loop {
        let pid = match state.upgrade() {
            Some(state) => lock(&state).process.as_ref().map(|process| process.child.id()),
            None => return,
        };
        let child = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(child) = child {
            // The guard stays unreaped, so that its number names no other process.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(Errno::INTR) = waitid(WaitId::Pid(child), ended) {}
        }
        {
            let Some(state) = state.upgrade() else { return };
            let mut state = lock(&state);
            if state.is_over {
                return;
            }
            if state.process.as_ref().map(|process| process.child.id()) == pid {
                state.restart();
            }
        }
        thread::sleep(RESTART_PAUSE);
    }
}

// === impl Entry ===

impl Entry {
    fn lines(&self, key: Key) -> String {
        match self {
            Entry::Processes(group) => format!("+{key} {group}\n"),
            Entry::Cgroups(directories) => {
                directories.iter().map(|at| format!("={key} {}\n", at.display())).collect()
            }
            Entry::Undo(undo) => format!("!{key} {undo}\n"),
        }
    }
}

// === impl State ===

impl State {
    fn next_key(&mut self) -> Key {
        self.last_key += 1;
        self.last_key
    }

    /// Somebody killed or stopped the guard: a new one gets the whole list. Without one, instances still
    /// die with Tenfold, only what they have started may not.
    fn restart(&mut self) {
        // An ended group may be reaped, and its number used again.
        if let Some(mut deaf) = self.process.take()
            && let Ok(None) = deaf.child.try_wait()
        {
            let _ = deaf.child.kill();
        }
        self.process = GuardProcess::spawn(&self.command).ok();
        if let Some(process) = &self.process {
            let list: String = self.entries.iter().map(|(key, entry)| entry.lines(*key)).collect();
            let _ = process.write(&list);
        }
    }
}

// === impl Announcement ===

impl Announcement {
    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Lists the calling process. Neither allocates nor locks nor blocks nor raises a signal, as it
    /// is called between fork and exec.
    pub(crate) fn send(&self) {
        let Some(socket) = &self.socket else { return };
        // The longest key and process id have 20 and 10 digits.
        let mut line = [0; 40];
        let mut rest = &mut line[..];
        if writeln!(rest, "+{} {}", self.key, std::process::id()).is_ok() {
            let unused = rest.len();
            let line = &line[..line.len() - unused];
            // Tenfold says it again, and notices when nobody listens.
            let _ = send(socket, line, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }
}

// === impl GuardProcess ===

impl GuardProcess {
    fn spawn(command: &[String]) -> io::Result<GuardProcess> {
        let (program, arguments) =
            command.split_first().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(Owner::own().map(|owner| (OWNER, owner.to_string())));
        GuardProcess::spawn_command(command)
    }

    fn spawn_command(mut command: Command) -> io::Result<GuardProcess> {
        // A socket, not a pipe: a process can write to it without risking SIGPIPE.
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_write_timeout(Some(SEND_TIMEOUT))?;
        let child = command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(GuardProcess { child, socket: Arc::new(ours) })
    }

    fn write(&self, lines: &str) -> io::Result<()> {
        (&*self.socket).write_all(lines.as_bytes())
    }

    /// Ends its input, and waits until it has done its work. What takes longer it does alone: killed in the middle,
    /// it would leave a stack started or a unit limited.
    fn end(&mut self, patience: Duration) {
        let _ = self.write(&format!("{DONE}\n"));
        // Not only closed: an announcement may hold it too.
        let _ = self.socket.shutdown(Shutdown::Write);
        let deadline = Instant::now() + patience;
        while let Ok(None) = self.child.try_wait()
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        self.end(END_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn the_guard_never_signals_everybody() {
        let mut groups = Groups::default();
        for line in
            ["+1 40", "+2 41", "+2 42", "-1", "+3 0", "+4 1", "+5 -5", "+6 x", "+7", "-9", ""]
        {
            groups.apply(line);
        }
        for line in
            ["=1 /a/tenfold-1-1-0", "=2 /b c", "=2 /d", "=x /e", "=3", "!1 a", "!4 b c", "-1"]
        {
            groups.apply(line);
        }
        assert_eq!(groups.cgroups, [(2, PathBuf::from("/b c")), (2, PathBuf::from("/d"))]);
        assert_eq!(groups.undo.into_iter().collect::<Vec<_>>(), [(4, "b c".to_owned())]);
        let listed = groups.by_key.iter().map(|(key, group)| (*key, group.leader));
        assert_eq!(listed.collect::<Vec<_>>(), [(2, 41)]);
    }

    #[test]
    fn a_process_lists_itself_in_one_line() {
        let (socket, mut guard) = UnixStream::pair().unwrap();
        let announcement = Announcement { key: u64::MAX, socket: Some(Arc::new(socket)) };
        announcement.send();
        drop(announcement);
        let mut line = String::new();
        guard.read_to_string(&mut line).unwrap();
        assert_eq!(line, format!("+{} {}\n", u64::MAX, std::process::id()));
    }

    #[test]
    fn a_reused_group_number_is_not_killed() {
        let mut bystander = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let leader = bystander.id().cast_signed();
        let mut groups = Groups::default();
        groups.by_key.insert(1, Group { leader, started: Some(1) });
        groups.kill();
        assert!(bystander.try_wait().unwrap().is_none());

        groups.apply(&format!("+2 {leader}"));
        groups.kill();
        assert!(!bystander.wait().unwrap().success());
    }

    #[test]
    fn a_dead_guard_is_replaced_with_the_whole_list() {
        let directory = tempfile::tempdir().unwrap();
        let heard = directory.path().join("heard");
        let script = format!("exec cat >>{}", heard.display());
        let guard = Guard::start(vec!["sh".into(), "-c".into(), script]).unwrap();
        let kill = |state: &mut State| {
            let process = state.process.as_mut().unwrap();
            process.child.kill().unwrap();
            process.child.wait().unwrap();
        };
        let hears = |lines: &str| {
            let deadline = Instant::now() + Duration::from_secs(20);
            while !std::fs::read_to_string(&heard).is_ok_and(|heard| heard.ends_with(lines)) {
                assert!(Instant::now() < deadline, "{lines}");
                thread::sleep(Duration::from_millis(2));
            }
        };
        guard.add(1, 40);
        guard.add(2, 41);
        hears("+1 40\n+2 41\n");
        std::fs::remove_file(&heard).unwrap();
        kill(&mut guard.state());
        // Nothing changes meanwhile.
        hears("+1 40\n+2 41\n");
    }

    #[test]
    fn a_guard_that_undoes_for_long_is_left_to_finish() {
        let directory = tempfile::tempdir().unwrap();
        let undone = directory.path().join("undone");
        let script = format!("cat >/dev/null; sleep 1; touch {}", undone.display());
        let mut process = GuardProcess::spawn(&["sh".into(), "-c".into(), script]).unwrap();
        let begun = Instant::now();
        process.end(Duration::from_millis(10));
        assert!(begun.elapsed() < Duration::from_secs(1), "the caller goes on");
        assert!(process.child.wait().unwrap().success());
        assert!(undone.exists());
    }

    #[test]
    fn a_guard_that_hangs_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (heard, deaf) = (directory.path().join("heard"), directory.path().join("deaf"));
        let script = format!(
            "if mkdir {}; then exec sleep 60; else exec cat >>{}; fi",
            deaf.display(),
            heard.display()
        );
        let guard = Guard::start(vec!["sh".into(), "-c".into(), script]).unwrap();
        let (done, end) = std::sync::mpsc::channel();
        thread::spawn(move || {
            // More than a socket holds.
            (1..=2_000).for_each(|key| guard.add(key, 40));
            done.send(guard).unwrap();
        });
        let guard = end.recv_timeout(Duration::from_secs(20)).expect("it hangs");
        // Ends when it has heard all.
        drop(guard);
        let heard = std::fs::read_to_string(heard).unwrap();
        assert!((1..=2_000).all(|key| heard.contains(&format!("+{key} 40\n"))));
    }
}
