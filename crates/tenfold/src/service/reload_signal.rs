//! SIGHUP of a service: access logs are reopened, and certificates are read again. Nothing else is: a
//! changed `tenfold.toml` is for a new process that takes over.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::process::signal::{Hangup, Stop};

/// Takes over the signal, unless it means the end.
pub fn listen(stop: &Stop, balancer: balancer::Handle) -> anyhow::Result<()> {
    if stop.hangup() == Hangup::End {
        return Ok(());
    }
    let mut hangup = signal(SignalKind::hangup())
        .context("cannot handle signals: run Tenfold where SIGHUP is not blocked")?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            balancer.reopen_logs();
            let balancer = balancer.clone();
            // Reads files.
            let _ = tokio::task::spawn_blocking(move || balancer.reload_certificates()).await;
        }
    });
    Ok(())
}
