//! What Tenfolds have left behind that were killed together with their guards: control groups, and
//! processes that instances had started. The next Tenfold ends both.
//!
//! A variable in the environment of an instance names the Tenfold that started it. Everything that the
//! instance starts inherits this variable. A process is ended only if
//!
//! - that Tenfold is dead: no process has its number and its time of start,
//! - the number means the same here: it was given in this pid namespace,
//! - and the process is still in the session of that Tenfold. Daemons have left it on purpose.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::{Process, Stat, all_processes};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::cgroup;

/// The variable. Its value is an [`Owner`].
pub(crate) const OWNER: &str = "TENFOLD_OWNER";

/// The variable that tells the process groups of one Tenfold apart. Its value is a number.
const GROUP: &str = "TENFOLD_GROUP";

/// How long to go on ending processes while there are more of them.
const END_LIMIT: Duration = Duration::from_secs(1);

/// How long a killed process takes to go.
const PAUSE: Duration = Duration::from_millis(2);

/// The Tenfold that started an instance. As text four numbers, as in `4711-90210-4700-4026531836`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: i32,
    /// When it was started, in clock ticks since boot.
    start: u64,
    /// Its session (setsid(2)), which is that of its instances, too.
    session: i32,
    /// The pid namespace that it was in (pid_namespaces(7)).
    namespace: u64,
}

/// Ends what killed Tenfolds have left behind.
pub fn clear() {
    cgroup::clear();
    let Some(own) = Owner::own() else { return };
    let deadline = Instant::now() + END_LIMIT;
    // Again, for what was forked meanwhile.
    while end_orphans(own) && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
}

/// The mark of a process group in the environment of all that it starts. It finds those that have left the
/// group but not the session, as a background job of a shell with job control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    owner: Option<Owner>,
    group: u64,
}

