//! Other balancers in front of the instances: nginx and HAProxy, started, configured and read by Tenfold.
//!
//! Tenfold binds the addresses and hands the sockets on, so that connections wait while the program starts, or
//! is started again. One task brings what the program does to what is wanted, see [`reconciler`].
//!
//! - [`installation`]: the program on this machine, and its version.
//! - [`access_log`]: what the program says of each request.
//! - [`engine`]: what the task needs of a program; [`nginx`] and [`haproxy`]: the two that there are.
//! - [`reconciler`]: the task: starts the program, changes its servers, and starts it again.

pub mod access_log;
pub mod engine;
pub mod haproxy;
pub mod installation;
pub mod nginx;
pub mod reconciler;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use balancer::{Address, Timeouts};
use fleet::{Logs, ProcessHost};
use tokio::task::JoinHandle;

use crate::config::BalancerProgram;
use crate::document::idle_connections::IdleConnections;
use access_log::Logged;
use engine::{Engine, Server};
use installation::Installation;
use reconciler::{Beside, Changes};

/// How often a server that is drained is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What the program serves, and how.
#[derive(Clone, Debug)]
pub struct Site {
    /// The app's.
    pub name: String,
    pub listen: Vec<Address>,
    pub threads: usize,
    pub queue: balancer::QueueLimits,
    pub timeouts: Timeouts,
    /// The largest body of a request.
    pub body_bytes: u64,
    /// How long connections may go on in processes that were replaced.
    pub drain: Duration,
}

/// What the program needs to run.
pub struct Setup {
    pub installation: Installation,
    pub host: Arc<ProcessHost>,
    pub site: Site,
    /// The listening sockets.
    pub sockets: Vec<Arc<OwnedFd>>,
    pub logs: PathBuf,
    /// A directory for its files.
    pub directory: PathBuf,
    /// Is told its process each time that it starts.
    pub started: Box<dyn Fn(u32) + Send + Sync>,
    /// Is told each request, with the ids of servers.
    pub answered: Box<dyn Fn(Logged<u64>) + Send + Sync>,
}

/// A balancer that is not Tenfold's own.
pub struct External {
    name: String,
    program: BalancerProgram,
    engine: Arc<dyn Engine>,
    changes: Changes,
    /// Ids of servers by what the log calls them.
    ids: Ids,
    reading: JoinHandle<()>,
    directory: PathBuf,
}

type Ids = Arc<Mutex<HashMap<String, u64>>>;

impl External {
    /// The program starts with its first server.
    pub fn prepare(setup: Setup) -> anyhow::Result<External> {
        let Setup { installation, host, site, sockets, logs, directory, started, answered } = setup;
        let program = installation.program;
        make_directory(&directory)?;
        let fifo = directory.join("access.log");
        let log = access_log::open(&fifo)
            .with_context(|| format!("cannot make {}: free some space", fifo.display()))?;
        let name = installation.describe();
        let logs = Logs::new(logs);
        let engine: Arc<dyn Engine> = match program {
            BalancerProgram::Haproxy => {
                let requests = access_log::writer(&fifo)?;
                Arc::new(haproxy::Haproxy::new(installation, site, &directory, sockets, requests))
            }
            BalancerProgram::Nginx | BalancerProgram::Tenfold => {
                let beside = (Arc::clone(&host), logs.clone());
                Arc::new(nginx::Nginx::new(installation, site, &directory, sockets, beside))
            }
        };
        let ids = Ids::default();
        let (known, parser) = (Arc::clone(&ids), Arc::clone(&engine));
        let reading = tokio::spawn(access_log::read(log, move |line| {
            if let Some(logged) = parser.parse(line) {
                answered(logged.of_ids(&lock(&known)));
            }
        }));
        let beside = Beside { host, logs, started };
        let changes = reconciler::start(Arc::clone(&engine), beside);
        Ok(External { name, program, engine, changes, ids, reading, directory })
    }

    /// Its name and version.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn program(&self) -> BalancerProgram {
        self.program
    }

    /// Returns when the server gets requests.
    ///
    /// # Errors
    /// A sentence, when the program refuses it or does not start.
    pub async fn join(&self, server: Server) -> Result<(), String> {
        let id = server.id;
        lock(&self.ids).insert(self.engine.key(&server), id);
        let joined = self.changes.make(|servers| drop(servers.insert(id, server))).await;
        if joined.is_err() {
            self.lost(id);
        }
        joined
    }

    /// Gives the servers so many requests at once, where the program has a queue.
    ///
    /// # Errors
    /// A sentence, when the program refuses it.
    pub async fn set_slots(&self, slots: usize) -> Result<(), String> {
        if !self.program.has_queue() {
            return Ok(());
        }
        let all = |servers: &mut reconciler::Servers| {
            servers.values_mut().for_each(|server| server.slots = slots);
        };
        self.changes.make(all).await
    }

    /// Keeps or closes connections to the servers as the instances need it. Returns when all are of the new kind.
    ///
    /// # Errors
    /// A sentence, when the program refuses it or does not start.
    pub async fn set_idle_connections(&self, found: IdleConnections) -> Result<(), String> {
        let all = |servers: &mut reconciler::Servers| {
            servers.values_mut().for_each(|server| server.idle_connections = Some(found));
        };
        self.changes.make(all).await?;
        // HAProxy has it in its file alone, and both keep what they have kept.
        self.changes.restart().await
    }

    /// Starts the program anew, without the connections that it kept idle.
    ///
    /// # Errors
    /// A sentence, when it does not start.
    pub async fn restart(&self) -> Result<(), String> {
        self.changes.restart().await
    }

    /// The server is gone.
    pub fn lost(&self, id: u64) {
        lock(&self.ids).retain(|_, known| *known != id);
        self.changes.announce(|servers| drop(servers.remove(&id)));
    }

    /// Gives the server no new request, and returns when it has none or the time is over.
    pub async fn drain(&self, id: u64, deadline: Duration) {
        let until = Instant::now() + deadline;
        let mut drained = None;
        let leave = self.changes.make(|servers| {
            drained = servers.get_mut(&id).map(|server| {
                server.draining = true;
                server.clone()
            });
        });
        let left = tokio::time::timeout(deadline, leave).await;
        if let (Some(server), Ok(Ok(()))) = (drained, left) {
            while Instant::now() < until && !self.engine.is_idle(&server).await {
                tokio::time::sleep(LOOK).await;
            }
        }
        self.lost(id);
    }

    /// Ends it after its requests in flight, or this time.
    pub async fn stop(&self, grace: Duration) {
        self.changes.end(grace).await;
        self.reading.abort();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Drop for External {
    fn drop(&mut self) {
        self.reading.abort();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that only its owner can open. Those of processes that have gone are removed.
fn make_directory(directory: &std::path::Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    for entry in
        directory.parent().and_then(|all| all.read_dir().ok()).into_iter().flatten().flatten()
    {
        if !std::path::Path::new("/proc").join(entry.file_name()).exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory).with_context(|| {
        format!(
            "cannot make {}: set TENFOLD_STATE_DIR to a directory that can be written",
            directory.display()
        )
    })
}
