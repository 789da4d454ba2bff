//! What the routes work on.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use balancer::{Address, AppId, Backend};
use tokio::sync::{Notify, watch};

use super::handover::Handover;
use super::takeover::Sockets;
use crate::config::{Balancing, Members};
use crate::service::deployment::Deployment;

/// What the routes work on.
#[derive(Clone)]
pub struct State {
    pub listen: Vec<Address>,
    pub urls: Vec<String>,
    /// The path of the control socket.
    pub socket: Arc<Path>,
    pub controlled: Controlled,
    /// Apps whose servers something else runs.
    pub pools: Arc<[Pool]>,
    /// Notified when a stop is asked for.
    pub stop: Arc<Notify>,
    /// True once everything has ended, or another Tenfold answers.
    pub closed: watch::Sender<bool>,
    pub handover: Arc<Handover>,
    /// Duplicates of what is listened on here, until another Tenfold answers.
    pub listening: Arc<Mutex<Sockets>>,
}

/// What the socket controls.
#[derive(Clone)]
pub enum Controlled {
    /// `up`: fleets and balancer.
    Fleets(Arc<Deployment>),
    /// `balance`: the balancer alone.
    Balancer { handle: balancer::Handle, read_again: ReadAgain },
}

/// Reads the arguments and the file of this process again. It may look up names, so it may block.
pub type ReadAgain = Arc<dyn Fn() -> anyhow::Result<Balancing> + Send + Sync>;

/// An app whose servers something else runs.
pub struct Pool {
    pub app: AppId,
    pub name: String,
    /// Settings that its servers share.
    pub backend: Backend,
}

impl Pool {
    pub fn all(balancing: &Balancing) -> Arc<[Pool]> {
        let apps = balancing.config.apps.iter().zip(&balancing.apps);
        let pools = apps.filter_map(|(config, served)| match &served.members {
            Members::Servers { backend, .. } => {
                let (name, backend) = (config.name.clone(), Backend::clone(backend));
                Some(Pool { app: served.id, name, backend })
            }
            Members::Instances { .. } => None,
        });
        pools.collect()
    }
}

/// A refusal: status and sentence. What is asked for wrongly is a bad request, what cannot be done a conflict.
pub type Refusal = (StatusCode, String);

// === impl State ===

impl State {
    pub fn listening(&self) -> MutexGuard<'_, Sockets> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that a successor goes on with.
    pub fn sockets(&self) -> io::Result<Sockets> {
        let listening = self.listening();
        let duplicate = |s: &Option<OwnedFd>| s.as_ref().map(OwnedFd::try_clone).transpose();
        Ok(Sockets {
            clients: self.controlled.handle().listening_sockets()?,
            control: duplicate(&listening.control)?,
            public: duplicate(&listening.public)?,
        })
    }
}

// === impl Controlled ===

impl Controlled {
    pub fn handle(&self) -> balancer::Handle {
        match self {
            Controlled::Fleets(deployment) => deployment.balancer.clone(),
            Controlled::Balancer { handle, .. } => handle.clone(),
        }
    }
}
