//! The running Tenfold's part in a takeover: who is about to take over, and whether it has.

use std::time::Duration;

use anyhow::Context;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::takeover::{Sockets, Successor};
use crate::terminal::output;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Alone,
    Asked,
    /// The sockets belong to this process too; it does not serve yet.
    Shared(u32),
    /// This process serves.
    Over(u32),
}

/// How long a second one waits for the first to be gone.
const LEAVING: Duration = Duration::from_secs(2);

/// Shared by the route and who waits for it.
#[derive(Debug)]
pub struct Handover {
    phase: watch::Sender<Phase>,
}

impl Handover {
    pub fn new() -> Handover {
        Handover { phase: watch::Sender::new(Phase::Alone) }
    }

    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Resolves with the process that has taken over.
    pub async fn over(&self) -> u32 {
        let mut phase = self.phase.subscribe();
        let over = phase.wait_for(|phase| matches!(phase, Phase::Over(_))).await;
        match over.map(|phase| *phase) {
            Ok(Phase::Over(pid)) => pid,
            _ => std::future::pending().await,
        }
    }

    /// One at a time. One that has failed may be known to have gone a moment later only.
    pub async fn begin(&self) -> Result<(), Phase> {
        let begin = || {
            self.phase.send_if_modified(|phase| {
                let alone = *phase == Phase::Alone;
                if alone {
                    *phase = Phase::Asked;
                }
                alone
            })
        };
        let mut phase = self.phase.subscribe();
        while !begin() {
            let alone = phase.wait_for(|phase| *phase == Phase::Alone);
            if tokio::time::timeout(LEAVING, alone).await.is_err() {
                return Err(self.phase());
            }
        }
        Ok(())
    }

    pub async fn converse(&self, upgrade: OnUpgrade, sockets: Sockets) -> anyhow::Result<()> {
        let upgraded = upgrade.await?;
        let parts = downcast::<TokioIo<UnixStream>>(upgraded).ok();
        let parts = parts.context("its connection is no Unix socket")?;
        let mut successor = Successor::meet(parts.io.into_inner(), &parts.read_buf).await?;
        let pid = successor.pid;
        successor.give(&sockets).await?;
        drop(sockets);
        self.phase.send_replace(Phase::Shared(pid));
        output::tell(format_args!("tenfold: process {pid} is about to take over"));
        successor.serves().await.with_context(|| format!("process {pid} went away"))?;
        self.phase.send_replace(Phase::Over(pid));
        Ok(())
    }

    /// The other process has failed: this one serves alone again.
    pub fn give_up(&self) {
        self.phase.send_replace(Phase::Alone);
    }
}
