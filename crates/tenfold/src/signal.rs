//! SIGINT, SIGTERM and, where a closed terminal is the end, SIGHUP as a value that everything can
//! wait for.

use anyhow::Context;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::watch;

use crate::orphans;
use crate::outcome::Signal;
use crate::output;

/// Clones see the same signal.
#[derive(Clone, Debug)]
pub struct Stop {
    received: watch::Receiver<Option<Signal>>,
}

const WHY: &str =
    "cannot handle signals: run Tenfold where SIGINT, SIGTERM and SIGHUP are not blocked";

impl Stop {
    /// Takes over SIGINT and SIGTERM. A second one ends the program at once, with its exit code.
    pub fn listen() -> anyhow::Result<Stop> {
        Stop::listen_to(None)
    }

    /// And SIGHUP, for what ends with its terminal; not where it is ignored, as by nohup.
    pub fn listen_on_a_terminal() -> anyhow::Result<Stop> {
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup()));
        Stop::listen_to(hangup.transpose().context(WHY)?)
    }

    fn listen_to(mut hangup: Option<unix::Signal>) -> anyhow::Result<Stop> {
        let mut interrupt = signal(SignalKind::interrupt()).context(WHY)?;
        let mut terminate = signal(SignalKind::terminate()).context(WHY)?;
        // Whoever started Tenfold may ignore it, and ignored it is inherited: then the kernel forgets how
        // instances end. Listening ends that; nobody reads it but the first process of a container.
        let children = signal(SignalKind::child()).context(WHY)?;
        if std::process::id() == 1 {
            tokio::spawn(orphans::bury(children));
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
        Ok(Stop { received })
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

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is the first of the mask.
    ignored.is_some_and(|mask| mask.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']))
}
