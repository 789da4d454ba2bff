//! A data-plane thread: an event loop, a listener for each address, and the connections that it accepted.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use crate::config::Config;
use crate::connection::client::Client;
use crate::connection::client_stream::ClientStream;
use crate::connection::worker::{OpenConnection, Worker};
use crate::net::acceptor::Acceptor;
use crate::net::listener::BoundSocket;
use crate::net::memory;
use crate::net::peer::{Peer, Scheme};
use crate::net::socket::Socket;
use crate::proxy::health_schedule;
use crate::queue::TICK;
use crate::server::{handshake, session};

/// The longest time between two looks at idle backend connections.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// How long connections that are cut off have to tell their client and the log.
const FINAL_ANSWER_TIME: Duration = Duration::from_millis(100);

/// The wait after a failed accept, for lack of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Worker {
    /// Runs the thread. Connections that are left when it returns end with the event loop. Each socket
    /// comes with the index of its listener in the configuration.
    pub(crate) async fn run(self: Arc<Self>, sockets: Vec<(usize, BoundSocket)>) {
        let Config { limits, threads, .. } = &self.shared.config;
        memory::share(limits.memory_bytes / *threads);
        let mut opened = self.shared.opened();
        tokio::select! {
            biased;
            _ = opened.wait_for(|opened| *opened) => {}
            // Queued connections stay for the process that the sockets came from.
            () = self.shared.stopped() => return,
        }
        for (index, socket) in sockets {
            match Acceptor::new(socket) {
                Ok(listener) => drop(tokio::spawn(Arc::clone(&self).accept(listener, index))),
                // The socket is bound and non-blocking, so only a full epoll table can fail.
                Err(error) => panic!("a listener cannot join its event loop: {error}"),
            }
        }
        let sweeper = tokio::spawn(Arc::clone(&self).sweep());
        if self.index == 0 {
            tokio::spawn(Arc::clone(&self).tick());
            tokio::spawn(health_schedule::run(Arc::clone(&self)));
        }
        self.shared.stopped().await;
        let idle = async {
            // Accept loops take what the kernel has queued before they end.
            tokio::task::yield_now().await;
            self.shared.all_closed().await;
        };
        let end = self.shared.shutdown_deadlines().busy + FINAL_ANSWER_TIME;
        let _ = tokio::time::timeout_at(end.into(), idle).await;
        sweeper.abort();
    }

    async fn accept(self: Arc<Self>, listener: Acceptor, index: usize) {
        let mut stopped = pin!(self.shared.stopped());
        loop {
            tokio::select! {
                biased;
                () = self.shared.room() => {}
                () = stopped.as_mut() => break,
            }
            let accepted = std::future::poll_fn(|cx| {
                if stopped.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                listener.poll_accept(cx).map(Some)
            });
            match accepted.await {
                Some(Ok((stream, address))) => self.serve(stream, address, index),
                // The process is out of file descriptors, or the connection ended before it was
                // accepted.
                Some(Err(_)) => tokio::time::sleep(ACCEPT_PAUSE).await,
                None => break,
            }
        }
        // These connections are established, so their clients would see a reset. If another process has
        // the socket too, it takes the rest.
        while let Ok((stream, address)) = listener.accept_queued() {
            self.serve(stream, address, index);
        }
    }

    fn serve(self: &Arc<Self>, socket: Socket, address: Option<SocketAddr>, listener: usize) {
        let mut open = OpenConnection::new(self);
        let stream = ClientStream::from(socket);
        let peer = Peer { address, scheme: Scheme::Http };
        let worker = Arc::clone(self);
        if !self.shared.setups[listener].expects_proxy_header(address) && !open.enter(address) {
            return;
        }
        if self.shared.setups[listener].is_open() {
            let client = Client::new(stream, peer, listener, &self.shared.config.forwarding);
            tokio::spawn(session::serve(client, worker, open));
        } else {
            tokio::spawn(handshake::accept(stream, peer, listener, worker, open));
        }
    }

    /// Calls the queues of all apps regularly.
    async fn tick(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            self.shared.apps.iter().for_each(|app| app.queue.tick(now));
        }
    }

    async fn sweep(self: Arc<Self>) {
        let longest = self.shared.config.timeouts.backend_idle;
        let often = MAX_SWEEP_INTERVAL.min(longest / 4).max(Duration::from_millis(1));
        let mut ticks = tokio::time::interval(often);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            for app in &self.shared.apps {
                for standing in app.queue.statuses() {
                    standing.backend.sweep(self.index, longest, now);
                }
            }
        }
    }
}
