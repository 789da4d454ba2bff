//! SIGINT, SIGTERM and, where a closed terminal is the end, SIGHUP as a value that everything can
//! wait for.

use std::fs::File;

use anyhow::Context;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::watch;

use crate::process::exit_code::Signal;
use crate::process::reaper;
use crate::terminal::output;

/// Clones see the same signal.
#[derive(Clone, Debug)]
pub struct Stop {
    received: watch::Receiver<Option<Signal>>,
    hangup: Hangup,
}

/// What SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// The terminal has gone, and the program ends with it.
    End,
    /// Something else: who ignored it, as nohup does, or runs without a terminal is not told of one.
    Other,
}

const WHY: &str =
    "cannot handle signals: run Tenfold where SIGINT, SIGTERM and SIGHUP are not blocked";

impl Stop {
    /// For a command: takes over SIGINT, SIGTERM, and SIGHUP unless it is ignored, as by nohup. A second
    /// one ends the program at once, with its exit code.
    pub fn listen() -> anyhow::Result<Stop> {
        Stop::listen_to(if is_hangup_ignored() { Hangup::Other } else { Hangup::End })
    }

    /// For what may be a service: the same, but SIGHUP only on a terminal.
    pub fn listen_as_service() -> anyhow::Result<Stop> {
        let is_end = has_terminal() && !is_hangup_ignored();
        Stop::listen_to(if is_end { Hangup::End } else { Hangup::Other })
    }

    fn listen_to(meaning: Hangup) -> anyhow::Result<Stop> {
        let hangup = (meaning == Hangup::End).then(|| signal(SignalKind::hangup()));
        let mut hangup = hangup.transpose().context(WHY)?;
        let mut interrupt = signal(SignalKind::interrupt()).context(WHY)?;
        let mut terminate = signal(SignalKind::terminate()).context(WHY)?;
        // Whoever started Tenfold may ignore it, and ignored it is inherited: then the kernel forgets how
        // instances end. Listening ends that; nobody reads it but the first process of a container.
        let children = signal(SignalKind::child()).context(WHY)?;
        if std::process::id() == 1 {
            tokio::spawn(reaper::reap(children));
        }
        let (sender, received) = watch::channel(None);
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                    Some(_) = next(&mut hangup) => Signal::Hangup,
                };
                // A terminal that closes and its shell both send one: the second means nothing.
                let repeated = signal == Signal::Hangup && sender.borrow().is_some();
                if !repeated && sender.send_replace(Some(signal)).is_some() {
                    output::settle();
                    // The guard ends the instances.
                    std::process::exit(signal.code().into());
                }
            }
        });
        Ok(Stop { received, hangup: meaning })
    }

    /// What SIGHUP means here.
    pub fn hangup(&self) -> Hangup {
        self.hangup
    }

    /// Waits for a signal.
    pub async fn wait(&self) -> Signal {
        let mut received = self.received.clone();
        match received.wait_for(Option::is_some).await.map(|signal| *signal) {
            Ok(Some(signal)) => signal,
            _ => std::future::pending().await,
        }
    }
}

/// The next one, if it is listened to.
async fn next(signal: &mut Option<unix::Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

/// Whether the kernel would tell this process that its terminal was closed: tty(4).
pub fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is the first of the mask.
    ignored.is_some_and(|mask| mask.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']))
}
