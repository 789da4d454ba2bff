//! The control of a running `up` or `balance`: HTTP over a Unix socket that only its owner may open,
//! and metrics and status over TCP for everybody who can reach the address.
//!
//! - `api`: the routes.
//! - `connections`: how many there are, and for how long.
//! - `metrics`: what Prometheus scrapes.
//! - `reload`: a file that is read again.
//! - `servers`: adds and removes servers.
//! - `state`: what the routes work on; `status`: what `tenfold status` shows.
//! - [`socket`]: where the sockets are.
//! - `takeover`, `handover`: giving the listening sockets to a new Tenfold.
//! - [`client`]: what `scale`, `status`, `reload`, `server` and `stop` use.

mod api;
pub mod client;
pub mod connections;
mod handover;
mod metrics;
mod reload;
mod servers;
pub mod socket;
mod state;
mod status;
mod takeover;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::serve::Listener;
use balancer::Address;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

pub use api::{Reload, Scale, app_of};
pub use handover::Phase;
pub use servers::{Addition, Removal, Removed};
pub use state::Controlled;
pub use status::{Status, StatusInstance};
pub use takeover::{Sockets, Takeover};

use crate::config::Balancing;
use crate::service::access::{Access, PageUrl};
use connections::{CONTROL_BODY_BYTES, CONTROL_CONNECTIONS, PUBLIC_BODY_BYTES, PUBLIC_CONNECTIONS};
use handover::Handover;
use state::{Pool, State};

/// The open listeners. The socket file goes when this is closed or dropped, unless another Tenfold
/// listens there.
pub struct Admin {
    listen: Vec<Address>,
    urls: Vec<String>,
    page: Option<PageUrl>,
    socket: SocketFile,
    /// The socket, where it is not found by the address.
    named: Option<PathBuf>,
    state: State,
    /// Another process accepts from now on.
    left: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

struct SocketFile(PathBuf);

/// Accepts until another process does.
struct Shared<L> {
    listener: L,
    left: watch::Receiver<bool>,
}

/// A connection that was accepted a moment before brings its request within this time.
const FRESH: Duration = Duration::from_millis(200);

// === impl Admin ===

impl Admin {
    /// Opens the socket and, if asked for, the TCP address; goes on with those of the Tenfold that
    /// ran before, if any. `listen` is where clients connect. `page` is what the TCP address serves beside status
    /// and metrics.
    pub fn open(
        balancing: &Balancing,
        listen: &[Address],
        controlled: Controlled,
        inherited: Sockets,
        page: Router,
    ) -> anyhow::Result<Admin> {
        let public = match balancing.admin {
            Some(address) => Some(open_tcp(address, inherited.public)?),
            None => None,
        };
        let here = public.as_ref().map(TcpListener::local_addr).transpose()?;
        let access =
            here.map(|here| Access::of(here, &balancing.admin_names, balancing.admin_open));
        let access = access.transpose()?;
        let page_url = here.zip(access.as_ref()).map(|(here, access)| access.url(here));
        let path = match &balancing.socket {
            Some(path) => path.clone(),
            None => socket::path(&listen[0])?,
        };
        let urls = balancing.config.listeners.iter().zip(listen);
        let urls: Vec<_> =
            urls.map(|(listener, address)| url(listener.tls.is_some(), address)).collect();
        let listen = listen.to_vec();
        let control = match inherited.control {
            Some(socket) => std::os::unix::net::UnixListener::from(socket),
            None => socket::bind(&path)?,
        };
        let duplicate = |socket: BorrowedFd<'_>| socket.try_clone_to_owned();
        let listening = Sockets {
            clients: Vec::new(),
            control: Some(duplicate(control.as_fd())?),
            public: public.as_ref().map(|socket| duplicate(socket.as_fd())).transpose()?,
        };
        let state = State {
            listen: listen.clone(),
            urls: urls.clone(),
            socket: Arc::from(path.as_path()),
            controlled,
            pools: Pool::all(balancing),
            stop: Arc::new(Notify::new()),
            closed: watch::Sender::new(false),
            handover: Arc::new(Handover::new()),
            listening: Arc::new(Mutex::new(listening)),
        };
        let control = UnixListener::from_std(control)?;
        let mut admin = Admin {
            listen,
            urls,
            page: page_url,
            socket: SocketFile(path),
            named: balancing.socket.clone(),
            state,
            left: watch::Sender::new(false),
            tasks: Vec::new(),
        };
        if let (Some(public), Some(access)) = (public, access) {
            let routes = api::public(admin.state.clone()).merge(page);
            let routes = connections::with_bodies(routes, PUBLIC_BODY_BYTES);
            admin.serve(public, PUBLIC_CONNECTIONS, access.guard(routes));
        }
        let routes = api::control(admin.state.clone());
        let routes = connections::with_bodies(routes, CONTROL_BODY_BYTES);
        admin.serve(control, CONTROL_CONNECTIONS, routes);
        Ok(admin)
    }

