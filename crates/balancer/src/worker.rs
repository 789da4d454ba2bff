//! A data-plane thread: an event loop, a listener an address, the connections it accepted.

use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, broadcast, watch};
use tokio::time::MissedTickBehavior;

use crate::acme::Challenges;
use crate::app::App;
use crate::buffer::Workspace;
use crate::census::{Census, Counted, Item, Usage};
use crate::client::Client;
use crate::config::{AppConfig, AppId, Config};
use crate::connection;
use crate::counters::Tally;
use crate::dispatch::TICK;
use crate::entrance::{self, Entrance};
use crate::health::{self, HealthEvent, HealthEvents};
use crate::listener::BoundSocket;
use crate::listening::Listening;
use crate::log::Log;
use crate::memory;
use crate::peer::{Peer, Scheme};
use crate::router::{Entry, Router};
use crate::stream::ClientStream;
use crate::tls::Keeper;

/// What all threads share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// By [`AppId`].
    pub(crate) apps: Box<[App]>,
    /// Of all apps.
    pub(crate) health_events: broadcast::Sender<HealthEvent>,
    pub(crate) router: Router,
    pub(crate) log: Option<Log>,
    pub(crate) census: Arc<Census>,
    /// By listener.
    pub(crate) entries: Box<[Entry]>,
    /// By listener.
    pub(crate) entrances: Box<[Entrance]>,
    /// By thread.
    pub(crate) tallies: Box<[Mutex<Tally>]>,
    /// Whether connections are accepted yet.
    opened: watch::Sender<bool>,
    /// Duplicates of what the threads listen on, to be handed over.
    pub(crate) listening: Mutex<Vec<OwnedFd>>,
    /// Set before `stop` is signalled.
    pub(crate) stopping: AtomicBool,
    pub(crate) stop: Notify,
    /// Set before `stopping`.
    ending: Mutex<Ending>,
    /// Client connections.
    open: AtomicUsize,
    /// Signalled when a client connection ends.
    closed: Notify,
    /// What an authority may ask for, if there is one.
    pub(crate) challenges: Option<Challenges>,
    /// While the balancer runs, if there is anything to keep.
    keeper: Mutex<Option<Keeper>>,
}

/// Until when connections are served once the balancer stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// A connection without a request; its next one is its last.
    pub(crate) idle: Instant,
    /// A busy one.
    pub(crate) busy: Instant,
}

/// One thread.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
}

/// An open client connection, counted until dropped.
pub(crate) struct Open {
    worker: Arc<Worker>,
    /// As one of its client's, once that is known.
    counted: Option<Counted>,
}

/// How often idle backend connections are looked at, at least.
const SWEEP: Duration = Duration::from_millis(500);