impl Mark {
    /// One that no other group of this process has.
    pub(crate) fn new() -> Mark {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Mark { owner: Owner::own(), group: LAST.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    /// For the environment of the leader.
    pub(crate) fn variables(self) -> impl Iterator<Item = (&'static str, String)> {
        let owner = self.owner.map(|owner| (OWNER, owner.to_string()));
        owner.into_iter().chain([(GROUP, self.group.to_string())])
    }

    /// Signals all that bear the mark. Returns whether there were any.
    pub(crate) fn signal(self, signal: Option<Signal>) -> bool {
        let Some(owner) = self.owner else { return false };
        signal_marked(owner, Some(self.group), signal)
    }
}

/// Ends all that this Tenfold has started and that is still in its session.
pub(crate) fn end_all_of(owner: Owner) {
    let deadline = Instant::now() + END_LIMIT;
    while signal_marked(owner, None, Some(Signal::KILL)) && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
}

fn signal_marked(owner: Owner, group: Option<u64>, signal: Option<Signal>) -> bool {
    let is_marked = |pid: i32| {
        // The session first, because it is in one short file.
        stat(pid).is_some_and(|stat| stat.session == owner.session)
            && owner_of(pid) == Some(owner)
            && group.is_none_or(|group| variable(pid, GROUP) == Some(group.to_string()))
    };
    let pids = all_processes().into_iter().flatten().flatten().map(|process| process.pid());
    let marked: Vec<i32> = pids.filter(|&pid| is_marked(pid)).collect();
    for pid in &marked {
        let handle = Pid::from_raw(*pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let (Some(handle), Some(signal)) = (handle, signal)
            && is_marked(*pid)
        {
            // Fails when it has just ended.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
    !marked.is_empty()
}

/// Whether there were any.
fn end_orphans(own: Owner) -> bool {
    let pids = all_processes().into_iter().flatten().flatten().map(|process| process.pid());
    let orphans: Vec<i32> = pids.filter(|&pid| is_orphan(pid, own)).collect();
    for &orphan in &orphans {
        let Some(handle) =
            Pid::from_raw(orphan).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        else {
            continue;
        };
        // From here on the handle is of one process. The number may have become that of another one before.
        if is_orphan(orphan, own) {
            // Fails when it has just ended.
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
    !orphans.is_empty()
}

fn is_orphan(pid: i32, own: Owner) -> bool {
    // Processes of other users cannot be read, and are left alone.
    let Some(owner) = owner_of(pid) else { return false };
    let session = stat(pid).map(|stat| stat.session);
    owner.namespace == own.namespace && session == Some(owner.session) && !owner.is_alive()
}

fn owner_of(pid: i32) -> Option<Owner> {
    variable(pid, OWNER)?.parse().ok()
}

/// A variable in the environment that a process was started with.
fn variable(pid: i32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| {
        variable.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
    })?;
    String::from_utf8(value.to_vec()).ok()
}

/// The stat of a process that has not ended.
fn stat(pid: i32) -> Option<Stat> {
    let stat = Process::new(pid).and_then(|process| process.stat()).ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat)
}

impl Owner {
    /// This process, if /proc tells of it.
    pub(crate) fn own() -> Option<Owner> {
        static OWN: OnceLock<Option<Owner>> = OnceLock::new();
        *OWN.get_or_init(|| {
            let pid = std::process::id().cast_signed();
            let stat = stat(pid)?;
            // The number in `pid:[4026531836]`.
            let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
            let namespace = namespace.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?;
            let namespace = namespace.parse().ok()?;
            Some(Owner { pid, start: stat.starttime, session: stat.session, namespace })
        })
    }

    /// Whether it has ended, as far as `own` can tell: numbers of processes mean the same to both only in
    /// one pid namespace.
    pub(crate) fn is_dead_beside(self, own: Owner) -> bool {
        self.namespace == own.namespace && !self.is_alive()
    }

    pub(crate) fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.starttime == self.start)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { pid, start, session, namespace } = self;
        write!(f, "{pid}-{start}-{session}-{namespace}")
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split('-').collect();
        let [pid, start, session, namespace] = parts[..] else { return Err(()) };
        let number = |text: &str| text.parse::<u64>().map_err(drop);
        let id = |text: &str| text.parse::<i32>().map_err(drop);
        Ok(Owner {
            pid: id(pid)?,
            start: number(start)?,
            session: id(session)?,
            namespace: number(namespace)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    /// A process with this owner in its environment, once that can be seen, or has been by another test.
    fn owned_by(owner: Owner) -> Child {
        let mut command = Command::new("sleep");
        let child = command.arg("60").env(OWNER, owner.to_string()).process_group(0).spawn();
        let mut child = child.unwrap();
        while owner_of(child.id().cast_signed()) != Some(owner)
            && child.try_wait().unwrap().is_none()
        {
            thread::sleep(PAUSE);
        }
        child
    }

    #[test]
    fn an_owner_survives_text() {
        let own = Owner::own().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own));
        for text in ["", "1", "1-2-3", "1-2-3-4-5", "a-2-3-4", "1-2-3-x"] {
            assert_eq!(text.parse::<Owner>(), Err(()), "{text}");
        }
    }

    #[test]
    fn only_orphans_of_a_dead_tenfold_are_ended() {
        let own = Owner::own().unwrap();
        // A number that was given to this process, and before it to a Tenfold.
        let dead = Owner { start: own.start + 1, ..own };
        let elsewhere = Owner { namespace: own.namespace + 1, ..dead };
        let left = Owner { session: own.session + 1, ..dead };
        let bystanders = [own, elsewhere, left].map(owned_by);
        let mut orphan = owned_by(dead);
        clear();
        assert!(!orphan.wait().unwrap().success());
        for mut bystander in bystanders {
            assert_eq!(bystander.try_wait().unwrap(), None);
            bystander.kill().unwrap();
            bystander.wait().unwrap();
        }
    }
}
