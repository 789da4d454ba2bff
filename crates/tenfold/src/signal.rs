//! SIGINT and SIGTERM as a value that everything can wait for.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::outcome::Signal;

/// Clones see the same signal.
#[derive(Clone, Debug)]
pub struct Stop {
    received: watch::Receiver<Option<Signal>>,
}

impl Stop {
    /// Takes over both signals. A second one ends the program at once, with its exit code.
    pub fn listen() -> anyhow::Result<Stop> {
        let why = "cannot handle signals: run Tenfold where SIGINT and SIGTERM are not blocked";
        let mut interrupt = signal(SignalKind::interrupt()).context(why)?;
        let mut terminate = signal(SignalKind::terminate()).context(why)?;
        // Whoever started Tenfold may ignore it, and ignored it is inherited: then the kernel forgets how
        // instances end. Listening ends that; nobody reads it.
        drop(signal(SignalKind::child()).context(why)?);
        let (sender, received) = watch::channel(None);
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                };
                if sender.send_replace(Some(signal)).is_some() {
                    // The guard ends the instances.
                    std::process::exit(if signal == Signal::Interrupt { 130 } else { 143 });
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