/// What is cut off in the end has so long to say so, to its client and in the log.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long to wait when the process is out of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Shared {
    pub(crate) fn new(
        config: Config,
        entrances: Vec<Entrance>,
        listening: Vec<OwnedFd>,
        log: Option<Log>,
    ) -> Self {
        let health_events = HealthEvents::channel();
        let apps = config.apps.iter().enumerate();
        let app = |(index, app): (usize, &AppConfig)| {
            App::new(AppId::nth(index), app.clone(), config.threads, health_events.clone())
        };
        let challenges = config.acme.as_ref().map(|_| Challenges::default());
        Shared {
            apps: apps.map(app).collect(),
            health_events,
            router: Router::new(&config.routes),
            entries: Entry::all(&config),
            entrances: entrances.into(),
            log,
            census: Census::new(&config.limits),
            tallies: (0..config.threads).map(|_| Mutex::default()).collect(),
            config,
            opened: watch::Sender::new(false),
            listening: Mutex::new(listening),
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            ending: Mutex::new(Ending::at(Instant::now())),
            open: AtomicUsize::new(0),
            closed: Notify::new(),
            challenges,
            keeper: Mutex::new(None),
        }
    }

    pub(crate) fn app(&self, id: AppId) -> &App {
        &self.apps[id.index()]
    }

    /// Replaces the keeper of certificates; waits for the end of the one before.
    pub(crate) fn keep(&self, keeper: Option<Keeper>) {
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = keeper;
    }

    pub(crate) fn reload_certificates(&self) {
        if let Some(keeper) = &*self.keeper.lock().unwrap_or_else(PoisonError::into_inner) {
            keeper.look();
        }
    }

    /// Lets all threads accept.
    pub(crate) fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Tells when they do.
    pub(crate) fn opened(&self) -> watch::Receiver<bool> {
        self.opened.subscribe()
    }

    /// Tells all threads to accept no more, and until when to serve what they have.
    pub(crate) fn stop(&self, ending: Ending) {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = ending;
        self.stopping.store(true, Ordering::SeqCst);
        self.stop.notify_waiters();
    }

    /// Resolves when the balancer stops, also when it does already.
    pub(crate) async fn stopped(&self) {
        let mut stop = pin!(self.stop.notified());
        stop.as_mut().enable();
        if !self.stopping.load(Ordering::SeqCst) {
            stop.await;
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when there may be one more client connection.
    async fn room(&self) {
        while self.open.load(Ordering::SeqCst) >= self.config.limits.connections {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            if self.open.load(Ordering::SeqCst) >= self.config.limits.connections {
                closed.await;
            }
        }
    }
}

impl Ending {
    /// For all connections.
    pub(crate) fn at(instant: Instant) -> Self {
        Ending { idle: instant, busy: instant }
    }
}

impl Worker {
    pub(crate) fn tally(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.shared.tallies[self.index].lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// When what is busy then is cut off, once the balancer stops.
    pub(crate) fn cut_off(&self) -> Option<Instant> {
        let Shared { stopping, .. } = &*self.shared;
        stopping.load(Ordering::Relaxed).then(|| self.shared.ending().busy)
    }

    /// Begins what the access log tells of a request, if there is one; its header is in the first
    /// `most` bytes of the input.
    pub(crate) fn begin_record(&self, space: &mut Workspace, most: usize) {
        if self.shared.log.is_some() {
            space.record.get_or_insert_default().begin(&space.input.filled()[..most]);
        }
    }

    /// The thread's life. Connections that are left when it returns end with the event loop.
    /// Sockets come with their listener's place in the configuration.
    pub(crate) async fn run(self: Arc<Self>, sockets: Vec<(usize, BoundSocket)>) {
        let Config { limits, threads, .. } = &self.shared.config;
        memory::share(limits.memory_bytes / *threads);
        let mut opened = self.shared.opened();
        tokio::select! {
            biased;
            _ = opened.wait_for(|opened| *opened) => {}
            // What waits in the queues is for the process that the sockets came from.
            () = self.shared.stopped() => return,
        }
        for (index, socket) in sockets {
            match Listening::new(socket) {
                Ok(listener) => drop(tokio::spawn(Arc::clone(&self).accept(listener, index))),
                // It was made non-blocking and is bound; only a full epoll table is left.
                Err(error) => panic!("a listener cannot join its event loop: {error}"),
            }
        }
        let sweeper = tokio::spawn(Arc::clone(&self).sweep());
        if self.index == 0 {
            tokio::spawn(Arc::clone(&self).tick());
            tokio::spawn(health::run(Arc::clone(&self)));
        }
        self.shared.stopped().await;
        let idle = async {
            // Accept loops take what the kernel has queued before they end.
            tokio::task::yield_now().await;
            loop {
                let mut closed = pin!(self.shared.closed.notified());
                closed.as_mut().enable();
                if self.shared.open.load(Ordering::SeqCst) == 0 {
                    break;
                }
                closed.await;
            }
        };
        let end = self.shared.ending().busy + LAST_WORDS;
        let _ = tokio::time::timeout_at(end.into(), idle).await;
        sweeper.abort();
    }

    async fn accept(self: Arc<Self>, listener: Listening, index: usize) {
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
                // Out of file descriptors, or a connection that ended before it was taken.
                Some(Err(_)) => tokio::time::sleep(ACCEPT_PAUSE).await,
                None => break,
            }
        }
        // Their handshake is done: these clients would see a reset. Where another process has the
        // socket too, it takes the rest.
        while let Ok((stream, address)) = listener.accept_queued() {
            self.serve(stream, address, index);
        }
    }

    fn serve(self: &Arc<Self>, stream: ClientStream, address: Option<SocketAddr>, listener: usize) {
        let mut open = Open::new(self);
        let peer = Peer { address, scheme: Scheme::Http };
        let worker = Arc::clone(self);
        if !self.shared.entrances[listener].asks_who(address) && !open.enter(address) {
            return;
        }
        if self.shared.entrances[listener].is_open() {
            let client = Client::new(stream, peer, listener, &self.shared.config.forwarding);
            tokio::spawn(connection::serve(client, worker, open));
        } else {
            tokio::spawn(entrance::admit(stream, peer, listener, worker, open));
        }
    }

    /// Tells the dispatchers of all apps that time passes.
    async fn tick(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            self.shared.apps.iter().for_each(|app| app.dispatcher.tick(now));
        }
    }

    async fn sweep(self: Arc<Self>) {
        let longest = self.shared.config.timeouts.backend_idle;
        let often = SWEEP.min(longest / 4).max(Duration::from_millis(1));
        let mut ticks = tokio::time::interval(often);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            for app in &self.shared.apps {
                for standing in app.dispatcher.standings() {
                    standing.backend.sweep(self.index, longest, now);
                }
            }
        }
    }
}

impl Open {
    fn new(worker: &Arc<Worker>) -> Self {
        worker.shared.open.fetch_add(1, Ordering::SeqCst);
        worker.tally(|tally| {
            tally.connections += 1;
            tally.open += 1;
        });
        Open { worker: Arc::clone(worker), counted: None }
    }

    /// Of its client, where that is counted.
    pub(crate) fn usage(&self) -> Option<Arc<Usage>> {
        self.counted.as_ref().map(|counted| Arc::clone(counted.usage()))
    }

    /// Counts the connection as one of its client's; not when it has too many.
    pub(crate) fn enter(&mut self, client: Option<SocketAddr>) -> bool {
        let Shared { census, config, .. } = &*self.worker.shared;
        let address = client.map(|client| client.ip());
        let Some(address) = address.filter(|_| !config.forwarding.trusts(address)) else {
            return true;
        };
        self.counted = census.usage(address).enter(Item::Connection);
        if self.counted.is_none() {
            self.worker.tally(|tally| tally.entrance.refused += 1);
        }
        self.counted.is_some()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Worker { shared, .. } = &*self.worker;
        self.worker.tally(|tally| tally.open -= 1);
        shared.open.fetch_sub(1, Ordering::SeqCst);
        shared.closed.notify_waiters();
    }
}
