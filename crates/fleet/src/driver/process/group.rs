//! A process and all that it started, from fork to the last of them.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::sync::{oneshot, watch};

use super::leftovers::Mark;
use super::{pre_exec, sockets};
use crate::cgroup::Cgroup;
use crate::exit::Exit;
use crate::guard::{Announcement, Guard, Key};

/// How often Tenfold looks for the rest of a group after its leader has ended. It begins with the first
/// interval and slows down to the second, since each look reads all of /proc.
const SWEEP_INTERVAL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// How long killed processes may take to go. One that the kernel cannot end is left behind then.
const SWEEP_LIMIT: Duration = Duration::from_secs(2);

/// A process group. Dropping it kills it.
pub(crate) struct ProcessGroup {
    shared: Arc<Shared>,
    life: watch::Receiver<Life>,
}

/// How far a group is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    /// The leader has ended; something else of the group may be left.
    LeaderExited,
    Ended(Exit),
}

struct Shared {
    leader: Pid,
    guard: Option<(Arc<Guard>, Key)>,
    mark: Mark,
    phase: Mutex<Phase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Got SIGTERM. What the leader leaves behind may take its time as well.
    Asked,
    Killed(Instant),
    /// The leader was reaped: its number may already mean somebody else.
    Gone,
}

impl ProcessGroup {
    /// Starts `command` as the leader of a new group. A thread forks it and waits for its
    /// end. The parent-death signal is tied to that thread, so it must live as long as the process does.
    pub(crate) async fn spawn(
        name: &str,
        mut command: Command,
        guard: Option<Arc<Guard>>,
        cgroup: Option<Cgroup>,
        inherited: Vec<Arc<OwnedFd>>,
    ) -> io::Result<ProcessGroup> {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mark = Mark::new();
        command.envs(mark.variables());
        let procs_files = cgroup.as_ref().map_or(Ok(Vec::new()), Cgroup::procs_files)?;
        let announcement = guard.as_deref().map(Guard::announce);
        let guard = guard.zip(announcement.as_ref().map(Announcement::key));
        pre_exec::before_exec(&mut command, announcement, procs_files, inherited);
        let (started, start) = oneshot::channel();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || supervise(command, guard, mark, cgroup, started))?;
        start.await.unwrap_or(Err(io::ErrorKind::Other.into()))
    }

    /// The number of the group and of its leader.
    pub(super) fn id(&self) -> u32 {
        self.shared.leader.as_raw_nonzero().get().cast_unsigned()
    }

    /// Asks all of it to end.
    pub(super) fn terminate(&self) {
        let mut phase = self.shared.phase();
        if *phase == Phase::Running {
            *phase = Phase::Asked;
            self.shared.signal(Signal::TERM);
        }
    }

    /// Sends the leader alone a signal that means something to its program.
    pub(super) fn signal_leader(&self, signal: Signal) {
        let phase = self.shared.phase();
        if *phase != Phase::Gone {
            // Fails when it has ended just now.
            let _ = kill_process(self.shared.leader, signal);
        }
    }

    pub(super) fn kill(&self) {
        self.shared.kill(&mut self.shared.phase());
    }

    /// Returns when the leader has ended.
    pub(super) async fn leader_exited(&mut self) {
        // An error means that the thread that would tell is gone.
        let _ = self.life.wait_for(|life| *life != Life::Running).await;
    }

    /// Returns when the leader has ended and nothing else of the group is left.
    pub(crate) async fn exited(&mut self) -> Exit {
        match self.life.wait_for(|life| matches!(life, Life::Ended(_))).await.as_deref() {
            Ok(Life::Ended(exit)) => *exit,
            Ok(_) | Err(_) => Exit::Unknown,
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs on a thread for each group: starts it, and waits for its end.
fn supervise(
    mut command: Command,
    guard: Option<(Arc<Guard>, Key)>,
    mark: Mark,
    cgroup: Option<Cgroup>,
    started: oneshot::Sender<io::Result<ProcessGroup>>,
) {
    let spawned = command.spawn();
    // Closes our copies of what was handed to the child, or its output would never end.
    drop(command);
    let child = match spawned {
        Ok(child) => child,
        Err(error) => {
            drop(cgroup);
            if let Some((guard, key)) = guard {
                guard.remove(key);
            }
            let _ = started.send(Err(error));
            return;
        }
    };
    if let Some((guard, key)) = &guard {
        guard.add(*key, child.id());
    }
    let (life_sender, life) = watch::channel(Life::Running);
    let shared = Arc::new(Shared {
        leader: Pid::from_child(&child),
        guard,
        mark,
        phase: Mutex::new(Phase::Running),
    });
    let group = ProcessGroup { shared: shared.clone(), life };
    // When nobody waits for it any more, it comes back, is dropped, and thereby killed.
    drop(started.send(Ok(group)));
    let exit = shared.wait_for_group(child, cgroup, &life_sender);
    life_sender.send_replace(Life::Ended(exit));
}

impl Shared {
    /// Blocks until the group has ended; tells when its leader has.
    fn wait_for_group(
        &self,
        mut child: Child,
        cgroup: Option<Cgroup>,
        life: &watch::Sender<Life>,
    ) -> Exit {
        // The leader stays unreaped until the end, so that its number names this group and no other.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = waitid(WaitId::Pid(self.leader), ended) {}
        let end = *self.phase();
        life.send_replace(Life::LeaderExited);

        self.sweep();
        // Ignore OOM kills after a requested stop.
        let overrun = cgroup.as_ref().and_then(Cgroup::overrun).filter(|_| end == Phase::Running);
        // Ends what has left the process group but not the control group.
        drop(cgroup);
        let mut phase = self.phase();
        let status = child.wait();
        *phase = Phase::Gone;
        drop(phase);
        if let Some((guard, key)) = &self.guard {
            guard.remove(*key);
        }
        let exit = status.map_or(Exit::Unknown, Exit::from);
        overrun.map_or(exit, |limit| exit.at_memory_limit(limit))
    }

    /// Waits for what the leader has left behind; kills it unless it was asked to end, and has time.
    fn sweep(&self) {
        let mut interval = SWEEP_INTERVAL.0;
        let mut is_told = false;
        while sockets::has_members(self.leader) || self.mark.signal(None) {
            let mut phase = self.phase();
            match *phase {
                Phase::Running => self.kill(&mut phase),
                Phase::Killed(since) if since.elapsed() > SWEEP_LIMIT => return,
                // Again, for what was forked while the signal was sent.
                Phase::Killed(_) => {
                    self.signal(Signal::KILL);
                    self.mark.signal(Some(Signal::KILL));
                }
                // The signal to the group has not reached what has left it.
                Phase::Asked if !is_told => {
                    self.mark.signal(Some(Signal::TERM));
                    is_told = true;
                }
                Phase::Asked | Phase::Gone => {}
            }
            drop(phase);
            thread::sleep(interval);
            interval = (interval * 2).min(SWEEP_INTERVAL.1);
        }
    }

    fn kill(&self, phase: &mut Phase) {
        if matches!(phase, Phase::Running | Phase::Asked) {
            *phase = Phase::Killed(Instant::now());
            self.signal(Signal::KILL);
        }
    }

    /// Only while the phase is locked and not `Gone`.
    fn signal(&self, signal: Signal) {
        // Fails when all of it has ended just now, which is as well.
        let _ = kill_process_group(self.leader, signal);
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
