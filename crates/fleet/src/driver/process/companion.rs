//! A program beside the instances, such as another balancer. It dies with Tenfold as they do.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::output::Capture;
use super::{KILL_TIME, ProcessGroup, ProcessHost, command};
use crate::exit::Exit;
use crate::program::Logs;

/// A running program, the leader of its own process group. Dropping it kills the group.
pub struct Companion {
    group: ProcessGroup,
    output: Capture,
}

/// A signal to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompanionSignal {
    /// SIGHUP.
    Reload,
    /// SIGQUIT, by which nginx finishes its requests first.
    Quit,
    /// SIGUSR1, by which HAProxy does.
    User1,
}

impl ProcessHost {
    /// Starts a program, whose output goes to `NAME.log`. It has `inherited` under their numbers here.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn accompany(
        &self,
        name: &str,
        mut command: Command,
        inherited: Vec<Arc<OwnedFd>>,
        logs: &Logs,
    ) -> io::Result<Companion> {
        let (reader, writer) = io::pipe()?;
        command::prepare(&mut command, writer)?;
        let guard = self.guard.clone();
        let group = ProcessGroup::spawn(name, command, guard, None, inherited).await?;
        let output = Capture::start(name, reader, self.log(logs, name))?;
        Ok(Companion { group, output })
    }
}

impl Companion {
    /// The number of the group and of its leader.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Sends the leader a signal.
    pub fn signal(&self, signal: CompanionSignal) {
        self.group.signal_leader(match signal {
            CompanionSignal::Reload => Signal::HUP,
            CompanionSignal::Quit => Signal::QUIT,
            CompanionSignal::User1 => Signal::USR1,
        });
    }

    /// Returns when all of it has ended. May be dropped and called again.
    pub async fn exited(&mut self) -> Exit {
        let exit = self.group.exited().await;
        self.output.finished().await;
        exit
    }

    /// Asks it to end by `signal`, and kills it after `grace`.
    pub async fn stop(mut self, signal: CompanionSignal, grace: Duration) {
        self.signal(signal);
        if timeout(grace, self.group.exited()).await.is_err() {
            self.group.kill();
            let _ = timeout(KILL_TIME, self.group.exited()).await;
        }
    }

    /// At most `n` of the last lines that it wrote, oldest first, printable.
    pub fn last_lines(&self, n: usize) -> Vec<String> {
        self.output.last_lines(n)
    }
}