    fn serve<L>(&mut self, listener: L, connections: usize, routes: Router)
    where
        L: Listener<Addr: Clone + Sync + 'static>,
    {
        let mut closed = self.state.closed.subscribe();
        let listener = Shared { listener, left: self.left.subscribe() };
        let closed = async move { drop(closed.wait_for(|closed| *closed).await) };
        let serving = connections::serve(listener, connections, routes, closed);
        self.tasks.push(tokio::spawn(serving));
    }

    /// Where clients connect, in a line.
    pub fn clients_connect_to(&self) -> String {
        self.urls.join(", ")
    }

    /// Its address and how to control it, in a line.
    pub fn describe(&self) -> String {
        let page = self.page.as_ref().map_or_else(String::new, |page| {
            format!("page at {page}, metrics at {}/metrics, ", page.origin())
        });
        let which = match &self.named {
            Some(path) => format!("--socket {}", path.display()),
            None => format!("--listen {}", self.listen[0]),
        };
        format!("{page}control: tenfold status {which}")
    }

    /// Resolves when `tenfold stop` asks for it.
    pub async fn stop_asked(&self) {
        self.state.stop.notified().await;
    }

    /// Resolves with the process that has taken over.
    pub async fn taken_over(&self) -> u32 {
        self.state.handover.over().await
    }

    /// Whether somebody takes over.
    pub fn phase(&self) -> Phase {
        self.state.handover.phase()
    }

    /// Leaves new connections to the process that has taken over.
    pub fn leave(&self) {
        // If that process ends too, nobody must wait for an answer of this one.
        *self.state.listening() = Sockets::default();
        self.left.send_replace(true);
        // Who closes a connection before it has brought a request resets it.
        let closed = self.state.closed.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FRESH).await;
            closed.send_replace(true);
        });
    }

    /// Answers what is still to be answered (`stop` waits for the end) and removes the socket.
    pub async fn close(self) {
        if *self.left.borrow() {
            let _ = self.state.closed.subscribe().wait_for(|closed| *closed).await;
        }
        self.state.closed.send_replace(true);
        match self.phase() {
            Phase::Alone | Phase::Asked => drop(self.socket),
            // The file leads to a socket that the other process has, too.
            Phase::Shared(_) | Phase::Over(_) => std::mem::forget(self.socket),
        }
        for task in self.tasks {
            let patience = Duration::from_secs(1);
            let _ = tokio::time::timeout(patience, task).await;
        }
    }
}

impl<L: Listener> Listener for Shared<L> {
    type Io = L::Io;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let left = async { drop(self.left.wait_for(|left| *left).await) };
        tokio::select! {
            biased;
            () = left => std::future::pending().await,
            accepted = self.listener.accept() => accepted,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

fn url(is_tls: bool, address: &Address) -> String {
    match address {
        Address::Tcp(address) if is_tls => format!("https://{address}"),
        Address::Tcp(address) => format!("http://{address}"),
        Address::Unix(_) => address.to_string(),
    }
}

/// Listens on `address`: with the inherited socket if it is there.
pub fn open_tcp(address: SocketAddr, inherited: Option<OwnedFd>) -> anyhow::Result<TcpListener> {
    let inherited = inherited.map(std::net::TcpListener::from);
    let is_there = |l: &std::net::TcpListener| l.local_addr().is_ok_and(|local| local == address);
    let listener = match inherited.filter(is_there) {
        Some(listener) => listener,
        None => std::net::TcpListener::bind(address).with_context(|| {
            format!("cannot listen on {address}: choose another address with --admin")
        })?,
    };
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
