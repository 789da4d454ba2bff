//! The control of a running `up` or `balance`: HTTP over a Unix socket that only its owner may open,
//! and metrics and status over TCP for everybody who can reach the address.
//!
//! - `api`: the routes.
//! - `metrics`: what Prometheus scrapes.
//! - [`socket`]: where the sockets are.
//! - [`client`]: what `scale`, `status`, `reload` and `stop` use.

mod api;
pub mod client;
mod metrics;
pub mod socket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::serve::Listener;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

pub use api::{Scale, Status, StatusInstance};

use crate::cli::BalancingArguments;
use crate::rig::Rig;

/// What is controlled.
#[derive(Clone)]
pub enum Controlled {
    /// `up`: fleet and balancer.
    Fleet(Arc<Rig>),
    /// `balance`: the balancer alone.
    Balancer(balancer::Handle),
}

/// The open listeners. The socket file goes when this is closed or dropped.
pub struct Admin {
    listen: SocketAddr,
    address: Option<SocketAddr>,
    socket: SocketFile,
    state: api::State,
    tasks: Vec<JoinHandle<()>>,
}

struct SocketFile(PathBuf);

// === impl Controlled ===

impl Controlled {
    fn handle(&self) -> balancer::Handle {
        match self {
            Controlled::Fleet(rig) => rig.balancer.clone(),
            Controlled::Balancer(handle) => handle.clone(),
        }
    }
}

// === impl Admin ===

impl Admin {
    /// Opens the socket and, if asked for, the TCP address. `listen` is where clients connect.
    pub fn open(
        arguments: &BalancingArguments,
        listen: SocketAddr,
        controlled: Controlled,
    ) -> anyhow::Result<Admin> {
        let path = match &arguments.socket {
            Some(path) => path.clone(),
            None => socket::path(listen)?,
        };
        let unix = socket::bind(&path)?;
        let socket = SocketFile(path);
        let state = api::State {
            listen,
            controlled,
            stop: Arc::new(Notify::new()),
            closed: watch::Sender::new(false),
        };
        let mut admin = Admin { listen, address: None, socket, state, tasks: Vec::new() };
        if let Some(address) = arguments.admin {
            admin.open_tcp(address)?;
        }
        admin.serve(UnixListener::from_std(unix)?, api::control(admin.state.clone()));
        Ok(admin)
    }

    fn open_tcp(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let listener = std::net::TcpListener::bind(address).with_context(|| {
            format!("cannot listen on {address}: choose another address with --admin")
        })?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        self.address = Some(listener.local_addr()?);
        self.serve(listener, api::public(self.state.clone()));
        Ok(())
    }

    fn serve<L>(&mut self, listener: L, router: Router)
    where
        L: Listener,
        L::Addr: std::fmt::Debug,
    {
        let mut closed = self.state.closed.subscribe();
        self.tasks.push(tokio::spawn(async move {
            let closed = async move { drop(closed.wait_for(|closed| *closed).await) };
            let _ = axum::serve(listener, router).with_graceful_shutdown(closed).await;
        }));
    }

    /// Where to find it, in a line.
    pub fn describe(&self) -> String {
        let metrics =
            self.address.map_or_else(String::new, |a| format!("metrics at http://{a}/metrics, "));
        format!("{metrics}control: tenfold status --listen {}", self.listen)
    }

    /// Resolves when `tenfold stop` asks for it.
    pub async fn stop_asked(&self) {
        self.state.stop.notified().await;
    }

    /// Answers what is still to be answered (`stop` waits for the end) and removes the socket.
    pub async fn close(self) {
        self.state.closed.send_replace(true);
        drop(self.socket);
        for task in self.tasks {
            let patience = std::time::Duration::from_secs(1);
            let _ = tokio::time::timeout(patience, task).await;
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
